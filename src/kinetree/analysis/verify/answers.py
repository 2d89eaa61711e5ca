"""States at which routes to the equations of motion are compared, and the results of a route at a state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...algebra.arrays import Numbers
from ...errors import KinetreeError


class NotRun(KinetreeError):
    """A route does not support a mechanism, or is not installed; the message gives the reason."""


@contextmanager
def installed() -> Iterator[None]:
    """Raise NotRun in place of the import error of a missing package."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("kinetree"):
            raise
        raise NotRun(f"{error.name} is not installed") from None


@dataclass(frozen=True)
class State:
    """One state: q [nq], qd, qdd and tau [nv], external wrenches [nb, 6], and whether I can be inverted."""

    q: Numbers
    qd: Numbers
    qdd: Numbers
    tau: Numbers
    wrenches: Numbers
    invertible: bool


@dataclass(frozen=True)
class Answers:
    """The results of a route at a state: torques for qdd, inertia matrix, gravity and bias torques, qdd for tau.

    Torques, bias and accelerations include the external wrenches, gravity does not. qdd is None where I is singular.
    """

    tau: Numbers
    I: Numbers  # noqa: E741 - the papers' letter
    gravity: Numbers
    bias: Numbers
    qdd: Numbers | None


Solver = Callable[[State], Answers]
