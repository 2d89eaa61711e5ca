"""Motions of joints from the motion of a frame: straight lines, and splines through poses at given times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..._support.checks import positive, real_array, whole
from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...errors import InputError, UnreachableError
from ...model.flexible import modal_entries
from ...model.mechanism import inputs_of
from ...model.scales import characteristic_length, loop_units
from ...runtime.compiled import CompiledMechanism
from .closed_forms import moving_joints
from .inverse_kinematics import PoseOptions, inverse_kinematics
from .joint_ranges import RANK, scaled_jacobian
from .pose_search import moving_frame, rotation_vectors, targets

JUMP = 0.5
"""The largest difference between a position and its prediction from the one before [rad, characteristic lengths]: a
larger one is another solution."""


@dataclass(frozen=True, repr=False)
class CartesianMotion(Displayed):
    """The motion of joints that moves a frame along a path: times [n], q [n, nq], qd and qdd [n, nv], poses [n, 4, 4].

    `position` [m] and `rotation` [rad] are the errors of the poses. `manipulability` [n] is the smallest singular value
    of the frame's Jacobian relative to the largest, near zero at singular positions.
    """

    t: Numbers
    q: Numbers
    qd: Numbers
    qdd: Numbers
    poses: Numbers
    position: Numbers
    rotation: Numbers
    manipulability: Numbers

    def display(self) -> list[str | Table]:
        """Return the largest errors, the time at which the frame is nearest to a singular position, and the ends."""
        worst = int(np.argmin(self.manipulability))
        ends = tuple((float(self.t[k]), *map(float, self.q[k])) for k in (0, -1))
        return [
            f"{len(self.t):,} positions over {self.t[-1] - self.t[0]:g} s; errors of the poses up to "
            f"{np.abs(self.position).max():.3g} m and {np.abs(self.rotation).max():.3g} rad",
            f"least manipulability {self.manipulability[worst]:.4g} at t = {self.t[worst]:g} s",
            Table(("t", *(f"q[{k}]" for k in range(self.q.shape[-1]))), ends),
        ]


@dataclass(frozen=True)
class PosePath:
    """Poses [n, 4, 4] at times [n], with their twists and twist rates [omega; v] in the ground's axes, [n, 6]."""

    t: Numbers
    poses: Numbers
    twists: Numbers
    rates: Numbers


def cartesian_motion(
    system: CompiledMechanism,
    poses: ArrayLike,
    frame: str,
    options: PoseOptions,
    *,
    times: ArrayLike | None = None,
    duration: float | None = None,
    samples: int = 101,
) -> CartesianMotion:
    """Return the motion of the joints along a path of a frame, with exact velocities and accelerations.

    `System.cartesian_motion` describes the path; the options are those of `System.inverse_kinematics`.
    """
    moving_frame(system, frame)
    if options.weights is not None:
        raise InputError("paths take no weights: all poses [k, 4, 4] or points [k, 3] of a path are reached")
    if moving_joints(system.mechanism, frame) is None or system.nq != system.nv:
        raise InputError(
            f"{system.mechanism.name!r} has loops or couplings on the way to {frame!r}, or quaternions; paths are for "
            "arms of angles and lengths: use inverse_kinematics for single poses"
        )
    wanted = targets(system, poses, frame, None)
    if wanted.poses.ndim != 3 or len(wanted.poses) < 2:
        raise InputError(
            f"the poses of a path have shape {np.shape(poses)}; expected [k, 4, 4] or [k, 3], k of two or more"
        )
    path = _path(wanted.poses, times, duration, whole(samples, "samples", least=2))
    values, used = inputs_of(system.mechanism, options.parameters), wanted.used
    if values is not None:
        system = system.fixed(values)  # every function then has these numbers
    q, errors = _followed(system, path, frame, used, replace(options, parameters=None))
    velocities = _resolved(system, frame, used, q, path)
    J = scaled_jacobian(system, frame, used, q, None)
    s = np.linalg.svd(J[:, : sum(used)])[1]
    rank = int((s > RANK * s.max(axis=-1, keepdims=True)).sum(axis=-1).max())
    measure = s[:, rank - 1] / s[:, 0]
    return CartesianMotion(path.t, q, *velocities, path.poses, *errors, measure)


def _path(poses: Numbers, times: ArrayLike | None, duration: float | None, samples: int) -> PosePath:
    """Return the sampled path: a straight line at rest at both ends, or a spline through poses at times."""
    if times is None:
        if duration is None or len(poses) != 2:
            raise InputError(
                "give the times of the poses, or two poses and the duration of the straight line between them"
            )
        return straight_line(poses[0], poses[1], np.linspace(0.0, positive(duration, "duration"), samples))
    if duration is not None:
        raise InputError("times and duration are given; give one of them")
    at = real_array(times, "times")
    if at.shape != (len(poses),) or not np.isfinite(at).all() or not (np.diff(at) > 0).all():
        raise InputError(f"times have shape {at.shape}; expected {len(poses)} finite numbers that rise, one per pose")
    return spline_path(poses, at, np.linspace(at[0], at[-1], samples))


