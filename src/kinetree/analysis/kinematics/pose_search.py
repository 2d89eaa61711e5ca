"""Searches of many targets at once: the native kernel from given starts, then from random ones where it fails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...compiler.lower.build import is_long
from ...errors import InputError
from ...model.mechanism import parameter_arguments
from ...model.scales import characteristic_length, loop_units
from ...runtime.native import native, native_kernel
from ..loops.batch_assembly import assemble
from ..loops.kinematics import Mask
from .joint_ranges import Places, Ranges
from .pose_kernel import REPORT, PoseEquations, pose_kernel
from .pose_targets import Targets

SPREAD = 0.5
"""The standard deviation of random starts of closed mechanisms from a closed position [rad, characteristic lengths]."""

WORST, SIZE, STEPS = map(REPORT.index, ("worst", "size", "iterations"))


@dataclass(frozen=True)
class Found:
    """Positions [n, nq], half the squares of their errors, the largest error, steps, and the searches before, [n]."""

    q: Numbers
    size: Numbers
    worst: Numbers
    iterations: Places
    restarts: Places


@dataclass(frozen=True)
class PoseSearch:
    """Targets, ranges and settings of a search; after `flattened`, targets and parameters have one leading axis."""

    targets: Targets
    ranges: Ranges
    tolerance: float
    most: int
    parameters: Numbers | None = None

    def flattened(self, lead: tuple[int, ...], parameters: Numbers | None) -> PoseSearch:
        """Return the search with all arrays broadcast to a leading shape, which becomes one axis."""
        t = self.targets
        poses = np.broadcast_to(t.poses, (*lead, 4, 4)).reshape(-1, 4, 4)
        weights = np.broadcast_to(t.weights, (*lead, 6)).reshape(-1, 6)
        if parameters is not None:
            count = parameters.shape[-1]
            parameters = np.broadcast_to(parameters, (*lead, count)).reshape(-1, count)
        return replace(self, targets=replace(t, poses=poses, weights=weights), parameters=parameters)

    def part(self, rows: Places) -> PoseSearch:
        """Return the search of some targets."""
        t, p = self.targets, self.parameters
        own = replace(t, poses=t.poses[rows], weights=t.weights[rows])
        return replace(self, targets=own, parameters=None if p is None else p[rows])

    def first_start(self) -> Numbers:
        """Return the start of the first search without a guess, [nq]: for closed mechanisms, a closed position."""
        system = self.targets.system
        return assemble(system) if system.closures else self.ranges.start()

    def run(self, q: Numbers) -> tuple[Numbers, Numbers]:
        """Return positions [n, nq] and reports [n, 3] of one search per target, from starts [n, nq]."""
        t, r = self.targets, self.ranges
        more = parameter_arguments(self.parameters)
        limits = (r.lower, r.upper, r.free)
        with np.errstate(all="ignore"):
            return self._native()(
                q, t.poses.reshape(-1, 16), t.weights, *limits, *more, self.tolerance, float(self.most)
            )

    def solve(self, q: Numbers, restarts: int, rng: np.random.Generator, held: Numbers) -> Found:
        """Return the first position found that is within the tolerance, else the one with the least error.

        Random starts are the same for all targets, so that a target has the same answer in every batch.
        """
        best, report = self.run(q)
        used = np.zeros(len(q), dtype=int)
        open_ = np.flatnonzero(~(report[:, WORST] <= self.tolerance))
        for k in range(1, restarts + 1):
            if not len(open_):
                break
            rest = self.part(open_)
            found, new = rest.run(rest.restart(held[open_], rng))
            good = new[:, WORST] <= self.tolerance
            better = good | ~(report[open_, SIZE] <= new[:, SIZE])
            rows = open_[better]
            best[rows], report[rows], used[rows] = found[better], new[better], k
            open_ = open_[~good]
        return Found(best, report[:, SIZE], report[:, WORST], report[:, STEPS].astype(int), used)

    def restart(self, held: Numbers, rng: np.random.Generator) -> Numbers:
        """Return one random start for all targets, [n, nq]."""
        system, ranges = self.targets.system, self.ranges
        if system.mechanism.loops:
            step = SPREAD * rng.normal(size=system.nv) * loop_units(system.mechanism)[1]
            return ranges.clipped(system.integrate(held, step * ranges.free))
        drawn = ranges.scattered(1, rng)[0]
        out = np.broadcast_to(drawn, held.shape).copy()
        places = ranges.held_places()
        out[:, places] = held[:, places]
        return out

    def accepted(self, q: Numbers, position: Numbers, rotation: Numbers) -> Mask:
        """Return whether positions [n, nq] with these errors reach their targets with closed loops."""
        system = self.targets.system
        length = characteristic_length(system.mechanism)
        good = (position <= 2 * self.tolerance * length) & (rotation <= 2 * self.tolerance)
        if system.closures:
            more: dict[str, Any] = {} if self.parameters is None else {"parameters": self.parameters}
            gaps = np.abs(system.closure_residual(q, **more)) / loop_units(system.mechanism)[0]
            good &= gaps.max(axis=-1) <= 2 * self.tolerance
        return good

    def errors_at(self, q: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Return F [n, m], A [n, m, nv], half the squared norm of F and the largest error at positions [n, nq]."""
        t, more = self.targets, parameter_arguments(self.parameters)
        equations = PoseEquations(t.system.mechanism, t.frame, t.used)
        program = t.system._parts.part(("pose errors", t.frame, t.used), lambda: native(equations.evaluation()))
        F, A, size, worst = program(q, t.poses.reshape(-1, 16), t.weights, *more)
        return F, A.reshape(len(q), F.shape[-1], -1), size[:, 0], worst[:, 0]

    def _native(self) -> np.ufunc:
        t = self.targets
        m = t.system.mechanism
        if is_long(m) or is_long(m, closed=False):
            raise InputError(
                f"inverse kinematics of {m.name!r}: it is straight-line code, which {len(m.bodies)} bodies make too "
                "long; use a mechanism of up to 64 bodies"
            )
        equations = PoseEquations(m, t.frame, t.used)
        return t.system._parts.part(
            ("inverse kinematics", t.frame, t.used), lambda: native_kernel(pose_kernel(equations))
        )


