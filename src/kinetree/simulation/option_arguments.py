"""Options that `simulate` is given: the method and its numbers."""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from .engines.runs import Settings
from .integrators import Method


def settings_of(
    method: Method, times: np.ndarray, dt: float | None, rtol: float, atol: float, max_steps: int
) -> Settings:
    """Return the numbers of a method: a step, or tolerances."""
    for name, value in (("dt", dt), ("rtol", rtol), ("atol", atol)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} is {value!r}; expected a positive number")
    if method.adaptive:
        if dt is not None:
            raise InputError(f"{method.name} chooses its steps: leave dt out, or use rk4, euler, midpoint or gauss")
        return Settings(rtol=rtol, atol=atol, first=1e-3 * float(times[-1] - times[0]), most=max_steps)
    if dt is None:
        raise InputError(f"{method.name} takes fixed steps: give dt [s]")
    return Settings(dt=float(dt))
