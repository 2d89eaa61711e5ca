"""Modes of contacts: which are closed, and which of these stick or slip; forces and accelerations in a mode."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..outcomes import Ending, Outcome, RunStopped
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
from .touching import Coefficients, State

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