def straight_line(start: Numbers, end: Numbers, t: Numbers) -> PosePath:
    """Return the straight line between two poses, with rotation about one axis, at rest at both ends (a cycloid)."""
    w = 2 * np.pi / (t[-1] - t[0])
    u = t - t[0]
    s, ds, dds = (
        u * w / (2 * np.pi) - np.sin(w * u) / (2 * np.pi),
        (1 - np.cos(w * u)) * w / (2 * np.pi),
        np.sin(w * u) * w * w / (2 * np.pi),
    )
    turn, way = rotation_vectors(start[:3, :3].T @ end[:3, :3]), end[:3, 3] - start[:3, 3]
    poses = np.broadcast_to(np.eye(4), (len(t), 4, 4)).copy()
    poses[:, :3, :3] = start[:3, :3] @ rotations(s[:, None] * turn)
    poses[:, :3, 3] = start[:3, 3] + s[:, None] * way
    whole_way = np.concatenate([start[:3, :3] @ turn, way])  # the axis is the same in both frames
    return PosePath(t, poses, ds[:, None] * whole_way, dds[:, None] * whole_way)


def spline_path(poses: Numbers, at: Numbers, t: Numbers) -> PosePath:
    """Return a spline through poses: cubic and at rest at both ends for positions, smooth rates for rotations."""
    from scipy.interpolate import CubicSpline
    from scipy.spatial.transform import Rotation, RotationSpline

    place = CubicSpline(at, poses[:, :3, 3], bc_type="clamped")
    turn = RotationSpline(at, Rotation.from_matrix(poses[:, :3, :3]))
    out = np.broadcast_to(np.eye(4), (len(t), 4, 4)).copy()
    out[:, :3, :3], out[:, :3, 3] = turn(t).as_matrix(), place(t)
    rate: Callable[[int], Numbers] = lambda order: np.einsum("nij,nj->ni", out[:, :3, :3], turn(t, order))  # noqa: E731
    twists = np.concatenate([rate(1), place(t, 1)], axis=-1)
    return PosePath(t, out, twists, np.concatenate([rate(2), place(t, 2)], axis=-1))


def rotations(turn: Numbers) -> Numbers:
    """Return the rotation matrices [..., 3, 3] of rotation vectors [rad]."""
    angle = np.linalg.norm(turn, axis=-1)[..., None, None]
    K = np.zeros((*turn.shape[:-1], 3, 3))
    K[..., 0, 1], K[..., 0, 2], K[..., 1, 2] = -turn[..., 2], turn[..., 1], -turn[..., 0]
    K = K - np.swapaxes(K, -1, -2)
    a, b = np.sinc(angle / np.pi), 0.5 * np.sinc(angle / (2 * np.pi)) ** 2
    return np.eye(3) + a * K + b * (K @ K)


def _followed(
    system: CompiledMechanism, path: PosePath, frame: str, used: tuple[bool, ...], options: PoseOptions
) -> tuple[Numbers, tuple[Numbers, Numbers]]:
    """Return the position at each time, found from the one before, and the errors of the poses."""
    weights, (_, units) = np.array(used, dtype=float), loop_units(system.mechanism)
    rows, errors = [], []
    guess = options.q0
    for now, T in zip(path.t, path.poses, strict=True):
        more = replace(options, q0=guess, weights=weights, restarts=0 if rows else options.restarts)
        target = T if any(used[:3]) else T[:3, 3]
        try:
            found = inverse_kinematics(system, target, frame, more)
        except UnreachableError as error:
            raise UnreachableError(f"at t = {now:g} s of the path, {error}", error.result) from None
        if rows and np.abs((found.q - guess) / units).max() > JUMP:
            raise UnreachableError(
                f"at t = {now:g} s of the path, the position jumps by {np.abs((found.q - rows[-1]) / units).max():.3g} "
                f"rad: the path passes a singular position or a joint's limit; give another q0 or more samples",
                found,
            )
        rows.append(found.q)
        errors.append((float(found.position), float(found.rotation)))
        guess = found.q if len(rows) < 2 else 2 * found.q - rows[-2]
    position, rotation = np.array(errors).T
    return np.array(rows), (position, rotation)


def _resolved(
    system: CompiledMechanism, frame: str, used: tuple[bool, ...], q: Numbers, path: PosePath
) -> tuple[Numbers, Numbers]:
    """Return velocities and accelerations: J qd = t and J qdd + dJ/dt qd = dt, of least norm for redundant arms."""
    rows = np.array(used)
    length, (_, units) = characteristic_length(system.mechanism), loop_units(system.mechanism)
    scale = np.repeat([1.0, length], 3)[rows]
    moves = np.ones(system.nv)
    moves[modal_entries(system.mechanism, 1)] = 0.0
    inverse = np.linalg.pinv(system.jacobian(q, frame)[:, rows] / scale[:, None] * (units * moves), rcond=RANK)
    qd = np.einsum("nij,nj->ni", inverse, path.twists[:, rows] / scale) * units
    left = path.rates - np.einsum("nij,nj->ni", system.jacobian_rate(q, qd, frame), qd)
    return qd, np.einsum("nij,nj->ni", inverse, left[:, rows] / scale) * units
