"""Targets of inverse kinematics: poses or points with any leading shape, and the weights of their six errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.checks import real_array
from ...algebra.arrays import Numbers
from ...errors import InputError, brief
from ...model.mechanism import GROUND
from ...runtime.compiled import CompiledMechanism

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
