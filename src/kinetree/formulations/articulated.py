"""Composite bodies, whose joints are locked, articulated ones, whose joints are free, and the slope of log det I."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import joints as joint_kinds
from ..errors import InputError
from ..model.mechanism import Mechanism
from .kinematics import Matrix, body_states, skew

RIGID = 1e-10
"""Largest deviation of a mass matrix from the form of a rigid body, relative to its largest entry: rounding only."""


@dataclass(frozen=True)
class CompositeBody:
    """Body `name` and all bodies behind it as one rigid body: the joints between them are locked.

    M [6, 6] is the mass matrix about `point`, in the ground's axes: the paper's M~_i.        [Saha2013] (20)
    """

    name: str
    members: tuple[str, ...]
    point: Matrix
    M: Matrix

    @property
    def mass(self) -> float:
        """The mass [kg]."""
        return float(np.trace(self.M[3:, 3:]) / 3)

    @property
    def centre(self) -> Matrix:
        """The center of mass in the ground's frame [m]; the point itself where there is no mass."""
        return self.point + self._d

    @property
    def inertia(self) -> Matrix:
        """The inertia about the center of mass, in the ground's axes [kg m^2]."""
        d = skew(self._d)
        return self.M[:3, :3] + self.mass * d @ d

    @property
    def _d(self) -> Matrix:
        moment = self.M[:3, 3:]  # m d x
        first = np.array([moment[2, 1] - moment[1, 2], moment[0, 2] - moment[2, 0], moment[1, 0] - moment[0, 1]]) / 2
        return first / self.mass if self.mass > 0 else np.zeros(3)

    def felt(self, p: ArrayLike) -> float:
        """Return p^T M p, the inertia of the motion along a unit twist p = [omega; v] at the point [kg m^2, kg]."""
        return _felt(self.M, p)

    def __repr__(self) -> str:
        """Return mass, center of mass and principal moments."""
        moments = ", ".join(f"{x:.4g}" for x in np.linalg.eigvalsh(self.inertia))
        return (
            f"<composite body {self.name!r} of {_count(self.members)}: {self.mass:.4g} kg at "
            f"{_vector(self.centre)} m, principal moments {moments} kg m^2>"
        )


@dataclass(frozen=True)
class ArticulatedBody:
    """Articulated inertia of body `name`: the joints behind it are free.

    M [6, 6] about `point`, in the ground's axes, is the paper's M^_i. It maps a twist rate of the body to the wrench at
    the point that causes it, with all velocities and loads zero. It is symmetric, but not of the form of a rigid body:
    the mass can differ from axis to axis. Hence there is no mass, no center of mass and no inertia tensor;
    `mass_along` and `felt` take their place.                                                  [Saha2013] (31)
    """

    name: str
    members: tuple[str, ...]
    point: Matrix
    M: Matrix

    def felt(self, p: ArrayLike) -> float:
        """Return p^T M p, the inertia of the motion along p = [omega; v]; for the joint's own p it is m^."""
        return _felt(self.M, p)

    def mass_along(self, axis: ArrayLike) -> float:
        """Return the apparent mass along an axis [kg].

        It is the force along the axis per unit acceleration of the point along it, while the body is guided without
        rotation. For a rigid body it is the same along every axis.
        """
        e = _unit(axis)
        return float(e @ self.M[3:, 3:] @ e)

    def inertia_about(self, axis: ArrayLike) -> float:
        """Return the apparent moment of inertia about an axis through the point, which is held fixed [kg m^2]."""
        e = _unit(axis)
        return float(e @ self.M[:3, :3] @ e)

    @cached_property
    def masses(self) -> tuple[Matrix, Matrix]:
        """The smallest, middle and largest apparent mass [kg], and their axes as the columns of a matrix."""
        values, axes = np.linalg.eigh(self.M[3:, 3:])
        return values, axes

    @cached_property
    def rigid(self) -> CompositeBody | None:
        """The rigid body with this mass matrix, or None where there is none. The body at a tip always has one."""
        body = CompositeBody(self.name, self.members, self.point, self.M)
        d = skew(body.centre - body.point)
        m = body.mass * np.eye(3)
        same = np.block([[body.inertia - body.mass * d @ d, body.mass * d], [-body.mass * d, m]])
        return body if np.abs(same - self.M).max() <= RIGID * np.abs(self.M).max(initial=0.0) else None

    def __repr__(self) -> str:
        """Return the apparent masses along the ground's axes."""
        apparent = ", ".join(f"{self.mass_along(e):.4g} along {x}" for x, e in zip("xyz", np.eye(3), strict=True))
        kind = "as a rigid body" if self.rigid else "not a rigid body"
        return f"<articulated body {self.name!r} of {_count(self.members)}: apparent mass {apparent} kg; {kind}>"