# --- Last steps toward targets near singular positions, by Newton's method with singular values ---
#
# There the native search advances slowly: the error grows off a curved path along which it is small, and normal
# equations
# lose half of the digits. Steps of Newton's method may increase the error for a while. The best position is returned.

NEAR = 1e-3
"""Half the squared error from which the steps start: farther away, the native search has found a local minimum."""
ROUNDS = 100
"""The most steps; where two solutions meet, each reduces the error to a quarter."""
STRIDE = 0.2
"""The largest entry of a step [rad, characteristic lengths]."""
RANK = 1e-13
"""Directions with smaller singular values, relative to the largest, are rounding errors."""


def polish_solutions(search: PoseSearch, found: Found) -> Numbers:
    """Return the positions found [n, nq], after further steps where the error is small but above the tolerance."""
    rows = np.flatnonzero((found.size <= NEAR) & ~(found.worst <= search.tolerance))
    if not len(rows):
        return found.q
    out, part = found.q.copy(), search.part(rows)
    there = best = out[rows]
    F, A, size, worst = part.errors_at(there)
    for _ in range(ROUNDS):
        there = part.ranges.clipped(part.targets.system.integrate(there, _step(part, there, F, A)))
        F, A, after, new = part.errors_at(there)
        better = after < size
        best = np.where(better[:, None], there, best)
        size, worst = np.where(better, after, size), np.where(better, new, worst)
        if (worst <= search.tolerance).all():
            break
    out[rows] = best
    return out


def _step(search: PoseSearch, q: Numbers, F: Numbers, A: Numbers) -> Numbers:
    """Return steps of Newton's method [n, nv]; degrees of freedom at a limit that would leave the range do not move."""
    ranges = search.ranges
    x = np.zeros((len(q), A.shape[-1]))
    x[:, ranges.v_places] = q[:, ranges.q_places]
    slope = np.einsum("nik,ni->nk", A, F)
    blocked = ((x >= ranges.upper) & (slope > 0)) | ((x <= ranges.lower) & (slope < 0))
    flat = np.ones_like(x, dtype=bool)
    flat[:, ranges.v_places] = False
    U, s, V = np.linalg.svd(A * (ranges.free * (flat | ~blocked))[:, None, :], full_matrices=False)
    inverse = s / (s * s + (RANK * s[:, :1]) ** 2 + 1e-300)
    dq = np.einsum("nki,nk->ni", V, inverse * np.einsum("nik,ni->nk", U, F))
    reach = np.maximum(1.0, np.abs(dq).max(axis=-1, initial=0.0) / STRIDE)
    return dq / reach[:, None] * loop_units(search.targets.system.mechanism)[1]
