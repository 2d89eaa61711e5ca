"""Functions for forces, controllers and references, on any scalar: a float, a NumPy array or a traced value.

A traced value has no truth value, so that `if`, `abs`, `min` and `max` do not work on it. `where` selects one of two
values, and the other functions are built on it. Both values are always computed.
"""

from __future__ import annotations

from typing import Any

from ...algebra.scalars import absolute, is_number, maximum, minimum
from ...algebra.scalars import where as scalars_where
from ...compiler.ir.operations import Op, apply

Scalar = Any

SMALL = 1e-5
"""The |x| below which exp(x) - 1 and log(1 + x) are computed by series: the next term is below rounding."""


def _function(op: Op):
    def function(x: Scalar) -> Scalar:
        return apply(op, x)

    function.__name__ = op.name.lower()
    function.__doc__ = f"Return {op.name.lower()}(x)."
    return function


sin = _function(Op.SIN)
cos = _function(Op.COS)
tan = _function(Op.TAN)
sqrt = _function(Op.SQRT)
asin = _function(Op.ASIN)
acos = _function(Op.ACOS)
atan = _function(Op.ATAN)
exp = _function(Op.EXP)
log = _function(Op.LOG)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """Return the angle of the point (x, y) in (-pi, pi]."""
    return apply(Op.ATAN2, y, x)


def where(condition: Scalar, yes: Scalar, no: Scalar) -> Scalar:
    """Return `yes` where the condition holds, else `no`; conditions combine by & (and), | (or) and ~ (not)."""
    if is_number(yes) and is_number(no) and yes == no:
        return yes
    return scalars_where(condition, yes, no)


def clip(x: Scalar, lower: Scalar, upper: Scalar) -> Scalar:
    """Return x, or the bound that it exceeds."""
    return where(x < lower, lower, where(upper < x, upper, x))


def smooth_sign(x: Scalar, width: Scalar) -> Scalar:
    """Return x / sqrt(x^2 + width^2): the sign of x with a smooth transition; +-0.71 at x = +-width."""
    return x / sqrt(x * x + width * width)


def soft_ramp(x: Scalar, width: float) -> tuple[Scalar, Scalar, Scalar]:
    """Return (H, h, h'): h is 0 below zero, x^2 / (2 width) up to the width, x - width / 2 beyond; H is its integral.

    h and its slope h' are continuous, and so are the first two derivatives of H.
    """
    bend, straight = clip(x, 0.0, width), maximum(x - width, 0.0)
    h = bend * bend * (0.5 / width) + straight
    H = bend * bend * bend * (1.0 / (6.0 * width)) + straight * (straight + width) * 0.5
    return H, h, bend * (1.0 / width)


def expm1(x: Scalar) -> Scalar:
    """Return exp(x) - 1 without loss of digits."""
    size = absolute(x)
    middle = where(size < SMALL, 1.0, where(1.0 < size, 1.0, x))
    u = exp(middle)
    far = where(1.0 < size, exp(x) - 1.0, (u - 1.0) * (middle / log(u)))
    return where(size < SMALL, x + x * x * (0.5 + x * (1.0 / 6.0)), far)


def log1p(x: Scalar) -> Scalar:
    """Return log(1 + x) without loss of digits."""
    small = absolute(x) < SMALL
    safe = where(small, 1.0, x)
    u = safe + 1.0
    return where(small, x - x * x * (0.5 - x * (1.0 / 3.0)), safe * (log(u) / (u - 1.0)))


def sinh(x: Scalar) -> Scalar:
    """Return the hyperbolic sine."""
    e = expm1(x)
    return (e + e / (e + 1.0)) * 0.5


def cosh(x: Scalar) -> Scalar:
    """Return the hyperbolic cosine."""
    u = exp(x)
    return (u + 1.0 / u) * 0.5


def tanh(x: Scalar) -> Scalar:
    """Return the hyperbolic tangent."""
    e = expm1(minimum(absolute(x), 40.0) * -2.0)  # beyond 40, tanh rounds to one
    t = -e / (e + 2.0)
    return where(x < 0.0, -t, t)
