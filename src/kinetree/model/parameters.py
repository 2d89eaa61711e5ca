"""Numbers that may be expressions of named parameters, and the parser of such formulas."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass

from ..algebra import scalars
from ..algebra.scalars import Scalar
from ..errors import ModelError, unknown_name

FUNCTIONS: dict[str, Callable[[Scalar], Scalar]] = {
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

    def _spine(self) -> tuple[Scalar, list[tuple[str, Scalar]]]:
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

    def value(self, values: Mapping[str, Scalar]) -> Scalar:
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


_OPERATORS: dict[str, Callable[..., Scalar]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": power,
    "neg": lambda a: -a,
}


def resolve(x: object, values: Mapping[str, Scalar]) -> Scalar:
    """Return the scalar value of a number or an expression."""
    return x.value(values) if isinstance(x, Expression) else x


def names_in(x: object) -> set[str]:
    """Return the names of the parameters in all expressions of a part of a mechanism, or of several."""
    if isinstance(x, Expression):
        return x.names()
    if isinstance(x, tuple):
        return set().union(*map(names_in, x))
    return set().union(*(names_in(getattr(x, f.name)) for f in fields(x))) if is_dataclass(x) else set()


def plain_number(x: Number) -> float:
    """Return a number of a mechanism without free parameters."""
    if isinstance(x, Expression):
        raise TypeError(f"{x} depends on free parameters; a number is required")
    return float(x)


def apply(op: str, *args: Number) -> Number:
    """Return the result of an operation or function: a number, or an expression if an argument is one."""
    made = Expression(op, args)
    return made if any(isinstance(a, Expression) for a in args) else made.value({})


# --- Parser of formulas: Python's own parser gives their structure, and Python never evaluates them.
#
# The text is first split into tokens, so that only decimals, names, + - * / ^ and parentheses are accepted. In the text
# for Python's parser a placeholder name replaces each number and name; its syntax tree is then read node by node.

MAX_LENGTH, MAX_DEPTH, MAX_SIGNS = 20000, 60, 800
"""Limits of a formula (characters, nested parentheses, operators), far above those of real files."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_][A-Za-z_0-9]*)*|\{[^{}]+\})|(?P<op>\*\*|[-+*/^()]))"
)
_SYMBOLS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^"}


def parse(text: str) -> Number:
    """Return the expression of a formula such as "l1/2 + 0.1*cos(alpha)", or its number if it has no names.

    Names of parameters may have dots; those with other characters are in braces: 2 * {mass.base-link}. Formulas have
    + - * / ^ (or **), parentheses, pi, sin, cos, tan, asin, acos, atan, sqrt, exp, log and deg(x).
    """
    if len(text) > MAX_LENGTH:
        raise ModelError(f"an expression has {len(text)} characters", remedy=f"use at most {MAX_LENGTH}")
    formula = _Formula(text)
    formula.check_order()
    value = formula.value(formula.tree())
    return value.value({}) if isinstance(value, Expression) and not value.names() else value


class _Formula:
    """A formula as tokens: (kind, text) with the kinds number, name and op."""

    def __init__(self, text: str) -> None:
        self.text, position = text, 0
        self.tokens: list[tuple[str, str]] = []
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if not match or not text.isascii():
                raise self.error(f"unexpected {text[position : position + 1]!r}")
            self.tokens.append((str(match.lastgroup), match.group(str(match.lastgroup))))
            position = match.end()
        if sum(kind == "op" for kind, _ in self.tokens) > MAX_SIGNS:
            raise self.error(f"more than {MAX_SIGNS} operators")

    def error(self, what: str) -> ModelError:
        return ModelError(
            f"{what} in the expression {self.text[:80]!r}",
            remedy="use numbers, parameter names, + - * / ^, parentheses, pi and " + ", ".join(FUNCTIONS),
        )

    def check_order(self) -> None:
        """Refuse tokens in an impossible order: two operands in a row, operators without an operand."""
        depth, operand, before = 0, False, ""  # operand: whether one is complete; before: the previous token
        for kind, token in self.tokens:
            if operand and (kind != "op" or (token == "(" and before not in FUNCTIONS)):
                raise self.error("a parenthesis is not closed" if depth else f"unexpected {token!r}")
            if (token == ")" and not (operand and depth)) or (not operand and token in ("*", "/", "^", "**")):
                raise self.error(f"unexpected {token!r}")
            depth += (token == "(") - (token == ")")
            if depth >= MAX_DEPTH:
                raise self.error("too many nested parentheses")
            operand, before = kind != "op" or token == ")", token
        if depth or not operand:
            raise self.error("something is missing at the end")

    def tree(self) -> ast.expr:
        """Return Python's syntax tree of the formula, in which token k has the name tk if it is an operand."""
        words = (
            f"t{k}" if kind != "op" else "**" if token == "^" else token for k, (kind, token) in enumerate(self.tokens)
        )
        return ast.parse(" ".join(words), mode="eval").body

    def value(self, node: ast.expr) -> Number:
        """Return the number or expression of a node; left operands are followed in a loop, for a shallow recursion."""
        steps: list[ast.BinOp] = []
        while isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Pow):
            steps.append(node)
            node = node.left
        value = self._signed(node)
        for step in reversed(steps):
            value = apply(_SYMBOLS[type(step.op)], value, self._signed(step.right))
        return value

    def _signed(self, node: ast.expr) -> Number:
        negative = False
        while isinstance(node, ast.UnaryOp):
            negative ^= isinstance(node.op, ast.USub)
            node = node.operand
        value = self._atom(node)
        return apply("neg", value) if negative else value

    def _atom(self, node: ast.expr) -> Number:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            exponent = self._exponent(node.right)
            return apply("^", self._atom(node.left), exponent)
        if isinstance(node, ast.BinOp | ast.UnaryOp):
            return self.value(node)  # in parentheses
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return apply(self._token(node.func)[1], self.value(node.args[0]))
        kind, text = self._token(node)
        if kind == "number":
            return float(text)
        return CONSTANTS[text] if text in CONSTANTS else Expression("name", (text.strip("{}"),))

    def _exponent(self, node: ast.expr) -> float:
        sign = 1.0
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            sign, node = -1.0, node.operand
        if not isinstance(node, ast.Name) or self._token(node)[0] != "number":
            raise self.error("an exponent is not a number")
        exponent = sign * float(self._token(node)[1])
        power(1.0, exponent)
        return exponent

    def _token(self, node: ast.expr) -> tuple[str, str]:
        """Return the token that a name in the syntax tree stands for."""
        if not isinstance(node, ast.Name):
            raise self.error(f"unexpected {type(node).__name__}")
        return self.tokens[int(node.id[1:])]
