"""Rotations as products of factors: a rotation about one coordinate axis costs four multiplications.

`R @ v` takes a vector from the child's frame to the parent's; `R.T` takes it back. A factor is either
`Planar` (a rotation about x, y or z) or `Full` (any constant matrix, most often a signed permutation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import atan2, hypot
from typing import Any

from .scalars import NOISE, Scalar, cos, is_number, sin, snap
from .vectors import IDENTITY, Matrix, Vector, matmul, symmetric, times, to_matrix, to_vector, transpose


@dataclass(frozen=True)
class Planar:
    """A rotation about axis k (0, 1, 2 for x, y, z) by an angle of cosine c and sine s."""

    k: int
    c: Scalar
    s: Scalar

    def inverse(self) -> Planar:
        """Return the inverse."""
        return Planar(self.k, self.c, -self.s)

    def turn(self, v: Vector) -> Vector:
        """Return R v."""
        i, j = (self.k + 1) % 3, (self.k + 2) % 3
        out = list(v)
        out[i] = self.c * v[i] - self.s * v[j]
        out[j] = self.s * v[i] + self.c * v[j]
        return to_vector(out)

    def congruence(self, h: Matrix) -> Matrix:
        """Return R H R^T with 12 multiplications.

        With y = s (h_ii - h_jj) + c (h_ij + h_ji) the rotated block is h_ii - s y, h_jj + s y and c y minus
        the transposed off-diagonal; see docs/theory/rotations.md.
        """
        i, j, k = (self.k + 1) % 3, (self.k + 2) % 3, self.k
        c, s = self.c, self.s
        both = (c + c) * h[i][j] if h[i][j] is h[j][i] else c * (h[i][j] + h[j][i])
        y = s * (h[i][i] - h[j][j]) + both
        z, cy = s * y, c * y
        out = [[0.0] * 3 for _ in range(3)]
        out[i][i], out[j][j] = h[i][i] - z, h[j][j] + z
        out[i][j], out[j][i] = cy - h[j][i], cy - h[i][j]
        out[i][k], out[j][k] = c * h[i][k] - s * h[j][k], s * h[i][k] + c * h[j][k]
        out[k][i], out[k][j] = c * h[k][i] - s * h[k][j], s * h[k][i] + c * h[k][j]
        out[k][k] = h[k][k]
        return to_matrix(out)

    def matrix(self) -> Matrix:
        """Return the 3x3 matrix."""
        return transpose(to_matrix(self.turn(e) for e in IDENTITY))


@dataclass(frozen=True)
class Full:
    """Any rotation, by its matrix."""

    m: Matrix

    def inverse(self) -> Full:
        """Return the inverse."""
        return Full(transpose(self.m))

    def turn(self, v: Vector) -> Vector:
        """Return R v."""
        return times(self.m, v)

    def congruence(self, h: Matrix) -> Matrix:
        """Return R H R^T."""
        return matmul(matmul(self.m, h), transpose(self.m))

    def matrix(self) -> Matrix:
        """Return the 3x3 matrix."""
        return self.m


@dataclass(frozen=True)
class Rotation:
    """A product of factors, the parent's side first."""

    factors: tuple[Planar | Full, ...] = ()

    @cached_property
    def T(self) -> Rotation:
        """The inverse."""
        return Rotation(tuple(f.inverse() for f in reversed(self.factors)))

    def __matmul__(self, other: Any) -> Any:
        """Rotate a vector, or compose with a rotation."""
        if isinstance(other, Rotation):
            return Rotation(self.factors + other.factors)
        for f in reversed(self.factors):
            other = f.turn(other)
        return other

    def congruence(self, h: Matrix) -> Matrix:
        """Return R H R^T."""
        for f in reversed(self.factors):
            h = f.congruence(h)
        return h

    def symmetric_congruence(self, h: Matrix) -> Matrix:
        """Return R H R^T for a symmetric H, exactly symmetric."""
        for f in reversed(self.factors):
            h = symmetric(f.congruence(h))
        return h

    def matrix(self) -> Matrix:
        """Return the 3x3 matrix."""
        m = IDENTITY
        for f in reversed(self.factors):
            m = transpose(to_matrix(f.turn(column) for column in transpose(m)))
        return m


