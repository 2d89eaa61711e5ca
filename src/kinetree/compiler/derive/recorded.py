"""A Program recorded again in a new trace, with the value of every operation at hand for its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...algebra.scalars import Scalar, cos, is_number, sin, sqrt, where
from ..ir.operations import BOOLEANS, OPERATIONS, Op
from ..ir.program import Array, Program
from ..ir.trace import Condition, Trace, Value

# --- The partial derivatives of every operation with respect to its operands, and the conventions at kinks ---
#
# A choice has the derivative of the value that it selects; where(a < b, a, b) selects b if both are equal. Comparisons
# have no derivative. The derivative of a square root at zero is taken to be zero, which makes the derivative of a
# length at the zero vector zero, the mean of its one-sided derivatives.

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


def partials(op: Op, value: Scalar, operands: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """Return the derivative of an operation with respect to each operand; numbers 0, 1 and -1 where it is constant."""
    rule = RULES.get(op)
    return rule(value, *operands) if rule is not None else (0.0,) * len(OPERATIONS[op].operands)


Row = dict[Any, Scalar]
"""The entries of a row or column of a matrix that are not structurally zero, by label."""


class Recorded:
    """The operations of a Program on scalars of a trace: their values, and their partial derivatives."""

    def __init__(self, program: Program, inputs: Mapping[str, Sequence[Scalar]]) -> None:
        """Record the Program on scalars for each of its inputs by name; numbers are folded."""
        self.program = program
        self.values: list[Scalar] = []
        self._partials: dict[int, list[tuple[int, Scalar]]] = {}
        given = [inputs[a.name] for a in program.inputs]
        for op, *x in program.ops:
            if op is Op.INPUT:
                self.values.append(given[x[0]][x[1]])
            elif op is Op.CONST:
                self.values.append(x[0])
            else:
                self.values.append(OPERATIONS[op].function(*(self.values[k] for k in x)))

    def outputs(self) -> dict[str, list[Scalar]]:
        """Return the entries of each output by name."""
        named = zip(self.program.outputs, self.program.results, strict=True)
        return {out.name: [self.values[k] for k in entries] for out, entries in named}

    def partials(self, k: int) -> list[tuple[int, Scalar]]:
        """Return the operands of operation k on which its value depends smoothly, each with the derivative."""
        found = self._partials.get(k)
        if found is None:
            op, *x = self.program.ops[k]
            found = []
            if op not in BOOLEANS and op > Op.CONST and not is_number(self.values[k]):
                factors = partials(op, self.values[k], tuple(self.values[i] for i in x))
                found = [(i, d) for i, d in zip(x, factors, strict=True) if not _is_zero(d)]
            self._partials[k] = found
        return found

    def active(self, sources: set[int], targets: set[int]) -> bytearray:
        """Return a mark for each operation that depends on one of `sources` and on which one of `targets` depends."""
        ops = self.program.ops
        reached = bytearray(len(ops))
        for k, op in enumerate(ops):
            if k in sources:
                reached[k] = 1
            elif op[0] > Op.CONST and op[0] not in BOOLEANS and not is_number(self.values[k]):
                first = 2 if op[0] is Op.SELECT else 1
                reached[k] = any(reached[i] for i in op[first:])
        needed = bytearray(len(ops))
        for k in reversed(range(len(ops))):
            if reached[k] and (k in targets or needed[k]):
                needed[k] = 1
                op = ops[k]
                if op[0] > Op.CONST:
                    for i in op[2 if op[0] is Op.SELECT else 1 :]:
                        needed[i] = 1
        return bytearray(a & b for a, b in zip(reached, needed, strict=True))


def trace_inputs(arrays: Sequence[Array]) -> tuple[Trace, dict[str, list[Value]]]:
    """Return a new trace, and the scalars of inputs by name."""
    trace = Trace()
    return trace, {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(arrays)}


def times(factor: Scalar, x: Scalar) -> Scalar:
    """Return a product; with the derivative of a choice a choice again, so that values not selected have no effect."""
    for mask, other in ((factor, x), (x, factor)):
        found = _mask(mask)
        if found is not None:
            condition, yes = found
            return where(condition, other, 0.0) if yes else where(condition, 0.0, other)
    return factor * x


def _mask(x: Scalar) -> tuple[Any, bool] | None:
    """Return the condition of a choice between 1 and 0, and whether 1 is chosen where it holds."""
    if type(x) is not Value:
        return None
    trace = x.trace
    op = trace.ops[x.id]
    if op[0] is not Op.SELECT:
        return None
    ends = [trace.ops[k] for k in op[2:]]
    if not all(e[0] is Op.CONST for e in ends):
        return None
    numbers = tuple(e[1] for e in ends)
    return (Condition(trace, op[1]), numbers == (1.0, 0.0)) if numbers in ((1.0, 0.0), (0.0, 1.0)) else None


def add_to(row: Row, label: object, x: Scalar) -> None:
    """Add a scalar to an entry of a row."""
    row[label] = row[label] + x if label in row else x


def _is_zero(x: Scalar) -> bool:
    return is_number(x) and x == 0.0
