"""Contacts at a state: gaps, velocities, rows of J and answers to forces by compiled functions; and their modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...algebra.scalars import Numbers
from ...compiler.lower.contacts import answer_program, candidate_names
from ...errors import InputError
from ...model.contacts import ContactNumbers
from ...model.mechanism import parameter_arguments
from ...runtime.contact_motion import ContactMotion
from ...runtime.native import native
from ..acting.rates import rates
from ..outcomes import Ending, Outcome, RunStopped
from ..problem import Problem
from .cone_problem import (
    RANK,
    ConeProblem,
    ConeSolution,
    NoForces,
    directions_of_forces,
    rows_at_rest,
    shift_into_cones,
    solve,
)

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


# --- Modes: which contacts are closed, and which of these stick or slip; forces and accelerations in a mode ---


SLOPE = 1e-6
"""The least normal answer W_nn - mu W_nt . d of a sliding contact, relative to W_nn, that is not a Painleve state."""
BEGIN = 1e4
"""The velocity up to which a slip is beginning, relative to the limit for contacts at rest: some 1e-5 m/s.

Friction turns such a velocity into its direction within microseconds. Integrating this would be stiff."""
SLACK = 1e-9
"""The violation of the cone, or of a normal force of zero, that is accepted in a mode, relative to the forces."""

Coordinates = tuple[np.ndarray, np.ndarray]
"""Positions and velocities of a mechanism."""


@dataclass(frozen=True)
class Mode:
    """The closed candidates, in order; `slip` has the direction of slip (t1, t2) of those that slide.

    Those in `begins` have slipped since they stuck, with a velocity that is still small.
    """

    closed: tuple[int, ...] = ()
    slip: dict[int, np.ndarray] = field(default_factory=dict)
    begins: frozenset[int] = frozenset()

    @property
    def sticks(self) -> tuple[int, ...]:
        """The closed candidates that stick."""
        return tuple(i for i in self.closed if i not in self.slip)


@dataclass(frozen=True)
class ModeForces:
    """Accelerations in a mode, with the forces of the closed candidates [k, 3] and their relative accelerations."""

    qdd: np.ndarray
    forces: np.ndarray
    rates: np.ndarray
    unit: float
    unique: bool = True


class PainleveError(RunStopped):
    """A sliding contact at which rigid bodies with Coulomb friction have no unique forces."""


def directions(mode: Mode, state: State, still: float) -> np.ndarray:
    """Return the direction of slip of each closed candidate [k, 2], NaN where it sticks.

    It is that of the velocity, reversed beyond a stop so that it continues: a step of the integrator may go past it.
    """
    out = np.full((len(mode.closed), 2), np.nan)
    for k, i in enumerate(mode.closed):
        if i not in mode.slip:
            continue
        known, v = mode.slip[i], state.v[i, 1:]
        speed = float(np.hypot(v[0], v[1]))
        out[k] = known if speed <= still else v * (np.copysign(1.0, v @ known) / speed)
    return out


def accelerations(given: Coefficients, mode: Mode, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Return dq and qdd as one array, with the forces of the mode."""
    dq, free = given.free(t, q, qd)
    if not mode.closed:
        return np.concatenate([dq, free])
    state = given.at(q, qd)
    return np.concatenate([dq, mode_forces(given, mode, state, free).qdd])


def mode_forces(given: Coefficients, mode: Mode, state: State, free: np.ndarray) -> ModeForces:
    """Return the forces that keep the mode: no normal acceleration, and no tangential one where it sticks."""
    closed = list(mode.closed)
    if not closed:
        return ModeForces(free, np.zeros((0, 3)), np.zeros((0, 3)), 1.0)
    J, X, W = state.answers(closed)
    b = J @ free + state.bias[closed].ravel()
    d, mu = directions(mode, state, 0.01 * given.scales.still), given.mu[closed]
    _begin_to_slip(given, mode, state, ConeProblem.of(W, b, mu), d)
    kinds = _kinds(d)
    basis, rows = directions_of_forces(kinds, mu, d), rows_at_rest(kinds)
    A = (W @ basis)[rows]
    z, unique = _solution(A, -b[rows])
    f = basis @ z
    unit = float(np.abs(b).max(initial=0.0) / np.diag(W).max()) + float(np.abs(f).max(initial=0.0))
    return ModeForces(free + X @ f, f.reshape(-1, 3), (b + W @ f).reshape(-1, 3), unit or 1.0, unique)


def _begin_to_slip(given: Coefficients, mode: Mode, state: State, problem: ConeProblem, d: np.ndarray) -> None:
    """Set the directions of contacts that have hardly begun to slip to those that their accelerations require.

    Friction turns a small velocity into the direction in which it agrees with the acceleration. The smaller the
    velocity, the faster: when slip begins, the cone problem at rest gives the direction.
    """
    slow = [k for k, i in enumerate(mode.closed) if i in mode.begins]
    if not slow:
        return
    rays = d.copy()
    rays[slow] = np.nan
    try:
        f = solve(replace(problem, rays=rays)).forces
    except NoForces:
        return
    for k in slow:
        size = np.hypot(f[k, 1], f[k, 2])
        v = state.v[mode.closed[k], 1:]
        begins = size > 0 and size >= problem.mu[k] * f[k, 0] * (1 - SLACK)
        if begins and -(f[k, 1:] @ v) >= -0.01 * given.scales.still * size:  # not about to stop and reverse
            d[k] = -f[k, 1:] / size


