"""The bodies of a tree with the reference points of their twists: joint origins or centers of mass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ..errors import unknown_name
from ..model.mechanism import Mechanism
from .kinematics import BodyState, Matrix, body_states, gravity, skew

STILL = np.zeros(0)
"""The rates of the modes of a rigid body."""
ABOUT = {"origin": "joint origins", "centre": "centers of mass"}


@dataclass(frozen=True)
class Link:
    """A body and the joint that carries it, about the point x with velocity dx; all in the ground's axes.

    p [6, k] is the joint's motion and dp its rate, M the mass matrix, and dM the convective matrix of M t' + dM t = w:
    W M of [Saha2013] (12), which [Saha1999] (8) calls the mass rate. R holds the body's axes; `shift` points from the
    joint's origin to x. A deformed body has twists [omega; v; e'] of size 6 + m, about its joint's origin in any case;
    `node` has S and dS of a node of one.
    """

    name: str
    joint: str
    parent: int
    x: Matrix
    dx: Matrix
    shift: Matrix
    R: Matrix
    w: Matrix
    p: Matrix
    dp: Matrix
    M: Matrix
    dM: Matrix
    armature: Matrix
    dofs: slice
    rates: Matrix
    node: tuple[Matrix, Matrix] | None = None

    @property
    def size(self) -> int:
        """The number of entries of the twist: 6, and the number of modes."""
        return len(self.p)

    @property
    def Omega(self) -> Matrix:
        """The cross product with omega in both halves.                                          [Saha1999] (2)"""
        return _widened(_blocks(skew(self.w), skew(self.w)), self.size)

    @property
    def W(self) -> Matrix:
        """The cross product with omega in the angular half.                                     [Saha2013] (2)"""
        return _widened(_blocks(skew(self.w), np.zeros((3, 3))), self.size)

    @property
    def t(self) -> Matrix:
        """The twist [omega; v of x], with the rates of the modes of a deformed body."""
        return np.concatenate([self.w, self.dx, self.rates])


@dataclass(frozen=True)
class Links:
    """The links of a mechanism at one state, parents first."""

    name: str
    about: str
    each: tuple[Link, ...]
    qd: Matrix
    gravity: Matrix

    def __len__(self) -> int:
        """Return the number of bodies."""
        return len(self.each)

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return len(self.qd)

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """For each body, those on the path from the ground to it, itself last."""
        out: list[tuple[int, ...]] = []
        for i, link in enumerate(self.each):
            out.append((i,) if link.parent < 0 else (*out[link.parent], i))
        return tuple(out)

    @cached_property
    def behind(self) -> tuple[tuple[int, ...], ...]:
        """For each body, itself and those that it carries: gamma_i of [Saha2013] (44), for bodies."""
        out: list[list[int]] = [[] for _ in self.each]
        for k, path in enumerate(self.paths):
            for i in path:
                out[i].append(k)
        return tuple(map(tuple, out))

    def propagation(self, i: int, j: int) -> Matrix:
        """Return A_ij (origins) or B_ij (centers of mass), which maps the twist of j to i. [Saha2013] (5), (36b)

        From a deformed body it is A [1 S], with the motions S of the node on the path; to one it is [A; 0].
        """
        A, to, of = shifted(self.each[j].x - self.each[i].x), self.each[i].size, self.each[j].size
        if to == of == 6:
            return A
        if i == j:
            return np.eye(to)
        if of > 6:
            A = A @ np.hstack([np.eye(6), self._node(i, j)[0]])
        return np.vstack([A, np.zeros((to - 6, of))])

    def propagation_rate(self, i: int, j: int) -> Matrix:
        """Return the rate of the propagation: only its lower left block changes."""
        dA, to, of = shifted(self.each[j].dx - self.each[i].dx) - np.eye(6), self.each[i].size, self.each[j].size
        if to == of == 6:
            return dA
        if i == j:
            return np.zeros((to, to))
        if of > 6:
            S, dS = self._node(i, j)
            A = shifted(self.each[j].x - self.each[i].x)
            dA = dA @ np.hstack([np.eye(6), S]) + A @ np.hstack([np.zeros((6, 6)), dS])
        return np.vstack([dA, np.zeros((to - 6, of))])

    def _node(self, i: int, j: int) -> tuple[Matrix, Matrix]:
        """Return S and dS of the node of body j on the path to body i."""
        path = self.paths[i]
        node = self.each[path[path.index(j) + 1]].node
        assert node is not None, "whatever a deformed body carries is attached to its nodes"
        return node

    @cached_property
    def rows(self) -> tuple[slice, ...]:
        """For each body, its rows in the twists of all."""
        ends = np.cumsum([0, *(b.size for b in self.each)]).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @property
    def width(self) -> int:
        """The number of entries of all twists: 6 n without modes."""
        return sum(b.size for b in self.each)

    def inward(self, values: list[Matrix]) -> list[Matrix]:
        """Return X~_i = X_i + sum of A^T X~_c A over the children c, for matrices X.           [Saha2013] (20)"""
        out = [x.copy() for x in values]
        for i in reversed(range(len(self))):
            j = self.each[i].parent
            if j >= 0:
                A = self.propagation(i, j)
                out[j] += A.T @ out[i] @ A
        return out

    def on_paths(self, block: Callable[[int, int], Matrix]) -> Matrix:
        """Return the matrix [6n, 6n] with a block (i, j) wherever body j is on the path to body i."""
        out = np.zeros((self.width, self.width))
        for i, path in enumerate(self.paths):
            for j in path:
                out[self.rows[i], self.rows[j]] = block(i, j)
        return out

    def columns(self, block: Callable[[Link], Matrix]) -> Matrix:
        """Return the matrix [6n, nv] with a block [6, k] per joint."""
        out = np.zeros((self.width, self.nv))
        for rows, b in zip(self.rows, self.each, strict=True):
            out[rows, b.dofs] = block(b)
        return out

    def diagonal(self, block: Callable[[Link], Matrix]) -> Matrix:
        """Return the matrix [6n, 6n] with a block [6, 6] per body."""
        out = np.zeros((self.width, self.width))
        for rows, b in zip(self.rows, self.each, strict=True):
            out[rows, rows] = block(b)
        return out

    def index(self, name: str) -> int:
        """Return the index of a body by its name."""
        names = [link.name for link in self.each]
        if name not in names:
            raise unknown_name("body", name, names)
        return names.index(name)


def _blocks(upper: Matrix, lower: Matrix) -> Matrix:
    out = np.zeros((6, 6))
    out[:3, :3], out[3:, 3:] = upper, lower
    return out


def _widened(matrix: Matrix, size: int) -> Matrix:
    """Return a 6 x 6 matrix with zeros for modes."""
    return np.pad(matrix, (0, size - 6))


def shifted(a: Matrix) -> Matrix:
    """Return [1 0; a x 1]."""
    out = np.eye(6)
    out[3:, :3] = skew(a)
    return out


def links(
    mechanism: Mechanism,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    *,
    about: str = "origin",
    flexible: bool = False,
) -> Links:
    """Return the links of a mechanism at coordinates q [nq] and joint velocities qd [nv], zero by default.

    Mechanisms with flexible bodies are refused unless the caller knows them.
    """
    if about not in ABOUT:
        raise unknown_name("reference point", str(about), ABOUT, where="about")
    states = body_states(mechanism, q, qd, flexible=flexible)
    make = _about_origin if about == "origin" else _about_centre
    speeds = np.zeros(mechanism.nv) if qd is None else np.array(qd, dtype=float)
    each = tuple(
        make(s, joint.name) if s.deformed is None else _about_frame(s, joint.name, s.deformed, speeds[s.dofs])
        for s, joint in zip(states, mechanism.joints, strict=True)
    )
    return Links(mechanism.name, about, each, speeds, gravity(mechanism))


def _about_centre(s: BodyState, joint: str) -> Link:
    """Return a link about its center of mass; p = [e; e x d] for a revolute joint.        [Saha1999] (2), (13)"""
    T, dT = _to_centre(s)
    M = _blocks(s.I, s.m * np.eye(3))
    dM = _blocks(skew(s.w) @ s.I, np.zeros((3, 3)))
    dc = s.v + np.cross(s.w, s.d)
    return Link(
        s.name, joint, s.parent, s.c, dc, s.d, s.R, s.w, T @ s.P, T @ s.dP + dT @ s.P, M, dM, s.armature, s.dofs,
        STILL, s.node,
    )  # fmt: skip


def _about_frame(s: BodyState, joint: str, matrices: tuple[Matrix, Matrix], rates: Matrix) -> Link:
    """Return a deformed body about the origin of its frame."""
    none = np.zeros(3)
    return Link(s.name, joint, s.parent, s.o, s.v, none, s.R, s.w, s.P, s.dP, *matrices, s.armature, s.dofs, rates)


def _about_origin(s: BodyState, joint: str) -> Link:
    """Return a link about its joint's origin: M of [Saha2013] (47b), and the convective matrix moved there.

    Differs from the paper: Omega M E of (47a) gives the same wrench, but dI/dt - 2 C is not skew. This one gives
    exactly the C of the centers of mass. See docs/theory/convective.md.
    """
    T, dT = _to_centre(s)
    centre = _about_centre(s, joint)
    M = T.T @ centre.M @ T
    dM = T.T @ (centre.M @ dT + centre.dM @ T)
    none = np.zeros(3)
    return Link(s.name, joint, s.parent, s.o, s.v, none, s.R, s.w, s.P, s.dP, M, dM, s.armature, s.dofs, STILL, s.node)


def _to_centre(s: BodyState) -> tuple[Matrix, Matrix]:
    """Return the propagation from the origin to the center of mass, and its rate."""
    return shifted(-s.d), shifted(-np.cross(s.w, s.d)) - np.eye(6)
