"""Inverse kinematics: positions at which a frame has given poses, by damped least squares in native code."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..._support.checks import generator, leading_shape, positive, whole
from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...errors import Advice, InputError, UnreachableError
from ...model.axes import axis_labels
from ...model.mechanism import Named, inputs_of
from ...model.scales import loop_units
from ...runtime.compiled import CompiledMechanism
from ..joint_entries import as_list, some
from ..loops.kinematics import Mask
from .joint_ranges import Places, Ranges, given_start, null_motions, scaled_jacobian
from .pose_search import PoseSearch, Targets, polish_solutions, targets

# --- Redundant arms: motion in the null space toward the middle of the joints' ranges, with the frame at its target.

ROUNDS = 60
"""The most steps toward the middle; each reduces the distance, or is halved."""
LEAST = 1e-6
"""The decrease of the squared distance, relative to it, below which the search ends."""


def center_in_ranges(search: PoseSearch, q: Numbers, good: Mask) -> Numbers:
    """Return positions [n, nq] nearest to the middle of the ranges among those reached from q with the same pose.

    Distances are relative to half the range of each joint; to half a revolution, or to the characteristic length, for
    joints without limits. Targets that are not `good` stay as they are.
    """
    system, ranges = search.targets.system, search.ranges
    units = loop_units(system.mechanism)[1]
    half = 0.5 * (ranges.upper - ranges.lower)
    half = np.where(np.isfinite(half) & (half > 0), half, np.where(units == 1.0, math.pi, units)) * ranges.free
    middle = np.broadcast_to(ranges.middle(), q.shape)
    q, stride, live = q.copy(), np.ones(len(q)), np.array(good, dtype=bool)
    cost = _distance(search, q, middle, half)
    for _ in range(ROUNDS):
        rows = np.flatnonzero(live)
        if not len(rows):
            break
        part = search.part(rows)
        step = _toward(part, q[rows], middle[rows], half) * stride[rows, None]
        tried, report = part.run(ranges.clipped(system.integrate(q[rows], step)))
        after = _distance(part, tried, middle[rows], half)
        better = (report[:, 0] <= search.tolerance) & (after < cost[rows])
        ended = better & (after > (1.0 - LEAST) * cost[rows])
        q[rows] = np.where(better[:, None], tried, q[rows])
        cost[rows] = np.where(better, after, cost[rows])
        stride[rows] = np.where(better, np.minimum(1.0, 1.5 * stride[rows]), 0.4 * stride[rows])
        live[rows] = ~ended & (stride[rows] > 1e-4)
    return q


def _distance(search: PoseSearch, q: Numbers, middle: Numbers, half: Numbers) -> Numbers:
    away = search.targets.system.difference(middle, q)
    return ((away / np.where(half > 0, half, 1.0)) ** 2 * (half > 0)).sum(axis=-1)


def _toward(search: PoseSearch, q: Numbers, middle: Numbers, half: Numbers) -> Numbers:
    """Return the part of the way to the middle that keeps the pose to first order."""
    t = search.targets
    units = loop_units(t.system.mechanism)[1]
    scale = half / units
    J = scaled_jacobian(t.system, t.frame, t.used, q, search.parameters) * scale
    way = t.system.difference(q, middle) / np.where(half > 0, half, 1.0) * (half > 0)
    return (way - np.einsum("nij,njk,nk->ni", np.linalg.pinv(J, rcond=1e-7), J, way)) * half


# --- Messages about targets that no position reaches ---

NEAREST = "on_failure='nearest' returns the nearest positions"


def reason(result: PoseSolution, targets: Targets, restarts: int) -> Advice:
    """Return the sentence about the first target that is not reached: its errors, joints at limits, and remedies."""
    place = tuple(int(k) for k in np.argwhere(~np.asarray(result.converged))[0])
    system, count = targets.system, int((~np.asarray(result.converged)).sum())
    m = system.mechanism
    which = f"target {list(place)}" if place else "the target"
    head = f"inverse kinematics of {m.name!r}: {which} of {targets.frame!r} is not reached"
    if count > 1:
        head += f", nor are {count - 1} others"
    point = np.round(np.broadcast_to(targets.poses, (*result.q.shape[:-1], 4, 4))[(*place, slice(3), 3)], 6)
    miss = f"{result.position[place]:.3g} m" + (
        f" and {result.rotation[place]:.3g} rad" if any(targets.used[:3]) else ""
    )
    text = f"{head}: the nearest position of {restarts + 1} searches misses the pose at {point.tolist()} by {miss}"
    limited = [name for name, at in zip(axis_labels(m, 1), result.at_limit[place], strict=True) if at]
    if limited:
        text += f", with {some(limited)} at a limit"
    asked, able = sum(targets.used), system.nv
    if able < asked:
        text += f"; {able} degrees of freedom meet {asked} errors only at special targets"
        python = "give weights of zero for errors that do not matter, or a point [3] for the position alone"
        command = "give --weights of zero for errors that do not matter, or --at x,y,z for the position alone"
        return Advice(f"{text}: {python}; {NEAREST}", f"{text}: {command}")
    python = "move the target, give q0 near a solution or more restarts"
    return Advice(f"{text}; {python}; {NEAREST}", f"{text}; move the target, or give --q0 near a solution")


RESTARTS = 100
"""The most searches from random starts: of 20,000 random poses of a UR5 or a Panda, 32 leave three out, 100 none."""
ITERATIONS = 100
"""The most steps of one search; those that succeed take some 12."""
TOLERANCE = 1e-12
"""The largest error [rad, characteristic lengths]."""
ON_FAILURE = ("raise", "nearest", "nan")
PREFER = ("near", "middle")


@dataclass(frozen=True, repr=False)
class PoseSolution(Displayed):
    """Positions at which a frame has given poses, one per target.

    `q` [..., nq] are the positions, `position` [m] and `rotation` [rad] their errors, in the axes with weights.
    `converged` marks the targets that are reached. `iterations` are the steps of the search that found the position,
    and `restarts` the searches before it. `at_limit` [..., nv] marks degrees of freedom at a limit.
    """

    system: CompiledMechanism
    frame: str
    q: Numbers
    position: Numbers
    rotation: Numbers
    converged: Mask
    iterations: Places
    restarts: Places
    at_limit: Mask
    used: tuple[bool, ...] = (True,) * 6
    parameters: Numbers | None = None

    @property
    def nullspace(self) -> Numbers:
        """A basis of the velocities that do not move the frame in the axes with weights, at one position, [nv, k]."""
        if self.q.ndim != 1:
            raise InputError(f"nullspace belongs to one position, but q has shape {self.q.shape}; solve for one target")
        return null_motions(self.system, self.frame, self.used, self.q, self.parameters)

    def display(self) -> list[str | Table]:
        """Return the summary, and the positions with their errors, a row per target."""
        return [self.summary(), positions_table(self.system, self.q, self.position, self.rotation, self.converged)]

    def summary(self) -> str:
        """Return the number of targets reached and the largest errors."""
        count, good = self.converged.size, int(self.converged.sum())
        worst = f"{np.max(self.position, initial=0.0):.2g} m and {np.max(self.rotation, initial=0.0):.2g} rad"
        targets = "the target" if count == 1 else f"{good} of {count} targets"
        verb = "is reached" if count == 1 and good else ("is not reached" if count == 1 else "are reached")
        return f"{self.system.mechanism.name}: {targets} of {self.frame!r} {verb}; the largest errors are {worst}"


def positions_table(
    system: CompiledMechanism, q: Numbers, position: Numbers, rotation: Numbers, reached: Mask | None = None
) -> Table:
    """Return positions [..., nq] and their errors, a row each, with the names of coordinates."""
    states = np.reshape(q, (-1, system.nq))
    marks = [()] * len(states) if reached is None else [("yes" if x else "no",) for x in np.ravel(reached)]
    errors = [(f"{x:.1e}", f"{y:.1e}") for x, y in zip(np.ravel(position), np.ravel(rotation), strict=True)]
    rows = tuple(
        (k, *mark, *error, *map(float, state))
        for k, (mark, error, state) in enumerate(zip(marks, errors, states, strict=True))
    )
    heads = ("", *(() if reached is None else ("reached",)), "position error [m]", "rotation error [rad]")
    return Table((*heads, *axis_labels(system.mechanism, 0)), rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class PoseOptions:
    """The options of `System.inverse_kinematics`, which describes them."""

    q0: ArrayLike | None = None
    weights: ArrayLike | None = None
    hold: str | Iterable[str] = ()
    limits: bool = True
    prefer: str = "near"
    restarts: int = RESTARTS
    iterations: int = ITERATIONS
    tolerance: float = TOLERANCE
    rng: object = 0
    parameters: Named | None = None
    on_failure: str = "raise"

    def __post_init__(self) -> None:
        """Check the choices."""
        for given, name, known in ((self.on_failure, "on_failure", ON_FAILURE), (self.prefer, "prefer", PREFER)):
            if given not in known:
                raise InputError(f"{name} is {given!r}; expected one of {', '.join(map(repr, known))}")

    def start(self, system: CompiledMechanism) -> Numbers | None:
        """Return q0 as positions, None without one; InputError if joints are held without it."""
        if self.q0 is None and as_list(self.hold):
            raise InputError("hold requires q0, the positions of the joints that are held")
        return None if self.q0 is None else given_start(system, self.q0)

    def search(self, system: CompiledMechanism, T: ArrayLike, frame: str) -> PoseSearch:
        """Return the search for positions at which a frame has the poses T."""
        wanted, ranges = targets(system, T, frame, self.weights), Ranges.of(system, limits=self.limits, hold=self.hold)
        tolerance, most = positive(self.tolerance, "tolerance"), whole(self.iterations, "iterations")
        return PoseSearch(wanted, ranges, tolerance, most, inputs_of(system.mechanism, self.parameters))


def inverse_kinematics(system: CompiledMechanism, T: ArrayLike, frame: str, options: PoseOptions) -> PoseSolution:
    """Return positions at which a frame has the poses T [..., 4, 4], or its origin is at the points T [..., 3]."""
    start, search = options.start(system), options.search(system, T, frame)
    wanted, ranges, values = search.targets, search.ranges, search.parameters
    restarts = whole(options.restarts, "restarts", least=0)
    given = (("T", wanted.lead), ("q0", start), ("parameters", values))
    lead = leading_shape((name, x if isinstance(x, tuple) else x.shape[:-1], ()) for name, x in given if x is not None)
    flat = search.flattened(lead, values)
    base = search.first_start() if start is None else start
    q = np.broadcast_to(base, (*lead, system.nq)).reshape(-1, system.nq)
    found = flat.solve(ranges.clipped(q), restarts, generator(options.rng), q)
    reached = polish_solutions(flat, found)
    out = solution(flat, ranges.near(reached, q), found.iterations, found.restarts)
    if options.prefer == "middle":
        out = solution(flat, center_in_ranges(flat, out.q, out.converged), found.iterations, found.restarts)
    if options.on_failure == "raise" and not out.converged.all():
        whole_result = _shaped(out, lead)
        raise UnreachableError(reason(whole_result, wanted, restarts), whole_result)
    if options.on_failure == "nan":
        out = replace(out, q=np.where(out.converged[:, None], out.q, np.nan))
    return _shaped(out, lead)


def solution(search: PoseSearch, q: Numbers, iterations: Places, restarts: Places) -> PoseSolution:
    """Return the solution with errors computed from the poses at q, independently of the search."""
    t: Targets = search.targets
    position, rotation = t.errors(q, search.parameters)
    good = search.accepted(q, position, rotation)
    at_limit = search.ranges.at_limit(q)
    return PoseSolution(
        t.system, t.frame, q, position, rotation, good, iterations, restarts, at_limit, t.used, search.parameters
    )


def _shaped(out: PoseSolution, lead: tuple[int, ...]) -> PoseSolution:
    names = ("q", "position", "rotation", "converged", "iterations", "restarts", "at_limit")
    arrays = {name: getattr(out, name) for name in names}
    shaped = {name: x.reshape(lead + x.shape[1:]) for name, x in arrays.items()}
    parameters = None if out.parameters is None else out.parameters.reshape(*lead, out.parameters.shape[-1])
    return replace(out, parameters=parameters, **shaped)
