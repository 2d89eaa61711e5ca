"""The table of operations of Programs: types of operands and result, implementation, and cost."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any

import numpy as np

from ...algebra import scalars
from ...algebra.scalars import Scalar


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
    AND = 19
    OR = 20
    NOT = 21


class Type(Enum):
    """The type of an operand or of a result."""

    NUMBER = "number"
    BOOLEAN = "boolean"


@dataclass(frozen=True)
class Operation:
    """The types of an operation's operands and result, its implementations, and its cost.

    `function` takes scalars of any kind: floats, traced values, expressions. `array` takes NumPy arrays. `cost` is the
    label under which the operation is counted, None if it is free.
    """

    name: str
    operands: tuple[Type, ...]
    result: Type
    function: Callable[..., Scalar]
    array: Callable[..., Any]
    cost: str | None = "others"


COSTS: tuple[str, ...] = ("multiplications", "additions", "divisions", "roots", "sines", "others")
"""The labels under which operations are counted, in the order of the columns of tables."""

_X, _B = Type.NUMBER, Type.BOOLEAN

OPERATIONS: dict[Op, Operation] = {
    Op.ADD: Operation("add", (_X, _X), _X, operator.add, np.add, "additions"),
    Op.SUB: Operation("sub", (_X, _X), _X, operator.sub, np.subtract, "additions"),
    Op.MUL: Operation("mul", (_X, _X), _X, operator.mul, np.multiply, "multiplications"),
    Op.DIV: Operation("div", (_X, _X), _X, operator.truediv, np.divide, "divisions"),
    Op.NEG: Operation("neg", (_X,), _X, operator.neg, np.negative, None),
    Op.SQRT: Operation("sqrt", (_X,), _X, scalars.sqrt, np.sqrt, "roots"),
    Op.SIN: Operation("sin", (_X,), _X, scalars.sin, np.sin, "sines"),
    Op.COS: Operation("cos", (_X,), _X, scalars.cos, np.cos, "sines"),
    Op.TAN: Operation("tan", (_X,), _X, scalars.tan, np.tan),
    Op.ASIN: Operation("asin", (_X,), _X, scalars.asin, np.arcsin),
    Op.ACOS: Operation("acos", (_X,), _X, scalars.acos, np.arccos),
    Op.ATAN: Operation("atan", (_X,), _X, scalars.atan, np.arctan),
    Op.ATAN2: Operation("atan2", (_X, _X), _X, scalars.atan2, np.arctan2),
    Op.EXP: Operation("exp", (_X,), _X, scalars.exp, np.exp),
    Op.LOG: Operation("log", (_X,), _X, scalars.log, np.log),
    Op.LESS: Operation("less", (_X, _X), _B, operator.lt, np.less),
    Op.AND: Operation("and", (_B, _B), _B, scalars.logical_and, np.logical_and),
    Op.OR: Operation("or", (_B, _B), _B, scalars.logical_or, np.logical_or),
    Op.NOT: Operation("not", (_B,), _B, scalars.logical_not, np.logical_not),
    Op.SELECT: Operation("select", (_B, _X, _X), _X, scalars.where, np.where),
}
"""All operations except INPUT and CONST, which are numbers and take no operands."""

FUNCTIONS = tuple(op for op, o in OPERATIONS.items() if o.operands == (_X,) and o.result is _X and op is not Op.NEG)
"""The elementary functions of one number; every scalar type has methods of the same names."""

BOOLEANS = frozenset(op for op, o in OPERATIONS.items() if o.result is _B)
"""The operations whose result is a boolean."""

_SIZES = {op: len(o.operands) + 1 for op, o in OPERATIONS.items() if _B not in (*o.operands, o.result)}
"""The length of the tuple (operation, operand, ...) of each operation without booleans."""


def apply(op: Op, *operands: object) -> Scalar:
    """Apply an operation to scalars of any kind, or to NumPy arrays."""
    operation = OPERATIONS[op]
    arrays = any(isinstance(x, np.ndarray | np.generic) for x in operands)
    return (operation.array if arrays else operation.function)(*operands)


def count(ops: Iterable[tuple]) -> dict[str, int]:
    """Return the number of multiplications, additions, divisions, square roots, sines and other operations."""
    out = dict.fromkeys(COSTS, 0)
    for op, *_ in ops:
        if op > Op.CONST and (label := OPERATIONS[op].cost):
            out[label] += 1
    return out


def check(ops: tuple[tuple, ...], results: tuple[tuple[int, ...], ...], sizes: list[int]) -> None:
    """Raise TypeError or ValueError unless the operations form a valid program of inputs with these sizes."""
    booleans: set[int] = set()
    for i, op in enumerate(ops):
        code = op[0]
        size = _SIZES.get(code)
        if size is not None:  # nearly all operations take this path, so it must be quick
            if len(op) == size and 0 <= op[1] < i and 0 <= op[-1] < i and booleans.isdisjoint(op[1:]):
                continue
        elif code is Op.CONST:
            continue
        elif code is Op.INPUT:
            if not (0 <= op[1] < len(sizes) and 0 <= op[2] < sizes[op[1]]):
                raise ValueError(f"operation {i} reads entry {op[2]} of input {op[1]}, which is not declared")
            continue
        _check_one(i, code, op[1:], booleans)
        if code in BOOLEANS:
            booleans.add(i)
    for k in (k for entries in results for k in entries):
        if not 0 <= k < len(ops):
            raise ValueError(f"a result is operation {k}; there are {len(ops)}")
        if k in booleans:
            raise TypeError(
                f"a result is operation {k} ({OPERATIONS[ops[k][0]].name}), a boolean; select numbers by it"
            )


def _check_one(i: int, code: Op, x: tuple, booleans: set[int]) -> None:
    """Raise an error unless the number, order and types of an operation's operands are right."""
    expected = OPERATIONS[code].operands
    where = f"operation {i} ({OPERATIONS[code].name})"
    if len(x) != len(expected):
        raise ValueError(f"{where} has {len(x)} operands; expected {len(expected)}")
    for k, wanted in zip(x, expected, strict=True):
        if not 0 <= k < i:
            raise ValueError(f"{where} reads operation {k}, which does not come before it")
        found = Type.BOOLEAN if k in booleans else Type.NUMBER
        if found is not wanted:
            raise TypeError(f"{where} expects a {wanted.value}, but operation {k} is a {found.value}")
