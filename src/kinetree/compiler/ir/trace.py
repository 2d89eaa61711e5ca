"""Tracing: scalars that record the operations applied to them, each distinct operation once.

Constants are folded, additions of zero and multiplications by one are dropped, and signs are moved outward. Equal
operations on equal operands are one value. What remains is the arithmetic that the mechanism requires.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ...errors import InputError
from .operations import BOOLEANS, FUNCTIONS, Op

__all__ = ["Condition", "Op", "Trace", "Value"]

LEAKED = (
    "a traced value of an earlier compilation was used again: the function being compiled has stored it between "
    "calls, as a controller with a state does. Compiled functions have no memory; give a controller with a state as "
    "kt.PythonControl(function, rate=...), which is called with numbers at each sampling instant"
)
"""The message for operands of two different traces, whose indices refer to different operations."""

_INPUT, _CONST, _ADD, _SUB, _MUL, _DIV, _NEG = Op.INPUT, Op.CONST, Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.NEG
_ATAN2, _LESS, _SELECT, _AND, _OR, _NOT = (
    Op.ATAN2,
    Op.LESS,
    Op.SELECT,
    Op.AND,
    Op.OR,
    Op.NOT,
)  # module globals are looked up faster than members of an enum

REPEATED = frozenset((_ADD, _SUB, _MUL, _NEG))
"""The operations that may take less time than a load of their result from a distant cache."""


class Trace:
    """A growing list of operations, to which every `Value` and `Condition` refers by index."""

    def __init__(self) -> None:
        """Start without operations."""
        self.ops: list[tuple] = []  # (Op, operand, ...): indices of earlier operations; numbers for INPUT and CONST
        self._known: dict[tuple, Any] = {}

    def input(self, group: Hashable, index: Hashable) -> Value:
        """Return entry `index` of the input `group`; both may be numbers or names."""
        return self.record(_INPUT, group, index)

    def constant(self, x: float) -> Value:
        """Return a number as a traced value."""
        return self.record(_CONST, float(x))

    def record(self, *key) -> Any:
        """Return the value or condition of an operation, which is recorded unless it already has been."""
        value = self._known.get(key)
        if value is None:
            value = (Condition if key[0] in BOOLEANS else Value)(self, len(self.ops))
            self.ops.append(key)
            self._known[key] = value
        return value

    def begin_again(self) -> None:
        """Record the same sums and products as new operations from now on; functions and their operands stay."""
        kept: set[int] = set()
        stack = [k for key in self.ops if key[0] in FUNCTIONS for k in key[1:]]
        while stack:
            if (k := stack.pop()) not in kept:
                kept.add(k)
                stack += self.ops[k][1:] if self.ops[k][0] > _CONST else ()
        self._known = {key: x for key, x in self._known.items() if key[0] not in REPEATED or x.id in kept}

    def index(self, x: Value | float) -> int:
        """Return the index of the operation of a value, or of a plain number."""
        if type(x) is not Value:
            return self.constant(x).id  # type: ignore[arg-type]
        if x.trace is not self:
            raise InputError(LEAKED)
        return x.id

    def condition(self, x: Condition) -> int:
        """Return the index of the operation of a condition."""
        if type(x) is not Condition:
            raise TypeError(f"the condition is a {type(x).__name__}; expected a comparison of numbers, such as x < y")
        if x.trace is not self:
            raise InputError(LEAKED)
        return x.id


class Value:
    """A traced real number."""

    __slots__ = ("id", "trace")

    def __init__(self, trace: Trace, id: int) -> None:
        """Refer to operation `id` of the trace."""
        self.trace = trace
        self.id = id

    def __add__(self, other):
        """Record a sum."""
        t = self.trace
        if type(other) is not Value:
            return self if other == 0.0 else t.record(_ADD, self.id, t.constant(other).id)
        if other.trace is not t:
            raise InputError(LEAKED)
        if t.ops[other.id][0] is _NEG:
            return self - Value(t, t.ops[other.id][1])
        if t.ops[self.id][0] is _NEG:
            return other - Value(t, t.ops[self.id][1])
        a, b = self.id, other.id
        return t.record(_ADD, a, b) if a <= b else t.record(_ADD, b, a)

    __radd__ = __add__

    def __sub__(self, other):
        """Record a difference."""
        t = self.trace
        if type(other) is not Value:
            return self + (-other)
        if other.trace is not t:
            raise InputError(LEAKED)
        if self.id == other.id:
            return 0.0
        if t.ops[other.id][0] is _NEG:
            return self + Value(t, t.ops[other.id][1])
        if t.ops[self.id][0] is _NEG:
            return -(Value(t, t.ops[self.id][1]) + other)
        mirrored = t._known.get((_SUB, other.id, self.id))
        return -mirrored if mirrored is not None else t.record(_SUB, self.id, other.id)

    def __rsub__(self, other):
        """Record a difference."""
        if other == 0.0:
            return -self
        t = self.trace
        if t.ops[self.id][0] is _NEG:
            return Value(t, t.ops[self.id][1]) + other
        return t.record(_SUB, t.constant(other).id, self.id)

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
            if t.ops[self.id][0] is _NEG:
                return -(Value(t, t.ops[self.id][1]) * other)
            return t.record(_MUL, self.id, t.constant(other).id)
        if other.trace is not t:
            raise InputError(LEAKED)
        if t.ops[self.id][0] is _NEG:
            return -(Value(t, t.ops[self.id][1]) * other)
        if t.ops[other.id][0] is _NEG:
            return -(self * Value(t, t.ops[other.id][1]))
        a, b = self.id, other.id
        return t.record(_MUL, a, b) if a <= b else t.record(_MUL, b, a)

    __rmul__ = __mul__

    def __truediv__(self, other):
        """Record a quotient."""
        t = self.trace
        if type(other) is not Value:
            return self if other == 1.0 else t.record(_DIV, self.id, t.constant(other).id)
        if other.trace is not t:
            raise InputError(LEAKED)
        return t.record(_DIV, self.id, other.id)

    def __rtruediv__(self, other):
        """Record a quotient."""
        if other == 0.0:
            return 0.0
        return self.trace.record(_DIV, self.trace.constant(other).id, self.id)

    def __pow__(self, exponent):
        """Record a power with a whole exponent of at least zero, as products."""
        if not isinstance(exponent, int) or exponent < 0:
            return NotImplemented
        result = 1.0 if exponent % 2 == 0 else self
        if exponent > 1:
            result = (self * self) ** (exponent // 2) * result
        return result

    def __neg__(self):
        """Record a change of sign, moved as far outward as possible."""
        t = self.trace
        op = t.ops[self.id]
        if op[0] is _NEG:
            return Value(t, op[1])
        if op[0] is _SUB:
            return t.record(_SUB, op[2], op[1])
        return t.record(_NEG, self.id)

    def __lt__(self, other):
        """Record a comparison."""
        return self.trace.record(_LESS, self.id, self.trace.index(other))

    def __gt__(self, other):
        """Record a comparison."""
        return self.trace.record(_LESS, self.trace.index(other), self.id)

    def where(self, yes, no):
        """Raise TypeError: a choice requires a condition."""
        raise TypeError("the condition of where is a number; expected a comparison such as x < y")

    def atan2(self, x):
        """Record the angle of (x, self)."""
        return self.trace.record(_ATAN2, self.id, self.trace.index(x))

    def ratan2(self, y):
        """Record the angle of (self, y)."""
        return self.trace.record(_ATAN2, self.trace.index(y), self.id)

    def __bool__(self) -> bool:
        """Raise TypeError: a traced value has a number only when the compiled code runs."""
        raise TypeError("a traced value is neither true nor false; choose by where(x < y, yes, no)")


class Condition:
    """A traced boolean, the result of a comparison: the first argument of `where`; & | ~ combine conditions."""

    __slots__ = ("id", "trace")

    def __init__(self, trace: Trace, id: int) -> None:
        """Refer to operation `id` of the trace."""
        self.trace = trace
        self.id = id

    def where(self, yes, no):
        """Record a choice: `yes` where this condition holds."""
        t = self.trace
        return t.record(_SELECT, self.id, t.index(yes), t.index(no))

    def __and__(self, other):
        """Record the conjunction of two conditions."""
        if isinstance(other, bool):
            return self if other else False
        return self.trace.record(_AND, self.id, self.trace.condition(other))

    def __or__(self, other):
        """Record the disjunction of two conditions."""
        if isinstance(other, bool):
            return True if other else self
        return self.trace.record(_OR, self.id, self.trace.condition(other))

    __rand__, __ror__ = __and__, __or__

    def __invert__(self):
        """Record the negation of the condition."""
        t = self.trace
        op = t.ops[self.id]
        return Condition(t, op[1]) if op[0] is _NOT else t.record(_NOT, self.id)

    def __bool__(self) -> bool:
        """Raise TypeError: a traced condition is true or false only when the compiled code runs."""
        raise TypeError(
            "a traced condition is neither true nor false yet; choose by where(x < y, yes, no), combine by & | ~"
        )

    def __float__(self) -> float:
        """Raise TypeError: a condition is not a number."""
        raise TypeError("a condition is not a number; where(condition, 1.0, 0.0) converts it to one")


def _function(op: Op):
    def method(self: Value) -> Value:
        return self.trace.record(op, self.id)

    method.__name__ = op.name.lower()
    method.__doc__ = f"Record {op.name.lower()}(x)."
    return method


def _refusal(name: str):
    def method(self: Condition, *_: object) -> float:
        return float(self)

    method.__name__ = name
    method.__doc__ = "Raise TypeError: a condition is not a number."
    return method


for _op in FUNCTIONS:
    setattr(Value, _op.name.lower(), _function(_op))
for _name in ("add", "sub", "mul", "truediv", "pow"):
    for _full in (f"__{_name}__", f"__r{_name}__"):
        setattr(Condition, _full, _refusal(_full))
for _full in ("__neg__", "__lt__", "__gt__", "atan2", "ratan2", *(op.name.lower() for op in FUNCTIONS)):
    setattr(Condition, _full, _refusal(_full))
