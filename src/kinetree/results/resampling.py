"""A run at other times: cubics through states and rates, with normalized quaternions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import joints as joint_kinds
from ..algebra.arrays import Numbers
from ..algebra.quaternions import conjugate, product
from ..algebra.rotations import from_quaternion
from ..algebra.vectors import times as rotated
from ..algebra.vectors import transpose
from ..model.axes import quaternion_places
from ..model.mechanism import Mechanism
from .derived import call_options, is_zeros

if TYPE_CHECKING:
    from .trajectory import Trajectory


def resample(run: Trajectory, times: Numbers) -> dict[str, Numbers]:
    """Return the arrays of a run at times inside it.

    q is the cubic through the coordinates and their rates at both samples around a time. Its error is of the fourth
    order in the step. qd is the same cubic from the accelerations if the run has them, else the rate of the cubic of q,
    with an error of the third order. Torques, accelerations, wrenches, contacts and the reference are linear between
    samples.
    """
    if len(run) == 1:
        return {name: getattr(run, name) for name in [*run._given(), *_shared_columns(run)]}
    k = np.clip(np.searchsorted(run.t, times, side="right") - 1, 0, len(run) - 2)
    h = (run.t[k + 1] - run.t[k])[:, None]
    s = ((times - run.t[k])[:, None]) / h
    rate = run.system.coordinate_rate(run.q, run.qd, **call_options(run))
    mechanism = run.system.mechanism
    q0, q1, d0, d1 = run.q[..., k, :], run.q[..., k + 1, :], rate[..., k, :], rate[..., k + 1, :]
    for at in quaternions(mechanism):
        flip = np.where((q0[..., at] * q1[..., at]).sum(axis=-1, keepdims=True) < 0, -1.0, 1.0)
        q1[..., at] *= flip  # q and -q are the same rotation: take the shorter path
        d1[..., at] *= flip
    q = _cubic(q0, q1, d0, d1, h, s)
    if run.accelerations is not None:
        a = run.accelerations
        qd = _cubic(run.qd[..., k, :], run.qd[..., k + 1, :], a[..., k, :], a[..., k + 1, :], h, s)
    else:
        qd = _speeds(mechanism, q, _cubic_rate(q0, q1, d0, d1, h, s))
    for at in quaternions(mechanism):
        q[..., at] /= np.linalg.norm(q[..., at], axis=-1, keepdims=True)
    out = {"q": q, "qd": qd}
    for name in {*run._given(), *_shared_columns(run)} - set(out):
        values = getattr(run, name)
        if is_zeros(values):
            out[name] = np.broadcast_to(values.flat[0], (*run.shape, len(times), *values.shape[len(run.shape) + 1 :]))
            continue
        axis = 2 if name in ("wrenches", "contact_forces") else 1
        share = s[:, 0].reshape(-1, *(1,) * axis)
        before, after = (np.take(values, i, axis=-1 - axis) for i in (k, k + 1))
        out[name] = (1.0 - share) * before + share * after
    if run.parameters is not None and run.parameters_at_samples is run.parameters:
        out["parameters"] = run.parameters[np.searchsorted(run.t, times, side="right") - 1]  # constant between samples
    return out


def _shared_columns(run: Trajectory) -> list[str]:
    """Return the names of the arrays that all runs of a batch share."""
    return [] if run.reference is None else ["reference"]


def quaternions(mechanism: Mechanism) -> list[slice]:
    """Return the entries of the quaternions in q."""
    return [slice(k, k + 4) for k in quaternion_places(mechanism)]


def _cubic(a: Numbers, b: Numbers, da: Numbers, db: Numbers, h: Numbers, s: Numbers) -> Numbers:
    """Return the Hermite cubic at the fraction s of a step h."""
    r = 1.0 - s
    return r * r * (1.0 + 2.0 * s) * a + s * s * (3.0 - 2.0 * s) * b + h * s * r * (r * da - s * db)


def _cubic_rate(a: Numbers, b: Numbers, da: Numbers, db: Numbers, h: Numbers, s: Numbers) -> Numbers:
    """Return the rate of that cubic."""
    return 6.0 * s * (1.0 - s) * (b - a) / h + (1.0 - s) * (1.0 - 3.0 * s) * da + s * (3.0 * s - 2.0) * db


def _speeds(mechanism: Mechanism, q: Numbers, rate: Numbers) -> Numbers:
    """Return qd for coordinates, whose quaternions may have any length, and their rates."""
    parts = []
    for joint, at in zip(mechanism.joints, mechanism.q_slices, strict=True):
        kind = joint_kinds.kind(joint.kind)
        own, change = q[..., at], rate[..., at]
        if kind.QUATERNION is None:
            parts.append(change)
            continue
        turn = _entries(own[..., -4:] / np.linalg.norm(own[..., -4:], axis=-1, keepdims=True))
        size = np.linalg.norm(own[..., -4:], axis=-1)
        w = product(conjugate(turn), _entries(change[..., -4:]))[:3]  # w/2 = conj(q) o dq; the part along q drops out
        parts.append(np.stack([2.0 * x / size for x in w], axis=-1))
        if kind.QUATERNION:  # a position comes first: its velocity is in the body's axes
            parts.append(np.stack(rotated(transpose(from_quaternion(turn)), _entries(change[..., :3])), axis=-1))
    return np.concatenate(parts, axis=-1) if parts else rate


def _entries(values: Numbers) -> tuple[Any, ...]:
    return tuple(np.moveaxis(values, -1, 0))
