"""All solutions of inverse kinematics: by closed forms where the arm has one, else by searches from many starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.checks import generator
from ..._support.lazy_names import picture
from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...errors import InputError
from ...runtime.compiled import CompiledMechanism
from ..joint_entries import as_list
from .closed_forms import closed_form, moving_joints, screw_chain
from .inverse_kinematics import PoseOptions, inverse_kinematics, positions_table
from .joint_ranges import RANK, Ranges, null_motions, scaled_jacobian
from .pose_search import PoseSearch, polish_solutions

SEARCH = "search"
STARTS, ROUNDS = 128, 12
"""Random starts of each round of searches, and the most rounds; they end after two rounds without a new solution."""
MOST = 256
"""The number of solutions after which a search ends; the solutions of arms that are not redundant are fewer."""
SAME = 1e-6
"""The largest difference of two positions that count as one solution [rad, m]."""


@dataclass(frozen=True, repr=False)
class AllSolutions(Displayed):
    """All positions found at which a frame has one pose, [count, nq], those nearest to q0 first.

    `position` [m] and `rotation` [rad] are their errors. `method` is the name of the closed form, or SEARCH. A closed
    form finds all solutions (`complete`). A search from many starts usually does. `outside` is the number of solutions
    beyond the joints' limits, which are not listed. `redundant` is the number of degrees of freedom in excess: if there
    are any, solutions are infinitely many, only one is listed, and `nullspace` are the velocities toward others.
    """

    system: CompiledMechanism
    frame: str
    q: Numbers
    position: Numbers
    rotation: Numbers
    method: str
    outside: int
    redundant: int
    nullspace: Numbers

    @property
    def complete(self) -> bool:
        """Whether a closed form was used, which finds all solutions."""
        return self.method != SEARCH

    def plot(self, path: object = None, **options: object) -> Any:
        """Draw the solutions as stick figures, one panel each; return the figure, or write it to `path`."""
        return picture("solutions_plot")(self, path, **options)

    def display(self) -> list[str | Table]:
        """Return the number of solutions and the method, and the positions with their errors."""
        count = "1 solution" if len(self) == 1 else f"{len(self)} solutions"
        beyond = f"; {self.outside} more are beyond the joints' limits" if self.outside else ""
        many = "1 degree" if self.redundant == 1 else f"{self.redundant} degrees"
        free = f" of infinitely many, with {many} of freedom in excess" if self.redundant else ""
        text = f"{self.system.mechanism.name}: {count} for {self.frame!r}{free}, by {self.method}{beyond}"
        return [text, positions_table(self.system, self.q, self.position, self.rotation)]

    def __len__(self) -> int:
        """Return the number of solutions."""
        return len(self.q)


def all_solutions(system: CompiledMechanism, T: ArrayLike, frame: str, options: PoseOptions) -> AllSolutions:
    """Return all positions at which a frame has one pose T [4, 4], or its origin is at one point T [3].

    Joints that do not move the frame stay as in q0.
    """
    start, search = options.start(system), options.search(system, T, frame)
    wanted, ranges, values = search.targets, search.ranges, search.parameters
    if wanted.lead or any(x is not None and x.ndim > 1 for x in (values, start)):
        raise InputError(
            f"all solutions are those of one target with one q0 and one set of parameters; the target has shape "
            f"{np.shape(T)}: call the method for each"
        )
    moving = replace(ranges, free=ranges.free * _moves(system, frame))
    search = replace(search, ranges=moving)
    base = search.first_start() if start is None else start
    extra = _redundancy(search, base)
    if extra:
        one = inverse_kinematics(system, T, frame, replace(options, on_failure="nearest"))
        return _collected(search, one.q[None][: int(one.converged)], SEARCH, redundant=extra)
    chain = None if as_list(options.hold) else screw_chain(system, frame, values)
    closed = None if chain is None else closed_form(chain, wanted.poses, wanted.used)
    if chain is None or closed is None:
        return _listed(search, _searched(search, base, generator(options.rng)), base, SEARCH)
    q = np.repeat(base[None], len(closed[1]), axis=0)
    q[:, [x.place for x in chain.screws]] = np.reshape(closed[1], (-1, len(chain.screws)))
    unlimited = replace(moving, lower=np.full(system.nv, -np.inf), upper=np.full(system.nv, np.inf))
    found = _refined(replace(search, ranges=unlimited), q)
    return _listed(search, found, ranges.middle() if start is None else base, f"closed form, {closed[0]}")


def _moves(system: CompiledMechanism, frame: str) -> Numbers:
    """Return 1 for degrees of freedom that may move a frame and 0 for others, [nv]."""
    m = system.mechanism
    moving = moving_joints(m, frame)
    if moving is None:
        return np.ones(m.nv)
    out = np.zeros(m.nv)
    for k in moving:
        out[m.v_slices[k]] = 1.0
    return out


def _redundancy(search: PoseSearch, base: Numbers) -> int:
    """Return by how many the degrees of freedom exceed the independent equations, away from singular positions."""
    t, free = search.targets, search.ranges.free > 0
    q = base[None]
    if not t.system.mechanism.loops:
        q = np.concatenate([q, search.ranges.scattered(3, np.random.default_rng(0))])
    more = None if search.parameters is None else np.broadcast_to(search.parameters, (len(q), len(search.parameters)))
    s = np.linalg.svd(scaled_jacobian(t.system, t.frame, t.used, q, more)[..., free])[1]
    return int(free.sum()) - int((s > RANK * s.max(axis=-1, keepdims=True)).sum(axis=-1).max(initial=0))


def _refined(search: PoseSearch, q: Numbers) -> Numbers:
    """Return the positions [n, nq] that the search finds from starts and that reach the target."""
    if not len(q):
        return q
    flat = search.flattened((len(q),), search.parameters)
    there = polish_solutions(flat, flat.solve(q, 0, np.random.default_rng(0), q))
    return there[flat.accepted(there, *flat.targets.errors(there, flat.parameters))]


def _searched(search: PoseSearch, base: Numbers, rng: np.random.Generator) -> Numbers:
    """Return the distinct positions found from the base and from random starts, until two rounds find no other."""
    system, ranges = search.targets.system, search.ranges
    found, idle = _distinct(search, _refined(search, ranges.clipped(base)[None])), 0
    for _ in range(ROUNDS):
        starts = np.concatenate([search.restart(base[None], rng) for _ in range(STARTS)])
        more = _distinct(search, np.concatenate([found, ranges.near(_refined(search, starts), base)]))
        idle = idle + 1 if len(more) == len(found) else 0
        found = more
        if idle == 2 or len(found) > MOST:
            break
    return found.reshape(-1, system.nq)


def _distinct(search: PoseSearch, q: Numbers) -> Numbers:
    """Return positions without repetitions; angles that differ by whole revolutions are equal."""
    system, ranges, kept = search.targets.system, search.ranges, []
    for x in q:
        away = [np.abs(_difference(system, ranges, y, x)).max(initial=0.0) for y in kept]
        if not away or min(away) > SAME:
            kept.append(x)
    return np.array(kept).reshape(-1, system.nq)


def _difference(system: CompiledMechanism, ranges: Ranges, a: Numbers, b: Numbers) -> Numbers:
    away = system.difference(a, b)
    return np.where(ranges.angles, (away + math.pi) % (2 * math.pi) - math.pi, away)


def _listed(search: PoseSearch, q: Numbers, base: Numbers, method: str) -> AllSolutions:
    """Return the solutions within the limits, those nearest to a position first."""
    system, ranges = search.targets.system, search.ranges
    kept = _distinct(search, ranges.near(q, base))
    inside = ranges.inside(kept)
    outside, kept = int((~inside).sum()), kept[inside]
    order = np.argsort(
        np.linalg.norm(system.difference(np.broadcast_to(base, kept.shape), kept), axis=-1), kind="stable"
    )
    return _collected(search, kept[order], method, outside=outside)


def _collected(search: PoseSearch, q: Numbers, method: str, *, outside: int = 0, redundant: int = 0) -> AllSolutions:
    t, flat = search.targets, search.flattened((len(q),), search.parameters)
    still = np.zeros((t.system.nv, 0))
    if redundant and len(q):
        still = null_motions(t.system, t.frame, t.used, q[0], search.parameters)
    errors = flat.targets.errors(q, flat.parameters)
    return AllSolutions(t.system, t.frame, q, *errors, method, outside, redundant, still)
