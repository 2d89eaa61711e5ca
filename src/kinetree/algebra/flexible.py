"""Mass matrices of flexible bodies, of size 6 + m, and the moments of their shape functions.

A point x of the body is at r = x + Phi(x) e + e^T G(x) e / 2 in the body's frame, and S = dr/de. The derivation, and
where it differs from Mohan and Saha (2009), is in docs/theory/flexible.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .mass import HALF, TWICE, ArticulatedMass, Coriolis, MassMatrix
from .scalars import Scalar
from .spatial import Twist, TwistRate, Wrench, power, unit_index
from .vectors import (
    ZERO,
    ZERO_MATRIX,
    Matrix,
    Vector,
    add,
    cross,
    dot,
    madd,
    msub,
    neg,
    outer,
    scale,
    sub,
    symmetric,
    times,
    to_matrix,
    transpose,
)

Rows = tuple[tuple[Scalar, ...], ...]
"""A matrix of modal coordinates, m x m."""


@dataclass(frozen=True)
class FlexibleMass:
    """The mass matrix [M C; C^T K]: M of the body as a rigid one, the momentum C of each unit rate of a mode, and K.

    `rigid` is a MassMatrix, or the blocks of an articulated body. `body` is None for composite and articulated bodies,
    which have no wrench of their own.
    """

    rigid: MassMatrix | ArticulatedMass
    C: tuple[Wrench, ...]
    K: Rows
    body: Deformed | None = None

    def __add__(self, other: MassMatrix | ArticulatedMass | FlexibleMass) -> FlexibleMass:
        """Return the sum; a rigid body is welded to the body's frame, which does not deform."""
        if not isinstance(other, FlexibleMass):
            return FlexibleMass(self.rigid + other, self.C, self.K, self.body)  # type: ignore[operator]
        C = tuple(a + b for a, b in zip(self.C, other.C, strict=True))
        K = tuple(tuple(x + y for x, y in zip(a, b, strict=True)) for a, b in zip(self.K, other.K, strict=True))
        return FlexibleMass(self.rigid + other.rigid, C, K)  # type: ignore[operator]

    def __sub__(self, other: MassMatrix) -> FlexibleMass:
        """Return the mass matrix without a rigid part, which was welded to the body's frame."""
        return FlexibleMass(self.rigid - other, self.C, self.K, self.body)  # type: ignore[operator]

    def __matmul__(self, t: Twist) -> Wrench:
        """Return the product with a twist: the momentum of a body, or the wrench of an articulated one."""
        w = self.rigid @ t
        Q = [dot(c.n, t.w) + dot(c.f, t.v) for c in self.C]
        for k, x in enumerate(t.e):
            w = w + Wrench(scale(x, self.C[k].n), scale(x, self.C[k].f))
            Q = [a + row[k] * x for a, row in zip(Q, self.K, strict=True)]
        return Wrench(w.n, w.f, tuple(Q))

    def wrench(self, dt: TwistRate) -> Wrench:
        """Return M t' + Omega M E t with the terms of the modal coordinates.      docs/theory/flexible.md (9), (10)"""
        assert self.body is not None and isinstance(self.rigid, MassMatrix), "only a body has a wrench of its own"
        return self.body.wrench(self, dt)

    def coriolis(self, t: Twist) -> FlexibleCoriolis:
        """Return B of a body with twist t: B t is its wrench at constant twist, and dM/dt - 2 B is skew.  (12)"""
        assert self.body is not None and isinstance(self.rigid, MassMatrix), "only a body has a matrix of its own"
        return self.body.coriolis(self, t)

    def articulated(self) -> FlexibleMass:
        """Return the same matrix with blocks in place of the ten numbers."""
        assert isinstance(self.rigid, MassMatrix), "an articulated body has blocks already"
        return FlexibleMass(self.rigid.articulated(), self.C, self.K)

    def without(self, p: Twist, psihat: Wrench, psi: Wrench, *, free: bool) -> FlexibleMass:
        """Return M - psihat psi^T, as for rigid bodies: for a free unit column, one row is exactly zero."""
        assert isinstance(self.rigid, ArticulatedMass), "only an articulated body is seen through a joint"
        k = unit_index(p) if free else None
        rigid = self.rigid.without(p, psihat, psi, free=free)
        C = []
        for j, (c, q) in enumerate(zip(self.C, psi.Q, strict=True)):
            left = (c - Wrench(scale(q, psihat.n), scale(q, psihat.f))).entries()
            left = tuple(0.0 if k in (i, 6 + j) else x for i, x in enumerate(left))
            C.append(Wrench(left[:3], left[3:]))  # type: ignore[arg-type]
        m = range(len(C))
        K = [[self.K[i][j] - psihat.Q[i] * psi.Q[j] if i <= j else 0.0 for j in m] for i in m]
        for i in m:
            for j in m:
                K[i][j] = 0.0 if k in (6 + i, 6 + j) else K[min(i, j)][max(i, j)]
        return FlexibleMass(rigid, tuple(C), tuple(map(tuple, K)))


