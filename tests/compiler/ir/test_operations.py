"""The table of operations: types are checked, and floats, arrays and traced values give the same results."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from kinetree.algebra import scalars
from kinetree.compiler.ir.operations import OPERATIONS, Op, Type, apply
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.trace import Trace
from native_program import gufunc, traced
from tolerance import assert_close

NUMBERS = {Op.ASIN: 0.37, Op.ACOS: -0.61}


def operands(op: Op) -> list:
    """Return operands in the domain of an operation."""
    first = {Type.NUMBER: [NUMBERS.get(op, 1.37), 0.83], Type.BOOLEAN: [True, False, True]}
    return [first[t].pop(0) for t in OPERATIONS[op].operands]


def test_every_operation_has_an_entry():
    """List every operation but inputs and constants in the table."""
    assert set(OPERATIONS) == set(Op) - {Op.INPUT, Op.CONST}
    assert all(o.name == op.name.lower() for op, o in OPERATIONS.items())


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_one_meaning_on_floats_arrays_and_traced_values(op):
    """Apply each operation to numbers, arrays and traced values, interpreted and native, and find the same result."""
    given = operands(op)
    expected = float(apply(op, *given))
    assert_close(np.asarray(apply(op, *map(np.asarray, given)), dtype=float), expected, 1e-15, "array")  # 2e-16

    def function(*x):
        made = [v if t is Type.NUMBER else (v > 1.0) for v, t in zip(x, OPERATIONS[op].operands, strict=True)]
        result = apply(op, *made)
        return [scalars.where(result, 1.0, 0.0) if OPERATIONS[op].result is Type.BOOLEAN else result]

    program = traced(function, len(given))
    x = [(2.3 if g else 0.4) if isinstance(g, bool) else g for g in given]
    assert op in [o[0] for o in program.ops]
    assert_close(program.interpret(x)[0], [expected], 1e-15, "interpreted")  # 0
    assert_close(gufunc(program)(np.array(x)), [expected], 4e-15, "native")  # 3e-16


def test_conditions_combine():
    """Combine comparisons by and, or and not, with each other and with bools."""

    def function(x, y):
        inside = (x > 0.0) & (x < y)
        return [
            scalars.where(inside, 1.0, 0.0), scalars.where(~inside, 1.0, 0.0), scalars.where((x < 0.0) | (y < x), x, y),
            scalars.where(True & inside | False, 3.0, 4.0), scalars.where(scalars.logical_not(~inside), 5.0, 6.0),
        ]  # fmt: skip

    program = traced(function, 2)
    samples = np.array([[0.3, 0.9], [1.7, 0.9], [-0.4, 0.2], [math.nan, 1.0]])
    expected = [[1, 0, 0.9, 3, 5], [0, 1, 1.7, 4, 6], [0, 1, -0.4, 4, 6], [0, 1, 1.0, 4, 6]]
    for run in (lambda x: program.interpret(x)[0], gufunc(program), gufunc(program, "float32")):
        assert_close(run(samples.astype(np.float32)), np.array(expected), 1e-6, "selected")  # 2e-8, the input's
    assert program.types.count(Type.BOOLEAN) == 7
    assert Program.loads(program.dumps()) == program
    x = Trace().input(0, 0)
    assert ((x < 1.0) & False, (x < 1.0) | True) == (False, True)
    assert [scalars.logical_not(True), scalars.logical_and(True, False), scalars.logical_or(True, False)] == [0, 0, 1]


@pytest.mark.parametrize("misuse", [
    lambda c, x: c + x, lambda c, x: x * c, lambda c, x: 2.0 - c, lambda c, x: x / c, lambda c, x: -c,
    lambda c, x: c < x, lambda c, x: x < c, lambda c, x: scalars.sin(c), lambda c, x: scalars.atan2(x, c),
    lambda c, x: scalars.where(x < 1.0, c, x),
])  # fmt: skip
def test_a_condition_is_no_number(misuse):
    """Refuse arithmetic on a comparison, with a remedy in the message."""
    x = Trace().input(0, 0)
    with pytest.raises(
        TypeError, match=r"a condition is not a number; where\(condition, 1.0, 0.0\) converts it to one"
    ):
        misuse(x < 2.0, x)


def test_numbers_are_no_conditions():
    """Refuse to choose by a number, to combine with one, to return a condition and to convert it to a bool."""
    trace = Trace()
    x = trace.input(0, 0)
    with pytest.raises(TypeError, match="the condition of where is a number; expected a comparison such as x < y"):
        scalars.where(x, 1.0, 2.0)
    with pytest.raises(TypeError, match="the condition is a Value; expected a comparison of numbers, such as x < y"):
        (x < 1.0) & x
    with pytest.raises(TypeError, match="a traced condition is neither true nor false yet; choose by where"):
        bool(x < 1.0)
    with pytest.raises(TypeError, match="a condition is not a number"):
        Program.of_trace("bad", (Array("x", (1,)),), (Array("y", (1,)),), trace, [[x < 1.0]])


@pytest.mark.parametrize(("ops", "results", "error"), [
    ([(Op.INPUT, 0, 1)], [0], "operation 0 reads entry 1 of input 0, which is not declared"),
    ([(Op.INPUT, 1000, 0)], [0], "operation 0 reads entry 0 of input 1000, which is not declared"),
    ([(Op.INPUT, 0, 0), (Op.ADD, 0, 1)], [1], "operation 1 (add) reads operation 1, which does not come before it"),
    ([(Op.INPUT, 0, 0), (Op.SIN, -1)], [1], "operation 1 (sin) reads operation -1, which does not come before it"),
    ([(Op.INPUT, 0, 0), (Op.ADD, 0)], [1], "operation 1 (add) has 1 operands; expected 2"),
    ([(Op.INPUT, 0, 0), (Op.LESS, 0, 0), (Op.MUL, 0, 1)], [2],
     "operation 2 (mul) expects a number, but operation 1 is a boolean"),
    ([(Op.INPUT, 0, 0), (Op.SELECT, 0, 0, 0)], [1],
     "operation 1 (select) expects a boolean, but operation 0 is a number"),
    ([(Op.INPUT, 0, 0), (Op.LESS, 0, 0)], [1], "a result is operation 1 (less), a boolean; select numbers by it"),
    ([(Op.INPUT, 0, 0)], [3], "a result is operation 3; there are 1"),
])  # fmt: skip
def test_programs_are_checked_when_made_and_when_read(ops, results, error):
    """Refuse a Program with invalid operands or types, also when it is read from text."""
    with pytest.raises((TypeError, ValueError)) as made:
        Program("bad", (Array("x", (1,)),), (Array("y", (1,)),), tuple(ops), (tuple(results),))
    assert str(made.value) == error
    data = json.loads(traced(lambda x: [x]).dumps())
    data |= {"ops": [list(map(int, op)) for op in ops], "results": [results]}
    with pytest.raises((TypeError, ValueError)) as read:
        Program.loads(json.dumps(data))
    assert str(read.value) == error
