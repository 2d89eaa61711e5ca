"""Poses of bodies in the ground's frame."""

from __future__ import annotations

from dataclasses import dataclass

from .propagation import Propagation
from .spatial import Twist
from .vectors import IDENTITY, ZERO, Matrix, Vector, add, matmul, times, to_matrix


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
