"""Gaps of loops that are attributed to rounding, in proportion to the size of a mechanism."""

from __future__ import annotations

from math import ceil, log10

import numpy as np

from ...model.mechanism import Mechanism
from ...model.scales import largest_length

GAP = {"float64": 1e-13, "float32": 5e-6}
"""The largest gap that is not corrected, in radians and in parts of the largest length: the size of rounding errors."""


def allowed_gaps(mechanism: Mechanism, dtype: str = "float64") -> np.ndarray:
    """Return the largest gap of every equation that is not corrected [rad or m]: rounding in a mechanism of this size.

    Gaps in meters are relative to the largest length of the mechanism. A length below one meter is rounded up to a
    power of ten.
    """
    size = largest_length(mechanism)
    size = size if size >= 1.0 else 10.0 ** ceil(log10(size))
    gap = GAP[dtype]
    return np.array([gap * size if e.unit == "m" else gap for e in mechanism.closures])
