"""Contacts at a state: gaps, velocities, rows of J, and the answers to contact forces, by compiled functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...algebra.arrays import Numbers
from ...compiler.lower.contacts import answer_program, candidate_names
from ...errors import InputError
from ...model.contacts import ContactNumbers
from ...model.mechanism import parameter_arguments
from ...runtime.contact_motion import ContactMotion
from ...runtime.native import native
from ..acting.rates import rates
from ..problem import Problem

GAP = 1e-11
"""The largest gap of contacts that touch, relative to the characteristic length: above the rounding of positions."""
AWAY = 1e-3
"""The gap of a closed contact, relative to the characteristic length, that only the end of a surface explains."""
START = 1e-7
"""The largest gap, or depth, of contacts that touch at the start, relative to the characteristic length: positions are
given with about as many digits, and are corrected."""
SPEED = 1e-9
"""The velocity below which contacts neither approach nor slide, relative to the characteristic velocity sqrt(g l)."""


@dataclass(frozen=True)
class Scales:
    """The characteristic length [m], velocity [m/s] and force [N] of a mechanism with contacts."""

    length: float
    speed: float
    force: float

    @property
    def gap(self) -> float:
        """The largest gap of contacts that touch [m]."""
        return GAP * self.length

    @property
    def still(self) -> float:
        """The velocity below which contacts neither approach nor slide [m/s]."""
        return SPEED * self.speed


class State:
    """The candidates at one state, and the answers to forces at some of them."""

    def __init__(self, functions: Functions, q: np.ndarray, qd: np.ndarray, more: tuple) -> None:
        """Evaluate gaps, velocities, biases and J of all candidates."""
        self._functions, self._q, self._more = functions, q, more
        self.gap, self.v, self.bias, self.J, self.points, self.axes = functions.motion(q, qd, *more)

    def rows(self, which: Sequence[int]) -> np.ndarray:
        """Return J of some candidates [3 k, nv]."""
        return self.J[list(which)].reshape(-1, self.J.shape[-1])

    def answers(self, which: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows of J [3 k, nv], the accelerations X [nv, 3 k] of unit forces there, and W = J X, symmetric."""
        J = self.rows(which)
        X = self._functions.answer(self._q, J, *self._more).T
        W = J @ X
        return J, X, 0.5 * (W + W.T)


def motion_of_contacts(problem: Problem) -> ContactMotion:
    """Return the compiled gaps, velocities, biases, J, points and axes of the contacts of a problem."""
    return problem.kept.part("contact motion", lambda: ContactMotion(problem.mechanism))


class Functions:
    """The compiled functions of a problem with contacts, and its coefficients for one run."""

    def __init__(self, problem: Problem) -> None:
        """Look up or compile the functions."""
        p, kept = problem, problem.kept
        self.problem, self.names = p, candidate_names(p.mechanism)
        self.motion = motion_of_contacts(p)
        self.answer = kept.part("contact answer", lambda: native(answer_program(p.mechanism)))
        self.rates = kept.part(("contact rates", p.acting_key), lambda: native(rates(p.dynamics)))
        self.integrate = p.system.function("integrate").gufunc
        self.closer = p.closer if p.system.closures else None

    def of(self, parameters: np.ndarray | None) -> Coefficients:
        """Return friction, restitution and scales for the free parameters of one run."""
        return Coefficients(self, parameters)


class Coefficients:
    """Friction, restitution and laws of all candidates, by candidate, for the parameters of one run."""

    def __init__(self, functions: Functions, parameters: np.ndarray | None) -> None:
        """Resolve the expressions of all contacts."""
        self.functions, self.names, self.parameters = functions, functions.names, parameters
        self.more: tuple[np.ndarray, ...] = parameter_arguments(parameters)
        values = None if parameters is None else parameters.tolist()
        self._numbers = ContactNumbers.of(functions.problem.mechanism, values)
        spread = self._numbers.by_candidate
        self.mu = self._numbers.friction
        self.restitution = np.array([c.restitution for c in spread])
        self.poisson = np.array([c.law == "poisson" for c in spread])

    @cached_property
    def scales(self) -> Scales:
        """The characteristic length, from the mechanism and the sizes of the contacts, velocity, and weight."""
        return Scales(self._numbers.length, self._numbers.speed, self._numbers.weight)

    def at(self, q: np.ndarray, qd: np.ndarray) -> State:
        """Return the candidates at a state."""
        return State(self.functions, q, qd, self.more)

    def gaps(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return gaps and normal velocities [..., nc] at many states."""
        gap, velocity = self.functions.motion.gaps(q, qd, *self.more)
        return gap, velocity[..., 0]

    def free(self, t: float, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return dq and qdd without contact forces."""
        return self.functions.rates([t], q, qd, *self.more)


# --- Starts with contacts under their surfaces ---


def refuse_depth(names: Sequence[str], gaps: Numbers, allowed: float, remedy: str, start: str = "q0") -> None:
    """Raise InputError if a gap [m] of a start is below zero by more than is allowed; it names the deepest contact."""
    deep = [i for i, gap in enumerate(gaps) if gap < -allowed]
    if not deep:
        return
    worst = min(deep, key=lambda i: gaps[i])
    others = f", and {len(deep) - 1} others" if len(deep) > 1 else ""
    raise InputError(f"{start} puts contact {names[worst]!r} {-gaps[worst]:.6g} m under its surface{others}; {remedy}")
