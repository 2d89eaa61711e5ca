"""The partial derivatives of every operation with respect to its operands, and the conventions at kinks.

A choice has the derivative of the value that it selects; where(a < b, a, b) selects b if both are equal. Comparisons
have no derivative. The derivative of a square root at zero is taken to be zero, which makes the derivative of a length
at the zero vector zero, the mean of its one-sided derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...algebra.scalars import Scalar, cos, is_number, sin, sqrt, where
from ..ir.operations import OPERATIONS, Op

Rule = Callable[..., tuple[Scalar, ...]]
"""A function of the value and the operands of an operation that returns the derivative for each operand."""


def _quotient(v: Scalar, a: Scalar, b: Scalar) -> tuple[Scalar, ...]:
    inverse = 1.0 / b
    return inverse, -(v * inverse)


def _root(v: Scalar, a: Scalar) -> tuple[Scalar, ...]:
    if is_number(v):
        return (0.5 / v if v > 0.0 else 0.0,)
    positive = v > 0.0
    return (where(positive, 0.5 / where(positive, v, 1.0), 0.0),)


def _angle(v: Scalar, y: Scalar, x: Scalar) -> tuple[Scalar, ...]:
    inverse = 1.0 / (x * x + y * y)
    return x * inverse, -(y * inverse)


RULES: dict[Op, Rule] = {
    Op.ADD: lambda v, a, b: (1.0, 1.0),
    Op.SUB: lambda v, a, b: (1.0, -1.0),
    Op.MUL: lambda v, a, b: (b, a),
    Op.DIV: _quotient,
    Op.NEG: lambda v, a: (-1.0,),
    Op.SQRT: _root,
    Op.SIN: lambda v, a: (cos(a),),
    Op.COS: lambda v, a: (-sin(a),),
    Op.TAN: lambda v, a: (v * v + 1.0,),
    Op.ASIN: lambda v, a: (1.0 / sqrt(1.0 - a * a),),
    Op.ACOS: lambda v, a: (-1.0 / sqrt(1.0 - a * a),),
    Op.ATAN: lambda v, a: (1.0 / (a * a + 1.0),),
    Op.ATAN2: _angle,
    Op.EXP: lambda v, a: (v,),
    Op.LOG: lambda v, a: (1.0 / a,),
    Op.SELECT: lambda v, condition, yes, no: (0.0, where(condition, 1.0, 0.0), where(condition, 0.0, 1.0)),
}
"""The rules of all operations on numbers; the conditions of choices and the results of comparisons have none."""


def partials(op: Op, value: Scalar, operands: tuple[Any, ...]) -> tuple[Scalar, ...]:
    """Return the derivative of an operation with respect to each operand; numbers 0, 1 and -1 where it is constant."""
    rule = RULES.get(op)
    return rule(value, *operands) if rule is not None else (0.0,) * len(OPERATIONS[op].operands)
