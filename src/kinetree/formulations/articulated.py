"""Composite bodies, whose joints are locked, and articulated bodies, whose joints are free."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from .kinematics import Matrix, skew

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
