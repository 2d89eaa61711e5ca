"""Options that `simulate` is given: the method and its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from .arguments import number, positive
from .engines.runs import Settings
from .integrators import Method
from .kernels.fixed_steps import ROUNDING

ATTEMPTS = 1_000_000
"""Attempts at steps of an adaptive method where none are asked for: seconds for a robot, and more than smooth motions
need."""

FIXED_STEPS = 10**12
"""Fixed steps where none are asked for: some 30 hours of the smallest mechanism. More of them are a mistake in dt."""


def settings_of(
    method: Method, times: np.ndarray, dt: float | None, rtol: float, atol: float, max_steps: int | None
) -> Settings:
    """Return the numbers of a method: a step, or tolerances."""
    step = None if dt is None else positive(dt, "dt")
    rtol, atol = positive(rtol, "rtol"), positive(atol, "atol")
    most = None if max_steps is None else _whole(max_steps)
    if method.adaptive:
        if dt is not None:
            raise InputError(f"{method.name} chooses its steps: leave dt out, or use rk4, euler, midpoint or gauss")
        first = 1e-3 * float(times[-1] - times[0])
        return Settings(rtol=rtol, atol=atol, first=first, most=most or ATTEMPTS)
    if step is None:
        raise InputError(f"{method.name} takes fixed steps: give dt [s]")
    with np.errstate(over="ignore"):
        count = np.maximum(np.floor(np.diff(times) / step - ROUNDING) + 1, 1).sum()
    if count > (most or FIXED_STEPS):
        raise InputError(
            f"dt is {step:g} s: the run takes {count:.3g} steps, more than max_steps = {most or FIXED_STEPS}; "
            "give a larger dt, or a larger max_steps (--max-steps on the command line)"
        )
    return Settings(dt=step)


def _whole(x: Any) -> int:
    """Return a whole number above zero."""
    value = number(x, "max_steps")
    if value < 1 or value != int(value):
        raise InputError(f"max_steps is {x!r}; give a whole number above zero")
    return int(value)
