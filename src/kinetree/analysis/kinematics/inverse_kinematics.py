"""Inverse kinematics: positions at which a frame has given poses, by damped least squares in native code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...errors import InputError, UnreachableError
from ...joints.random_states import generator
from ...model.parameter_values import Named, in_order
from ...numbers import positive, real_array, whole
from ..loops.kinematics import Mask
from .centering import centered
from .joint_ranges import Places, Ranges, given_start
from .null_motions import null_motions
from .pose_search import PoseSearch
from .pose_targets import Targets, targets
from .singular_polish import polished
from .unreachable import reason

RESTARTS = 100
"""The most searches from random starts: of 20,000 random poses of a UR5 or a Panda, 32 leave three out, 100 none."""
ITERATIONS = 100
"""The most steps of one search; those that succeed take some 12."""
TOLERANCE = 1e-12
"""The largest error [rad, characteristic lengths]."""
ON_FAILURE = ("raise", "nearest", "nan")
PREFER = ("near", "middle")


@dataclass(frozen=True)
class PoseSolution:
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
            raise InputError(f"nullspace is that of one position, but q has shape {self.q.shape}; solve for one target")
        return null_motions(self.system, self.frame, self.used, self.q, self.parameters)

    def __str__(self) -> str:
        """Return the number of targets reached and the largest errors."""
        count, good = self.converged.size, int(self.converged.sum())
        worst = f"{np.max(self.position, initial=0.0):.2g} m and {np.max(self.rotation, initial=0.0):.2g} rad"
        targets = "the target" if count == 1 else f"{good} of {count} targets"
        verb = "is reached" if count == 1 and good else ("is not reached" if count == 1 else "are reached")
        return f"{self.system.mechanism.name}: {targets} of {self.frame!r} {verb}; the largest errors are {worst}"


def inverse_kinematics(
    system: CompiledMechanism,
    T: ArrayLike,
    frame: str,
    *,
    q0: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    hold: str | Iterable[str] = (),
    limits: bool = True,
    prefer: str = "near",
    restarts: int = RESTARTS,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    rng: Any = 0,
    parameters: Named | None = None,
    on_failure: str = "raise",
) -> PoseSolution:
    """Return positions at which a frame has the poses T [..., 4, 4], or its origin is at the points T [..., 3].

    The options are those of `System.inverse_kinematics`.
    """
    for given, name, known in ((on_failure, "on_failure", ON_FAILURE), (prefer, "prefer", PREFER)):
        if given not in known:
            raise InputError(f"{name} is {given!r}; expected one of {', '.join(map(repr, known))}")
    wanted, start = targets(system, T, frame, weights), None if q0 is None else given_start(system, q0)
    ranges = with_start(Ranges.of(system, limits=limits, hold=hold), start)
    restarts, iterations = whole(restarts, "restarts", least=0), whole(iterations, "iterations")
    search = PoseSearch(wanted, ranges, positive(tolerance, "tolerance"), iterations)
    values = parameter_values(system, parameters)
    lead = np.broadcast_shapes(
        wanted.lead, () if start is None else start.shape[:-1], () if values is None else values.shape[:-1]
    )
    flat = search.flattened(lead, values)
    base = search.first_start() if start is None else start
    q = np.broadcast_to(base, (*lead, system.nq)).reshape(-1, system.nq)
    found = flat.solve(ranges.clipped(q), restarts, generator(rng), q)
    reached = polished(flat, found)
    out = solution(flat, ranges.near(reached, q), found.iterations, found.restarts)
    if prefer == "middle":
        out = solution(flat, centered(flat, out.q, out.converged), found.iterations, found.restarts)
    if on_failure == "raise" and not out.converged.all():
        whole_result = _shaped(out, lead)
        raise UnreachableError(reason(whole_result, wanted, restarts), whole_result)
    if on_failure == "nan":
        out = replace(out, q=np.where(out.converged[:, None], out.q, np.nan))
    return _shaped(out, lead)


def with_start(ranges: Ranges, start: Numbers | None) -> Ranges:
    """Return the ranges; InputError if joints are held without a start."""
    if start is None and not ranges.free.all():
        raise InputError("hold requires q0, the positions of the joints that are held")
    return ranges


def parameter_values(system: CompiledMechanism, parameters: Named | None) -> Numbers | None:
    """Return the checked values of the free parameters [..., np]; None without any."""
    if parameters is None:
        return system._nominal
    if system._nominal is None:
        raise InputError(f"{system.mechanism.name!r} has no free parameters; declare them with free = true")
    values, count = real_array(in_order(system.mechanism, parameters), "parameters"), len(system._nominal)
    if values.shape[-1:] != (count,):
        raise InputError(f"parameters have shape {values.shape}; expected [..., {count}]")
    return values


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
