"""Mass matrices: ten numbers for a rigid or composite body, three 3x3 blocks for an articulated one."""

from __future__ import annotations

from dataclasses import dataclass

from .scalars import Scalar
from .spatial import Twist, TwistRate, Wrench, unit_index
from .vectors import (
    ZERO,
    ZERO_MATRIX,
    Matrix,
    Vector,
    add,
    cross,
    cross_rows,
    dot,
    madd,
    msub,
    neg,
    scale,
    skew,
    symmetric,
    times,
    to_matrix,
    to_vector,
    transpose,
)

TWICE = 2.0
HALF = 0.5


@dataclass(frozen=True)
class MassMatrix:
    """Mass m, first moment mc = m c and second moment J = sum m r r^T of a body, about its origin.

    J replaces the inertia tensor, I = tr(J) 1 - J, because it shifts without a trace.       [Saha2013] (46)
    """

    m: Scalar = 0.0
    mc: Vector = ZERO
    J: Matrix = ZERO_MATRIX

    @classmethod
    def of_body(cls, mass: Scalar, com: Vector, inertia: Matrix) -> MassMatrix:
        """Return the mass matrix of a body from its inertia tensor about the center of mass."""
        half_trace = (inertia[0][0] + inertia[1][1] + inertia[2][2]) * HALF
        rows = [[-x for x in row] for row in inertia]
        for k in range(3):
            rows[k][k] = half_trace - inertia[k][k]
        central = cls(mass, ZERO, symmetric(to_matrix(rows)))
        return central.shifted(com)

    @property
    def inertia(self) -> Matrix:
        """The inertia tensor about the origin."""
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = self.J
        return ((yy + zz, -xy, -xz), (-xy, zz + xx, -yz), (-xz, -yz, xx + yy))

    def __add__(self, other: MassMatrix) -> MassMatrix:
        """Return the mass matrix of both bodies, welded together."""
        return MassMatrix(self.m + other.m, add(self.mc, other.mc), symmetric(madd(self.J, other.J)))

    def __sub__(self, other: MassMatrix) -> MassMatrix:
        """Return the mass matrix of the body without a part of it."""
        J = to_matrix((a - b for a, b in zip(x, y, strict=True)) for x, y in zip(self.J, other.J, strict=True))
        mc = to_vector(a - b for a, b in zip(self.mc, other.mc, strict=True))
        return MassMatrix(self.m - other.m, mc, symmetric(J))

    def __matmul__(self, t: Twist) -> Wrench:
        """Return the momentum M t = [I w + mc x v; m v + w x mc]."""
        n = add(times(self.inertia, t.w), cross(self.mc, t.v))
        return Wrench(n, add(scale(self.m, t.v), cross(t.w, self.mc)))

    def wrench(self, dt: TwistRate) -> Wrench:
        """Return M t' + Omega M E t, the wrench of a motion.                          [Saha2013] (24), (47a)

        Every point accelerates by dv + U r. Then f = m dv + U mc, and n = sum m r x (dv + U r) is the vector of the
        skew part of 2 U J. This is cheaper than I dw + w x I w, and the children reuse U.
        """
        U, J = dt.U, self.J
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = J
        turning = (
            U[2][0] * xy - U[1][0] * xz + U[2][1] * yy - U[1][2] * zz + (U[2][2] - U[1][1]) * yz,
            U[0][1] * yz - U[2][1] * xy + U[0][2] * zz - U[2][0] * xx + (U[0][0] - U[2][2]) * xz,
            U[1][2] * xz - U[0][2] * yz + U[1][0] * xx - U[0][1] * yy + (U[1][1] - U[0][0]) * xy,
        )
        n = add(turning, cross(self.mc, dt.dv))
        return Wrench(n, add(scale(self.m, dt.dv), times(U, self.mc)))

    def shifted(self, r: Vector) -> MassMatrix:
        """Return the mass matrix about an origin at -r."""
        h = add(self.mc, scale(self.m * HALF, r))
        J = to_matrix(
            (self.J[i][j] + ((TWICE * r[i]) * h[i] if i == j else r[i] * h[j] + h[i] * r[j]) for j in range(3))
            for i in range(3)
        )
        return MassMatrix(self.m, add(self.mc, scale(self.m, r)), symmetric(J))

    def turned(self, R) -> MassMatrix:
        """Return the mass matrix in the frame that R rotates to."""
        return MassMatrix(self.m, R @ self.mc, R.symmetric_congruence(self.J))

    def articulated(self) -> ArticulatedMass:
        """Return the same matrix as blocks."""
        m = self.m
        return ArticulatedMass(self.inertia, skew(self.mc), ((m, 0.0, 0.0), (0.0, m, 0.0), (0.0, 0.0, m)))

    def coriolis(self, t: Twist) -> Coriolis:
        """Return B of a body with twist t: B t is its gyroscopic wrench, and dM/dt - 2 B is skew.

        The body as points r of mass m, [Gupta2013] (35): B = sum m [r x; 1] d[-r x, 1]/dt, which is X = -(w x) J and
        y = w x mc; see docs/theory/convective.md.
        Differs from the paper: Omega M E of [Saha2013] (47) gives the same B t but is not skew about O, and W M of (12)
        adds tr(J_c) (w x) to X.
        """
        return Coriolis(cross_rows(neg(t.w), self.J), cross(t.w, self.mc))


