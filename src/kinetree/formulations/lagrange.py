"""Lagrange's equations: energies as functions of the bodies' poses, differentiated by CasADi.

No twist, no propagation and no joint motion P appears: velocities are derivatives of positions and rotations. The local
coordinates delta of a state are those of docs/theory/lagrange.md: q moved by joint velocities delta for a unit of time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import joints as joint_kinds
from .._support.optional import casadi
from ..algebra.rotations import from_euler
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
    coordinates = _moved(mechanism, q, delta)
    poses = _poses(mechanism, coordinates)
    T, V, P = ca.SX(0), ca.SX(0), ca.SX(0)
    for k, (body, (R, o)) in enumerate(zip(resolve_parts(mechanism.bodies, values), poses, strict=True)):
        if body.flexible is not None:
            e = ca.vertcat(*coordinates[k])
            kinetic, center = _flexible(body.flexible.modal.moments, R, o, e, lambda x: _rate(x, delta, speed))
            T += kinetic
            V -= ca.dot(gravity, center)
            P += _power(w[:, k], R, o, lambda x: _rate(x, delta, speed))
            continue
        tensor = np.array(from_moments(body.inertia), dtype=float)
        J = np.trace(tensor) / 2 * np.eye(3) - tensor  # sum m r r^T about the center of mass
        c = o + R @ ca.DM(body.com)
        dc, dR = (_rate(x, delta, speed) for x in (c, R))
        T += (body.mass * ca.sumsqr(dc) + ca.trace(dR @ ca.DM(J) @ dR.T)) / 2
        V -= body.mass * ca.dot(gravity, c)
        P += _power(w[:, k], R, o, lambda x: _rate(x, delta, speed))
    momentum = ca.gradient(T, speed)
    convective = _rate(momentum, delta, speed) - ca.gradient(T, delta)
    results = (momentum, convective, ca.gradient(V, delta), ca.gradient(P, speed))
    here = [ca.substitute(x, delta, ca.DM.zeros(nv)) for x in results]
    return ca.Function("momenta", [q, speed], here[:1]).map(nv), ca.Function("terms", [q, speed, w], here[1:])


def _power(w: Any, R: Any, o: Any, rate: Callable[[Any], Any]) -> Any:
    """Return the power of a wrench on a body, both about its origin in its own axes."""
    ca = casadi()
    turning = R.T @ rate(R)  # omega x
    return ca.dot(w[:3], ca.inv_skew(turning)) + ca.dot(w[3:], R.T @ rate(o))


def _flexible(given: Any, R: Any, o: Any, e: Any, rate: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return the kinetic energy and sum m x of a flexible body, whose points are at o + R (x + Phi e + e^T G e / 2).

    A point has the velocity v + W r + S e' in the body's axes. The moments have the terms of the sums of the squares up
    to the second order in e and e', and the bends, as points of their own, those beyond: docs/theory/flexible.md (6),
    (11).
    """
    ca = casadi()
    de, v, W = rate(e), R.T @ rate(o), R.T @ rate(R)
    mc, J = ca.DM(given.mc), ca.DM(given.J)
    energy = given.m * ca.sumsqr(v)
    for j in range(len(given.p)):
        p, N = ca.DM(given.p[j]), ca.DM(given.N[j])
        slope, swept, square = p, N, N  # of sum m r and of sum m r S_j^T; the last is half of a derivative of J
        for k in range(len(given.p)):
            slope = slope + ca.DM(given.g[j][k]) * e[k]
            swept = swept + ca.DM(given.N1[j][k]) * e[k]
            square = square + ca.DM(given.N1[j][k]) * e[k] / 2
            energy += given.K[j][k] * de[j] * de[k]
        mc = mc + (p + slope) / 2 * e[j]
        J = J + (square + square.T) * e[j]
        energy += 2 * de[j] * (ca.dot(v, slope) + ca.trace(W @ swept))
    energy += 2 * ca.dot(v, W @ mc) + ca.trace(W @ J @ W.T)
    for bend in given.bends:
        first, bent = ca.SX.zeros(3), ca.SX.zeros(3)
        for j in range(len(given.p)):
            first += ca.DM(bend.T[j]) * e[j]
            for k in range(len(given.p)):
                bent += ca.DM(bend.H[j][k]) * e[j] * e[k] / 2
        linear, speed = W @ first + rate(first), W @ (first + bent) + rate(first + bent)
        energy += bend.mass * (ca.sumsqr(speed) - ca.sumsqr(linear))
    return energy / 2, given.m * o + R @ mc


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

    out: list[tuple[object, object]] = []
    bodies, joints = resolve_parts((mechanism.bodies, mechanism.joints), mechanism.values())
    for joint, mine, parent in zip(joints, coordinates, mechanism.parents, strict=True):
        kind = joint_kinds.kind(joint.kind)
        R, o = out[parent] if parent >= 0 else (ca.SX.eye(3), ca.SX.zeros(3))
        if isinstance(kind, joint_kinds.Elastic):  # the deformed body keeps the frame at its joint
            above = bodies[parent].flexible
            node = None if kind.node is None else above.modal.node(kind.node)
            out.append((R, o) if node is None else _at_node(node, R, o, coordinates[parent]))
            continue
        axes = ca.DM(kind.frame(joint))
        before, turn, after = kind.displacement(joint, mine)
        work = R @ ca.DM(joint.placement.rotation) @ axes
        moved = work @ _matrix(turn.matrix())
        o = o + R @ ca.DM(joint.placement.translation) + work @ ca.vertcat(*before) + moved @ ca.vertcat(*after)
        out.append((moved @ axes.T, o))
    return out


def _at_node(node: Any, R: object, o: object, e: list[Any]) -> tuple[Any, Any]:
    """Return the pose of a node, by its displacements and angles as polynomials of the modal coordinates."""
    ca = casadi()
    place, angles = ca.DM(node.x), ca.SX.zeros(3)
    for j, x in enumerate(e):
        place, angles = place + ca.DM(node.Phi[j]) * x, angles + ca.DM(node.Psi[j]) * x
        for k, y in enumerate(e):
            place = place + ca.DM(node.G[j][k]) * x * y / 2
    a, b, c = (angles[k] for k in range(3))
    turn = _matrix(from_euler("zyx", (c, b, a)))
    return R @ turn, o + R @ place


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
