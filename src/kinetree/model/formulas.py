"""Parser of formulas of parameters: Python's own parser gives their structure, and Python never evaluates them.

The text is first split into tokens, so that only decimals, names, + - * / ^ and parentheses are accepted. In the text
for Python's parser a placeholder name replaces each number and name; its syntax tree is then read node by node.
"""

from __future__ import annotations

import ast
import re

from ..errors import ModelError
from .parameters import CONSTANTS, FUNCTIONS, Expression, Number, apply, power

MAX_LENGTH, MAX_DEPTH, MAX_SIGNS = 20000, 60, 800
"""Limits of a formula (characters, nested parentheses, operators), far above those of real files."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_][A-Za-z_0-9]*)*|\{[^{}]+\})|(?P<op>\*\*|[-+*/^()]))"
)
_OPERATORS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^"}


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
            value = apply(_OPERATORS[type(step.op)], value, self._signed(step.right))
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