ONE = Rotation()


def about(k: int, angle: Scalar) -> Rotation:
    """Return the rotation about axis k by an angle [rad]."""
    return Rotation((Planar(k, cos(angle), sin(angle)),))


def constant(m: Matrix) -> Rotation:
    """Return the cheapest factors of a matrix: none, a permutation, a planar rotation, or the full matrix."""
    m = to_matrix(map(snap, row) for row in m)
    if m == IDENTITY:
        return ONE
    if all(is_number(x) for row in m for x in row) and not _is_signed_permutation(m):
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            if m[k][k] == 1.0 and m[k][i] == m[k][j] == m[i][k] == m[j][k] == 0.0:
                return Rotation((Planar(k, m[i][i], m[j][i]),))
    return Rotation((Full(m),))


def _is_signed_permutation(m: Matrix) -> bool:
    return all(x in (0.0, 1.0, -1.0) for row in m for x in row)


def snap_to_axes(m: Matrix) -> Matrix:
    """Return the matrix with the rounding noise of zeros and ones cleared."""
    return to_matrix(map(snap, row) for row in m)


def from_rpy(roll: Scalar, pitch: Scalar, yaw: Scalar) -> Matrix:
    """Return Rz(yaw) Ry(pitch) Rx(roll), the fixed-axis angles of URDF [rad]."""
    return snap_to_axes((about(2, yaw) @ about(1, pitch) @ about(0, roll)).matrix())


def rpy_of(rotation: Sequence[Scalar]) -> tuple[float, float, float]:
    """Return roll, pitch and yaw of a rotation [rad]; yaw is zero where roll and yaw are about one axis.

    The roll is that of the rotation without its yaw, so that the three make the rotation again to rounding, however
    near to one another their axes are.
    """
    (xx, xy, xz), (yx, yy, yz), (zx, _, _) = ([float(x) for x in row] for row in rotation)
    yaw = 0.0 if hypot(xx, yx) < NOISE else atan2(yx, xx)
    c, s = cos(yaw), sin(yaw)
    return atan2(s * xz - c * yz, c * yy - s * xy), atan2(-zx, c * xx + s * yx), yaw


def from_axis_angle(axis: Vector, angle: Scalar) -> Matrix:
    """Return the rotation about a unit axis by an angle [rad] (Rodrigues)."""
    x, y, z = axis
    c, s = cos(angle), sin(angle)
    d = 1.0 - c
    return snap_to_axes(
        (
            (c + d * x * x, d * x * y - s * z, d * x * z + s * y),
            (d * x * y + s * z, c + d * y * y, d * y * z - s * x),
            (d * x * z - s * y, d * y * z + s * x, c + d * z * z),
        )
    )


def from_quaternion(q) -> Matrix:
    """Return the matrix of a unit quaternion (x, y, z, w)."""
    x, y, z, w = q
    x2, y2, z2 = x + x, y + y, z + z
    xx, yy, zz, xy, yz, zx = x * x2, y * y2, z * z2, x * y2, y * z2, z * x2
    wx, wy, wz = w * x2, w * y2, w * z2
    return (
        (1.0 - (yy + zz), xy - wz, zx + wy),
        (xy + wz, 1.0 - (xx + zz), yz - wx),
        (zx - wy, yz + wx, 1.0 - (xx + yy)),
    )


def from_euler(sequence: str, angles) -> Matrix:
    """Return the product of rotations about moving axes, e.g. "zyx" for Rz(a) Ry(b) Rx(c) [rad]."""
    r = ONE
    for letter, angle in zip(sequence, angles, strict=True):
        r = r @ about("xyz".index(letter), angle)
    return snap_to_axes(r.matrix())