def welded(M: MassMatrix | ArticulatedMass, S: tuple[Twist, ...]) -> FlexibleMass:
    """Return the mass matrix of what is fixed to a node: [M, M S; S^T M, S^T M S], with the node's motions S."""
    C = tuple(M @ s for s in S)
    upper = [[power(C[i], S[j]) if i <= j else 0.0 for j in range(len(S))] for i in range(len(S))]
    return FlexibleMass(M, C, tuple(tuple(upper[min(i, j)][max(i, j)] for j in range(len(S))) for i in range(len(S))))


@dataclass(frozen=True)
class Bend:
    """A function psi of the points in which their second-order displacements are G = sum psi H over all bends.

    The functions are orthonormal, sum m psi psi' = mass or 0, and T_j = sum m psi Phi_j / mass. Terms of higher than
    the second order in e and e' are so those of one point of this mass at T e + e^T H e / 2.
    docs/theory/flexible.md (11)
    """

    mass: Scalar
    T: tuple[Vector, ...]
    H: tuple[tuple[Vector, ...], ...]

    def curvature(self, rates: tuple) -> Vector:
        """Return e'^T H e' of modal rates."""
        return along(tuple(along(row, rates) for row in self.H), rates)

    def at(self, e: tuple) -> Bent:
        """Return the bend at modal coordinates e."""
        slopes = tuple(along(row, e) for row in self.H)
        bent = ZERO
        for x, slope in zip(e, slopes, strict=True):
            bent = add(bent, scale(x * HALF, slope))
        first = along(self.T, e)
        return Bent(self, first, bent, add(first, bent), slopes, tuple(map(add, self.T, slopes)))


@dataclass(frozen=True)
class Bent:
    """A bend at modal coordinates e: its place r = T e + e^T H e / 2 in two parts, and S_j = T_j + H_j e.

    `first` is T e, `bent` is e^T H e / 2, and `slopes` are H_j e.
    """

    bend: Bend
    first: Vector
    bent: Vector
    r: Vector
    slopes: tuple[Vector, ...]
    S: tuple[Vector, ...]

    def squares(self) -> Matrix:
        """Return m r r^T without the term of the second order."""
        bent, twice = scale(self.bend.mass, self.bent), add(self.first, scale(HALF, self.bent))
        half = outer(bent, twice)
        return madd(half, transpose(half))

    def swept(self, j: int) -> Matrix:
        """Return m r S_j^T without the terms of the first and second order in e."""
        m = self.bend.mass
        return madd(outer(self.r, scale(m, self.slopes[j])), outer(scale(m, self.bent), self.bend.T[j]))

    def whirl(self, k: int, j: int) -> Vector:
        """Return m S_k x S_j without its constant."""
        both = add(cross(self.slopes[k], self.S[j]), cross(self.bend.T[k], self.slopes[j]))
        return scale(self.bend.mass, both)

    def coupled(self, j: int, k: int) -> Scalar:
        """Return m S_j . S_k without its constant."""
        return self.bend.mass * (dot(self.slopes[j], self.S[k]) + dot(self.bend.T[j], self.slopes[k]))


