"""The gaps of loops that rounding leaves, in proportion to the size of a mechanism."""

from __future__ import annotations

from math import ceil, log10

import numpy as np

from ..model.mechanism import Mechanism
from ..model.scales import largest_length

GAP = 1e-13
"""The gap that is left alone: what rounding leaves, in radians and in parts of the largest length."""


def allowed_gaps(mechanism: Mechanism) -> np.ndarray:
    """Return the gap of every equation that is left alone [rad or m]: rounding in a mechanism of this size.

    Metres are counted in the largest length of the mechanism, below a metre in the next power of ten above it.
    """
    size = largest_length(mechanism)
    size = size if size >= 1.0 else 10.0 ** ceil(log10(size))
    return np.array([GAP * size if e.unit == "m" else GAP for e in mechanism.closures])
