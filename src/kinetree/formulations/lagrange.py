"""Lagrange's equations: energies as functions of the bodies' poses, differentiated by CasADi.

No twist, no propagation and no joint motion P appears: velocities are derivatives of positions and rotations. The local
coordinates delta of a state are those of docs/theory/lagrange.md: q moved by joint velocities delta for a unit of time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import joints as joint_kinds
from .._support.optional import casadi
from ..algebra.vectors import from_moments
from ..errors import InputError
from ..model.mechanism import Mechanism, resolve_parts
from .equations import Equations, armatures


@dataclass(frozen=True)
class _Key:
    """A mechanism identified by its digest: hashing all its numbers at every call would dominate the cost."""

    digest: str
    mechanism: Mechanism = field(compare=False)


def equations(
    mechanism: Mechanism, q: ArrayLike, qd: ArrayLike | None = None, wrenches: ArrayLike | None = None
) -> Equations:
    """Return the equations of motion by Lagrange: tau = d/dt dT/dqd - dT/dq + dV/dq - dP/dqd, P the wrenches' power.

    T is a quadratic form of the joint velocities. The columns of its Hessian I are therefore the momenta dT/dqd of unit
    velocities. A drive's armature does not depend on a pose; it is added to the diagonal of I.
    """
    nv, nb = mechanism.nv, len(mechanism.bodies)
    q, qd = _array("q", q, (mechanism.nq,)), _array("qd", np.zeros(nv) if qd is None else qd, (nv,))
    w = _array("wrenches", np.zeros((nb, 6)) if wrenches is None else wrenches, (nb, 6))
    if nv == 0:
        return Equations(np.zeros((0, 0)), np.zeros(0), np.zeros(0), np.zeros(0))
    momenta, terms = _functions(_Key(mechanism.motion_hash, mechanism))
    hessian = np.asarray(momenta(np.tile(q[:, None], nv), np.eye(nv)))
    convective, g, external = (np.asarray(x).ravel() for x in terms(q, qd, w.T))
    inertia = (hessian + hessian.T) / 2 + np.diag(armatures(mechanism))
    return Equations(I=inertia, convective=convective, g=g, external=external)


@lru_cache(maxsize=64)
def _functions(key: _Key) -> tuple[Any, Any]:
    """Return CasADi functions: (q, qd) -> dT/dqd for nv columns at once, and (q, qd, wrenches) -> C qd, g, external."""
    ca = casadi()

    mechanism = key.mechanism
    nv, nb = mechanism.nv, len(mechanism.bodies)
    q, delta, speed = ca.SX.sym("q", mechanism.nq), ca.SX.sym("delta", nv), ca.SX.sym("speed", nv)
    w = ca.SX.sym("w", 6, nb)
    values = mechanism.values()
    gravity = ca.DM(resolve_parts(mechanism.gravity, values))
    poses = _poses(mechanism, _moved(mechanism, q, delta))
    T, V, P = ca.SX(0), ca.SX(0), ca.SX(0)
    for k, (body, (R, o)) in enumerate(zip(resolve_parts(mechanism.bodies, values), poses, strict=True)):
        tensor = np.array(from_moments(body.inertia), dtype=float)
        J = np.trace(tensor) / 2 * np.eye(3) - tensor  # sum m r r^T about the center of mass
        c = o + R @ ca.DM(body.com)
        dc, do, dR = (_rate(x, delta, speed) for x in (c, o, R))
        T += (body.mass * ca.sumsqr(dc) + ca.trace(dR @ ca.DM(J) @ dR.T)) / 2
        V -= body.mass * ca.dot(gravity, c)
        turning = R.T @ dR  # omega x, in the body's axes
        P += ca.dot(w[:3, k], ca.inv_skew(turning)) + ca.dot(w[3:, k], R.T @ do)
    momentum = ca.gradient(T, speed)
    convective = _rate(momentum, delta, speed) - ca.gradient(T, delta)
    results = (momentum, convective, ca.gradient(V, delta), ca.gradient(P, speed))
    here = [ca.substitute(x, delta, ca.DM.zeros(nv)) for x in results]
    return ca.Function("momenta", [q, speed], here[:1]).map(nv), ca.Function("terms", [q, speed, w], here[1:])


def _moved(mechanism: Mechanism, q: Any, delta: Any) -> list[list[Any]]:
    """Return each joint's coordinates after unit time at joint velocities delta, to second order in delta.

    The solution of dq/dt = r(q, delta) is q + r + r'/2 + ..., with r' the rate of r along r. Two terms suffice for
    two derivatives at delta = 0, and they are polynomials: smooth there for every kind of joint.
    """
    ca = casadi()

    out = []
    joints = resolve_parts(mechanism.joints, mechanism.values())
    for joint, own_q, own_v in zip(joints, mechanism.q_slices, mechanism.v_slices, strict=True):
        kind = joint_kinds.kind(joint.kind)
        mine, step = q[own_q, 0], delta[own_v, 0]  # columns, possibly empty
        r = ca.vertcat(*kind.rate(joint, ca.vertsplit(mine), ca.vertsplit(step))) if kind.NV else ca.SX(0, 1)
        moved = mine + r + _rate(r, q, _embedded(r, own_q.start, mechanism.nq)) / 2
        out.append([moved[k] for k in range(kind.NQ)])
    return out


def _embedded(r: Any, at: int, size: int) -> Any:
    ca = casadi()

    return ca.vertcat(ca.SX.zeros(at), r, ca.SX.zeros(size - at - r.shape[0]))


def _poses(mechanism: Mechanism, coordinates: list[list[Any]]) -> list[tuple[Any, Any]]:
    """Return (R, o) of every body in the ground's frame."""
    ca = casadi()

    out: list[tuple[Any, Any]] = []
    joints = resolve_parts(mechanism.joints, mechanism.values())
    for joint, mine, parent in zip(joints, coordinates, mechanism.parents, strict=True):
        kind = joint_kinds.kind(joint.kind)
        R, o = out[parent] if parent >= 0 else (ca.SX.eye(3), ca.SX.zeros(3))
        axes = ca.DM(kind.frame(joint))
        before, turn, after = kind.displacement(joint, mine)
        work = R @ ca.DM(joint.placement.rotation) @ axes
        moved = work @ _matrix(turn.matrix())
        o = o + R @ ca.DM(joint.placement.translation) + work @ ca.vertcat(*before) + moved @ ca.vertcat(*after)
        out.append((moved @ axes.T, o))
    return out


def _matrix(rows: Any) -> Any:
    ca = casadi()

    return ca.vertcat(*(ca.horzcat(*row) for row in rows))


def _rate(x: Any, along: Any, speed: Any) -> Any:
    """Return the derivative of x along a direction."""
    ca = casadi()

    return ca.reshape(ca.jtimes(ca.vec(x), along, speed), *x.shape)


def _array(name: str, x: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(x, dtype=float)
    if array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}; expected {shape}: one state at a time")
    if not np.isfinite(array).all():
        raise InputError(f"{name} has entries that are not finite")
    return array