def _kinds(d: np.ndarray) -> list[str]:
    """Return the modes of closed contacts with directions of slip: they stick where there is none."""
    return ["stick" if np.isnan(along[0]) else "ray" for along in d]


def _solution(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the solution of least norm, and whether it is the only one."""
    if len(A) == 1:
        return b / A[0], True
    z, _, rank, _ = np.linalg.lstsq(A, b, rcond=RANK)
    return z, bool(rank == len(A))


def cone_problem(given: Coefficients, closed: list[int], state: State, free: np.ndarray, slip: dict) -> ConeProblem:
    """Return the problem of accelerations of closed candidates; those in `slip` slide in their direction."""
    J, _, W = state.answers(closed)
    b = (J @ free + state.bias[closed].ravel()).reshape(-1, 3)
    rays = np.array([slip.get(i, (np.nan, np.nan)) for i in closed], dtype=float).reshape(-1, 2)
    return ConeProblem.of(W, b, given.mu[closed], rays)


def refuse_painleve(given: Coefficients, mode: Mode, state: State) -> None:
    """Raise PainleveError if a sliding candidate answers to its own force by no acceleration, or a negative one."""
    if not mode.slip:
        return
    closed = list(mode.closed)
    _, _, W = state.answers(closed)
    for k, d in enumerate(directions(mode, state, 0.01 * given.scales.still)):
        if np.isnan(d[0]):
            continue
        row = W[3 * k, 3 * k : 3 * k + 3]
        if row[0] - given.mu[closed[k]] * (row[1:] @ d) < SLOPE * row[0]:
            text = (
                f"Painleve state of contact {given.names[closed[k]]!r}: it slides with friction "
                f"{given.mu[closed[k]]:g}, and its normal force pushes the body into the surface; rigid bodies with "
                "Coulomb friction have no unique forces here: use less friction, or GroundForce"
            )
            raise PainleveError(Ending(Outcome.CONTACT, text))


def feasible(given: Coefficients, mode: Mode, state: State, free: np.ndarray) -> tuple[ModeForces, list[int]]:
    """Return the forces of a mode, and the closed candidates that violate it.

    Where forces are not unique, as at four corners, others with the same accelerations are searched for.
    """
    found = mode_forces(given, mode, state, free)
    wrong = find_violations(given, mode, found)
    if not wrong or found.unique:
        return found, wrong
    closed = list(mode.closed)
    _, _, W = state.answers(closed)
    d = directions(mode, state, 0.01 * given.scales.still)
    mu, kinds = given.mu[closed], _kinds(d)
    basis = directions_of_forces(kinds, mu, d)
    other = shift_into_cones(found.forces, (W @ basis)[rows_at_rest(kinds)], basis, kinds, mu, d)
    return (found, wrong) if other is None else (replace(found, forces=other), [])


def find_violations(given: Coefficients, mode: Mode, found: ModeForces) -> list[int]:
    """Return the closed candidates whose force pulls, or lies outside of the cone."""
    out, slack = [], SLACK * found.unit
    for i, f in zip(mode.closed, found.forces, strict=True):
        size = np.hypot(f[1], f[2])
        if f[0] < -slack or (i not in mode.slip and size > given.mu[i] * f[0] + slack):
            out.append(i)
    return out


def choose_mode(
    given: Coefficients, closed: list[int], state: State, free: np.ndarray, *, now: Any = ()
) -> tuple[Mode, ConeSolution | None]:
    """Return the mode that the velocities and the forces of closed candidates require.

    Those in `now` violated the last mode: a force on the border of its cone slips then, and one of zero opens.
    """
    if not closed:
        return Mode(), None
    slip: dict[int, np.ndarray] = {}
    for i in closed:
        v = state.v[i, 1:]
        speed = float(np.hypot(*v))
        if given.mu[i] == 0.0:
            slip[i] = v / speed if speed > 0 else np.array([1.0, 0.0])
        elif speed > given.scales.still:
            slip[i] = v / speed
    refuse_painleve(given, Mode(tuple(closed), slip), state)
    problem = cone_problem(given, closed, state, free, slip)
    try:
        found = solve(problem)
    except NoForces as error:
        names = ", ".join(repr(given.names[i]) for i in closed)
        what = f"contacts {names}: {error}; rigid bodies with Coulomb friction allow no motion here"
        raise PainleveError(Ending(Outcome.CONTACT, what)) from None
    unit = float(np.abs(found.forces).max(initial=0.0))
    rate = problem.speed_of(found.forces)
    kept: list[int] = []
    for i, f, a in zip(closed, found.forces, found.velocities, strict=True):
        if a[0] > SLACK * rate or (i in now and f[0] <= 10 * SLACK * unit):
            slip.pop(i, None)
            continue
        kept.append(i)
        if i in slip:
            continue
        size, most = float(np.hypot(f[1], f[2])), given.mu[i] * f[0]
        if np.hypot(a[1], a[2]) > SLACK * rate or (i in now and size >= most - 10 * SLACK * unit and size > 0):
            slip[i] = -f[1:] / size if size > SLACK * unit else a[1:] / np.hypot(a[1], a[2])
    slip = {i: d for i, d in slip.items() if i in kept}
    begins = (i for i in slip if given.mu[i] > 0 and np.hypot(*state.v[i, 1:]) <= given.scales.still)
    return Mode(tuple(kept), slip, frozenset(begins)), found
