"""Values of the free parameters of a mechanism, given in order or by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ..errors import unknown_name
from ..numbers import real_array
from .mechanism import Mechanism

Named = ArrayLike | Mapping[str, ArrayLike]
"""Values of all free parameters in order, [..., np], or of some of them by name."""


def in_order(mechanism: Mechanism, given: Named) -> ArrayLike:
    """Return values of all free parameters, [..., np]; those given in order are returned as they are.

    Values by name may be arrays of any shapes that fit together. Parameters that are not named keep their own values.
    """
    if not isinstance(given, Mapping):
        return given
    free = mechanism.free_parameters
    for name in given:
        if name not in [p.name for p in free]:
            raise unknown_name("free parameter", str(name), [p.name for p in free])
    values = [real_array(given.get(p.name, p.value), f"parameter {p.name!r}") for p in free]
    return np.stack(np.broadcast_arrays(*values), axis=-1) if values else np.zeros(0)
