"""Numbers that may be expressions of named parameters; formulas.py parses them from text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from ..algebra import scalars
from ..errors import ModelError, unknown_name

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sin": scalars.sin,
    "cos": scalars.cos,
    "tan": scalars.tan,
    "sqrt": scalars.sqrt,
    "asin": scalars.asin,
    "acos": scalars.acos,
    "atan": scalars.atan,
    "exp": scalars.exp,
    "log": scalars.log,
    "deg": lambda x: x * (math.pi / 180),
}
CONSTANTS = {"pi": math.pi}


@dataclass(frozen=True)
class Parameter:
    """A named number of a mechanism; a free one remains an input of the compiled functions."""

    name: str
    value: float
    free: bool = False
    unit: str = ""
    note: str = ""


@dataclass(frozen=True)
class Expression:
    """A formula of parameters; it behaves as a scalar, so that all algebra works on it unchanged."""

    op: str
    args: tuple = ()

    def __str__(self) -> str:
        """Return text that parses back to an equal expression."""
        first, steps = self._spine()
        text, before = _atom(first), ""
        for op, right in steps:
            if (op == "^" and before) or (op in "*/" and before in ("+", "-")):
                text = f"({text})"
            text += f"^{float(right)!r}" if op == "^" else f" {op} {_operand(right)}"
            before = op
        return text

    def _spine(self) -> tuple[Any, list[tuple[str, Any]]]:
        """Return the leftmost operand and the operations that follow, so that long sums need no deep recursion."""
        steps, node = [], self
        while isinstance(node, Expression) and node.op in _BINARY:
            steps.append((node.op, node.args[1]))
            node = node.args[0]
        return node, steps[::-1]

    def names(self) -> set[str]:
        """Return the names of the parameters in the formula."""
        if self.op == "name":
            return {self.args[0]}
        first, steps = self._spine()
        parts = self.args if not steps else (first, *(right for _, right in steps))
        return set().union(*(a.names() for a in parts if isinstance(a, Expression)))

    def value(self, values: Mapping[str, Any]) -> Any:
        """Return the value of the formula for given parameters, which may be scalars of any type."""
        if self.op == "name":
            if self.args[0] not in values:
                raise unknown_name("parameter", self.args[0], values)
            return values[self.args[0]]
        try:
            if self.op not in _BINARY:
                return (FUNCTIONS.get(self.op) or _OPERATORS[self.op])(resolve(self.args[0], values))
            first, steps = self._spine()
            total = resolve(first, values)
            for op, right in steps:
                total = _OPERATORS[op](total, resolve(right, values))
            return total
        except (ArithmeticError, ValueError) as error:
            raise ModelError(f"{self} cannot be computed ({error})", remedy="change the parameters") from None

    def __add__(self, other):
        """Return a sum; operations with zero and one are simplified, as for every scalar."""
        return self if _is(other, 0) else Expression("+", (self, other))

    def __radd__(self, other):
        """Return a sum."""
        return self if _is(other, 0) else Expression("+", (other, self))

    def __sub__(self, other):
        """Return a difference."""
        return self if _is(other, 0) else Expression("-", (self, other))

    def __rsub__(self, other):
        """Return a difference."""
        return -self if _is(other, 0) else Expression("-", (other, self))

    def __mul__(self, other):
        """Return a product."""
        if _is(other, 0):
            return 0.0
        return self if _is(other, 1) else Expression("*", (self, other))

    def __rmul__(self, other):
        """Return a product."""
        return self * other if _is(other, 0) or _is(other, 1) else Expression("*", (other, self))

    def __truediv__(self, other):
        """Return a quotient."""
        return self if _is(other, 1) else Expression("/", (self, other))

    def __rtruediv__(self, other):
        """Return a quotient."""
        return 0.0 if _is(other, 0) else Expression("/", (other, self))

    def __pow__(self, other):
        """Return a power with a whole exponent."""
        return Expression("^", (self, other))

    def __neg__(self):
        """Return the opposite."""
        return Expression("neg", (self,))

    def sin(self):
        """Return the sine."""
        return Expression("sin", (self,))

    def cos(self):
        """Return the cosine."""
        return Expression("cos", (self,))

    def sqrt(self):
        """Return the square root."""
        return Expression("sqrt", (self,))


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(\.[A-Za-z_][A-Za-z_0-9]*)*")
"""Names that formulas read without braces."""
_BINARY = ("+", "-", "*", "/", "^")

Number = float | Expression


def _is(x, number: int) -> bool:
    return isinstance(x, int | float) and x == number


def _atom(x) -> str:
    """Return a number, a name, a function call or a change of sign as text."""
    if not isinstance(x, Expression):
        return repr(float(x)) if x >= 0 else f"({float(x)!r})"
    if x.op == "name":
        return x.args[0] if _PLAIN.fullmatch(x.args[0]) else f"{{{x.args[0]}}}"
    (inner,) = x.args
    if x.op == "neg":
        return f"(-{_operand(inner)})"
    return f"{x.op}({inner if isinstance(inner, Expression) else repr(float(inner))})"


def _operand(x) -> str:
    """Return a right operand as text, in parentheses if it is an operation itself."""
    return f"({x})" if isinstance(x, Expression) and x.op in _BINARY else _atom(x)


def power(base, exponent):
    """Return a whole power by multiplication, for scalars of any type."""
    if not (isinstance(exponent, int | float) and float(exponent).is_integer() and abs(exponent) <= 16):
        raise ModelError("an exponent must be a whole number from -16 to 16", remedy="use sqrt, exp or log")
    out = 1.0
    for _ in range(abs(int(exponent))):
        out = out * base
    return out if exponent >= 0 else 1.0 / out


_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": power,
    "neg": lambda a: -a,
}


def resolve(x: Any, values: Mapping[str, Any]) -> Any:
    """Return the scalar value of a number or an expression."""
    return x.value(values) if isinstance(x, Expression) else x


def names_in(x: Any) -> set[str]:
    """Return the names of the parameters in all expressions of a part of a mechanism, or of several."""
    if isinstance(x, Expression):
        return x.names()
    if isinstance(x, tuple):
        return set().union(*map(names_in, x))
    return set().union(*(names_in(getattr(x, f.name)) for f in fields(x))) if is_dataclass(x) else set()


def apply(op: str, *args: Number) -> Number:
    """Return the result of an operation or function: a number, or an expression if an argument is one."""
    made = Expression(op, args)
    return made if any(isinstance(a, Expression) for a in args) else made.value({})
