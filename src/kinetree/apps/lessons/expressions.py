"""Formulas of lessons: numbers, names, lists, arithmetic, entries of arrays and calls of known functions, nothing else.

Names may have dots, such as mass.link3. The page gets the trees of formulas and evaluates them (`page/js/formulas.js`).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...errors import ModelError, unknown_name

OPERATIONS: dict[type, tuple[str, Callable[..., Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.Pow: ("**", operator.pow),
    ast.USub: ("neg", operator.neg),
}
"""Operations by their nodes: the name in the trees of pages, and the function."""
CONSTANTS: dict[str, Any] = {
    "pi": np.pi,
    "deg": np.pi / 180,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "acos": np.arccos,
    "atan2": np.arctan2,
    "abs": np.abs,
    "log": np.log,
    "norm": lambda x: float(np.linalg.norm(x)),
}
"""Names that every formula may use."""


def parse_formula(formula: str, where: str = "") -> ast.expr:
    """Return the tree of a formula, or refuse what formulas cannot contain."""
    try:
        tree = ast.parse(formula.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _refusal(formula, where) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, str):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            continue
        if isinstance(node, ast.BinOp | ast.UnaryOp) and type(node.op) in OPERATIONS:
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            continue
        if isinstance(node, ast.Name | ast.List | ast.Tuple | ast.Subscript | ast.Load | ast.operator | ast.unaryop):
            continue
        raise _refusal(formula, where)
    return tree


def page_tree(formula: str) -> Any:
    """Return a formula for the page: a number, or a list of the kind of a node and its parts."""
    return _page_tree(parse_formula(formula))


def _page_tree(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return ["text", node.value] if isinstance(node.value, str) else node.value
    if isinstance(node, ast.Name | ast.Attribute):
        return ["name", ast.unparse(node)]
    if isinstance(node, ast.List):
        return ["list", *map(_page_tree, node.elts)]
    if isinstance(node, ast.BinOp):
        return [OPERATIONS[type(node.op)][0], _page_tree(node.left), _page_tree(node.right)]
    if isinstance(node, ast.UnaryOp):
        return [OPERATIONS[type(node.op)][0], _page_tree(node.operand)]
    if isinstance(node, ast.Subscript):
        return ["entry", _page_tree(node.value), *map(_page_tree, _places(node))]
    if isinstance(node, ast.Call):
        return ["call", ast.unparse(node.func), *map(_page_tree, node.args)]
    raise _refusal(ast.unparse(node), "")


def evaluate_formula(formula: str, known: Mapping[str, Any]) -> Any:
    """Return the value of a formula: a number, or an array of a list."""
    return _value(parse_formula(formula), {**CONSTANTS, **known})


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name | ast.Attribute):
        name = ast.unparse(node)
        if name not in known:
            raise unknown_name("name", name, known, where="formula")
        return known[name]
    if isinstance(node, ast.List):
        return np.array([_value(x, known) for x in node.elts], dtype=float)
    if isinstance(node, ast.BinOp):
        return OPERATIONS[type(node.op)][1](_value(node.left, known), _value(node.right, known))
    if isinstance(node, ast.UnaryOp):
        return OPERATIONS[type(node.op)][1](_value(node.operand, known))
    if isinstance(node, ast.Subscript):
        return _value(node.value, known)[tuple(int(_value(x, known)) for x in _places(node))]
    if isinstance(node, ast.Call):
        return _value(node.func, known)(*(_value(x, known) for x in node.args))
    raise _refusal(ast.unparse(node), "")


def _places(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _refusal(formula: str, where: str) -> ModelError:
    return ModelError(
        f"{formula!r} is not a formula of numbers, names, lists, entries and calls",
        where=where,
        remedy="write for example gravity_torque([30*deg, 0])[0]",
    )
