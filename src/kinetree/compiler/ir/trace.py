"""Tracing: scalars that write down what is done to them, each distinct operation once.

Constants fold, zeros and ones vanish, signs move outward, and equal operations on equal operands are one value, so
that a page of sweeps leaves behind nothing but the arithmetic the mechanism needs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from enum import IntEnum


class Op(IntEnum):
    """The operations of a trace and of a Program."""

    INPUT = 0
    CONST = 1
    ADD = 2
    SUB = 3
    MUL = 4
    DIV = 5
    NEG = 6
    SQRT = 7
    SIN = 8
    COS = 9
    ATAN2 = 10
    LESS = 11
    SELECT = 12
    ASIN = 13
    ACOS = 14
    ATAN = 15
    TAN = 16
    EXP = 17
    LOG = 18


UNARY = {
    Op.SQRT: math.sqrt,
    Op.SIN: math.sin,
    Op.COS: math.cos,
    Op.ASIN: math.asin,
    Op.ACOS: math.acos,
    Op.ATAN: math.atan,
    Op.TAN: math.tan,
    Op.EXP: math.exp,
    Op.LOG: math.log,
}


class Trace:
    """A growing list of operations; `Value`s point into it."""

    def __init__(self) -> None:
        """Start empty."""
        self.ops: list[tuple] = []  # (Op, operand, ...): indices of earlier operations; numbers for INPUT and CONST
        self._known: dict[tuple, Value] = {}

    def input(self, group: Hashable, index: Hashable) -> Value:
        """Return entry `index` of the input `group`: numbers, or names."""
        return self.record(Op.INPUT, group, index)

    def constant(self, x: float) -> Value:
        """Return a number as a value."""
        return self.record(Op.CONST, float(x))

    def record(self, *key) -> Value:
        """Return the value of an operation, made before or now."""
        value = self._known.get(key)
        if value is None:
            value = Value(self, len(self.ops))
            self.ops.append(key)
            self._known[key] = value
        return value

    def index(self, x: Value | float) -> int:
        """Return where a value, or a plain number, stands."""
        return x.id if type(x) is Value else self.constant(x).id  # type: ignore[arg-type]


class Value:
    """A traced scalar."""

    __slots__ = ("id", "trace")

    def __init__(self, trace: Trace, id: int) -> None:
        """Point at operation `id` of the trace."""
        self.trace = trace
        self.id = id

    def __add__(self, other):
        """Record a sum."""
        t = self.trace
        if type(other) is not Value:
            return self if other == 0.0 else t.record(Op.ADD, self.id, t.constant(other).id)
        if t.ops[other.id][0] is Op.NEG:
            return self - Value(t, t.ops[other.id][1])
        if t.ops[self.id][0] is Op.NEG:
            return other - Value(t, t.ops[self.id][1])
        a, b = self.id, other.id
        return t.record(Op.ADD, a, b) if a <= b else t.record(Op.ADD, b, a)

    __radd__ = __add__

    def __sub__(self, other):
        """Record a difference."""
        t = self.trace
        if type(other) is not Value:
            return self + (-other)
        if self.id == other.id:
            return 0.0
        if t.ops[other.id][0] is Op.NEG:
            return self + Value(t, t.ops[other.id][1])
        if t.ops[self.id][0] is Op.NEG:
            return -(Value(t, t.ops[self.id][1]) + other)
        mirrored = t._known.get((Op.SUB, other.id, self.id))
        return -mirrored if mirrored is not None else t.record(Op.SUB, self.id, other.id)

    def __rsub__(self, other):
        """Record a difference."""
        if other == 0.0:
            return -self
        t = self.trace
        if t.ops[self.id][0] is Op.NEG:
            return Value(t, t.ops[self.id][1]) + other
        return t.record(Op.SUB, t.constant(other).id, self.id)

    def __mul__(self, other):
        """Record a product."""
        t = self.trace
        if type(other) is not Value:
            if other == 0.0:
                return 0.0
            if other == 1.0:
                return self
            if other < 0.0:
                return -(self * -other)
            if t.ops[self.id][0] is Op.NEG:
                return -(Value(t, t.ops[self.id][1]) * other)
            return t.record(Op.MUL, self.id, t.constant(other).id)
        if t.ops[self.id][0] is Op.NEG:
            return -(Value(t, t.ops[self.id][1]) * other)
        if t.ops[other.id][0] is Op.NEG:
            return -(self * Value(t, t.ops[other.id][1]))
        a, b = self.id, other.id
        return t.record(Op.MUL, a, b) if a <= b else t.record(Op.MUL, b, a)

    __rmul__ = __mul__

    def __truediv__(self, other):
        """Record a quotient."""
        t = self.trace
        if type(other) is not Value:
            return self if other == 1.0 else t.record(Op.DIV, self.id, t.constant(other).id)
        return t.record(Op.DIV, self.id, other.id)

    def __rtruediv__(self, other):
        """Record a quotient."""
        if other == 0.0:
            return 0.0
        return self.trace.record(Op.DIV, self.trace.constant(other).id, self.id)

    def __neg__(self):
        """Record a change of sign, kept as far outside as possible."""
        t = self.trace
        op = t.ops[self.id]
        if op[0] is Op.NEG:
            return Value(t, op[1])
        if op[0] is Op.SUB:
            return t.record(Op.SUB, op[2], op[1])
        return t.record(Op.NEG, self.id)

    def __lt__(self, other):
        """Record a comparison."""
        return self.trace.record(Op.LESS, self.id, self.trace.index(other))

    def __gt__(self, other):
        """Record a comparison."""
        return self.trace.record(Op.LESS, self.trace.index(other), self.id)

    def where(self, yes, no):
        """Record a choice: `yes` where this comparison holds."""
        t = self.trace
        return t.record(Op.SELECT, self.id, t.index(yes), t.index(no))

    def atan2(self, x):
        """Record the angle of (x, self)."""
        return self.trace.record(Op.ATAN2, self.id, self.trace.index(x))

    def ratan2(self, y):
        """Record the angle of (self, y)."""
        return self.trace.record(Op.ATAN2, self.trace.index(y), self.id)

    def __bool__(self) -> bool:
        """Refuse: a traced value is known only when the code runs."""
        raise TypeError("a traced value has no truth: use algebra.scalars.where")


def _unary(op: Op):
    def method(self: Value) -> Value:
        return self.trace.record(op, self.id)

    method.__name__ = op.name.lower()
    method.__doc__ = f"Record {op.name.lower()}(x)."
    return method


for _op in UNARY:
    setattr(Value, _op.name.lower(), _unary(_op))
