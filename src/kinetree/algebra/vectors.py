"""Vectors of three scalars and 3x3 matrices as plain tuples."""

from __future__ import annotations

from collections.abc import Iterable

from .scalars import Scalar

Vector = tuple[Scalar, Scalar, Scalar]
Matrix = tuple[Vector, Vector, Vector]

ZERO: Vector = (0.0, 0.0, 0.0)
IDENTITY: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
ZERO_MATRIX: Matrix = (ZERO, ZERO, ZERO)


def to_vector(values: Iterable[Scalar]) -> Vector:
    """Return three scalars as a vector."""
    x, y, z = values
    return (x, y, z)


def to_matrix(rows: Iterable[Iterable[Scalar]]) -> Matrix:
    """Return three rows of three scalars as a matrix."""
    x, y, z = map(to_vector, rows)
    return (x, y, z)


def add(a: Vector, b: Vector) -> Vector:
    """Return a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def sub(a: Vector, b: Vector) -> Vector:
    """Return a - b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def neg(a: Vector) -> Vector:
    """Return -a."""
    return (-a[0], -a[1], -a[2])


def scale(k: Scalar, a: Vector) -> Vector:
    """Return k a."""
    return (k * a[0], k * a[1], k * a[2])


def dot(a: Vector, b: Vector) -> Scalar:
    """Return a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    """Return a x b."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def is_zero(a: Vector) -> bool:
    """Return whether a is structurally zero."""
    return all(isinstance(x, int | float) and x == 0 for x in a)


def skew(a: Vector) -> Matrix:
    """Return the matrix of a x."""
    return ((0.0, -a[2], a[1]), (a[2], 0.0, -a[0]), (-a[1], a[0], 0.0))


def transpose(m: Matrix) -> Matrix:
    """Return the transpose."""
    return (
        (m[0][0], m[1][0], m[2][0]),
        (m[0][1], m[1][1], m[2][1]),
        (m[0][2], m[1][2], m[2][2]),
    )


def times(m: Matrix, v: Vector) -> Vector:
    """Return the product of a matrix and a vector."""
    return (dot(m[0], v), dot(m[1], v), dot(m[2], v))


def outer(a: Vector, b: Vector) -> Matrix:
    """Return the matrix a b^T."""
    return (scale(a[0], b), scale(a[1], b), scale(a[2], b))


def matmul(a: Matrix, b: Matrix) -> Matrix:
    """Return the product of two matrices."""
    c = transpose(b)
    return (times(c, a[0]), times(c, a[1]), times(c, a[2]))


def madd(a: Matrix, b: Matrix) -> Matrix:
    """Return the sum of two matrices."""
    return (add(a[0], b[0]), add(a[1], b[1]), add(a[2], b[2]))


def msub(a: Matrix, b: Matrix) -> Matrix:
    """Return the difference of two matrices."""
    return (sub(a[0], b[0]), sub(a[1], b[1]), sub(a[2], b[2]))


def cross_rows(a: Vector, m: Matrix) -> Matrix:
    """Return (a x) m, the cross product with every column."""
    return (
        sub(scale(a[1], m[2]), scale(a[2], m[1])),
        sub(scale(a[2], m[0]), scale(a[0], m[2])),
        sub(scale(a[0], m[1]), scale(a[1], m[0])),
    )


def symmetric(m: Matrix) -> Matrix:
    """Return m with its lower triangle copied from the upper: entries that are equal in theory become one value."""
    return (
        m[0],
        (m[0][1], m[1][1], m[1][2]),
        (m[0][2], m[1][2], m[2][2]),
    )


def from_moments(moments) -> Matrix:
    """Return the symmetric matrix of (xx, yy, zz, xy, yz, zx)."""
    xx, yy, zz, xy, yz, zx = moments
    return ((xx, xy, zx), (xy, yy, yz), (zx, yz, zz))


def to_moments(m: Matrix) -> tuple:
    """Return (xx, yy, zz, xy, yz, zx) of a symmetric matrix."""
    return (m[0][0], m[1][1], m[2][2], m[0][1], m[1][2], m[2][0])
