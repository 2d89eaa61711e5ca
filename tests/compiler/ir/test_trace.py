"""Traced scalars: constants are folded, equal operations are shared, and results do not change."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetree.algebra import scalars
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.trace import Op, Trace, Value
from kinetree.errors import InputError
from native_program import traced
from strategies import examples
from tolerance import assert_close


def kinds(function, count: int = 2) -> list[str]:
    """Return the names of the traced operations of a function, except inputs and constants."""
    return [op.name for op, *_ in traced(function, count).ops if op > Op.CONST]


@pytest.mark.parametrize(("function", "expected"), [
    (lambda x, y: [x + 0.0, 0.0 + x, x * 1.0, 1.0 * x, x - 0.0, x / 1.0], []),
    (lambda x, y: [x * 0.0, 0.0 * x, 0.0 / x, x - x], []),
    (lambda x, y: [x + y, y + x], ["ADD"]),
    (lambda x, y: [x * y, y * x], ["MUL"]),
    (lambda x, y: [0.0 - x, -x], ["NEG"]),
    (lambda x, y: [(-x) * -1.0], []),
    (lambda x, y: [x + (-y)], ["SUB"]),
    (lambda x, y: [(-x) + y], ["SUB"]),
    (lambda x, y: [x - (-y)], ["ADD"]),
    (lambda x, y: [-(x - y)], ["SUB"]),
    (lambda x, y: [(-x) * y, x * (-y)], ["MUL", "NEG"]),
    (lambda x, y: [(-x) * (-y)], ["MUL"]),
    (lambda x, y: [x * -2.0, -2.0 * x], ["MUL", "NEG"]),
    (lambda x, y: [scalars.sin(x), scalars.sin(x), scalars.cos(x)], ["SIN", "COS"]),
    (lambda x, y: [scalars.where(x < y, x, y)], ["LESS", "SELECT"]),
])  # fmt: skip
def test_what_folds(function, expected):
    """Fold zeros and ones, share equal operations, and move signs outward."""
    assert kinds(function) == expected


def test_dead_operations_vanish():
    """Leave out of a Program the operations on which no result depends."""

    def function(x, y):
        scalars.sin(x * y)
        return [x + y]

    assert kinds(function) == ["ADD"]


def test_sums_and_products_are_recorded_again():
    """Begin a trace again: the same product is a new operation, and the same sine of a sum is not."""
    trace = Trace()
    x, y = trace.input(0, 0), trace.input(0, 1)
    product, sine = x * y, scalars.sin(x + 0.7)
    assert (x * y).id == product.id
    trace.begin_again()
    assert trace.input(0, 1).id == y.id
    assert scalars.sin(x + 0.7).id == sine.id
    assert (x * y).id == len(trace.ops) - 1 > product.id


def test_numbers_stay_numbers():
    """Compute with plain numbers immediately, without recording operations."""
    assert scalars.sin(0.5) == math.sin(0.5)
    assert scalars.atan2(1.0, -2.0) == math.atan2(1.0, -2.0)
    assert scalars.where(True, 1.0, 2.0) == 1.0
    assert scalars.snap(1e-16) == 0.0
    assert scalars.snap(-1.0 + 1e-16) == -1.0
    assert scalars.snap(1e-14) == 1e-14


def test_constants_keep_their_bits():
    """Record each constant once, even if the next floating-point number is also recorded."""
    trace = Trace()
    a, b = trace.constant(0.1), trace.constant(math.nextafter(0.1, 1))
    assert (a.id, trace.constant(0.1).id) == (0, 0)
    assert b.id == 1
    assert trace.index(0.1) == 0


@pytest.mark.parametrize("misuse", [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a < b,
    lambda a, b: a > b, lambda a, b: scalars.atan2(a, b), lambda a, b: scalars.where(a < 1.0, a, b),
    lambda a, b: scalars.where(a < 1.0, b, a), lambda a, b: (a < 1.0) & (b < 1.0), lambda a, b: a.trace.index(b),
    lambda a, b: Program.of_trace("two", (Array("x", (1,)),), (Array("y", (1,)),), a.trace, [[b]]),
])  # fmt: skip
def test_values_of_two_traces_do_not_mix(misuse):
    """Refuse a value of another trace, even with the same index, with a remedy in the message."""
    a, b = Trace().input(0, 0), Trace().input(0, 0)
    with pytest.raises(InputError, match=r"a traced value of an earlier compilation was used again.*kt\.PythonControl"):
        misuse(a, b)


class Both:
    """A number and its trace, computed side by side."""

    def __init__(self, number, value) -> None:
        """Store both."""
        self.number, self.value = number, value


@given(st.integers(0, 2**32 - 1))
@examples(100)
def test_random_arithmetic_keeps_its_value(seed):
    """Compute random expressions on numbers and on traced scalars, and find the same values."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=3)
    trace = Trace()
    pool = [Both(float(x[k]), trace.input(0, k)) for k in range(3)]
    pool += [Both(c, c) for c in (0.0, 1.0, -1.0, 2.5, -0.3)]
    for _ in range(25):
        a, b = (pool[int(k)] for k in rng.integers(0, len(pool), 2))
        match rng.integers(0, 7):
            case 0:
                made = Both(a.number + b.number, a.value + b.value)
            case 1:
                made = Both(a.number - b.number, a.value - b.value)
            case 2:
                made = Both(a.number * b.number, a.value * b.value)
            case 3:
                made = Both(-a.number, -a.value)
            case 4:
                made = Both(math.sin(a.number), scalars.sin(a.value))
            case 5:
                made = Both(a.number / (1.5 + math.cos(b.number)), a.value / (1.5 + scalars.cos(b.value)))
            case _:
                made = Both(*(scalars.where(u < v, u, v) for u, v in ((a.number, b.number), (a.value, b.value))))
        if abs(made.number) < 1e3:
            pool.append(made)
    results = [b.value for b in pool if isinstance(b.value, Value)]
    expected = [b.number for b in pool if isinstance(b.value, Value)]
    program = Program.of_trace("random", (Array("x", (3,)),), (Array("y", (len(results),)),), trace, [results])
    assert_close(program.interpret(x)[0], expected, 1e-11, "value")  # 1e-13


def test_powers_are_products():
    """Record whole powers as products, few of them, and refuse others."""
    assert kinds(lambda x, y: [x**2, y**1 + x**0]) == ["MUL", "ADD"]
    assert kinds(lambda x, y: [x**5]) == ["MUL"] * 3
    program = traced(lambda x, y: [x**7, y**4], 2)
    assert_close(program.interpret(np.array([1.3, -0.7]))[0], [1.3**7, 0.7**4], 1e-14, "powers")
    with pytest.raises(TypeError):
        traced(lambda x: [x**0.5])
