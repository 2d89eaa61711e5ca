"""The propagation A from a parent to its child: shift, rotation, shift; never a stored 6x6 matrix."""

from __future__ import annotations

from dataclasses import dataclass

from .flexible import FlexibleMass
from .mass import ArticulatedMass, MassMatrix
from .rotations import ONE, Rotation
from .spatial import Twist, TwistRate, Wrench
from .vectors import IDENTITY, ZERO, Matrix, Vector, add, cross, is_zero, matmul, times, to_matrix


@dataclass(frozen=True)
class Propagation:
    """The pose of a child in its parent: r to the joint, rotation E, then s along the child's own axes.

    `A @ t` carries a twist outward, `A.T @ w` a wrench inward, `A.T @ M @ A` a mass matrix inward.
    Differs from the paper: frames are the bodies' own, and A also rotates.                  [Saha2013] (36b)
    """

    r: Vector = ZERO
    E: Rotation = ONE
    s: Vector = ZERO

    def __matmul__(self, x):
        """Return a twist or a twist rate of the parent at the child's origin, in the child's frame."""
        if isinstance(x, Twist):
            w = self.E.T @ x.w
            v = self.E.T @ add(x.v, cross(x.w, self.r))
            return Twist(w, add(v, cross(w, self.s)))
        if isinstance(x, TwistRate):
            # A t' + dA t: the acceleration of the parent's point where the child's origin is.
            moved = TwistRate(self.E.T @ x.w, self.E.T @ x.dw, self._turned_acceleration(x))
            if is_zero(self.s):
                return moved
            return TwistRate(moved.w, moved.dw, add(moved.dv, times(moved.U, self.s)))
        return NotImplemented

    def _turned_acceleration(self, x: TwistRate) -> Vector:
        return self.E.T @ (x.dv if is_zero(self.r) else add(x.dv, times(x.U, self.r)))

    @property
    def T(self) -> _Transposed:
        """The transpose, which moves wrenches and mass matrices inward."""
        return _Transposed(self)

    @property
    def offset(self) -> Vector:
        """The child's origin in the parent's frame."""
        return self.r if is_zero(self.s) else add(self.r, self.E @ self.s)

    def locate(self, x: Vector) -> Vector:
        """Return the position in the parent's frame of a point given in the child's."""
        return add(self.r, self.E @ add(self.s, x))

    def rate(self, t: Twist, own: Twist) -> PropagationRate:
        """Return dA/dt for a parent with twist t and the child's twist relative to it, in the child's frame."""
        return PropagationRate(self, add(cross(t.w, self.offset), self.E @ own.v))


@dataclass(frozen=True)
class PropagationRate:
    """The rate of a propagation, by the rate dr of its offset in the parent's frame."""

    A: Propagation
    dr: Vector

    def turned(self, w: Wrench) -> Wrench:
        """Return dA^T A^-T w of a wrench about the parent's origin, which A^T has moved there."""
        return Wrench(cross(self.dr, w.f))

    def carried(self, M, B):
        """Return A^T (M dA + B A) of mass and convective matrices of the same bodies."""
        return B.carried(M, self.A.E, self.A.offset, self.dr)


@dataclass(frozen=True)
class _Transposed:
    A: Propagation

    def __matmul__(self, x):
        if isinstance(x, Wrench):
            A = self.A
            f = A.E @ x.f
            return Wrench(add(A.E @ add(x.n, cross(A.s, x.f)), cross(A.r, f)), f)
        if isinstance(x, MassMatrix | ArticulatedMass | FlexibleMass):
            # The modal coordinates of a child are no motion of its parent.
            return _Half(self.A, x.rigid if isinstance(x, FlexibleMass) else x)
        return NotImplemented


@dataclass(frozen=True)
class _Half:
    """A^T M as the first half of A^T M A: only the whole congruence is ever computed."""

    A: Propagation
    M: MassMatrix | ArticulatedMass

    def __matmul__(self, other: Propagation):
        assert other is self.A, "a mass matrix is carried by one propagation: A.T @ M @ A"
        M = self.M if is_zero(other.s) else self.M.shifted(other.s)
        M = M.turned(other.E)
        return M if is_zero(other.r) else M.shifted(other.r)


# --- Poses of bodies in the ground's frame ---


@dataclass(frozen=True)
class Pose:
    """Rotation matrix R and origin r in the ground's frame."""

    R: Matrix = IDENTITY
    r: Vector = ZERO

    def __matmul__(self, A: Propagation) -> Pose:
        """Return the pose of a child whose propagation from this body is A."""
        R = to_matrix(A.E.T @ row for row in self.R)  # the rows of R E are E^T row
        return Pose(R, add(self.r, times(self.R, A.offset)))

    def then(self, R: Matrix, r: Vector) -> Pose:
        """Return the pose of a frame fixed to this body."""
        return Pose(matmul(self.R, R), self.place(r))

    def place(self, x: Vector) -> Vector:
        """Return the position of a point of the body."""
        return add(self.r, times(self.R, x))

    def turn(self, t: Twist) -> Twist:
        """Return a twist of the body in the ground's axes, about the same point."""
        return Twist(times(self.R, t.w), times(self.R, t.v))

    def entries(self) -> tuple:
        """Return the 4x4 matrix, row by row."""
        rows = [(*self.R[k], self.r[k]) for k in range(3)]
        return (*rows[0], *rows[1], *rows[2], 0.0, 0.0, 0.0, 1.0)