@dataclass(frozen=True)
class Coriolis:
    """The matrix [X 0; -(y x) 0] of convective terms of a body or of the bodies outboard of it."""

    X: Matrix = ZERO_MATRIX
    y: Vector = ZERO

    def __add__(self, other: Coriolis) -> Coriolis:
        """Return the sum."""
        return Coriolis(madd(self.X, other.X), add(self.y, other.y))

    def __matmul__(self, t: Twist) -> Wrench:
        """Return the product with a twist."""
        return Wrench(times(self.X, t.w), cross(t.w, self.y))

    def transpose_times(self, t: Twist) -> Wrench:
        """Return B^T t: its force is zero, since B has no columns for v."""
        return Wrench(add(times(transpose(self.X), t.w), cross(self.y, t.v)))

    def carried(self, M: MassMatrix, R, r: Vector, dr: Vector) -> Coriolis:
        """Return A^T (M dA/dt + B A), the same about an origin at -r moving with -dr, in the frame R rotates to.

        With A = [1 0; -r x 1] and u = y + m dr: X' = X - mc x dr x - r x u x, y' = u; M belongs to the same bodies.
        This is the recursion of H_ij in [Saha1999] (28).
        """
        mc = R @ M.mc
        u = add(R @ self.y, scale(M.m, dr))
        X = msub(R.congruence(self.X), madd(_double_cross(mc, dr), _double_cross(r, u)))
        return Coriolis(X, u)


def _double_cross(a: Vector, b: Vector) -> Matrix:
    """Return (a x)(b x) = b a^T - (a . b) 1."""
    d = dot(a, b)
    return to_matrix((b[i] * a[j] - d if i == j else b[i] * a[j] for j in range(3)) for i in range(3))


@dataclass(frozen=True)
class ArticulatedMass:
    """A symmetric 6x6 matrix [I H; H^T L]: the mass matrix of an articulated body.        [Saha2013] (31)"""

    I: Matrix  # noqa: E741 - the papers' letter
    H: Matrix
    L: Matrix

    def __add__(self, other: ArticulatedMass) -> ArticulatedMass:
        """Return the sum."""
        return ArticulatedMass(
            symmetric(madd(self.I, other.I)), madd(self.H, other.H), symmetric(madd(self.L, other.L))
        )

    def __matmul__(self, t: Twist) -> Wrench:
        """Return the product with a twist (or twist rate)."""
        n = add(times(self.I, t.w), times(self.H, t.v))
        return Wrench(n, add(times(transpose(self.H), t.w), times(self.L, t.v)))

    def entries(self) -> tuple:
        """Return the 36 scalars, row by row."""
        upper = [(*a, *b) for a, b in zip(self.I, self.H, strict=True)]
        lower = [(*a, *b) for a, b in zip(transpose(self.H), self.L, strict=True)]
        return tuple(x for row in (*upper, *lower) for x in row)

    def without(self, p: Twist, psihat: Wrench, psi: Wrench, *, free: bool) -> ArticulatedMass:
        """Return M - psihat psi^T, the inertia seen through a joint that moves along p.     [Saha2013] (31)

        `free` is for a joint without inertia of its own. The result then does not resist p at all, and for a
        unit twist p one row and one column are exactly zero.
        """
        k = unit_index(p) if free else None
        a, b = psihat.entries(), psi.entries()

        def block(m: Matrix, row: int, column: int) -> Matrix:
            return to_matrix(
                (0.0 if k in (row + i, column + j) else m[i][j] - a[row + i] * b[column + j] for j in range(3))
                for i in range(3)
            )

        return ArticulatedMass(symmetric(block(self.I, 0, 0)), block(self.H, 0, 3), symmetric(block(self.L, 3, 3)))

    def shifted(self, r: Vector) -> ArticulatedMass:
        """Return A^T M A for an origin at -r, A = [1 0; -r x 1].

        H' = H + r x L and I' = I + Z + Z^T with Z = r x K^T, K = H + r x L / 2.
        """
        G = cross_rows(scale(HALF, r), self.L)
        K, (x, y, z), (xx, yy, zz) = madd(self.H, G), r, scale(TWICE, r)
        I = self.I  # noqa: E741
        inertia = (
            (
                I[0][0] + (yy * K[0][2] - zz * K[0][1]),
                I[0][1] + (y * K[1][2] - x * K[0][2] + z * (K[0][0] - K[1][1])),
                I[0][2] + (x * K[0][1] - z * K[2][1] + y * (K[2][2] - K[0][0])),
            ),
            (
                0.0,
                I[1][1] + (zz * K[1][0] - xx * K[1][2]),
                I[1][2] + (z * K[2][0] - y * K[1][0] + x * (K[1][1] - K[2][2])),
            ),
            (0.0, 0.0, I[2][2] + (xx * K[2][1] - yy * K[2][0])),
        )
        return ArticulatedMass(symmetric(inertia), madd(K, G), self.L)

    def turned(self, R) -> ArticulatedMass:
        """Return the matrix in the frame that R rotates to."""
        return ArticulatedMass(R.symmetric_congruence(self.I), R.congruence(self.H), R.symmetric_congruence(self.L))
