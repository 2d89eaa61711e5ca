"""Sums of the magnitudes of all terms of inertias, torques and equations of loops: the scale of their rounding errors.

Magnitudes are lengths of vectors and norms of inertias, which do not depend on the axes in which a formulation writes
them. An arm is the whole vector from a joint to a point, because formulations that move inertias from origin to origin
also have terms that cancel along the joint's axis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from interpreted import compute
from kinetree.formulations.kinematics import BodyState, body_states, gravity
from kinetree.model import GROUND, Mechanism
from kinetree.model.mechanism import resolve_parts

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Speeds:
    """Upper bounds for the motion of one point per row: angular and linear, per unit velocity of each joint [n, nv].

    `turn` and `move` [n] are the sums for all joint velocities; `dangular` and `dlinear` bound the rates.
    """

    angular: np.ndarray
    linear: np.ndarray
    turn: np.ndarray
    move: np.ndarray

    @property
    def dangular(self) -> np.ndarray:
        """The rates of `angular`: axes rotate with the bodies."""
        return self.turn[:, None] * self.angular

    @property
    def dlinear(self) -> np.ndarray:
        """The rates of `linear`: arms rotate with the bodies and change their length."""
        return self.turn[:, None] * self.linear + self.move[:, None] * self.angular


def speeds(states: list[BodyState], places: list[tuple[int, np.ndarray]], qd) -> Speeds:
    """Return the bounds for points, each given by the index of its body (-1: the ground) and its position."""
    angular, linear = np.zeros((2, len(places), len(qd)))
    for row, (k, x) in enumerate(places):
        while k >= 0:
            body = states[k]
            w, v = (np.linalg.norm(part, axis=0) for part in np.split(body.P, 2))
            angular[row, body.dofs], linear[row, body.dofs] = w, v + w * np.linalg.norm(x - body.o)
            k = body.parent
    return Speeds(angular, linear, angular @ np.abs(qd), linear @ np.abs(qd))


def inertia_terms(mechanism: Mechanism, q) -> np.ndarray:
    """Return the sum of the magnitudes of all terms of each entry of I, [nv, nv]."""
    b = _Bodies(mechanism, q)
    return b.felt(b.speeds.angular, b.speeds.linear) + np.diag(b.armature)


def convective_terms(mechanism: Mechanism, q, qd) -> np.ndarray:
    """Return the sum of the magnitudes of all terms of each entry of C, [nv, nv]."""
    b = _Bodies(mechanism, q, qd)
    return b.felt(2 * b.speeds.dangular, b.speeds.dlinear)  # the inertia rotates too


def torque_scales(mechanism: Mechanism, q, qd, qdd=None, wrenches=None) -> np.ndarray:
    """Return the sum of the magnitudes of all terms of each torque, with gravity and external wrenches, [nv]."""
    out = convective_terms(mechanism, q, qd) @ np.abs(qd)
    if qdd is not None:
        out += inertia_terms(mechanism, q) @ np.abs(qdd)
    b = _Bodies(mechanism, q)
    n, f = np.zeros((2, len(b.m)))
    if wrenches is not None:
        n, f = (np.linalg.norm(part, axis=-1) for part in np.split(np.asarray(wrenches), 2, axis=-1))
    weight = b.m * np.linalg.norm(gravity(mechanism))
    return out + b.speeds.linear.T @ weight + b.origins.linear.T @ f + b.origins.angular.T @ n


def inertia_scale(mechanism: Mechanism, q) -> float:
    """Return the largest sum of magnitudes of an entry of I."""
    return float(inertia_terms(mechanism, q).max(initial=0.0))


def convective_scale(mechanism: Mechanism, q, qd) -> float:
    """Return the largest sum of magnitudes of an entry of C."""
    return float(convective_terms(mechanism, q, qd).max(initial=0.0))


def torque_scale(mechanism: Mechanism, q, qd, qdd=None, wrenches=None) -> float:
    """Return the largest sum of magnitudes of a torque."""
    return float(torque_scales(mechanism, q, qd, qdd, wrenches).max(initial=0.0))


def closure_scales(mechanism: Mechanism, q, qd) -> tuple[float, float]:
    """Return the largest sums of magnitudes of an entry of J of the loops, and of dJ/dt qd."""
    states = body_states(mechanism, q)
    names = [b.name for b in states]
    of_J, of_bias = 1.0, 0.0  # couplings, which have no bias
    for loop in resolve_parts(mechanism.loops, mechanism.values()):
        ends = []
        for body, placement in ((loop.body_a, loop.placement_a), (loop.body_b, loop.placement_b)):
            k, r = -1 if body == GROUND else names.index(body), np.array(placement.translation, dtype=float)
            ends.append((k, r if k < 0 else states[k].o + states[k].R @ r))
        (a, _), (_, there) = ends
        s = speeds(states, [*ends, (a, there)], qd)  # also a's motion at b's origin
        linear = np.maximum(s.linear[0], s.linear[2]) + s.linear[1]
        of_J = max(of_J, float((s.angular[0] + s.angular[1] + linear).max(initial=0.0)))
        turn, move = s.turn[0] + s.turn[1], linear @ np.abs(qd)
        of_bias = max(of_bias, float(turn * turn + 2 * turn * move + (move * move / loop.length if loop.length else 0)))
    return of_J, of_bias


def per_sample(scale, mechanism: Mechanism, *states) -> np.ndarray:
    """Return one of these scales per sample of a batch, [n]; 1 where every term is zero."""
    values = np.array([scale(mechanism, *sample) for sample in zip(*states, strict=True)])
    return np.where(values > 0, values, 1.0)


def dynamics_scale(mechanism: Mechanism, name: str, q, qd, force) -> float:
    """Return the scale of rounding errors of forward or inverse dynamics of a batch, with its condition."""
    if name == "inverse_dynamics":
        return max(torque_scale(mechanism, *x) for x in zip(q, qd, force, strict=True))
    tree = replace(mechanism, loops=(), couplings=())  # the multipliers of loops may cancel its accelerations
    size = max(np.abs(compute(m, name, q, qd, force)).max() for m in (mechanism, tree))
    return max(dynamics_condition(mechanism, q), 8.0) * float(size)


def dynamics_condition(mechanism: Mechanism, q) -> float:
    """Return the largest condition number of the inertia matrices, multiplied by that of the loops."""
    inertia = compute(mechanism, "inertia_matrix", q)
    if not mechanism.closures:
        return float(np.linalg.cond(inertia).max())
    s = np.linalg.svd(compute(mechanism, "closure_jacobian", q), compute_uv=False)
    least = np.where(s > 1e-9 * s.max(axis=-1, keepdims=True), s, np.inf).min(axis=-1)
    return float((np.linalg.cond(inertia) * s.max(axis=-1) / least).max())


class _Bodies:
    """Masses, norms of inertias, armatures, and bounds for the motion of centers of mass and origins."""

    def __init__(self, mechanism: Mechanism, q, qd=None) -> None:
        qd = np.zeros(mechanism.nv) if qd is None else qd
        states = body_states(mechanism, q)
        self.m = np.array([b.m for b in states])
        self.J = np.array([np.linalg.norm(b.I) for b in states])
        self.armature = np.concatenate([np.zeros(0), *(b.armature for b in states)])
        self.speeds = speeds(states, [(k, b.c) for k, b in enumerate(states)], qd)
        self.origins = speeds(states, [(k, b.o) for k, b in enumerate(states)], qd)

    def felt(self, angular: np.ndarray, linear: np.ndarray) -> np.ndarray:
        """Return the sums of the joint torques of accelerations of all bodies."""
        return self.speeds.linear.T @ (self.m[:, None] * linear) + self.speeds.angular.T @ (self.J[:, None] * angular)