@dataclass(frozen=True)
class Moments:
    """Sums over the points of a flexible body.                                       docs/theory/flexible.md (6)

    m is the mass, mc = sum m x and J = sum m x x^T are those of the body at rest, p_j = sum m Phi_j,
    g_jk = sum m G_jk, N_j = sum m x Phi_j^T, N1_jk = sum m (Phi_k Phi_j^T + x G_jk^T), K_jk = sum m Phi_j . Phi_k,
    c_jk = sum m Phi_j x Phi_k and b_jk = sum m x x G_jk. These give all terms up to the second order in e and e', and
    the bends those beyond.
    """

    m: float
    mc: Vector
    J: Matrix
    p: tuple[Vector, ...]
    g: tuple[tuple[Vector, ...], ...]
    N: tuple[Matrix, ...]
    N1: tuple[tuple[Matrix, ...], ...]
    K: Rows
    c: tuple[tuple[Vector, ...], ...]
    b: tuple[tuple[Vector, ...], ...]
    bends: tuple[Bend, ...] = ()

    def at(self, e: tuple) -> FlexibleMass:
        """Return the mass matrix at modal coordinates e.                       docs/theory/flexible.md (7), (11)"""
        p, N, mc, J, K = [], [], self.mc, self.J, self.K
        for j, x in enumerate(e):
            pj, Nj = self.p[j], self.N[j]
            for k, y in enumerate(e):
                pj = add(pj, scale(y, self.g[j][k]))
                Nj = madd(Nj, _times(y, self.N1[j][k]))
            p.append(pj)
            N.append(Nj)
            # The mean of the slopes at zero and at e is exact, since both moments are of second order.
            mc = add(mc, scale(x * HALF, add(pj, self.p[j])))
            both = _times(x * HALF, madd(Nj, self.N[j]))
            J = madd(J, madd(both, transpose(both)))
        bent = tuple(bend.at(e) for bend in self.bends)
        for now in bent:
            J = madd(J, now.squares())
            N = [madd(Nj, now.swept(j)) for j, Nj in enumerate(N)]
            upper = [[x + now.coupled(j, k) if j <= k else x for k, x in enumerate(row)] for j, row in enumerate(K)]
            K = tuple(tuple(upper[min(j, k)][max(j, k)] for k in range(len(e))) for j in range(len(e)))
        C = tuple(Wrench(_axial(Nj), pj) for Nj, pj in zip(N, p, strict=True))
        return FlexibleMass(MassMatrix(self.m, mc, symmetric(J)), C, K, Deformed(self, tuple(N), bent))


@dataclass(frozen=True)
class Deformed:
    """The moments of a body at modal coordinates e: N_j(e) = sum m r S_j^T, beside those that do not change."""

    moments: Moments
    N: tuple[Matrix, ...]
    bent: tuple[Bent, ...] = ()

    def wrench(self, M: FlexibleMass, dt: TwistRate) -> Wrench:
        """Return the wrench of a motion: every point accelerates by dv + U r + 2 w x S e' + S e'' + e'^T G e'."""
        given, w, U = self.moments, dt.w, dt.U
        out = M.rigid.wrench(dt)  # type: ignore[union-attr]
        n, f = out.n, out.f
        swept, moved = ZERO_MATRIX, ZERO  # sum m r (S e')^T and sum m S e'
        for c, Nj, x, dx in zip(M.C, self.N, dt.e, dt.de, strict=True):
            n, f = add(n, scale(dx, c.n)), add(f, scale(dx, c.f))
            swept, moved = madd(swept, _times(x, Nj)), add(moved, scale(x, c.f))
        trace = swept[0][0] + swept[1][1] + swept[2][2]
        n = add(n, scale(TWICE, sub(scale(trace, w), times(transpose(swept), w))))  # 2 sum m r x (w x S e')
        f = add(f, scale(TWICE, cross(w, moved)))
        Q = []
        for j, (c, Nj, x) in enumerate(zip(M.C, self.N, dt.e, strict=True)):
            force = dot(c.f, dt.dv) + sum((dot(U[a], tuple(row[a] for row in Nj)) for a in range(3)), start=0.0)
            whirl, bent, turned = ZERO, ZERO, ZERO
            for k, (y, dy) in enumerate(zip(dt.e, dt.de, strict=True)):
                whirl = add(whirl, scale(y, given.c[k][j]))
                bent, turned = add(bent, scale(y, given.g[j][k])), add(turned, scale(y, given.b[j][k]))
                force = force + M.K[j][k] * dy
            n, f = add(n, scale(x, turned)), add(f, scale(x, bent))
            Q.append(force + TWICE * dot(w, whirl))
        for now in self.bent:
            m = now.bend.mass
            rounded = scale(m, now.bend.curvature(dt.e))
            n = add(n, cross(now.r, rounded))
            first, more = along(now.bend.T, dt.e), along(now.slopes, dt.e)
            steady, pulled = scale(TWICE * m, cross(w, first)), scale(TWICE * m, cross(w, more))
            acting = add(rounded, pulled)
            for j, (slope, T) in enumerate(zip(now.slopes, now.bend.T, strict=True)):
                Q[j] = Q[j] + dot(T, acting) + dot(slope, add(acting, steady))
        return Wrench(n, f, tuple(Q))

    def coriolis(self, M: FlexibleMass, t: Twist) -> FlexibleCoriolis:
        """Return sum m [r x; 1; S^T] d[-r x, 1, S]/dt, with the rates as vectors.       docs/theory/flexible.md (12)"""
        given, w, rigid = self.moments, t.w, M.rigid.coriolis(t)  # type: ignore[union-attr]
        X, y = rigid.X, rigid.y
        C, R, K = [], [], []
        for j, (c, Nj, x) in enumerate(zip(M.C, self.N, t.e, strict=True)):
            X, y = msub(X, _times(x, transpose(_double(Nj)))), add(y, scale(x, c.f))
            n, f, r = times(transpose(_double(Nj)), neg(w)), cross(w, c.f), times(_double(Nj), w)
            whirls = []
            for k, rate in enumerate(t.e):
                n, f = add(n, scale(rate, given.b[j][k])), add(f, scale(rate, given.g[j][k]))
                whirl = given.c[k][j]
                for now in self.bent:
                    whirl = add(whirl, now.whirl(k, j))
                r = add(r, scale(rate, whirl))
                whirls.append(dot(w, whirl))
            C.append(Wrench(n, f))
            R.append(r)
            K.append(whirls)
        for now in self.bent:
            curved = [scale(now.bend.mass, along(row, t.e)) for row in now.bend.H]
            C = [c + Wrench(cross(now.r, h)) for c, h in zip(C, curved, strict=True)]
            K = [[x + dot(S, h) for x, h in zip(row, curved, strict=True)] for S, row in zip(now.S, K, strict=True)]
        return FlexibleCoriolis(Coriolis(X, y), tuple(C), tuple(R), tuple(map(tuple, K)))


