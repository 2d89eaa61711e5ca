"""Unit quaternions (x, y, z, w): product, exponential and logarithm, and the shift of a screw motion."""

from __future__ import annotations

from .scalars import Scalar, atan2, cos, sin, sqrt, where
from .vectors import Vector, add, cross, dot, scale, sub

SMALL = 1e-4
"""Below this squared angle [rad^2], the series to the fourth power is exact to the last bit."""


def product(a, b) -> tuple:
    """Return a o b: the rotation by b, then by a."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def conjugate(q) -> tuple:
    """Return the inverse rotation."""
    return (-q[0], -q[1], -q[2], q[3])


def normalized(q) -> tuple:
    """Return q divided by its length."""
    x, y, z, w = q
    k = 1.0 / sqrt(x * x + y * y + z * z + w * w)
    return (k * x, k * y, k * z, k * w)


def from_matrix(R) -> tuple:
    """Return the quaternion of a rotation matrix, up to a positive or negative factor that is not small.

    The columns of 4 q q^T are sums of entries of R. The one with the largest diagonal entry is taken.
    """
    (a, b, c), (d, e, f), (g, h, i) = R
    x, y, z = h - f, c - g, d - b
    xy, yz, zx = b + d, f + h, c + g
    columns = (
        (x, y, z, 1.0 + a + e + i),
        (1.0 + a - e - i, xy, zx, x),
        (xy, 1.0 - a + e - i, yz, y),
        (zx, yz, 1.0 - a - e + i, z),
    )
    best, most = columns[0], columns[0][3]
    for k, column in enumerate(columns[1:]):
        larger = column[k] > most
        best = tuple(where(larger, new, old) for new, old in zip(column, best, strict=True))
        most = where(larger, column[k], most)
    return best


def exponential(turn: Vector) -> tuple:
    """Return the quaternion of a rotation vector [rad]."""
    aa = dot(turn, turn)
    k = _series(aa, lambda safe: sin(sqrt(safe) * 0.5) / sqrt(safe), (1 / 2, -1 / 48, 1 / 3840))
    return (*scale(k, turn), cos(sqrt(aa) * 0.5))


def logarithm(q) -> Vector:
    """Return the shorter rotation vector [rad] of q, which need not have unit length."""
    x, y, z, w = q
    side = where(w < 0.0, -1.0, 1.0)  # q and -q are the same rotation: take the one with w >= 0
    length = sqrt(x * x + y * y + z * z)
    cosine = side * w
    angle = 2.0 * atan2(length, cosine)
    k = where(length > 1e-8 * cosine, angle / where(length > 0.0, length, 1.0), 2.0 / where(cosine > 0.0, cosine, 1.0))
    return scale(side * k, (x, y, z))


def sweep(turn: Vector, shift: Vector) -> Vector:
    """Return the end point of a constant `shift` along axes that rotate by `turn` meanwhile.

    V u = u + (1 - cos a)/a^2 w x u + (a - sin a)/a^3 w x (w x u), the translation of the exponential of a screw.
    """
    aa = dot(turn, turn)
    b = _series(aa, _one_minus_cosine, (1 / 2, -1 / 24, 1 / 720))
    c = _series(aa, lambda x: (sqrt(x) - sin(sqrt(x))) / (x * sqrt(x)), (1 / 6, -1 / 120, 1 / 5040))
    once = cross(turn, shift)
    return add(shift, add(scale(b, once), scale(c, cross(turn, once))))


def unsweep(turn: Vector, place: Vector) -> Vector:
    """Return the shift with which `sweep` ends at `place`.

    V^-1 u = u - w x u / 2 + (1 - (a/2) cot(a/2)) / a^2 w x (w x u).
    """
    aa = dot(turn, turn)
    c = _series(aa, _one_minus_cotangent, (1 / 12, 1 / 720, 1 / 30240))
    once = cross(turn, place)
    return add(sub(place, scale(0.5, once)), scale(c, cross(turn, once)))


def _one_minus_cosine(aa: Scalar) -> Scalar:
    """Return (1 - cos a) / a^2 without cancellation."""
    h = sin(sqrt(aa) * 0.5)
    return 2.0 * h * h / aa


def _one_minus_cotangent(aa: Scalar) -> Scalar:
    """Return (1 - (a/2) cot(a/2)) / a^2."""
    half = sqrt(aa) * 0.5
    return (1.0 - half * cos(half) / sin(half)) / aa


def _series(aa: Scalar, exact, coefficients) -> Scalar:
    """Return the power series in a^2 near zero, else the exact formula, which is never evaluated at zero."""
    c0, c1, c2 = coefficients
    small = aa < SMALL
    near = c0 + aa * (c1 + aa * c2)
    return where(small, near, exact(where(small, 1.0, aa)))
