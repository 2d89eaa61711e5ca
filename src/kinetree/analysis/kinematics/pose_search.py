"""Searches of many targets at once: poses or points, from given starts in native code, then from random ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.checks import real_array
from ...algebra.scalars import Numbers
from ...compiler.lower.build import is_long
from ...errors import InputError, brief
from ...model.mechanism import GROUND, parameter_arguments
from ...model.scales import characteristic_length, loop_units
from ...runtime.compiled import CompiledMechanism
from ...runtime.native import native, native_kernel
from ..loops.batch_assembly import assemble
from ..loops.kinematics import Mask
from .joint_ranges import Places, Ranges
from .pose_kernel import REPORT, PoseEquations, pose_kernel

# --- Targets: poses or points with any leading shape, and the weights of their six errors ---


RIGID = 1e-6
"""The largest deviation of a target from a rotation: rounded input passes, scaled axes and left-handed ones do not."""


@dataclass(frozen=True)
class Targets:
    """Targets of one frame: poses [..., 4, 4], and weights [..., 6] of the errors [rotation; position]."""

    system: CompiledMechanism
    frame: str
    poses: Numbers
    weights: Numbers
    used: tuple[bool, ...]

    @property
    def lead(self) -> tuple[int, ...]:
        """The leading shape."""
        return np.broadcast_shapes(self.poses.shape[:-2], self.weights.shape[:-1])

    def errors(self, q: Numbers, parameters: Numbers | None) -> tuple[Numbers, Numbers]:
        """Return the errors of positions q [..., nq] in the axes that are used: position [m] and rotation [rad]."""
        more: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
        T, at = self.system.pose(q, self.frame, **more), np.array(self.used)
        turn = rotation_vectors(np.swapaxes(T[..., :3, :3], -1, -2) @ self.poses[..., :3, :3])
        away = self.poses[..., :3, 3] - T[..., :3, 3]
        shift = np.einsum("...ji,...j->...i", self.poses[..., :3, :3], away)
        return np.linalg.norm(shift * at[3:], axis=-1), np.linalg.norm(turn * at[:3], axis=-1)


def targets(system: CompiledMechanism, T: ArrayLike, frame: str, weights: ArrayLike | None) -> Targets:
    """Return the checked targets of poses [..., 4, 4] or (x, y, z, roll, pitch, yaw) [..., 6], or points [..., 3]."""
    moving_frame(system, frame)
    given = real_array(T, "the target")
    if given.shape[-1:] == (6,):
        given = poses_of(given)
    if given.shape[-2:] == (4, 4):
        poses, usual = _poses(given), (1.0,) * 6
    elif given.shape[-1:] == (3,):
        poses, usual = np.broadcast_to(np.eye(4), (*given.shape[:-1], 4, 4)).copy(), (0.0, 0.0, 0.0, 1.0, 1.0, 1.0)
        poses[..., :3, 3] = given
    else:
        raise InputError(
            f"the target has shape {given.shape}; expected poses [..., 4, 4] or [..., 6], or points [..., 3]"
        )
    if not np.isfinite(poses).all():
        raise InputError("the target has entries that are not finite; give finite numbers")
    chosen = np.array(usual) if weights is None else _weights(weights, given.shape[-2:] == (4, 4))
    used = tuple(bool(x) for x in np.any(chosen.reshape(-1, 6) > 0, axis=0))
    return Targets(system, frame, poses, chosen, used)


def poses_of(given: Numbers) -> Numbers:
    """Return the poses of (x, y, z, roll, pitch, yaw) [..., 6]: Rz(yaw) Ry(pitch) Rx(roll) [m, rad]."""
    (cr, cp, cy), (sr, sp, sy) = (np.moveaxis(f(given[..., 3:]), -1, 0) for f in (np.cos, np.sin))
    out = np.broadcast_to(np.eye(4), (*given.shape[:-1], 4, 4)).copy()
    out[..., 0, 0], out[..., 0, 1], out[..., 0, 2] = cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr
    out[..., 1, 0], out[..., 1, 1], out[..., 1, 2] = sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr
    out[..., 2, 0], out[..., 2, 1], out[..., 2, 2] = -sp, cp * sr, cp * cr
    out[..., :3, 3] = given[..., :3]
    return out


def moving_frame(system: CompiledMechanism, frame: str) -> None:
    """Refuse a frame that does not exist or does not move."""
    if not isinstance(frame, str):
        raise InputError(f"frame is {brief(frame)}; expected one of {', '.join(system.mechanism.frame_names)}")
    if system.mechanism.frame(frame).body == GROUND:
        raise InputError(f"frame {frame!r} is fixed to the ground; no joint moves it")


def _poses(given: Numbers) -> Numbers:
    """Return poses whose rotations are exact to rounding; InputError if one is not a rigid displacement."""
    R, last = given[..., :3, :3], given[..., 3, :]
    square = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2))
    wrong = ~((square <= RIGID) & (np.linalg.det(R) > 0) & (np.abs(last - (0, 0, 0, 1)).max(axis=-1) <= RIGID))
    if wrong.any():
        place = [int(k) for k in np.argwhere(wrong)[0]]
        raise InputError(
            f"target{f' {place}' if place else ''} is not a pose: its rotation must have orthonormal columns and "
            "determinant 1, and its last row must be (0, 0, 0, 1)"
        )
    U, _, V = np.linalg.svd(R)
    out = given.copy()
    out[..., :3, :3] = np.where((square <= 1e-14)[..., None, None], R, U @ V)
    return out


def _weights(given: ArrayLike, rotations: bool) -> Numbers:
    """Return weights [..., 6], none negative, some positive."""
    weights = real_array(given, "weights")
    if weights.shape[-1:] != (6,):
        raise InputError(
            f"weights have shape {weights.shape}; expected 6 numbers, three of the rotation and three of the position, "
            "such as (0, 0, 0, 1, 1, 1)"
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InputError(f"weights are {brief(weights.tolist())}; expected finite numbers of zero or more")
    if not (weights > 0).any(axis=-1).all():
        raise InputError("weights are all zero; give at least one above zero")
    pattern = weights.reshape(-1, 6) > 0
    if (pattern != pattern[0]).any():
        raise InputError("weights are zero for some targets and not for others; solve these targets in separate calls")
    if not rotations and pattern[0, :3].any():
        raise InputError("weights of a rotation are given for points; give poses [..., 4, 4]")
    return weights


def rotation_vectors(R: Numbers) -> Numbers:
    """Return the rotation vectors [rad] of rotation matrices [..., 3, 3], the shorter ones."""
    skew = 0.5 * np.stack(
        [R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], axis=-1
    )
    sine, cosine = np.linalg.norm(skew, axis=-1), 0.5 * (np.trace(R, axis1=-2, axis2=-1) - 1.0)
    angle = np.arctan2(sine, cosine)
    with np.errstate(all="ignore"):
        turn = skew * np.where(sine > 0, angle / np.where(sine > 0, sine, 1.0), 1.0)[..., None]
    flat = (cosine < 0) & (sine < 1e-3)  # near half a revolution the axis comes from the symmetric part
    if flat.any():
        S = 0.5 * (R + np.swapaxes(R, -1, -2)) + np.eye(3)
        place = np.argmax(np.diagonal(S, axis1=-2, axis2=-1), axis=-1)
        axis = np.take_along_axis(S, place[..., None, None], axis=-1)[..., 0]
        axis = axis / np.linalg.norm(axis, axis=-1, keepdims=True)
        side = np.where((axis * skew).sum(axis=-1) < 0, -1.0, 1.0)
        turn = np.where(flat[..., None], axis * (side * angle)[..., None], turn)
    return turn


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
# equations lose half of the digits. Steps of Newton's method may increase the error for a while. The best position is
# returned.

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