@dataclass(frozen=True)
class FlexibleCoriolis:
    """The matrix [B C; R K] of convective terms of a flexible body, where B is that of a rigid one.

    C has a wrench per mode, and R the part of each mode in its generalized force per angular velocity.
    """

    rigid: Coriolis
    C: tuple[Wrench, ...]
    R: tuple[Vector, ...]
    K: Rows

    def __add__(self, other: Coriolis | FlexibleCoriolis) -> FlexibleCoriolis:
        """Return the sum."""
        if not isinstance(other, FlexibleCoriolis):
            return replace(self, rigid=self.rigid + other)
        C = tuple(a + b for a, b in zip(self.C, other.C, strict=True))
        K = tuple(tuple(x + y for x, y in zip(a, b, strict=True)) for a, b in zip(self.K, other.K, strict=True))
        return FlexibleCoriolis(self.rigid + other.rigid, C, tuple(map(add, self.R, other.R)), K)

    def __matmul__(self, t: Twist) -> Wrench:
        """Return the product with a twist."""
        w = self.rigid @ t
        Q = [dot(r, t.w) for r in self.R]
        for k, x in enumerate(t.e):
            w = w + Wrench(scale(x, self.C[k].n), scale(x, self.C[k].f))
            Q = [a + row[k] * x for a, row in zip(Q, self.K, strict=True)]
        return Wrench(w.n, w.f, tuple(Q))

    def transpose_times(self, t: Twist) -> Wrench:
        """Return the product of the transpose with a twist."""
        w = self.rigid.transpose_times(t)
        Q = [power(c, Twist(t.w, t.v)) for c in self.C]
        for k, x in enumerate(t.e):
            w = w + Wrench(scale(x, self.R[k]))
            Q = [a + y * x for a, y in zip(Q, self.K[k], strict=True)]
        return Wrench(w.n, w.f, tuple(Q))

    def carried(self, M: FlexibleMass, R: Any, r: Vector, dr: Vector) -> Coriolis:
        """Return the matrix about the parent's origin: the modal coordinates of a child are no motion of its parent."""
        return self.rigid.carried(M.rigid, R, r, dr)  # type: ignore[arg-type]


def _double(m: Matrix) -> Matrix:
    """Return m - tr(m) 1: the product with w is sum m r x (... x w) of the matrix sum m r s^T."""
    trace = m[0][0] + m[1][1] + m[2][2]
    return to_matrix((m[a][b] - trace if a == b else m[a][b] for b in range(3)) for a in range(3))


def along(columns: tuple[Vector, ...], x: tuple, start: Vector = ZERO) -> Vector:
    """Return start + the sum of columns times x."""
    for column, y in zip(columns, x, strict=True):
        start = add(start, scale(y, column))
    return start


def _axial(m: Matrix) -> Vector:
    """Return sum m r x s of the matrix sum m r s^T."""
    return (m[1][2] - m[2][1], m[2][0] - m[0][2], m[0][1] - m[1][0])


def _times(k: Scalar, m: Matrix) -> Matrix:
    return (scale(k, m[0]), scale(k, m[1]), scale(k, m[2]))