def _felt(M: Matrix, p: ArrayLike) -> float:
    twist = np.asarray(p, dtype=float)
    if twist.shape != (6,):
        raise InputError(f"the twist has shape {twist.shape}; expected (6,): [omega; v] in the ground's axes")
    return float(twist @ M @ twist)


def _unit(axis: ArrayLike) -> Matrix:
    e = np.asarray(axis, dtype=float)
    length = np.linalg.norm(e) if e.shape == (3,) else 0.0
    if not 0.0 < length < np.inf:
        raise InputError(f"the axis {axis} has no direction; give three numbers, such as (0, 0, 1)")
    return e / length


def _count(members: tuple[str, ...]) -> str:
    return f"{len(members)} bod{'y' if len(members) == 1 else 'ies'}"


def _vector(x: Matrix) -> str:
    return "(" + ", ".join(f"{a:.4g}" for a in np.where(np.abs(x) < 1e-15, 0.0, x)) + ")"


# --- The gradient of the logarithm of the determinant of the inertia matrix ---


def logdet_gradient(mechanism: Mechanism, q: ArrayLike) -> Matrix:
    """Return the derivative of log det I along each velocity of the open tree in O(n), shape [..., nv].

    The articulated bodies are swept inward, their compliances outward.            docs/theory/forward.md (L2), (L3)
    """
    at = np.asarray(q, dtype=float)
    if at.shape[-1:] != (mechanism.nq,):
        raise InputError(f"q has shape {at.shape}; expected [..., {mechanism.nq}]")
    rows = [_logdet_gradient(mechanism, row) for row in at.reshape(-1, mechanism.nq)]
    return np.array(rows).reshape(*at.shape[:-1], mechanism.nv)


def _logdet_gradient(mechanism: Mechanism, q: Matrix) -> Matrix:
    for joint, own in zip(mechanism.joints, mechanism.q_slices, strict=True):
        kind = joint_kinds.kind(joint.kind)
        if kind.NV > 1 and any(map(any, _rates(kind, joint, q[own].tolist()))):
            raise InputError(
                f"the axes of the {joint.kind} joint {joint.name!r} move with its coordinates; use "
                'arm.function("inertia_logdet").jacobian(), or single joints'
            )
    states = body_states(mechanism, q)
    masses = [_mass_matrix(s.m, s.d, s.I) for s in states]
    shifts, behind, pivots = [np.eye(6) for _ in states], [], []
    for i in range(len(states) - 1, -1, -1):
        s, M = states[i], masses[i]
        psi = M @ s.P
        inverse = np.linalg.inv(s.P.T @ psi + np.diag(s.armature))
        pivots.append((psi, inverse))
        behind.append(M - psi @ inverse @ psi.T)  # of the subtree, as its parent moves it: (31)
        if s.parent >= 0:
            shifts[i][3:, :3] = -skew(s.o - states[s.parent].o)
            masses[s.parent] = masses[s.parent] + shifts[i].T @ behind[-1] @ shifts[i]
    pivots.reverse()
    behind.reverse()
    out, compliances = np.zeros(mechanism.nv), []
    for s, A, M, (psi, inverse) in zip(states, shifts, behind, pivots, strict=True):
        Y = A @ compliances[s.parent] @ A.T if s.parent >= 0 else np.zeros((6, 6))
        product = Y @ M
        for k, (w, v) in zip(range(s.dofs.start, s.dofs.stop), s.P.T.reshape(-1, 2, 3), strict=True):
            ad = np.zeros((6, 6))
            ad[:3, :3] = ad[3:, 3:] = skew(w)
            ad[3:, :3] = skew(v)
            out[k] = -2.0 * float(np.sum(product * ad.T))  # (L2)
        L = np.eye(6) - s.P @ inverse @ psi.T
        compliances.append(L @ Y @ L.T + s.P @ inverse @ s.P.T)  # (L3)
    return out


def _rates(kind: Any, joint: object, q: list[float]) -> list[list[float]]:
    """Return the entries of the rates of a joint's motion for unit velocities."""
    rates = kind.motion(joint, q, [1.0, 0.7, -0.4, 0.3, 0.9, -1.2][: kind.NV]).rates or ()
    return [[float(x) for x in rate.entries()] for rate in rates]


def _mass_matrix(m: float, d: Matrix, inertia: Matrix) -> Matrix:
    """Return the mass matrix of a body about a point from which its center of mass is at d."""
    cross = skew(d)
    return np.block([[inertia - m * cross @ cross, m * cross], [-m * cross, m * np.eye(3)]])
