"""The states at which routes to the equations of motion are compared, and the answers that a route gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...algebra.arrays import Numbers
from ...errors import KinetreeError


class NotRun(KinetreeError):
    """A route that cannot take a mechanism, or is not installed; the message says why."""


@contextmanager
def installed() -> Iterator[None]:
    """Turn the import of a package that is missing into NotRun."""
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
    """What a route says of a state: torques of qdd, inertia matrix, gravity and bias torques, accelerations of tau.

    Torques, bias and accelerations are under the external wrenches, gravity is alone; qdd is None where I is singular.
    """

    tau: Numbers
    I: Numbers  # noqa: E741 - the papers' letter
    gravity: Numbers
    bias: Numbers
    qdd: Numbers | None


Solver = Callable[[State], Answers]
