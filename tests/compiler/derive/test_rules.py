"""Partial derivatives of operations against differences with 50 digits, and the conventions at kinks."""

from __future__ import annotations

import numpy as np
import pytest

from high_precision import difference
from kinetree.algebra import scalars
from kinetree.compiler.derive.jacobians import MODES, derivative
from kinetree.compiler.derive.recorded import RULES
from kinetree.compiler.ir.operations import BOOLEANS, OPERATIONS, Op
from native_program import traced
from tolerance import assert_close

EPS = np.finfo(float).eps
X = [0.37, 0.61]


def of(op: Op):
    """Return the Program of an operation of two numbers, in a product with another function of them."""

    def function(x, y):
        if op is Op.SELECT:
            value = scalars.where(x < y, x * y, x / y)
        else:
            value = OPERATIONS[op].function(*(x, y)[: len(OPERATIONS[op].operands)])
        return [value * (x + 2.0 * y), value]

    return traced(function, 2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", [op for op in OPERATIONS if op not in BOOLEANS], ids=lambda op: op.name.lower())
def test_derivatives_of_operations(op, mode):
    """Differentiate every operation on numbers in every mode, and find the differences of 50 digits."""
    p = of(op)
    (J,) = derivative(p, ["x"], mode=mode).interpret(X)
    expected = np.stack([difference(p, [X], [e])[0] for e in np.eye(2)], axis=-1)
    assert_close(J, expected, 20 * EPS, "derivatives of operations")


def test_every_operation_on_numbers_has_a_rule():
    """Find a rule for each operation whose result is a number."""
    assert set(RULES) == {op for op in OPERATIONS if op not in BOOLEANS}


def at(function, *x: float) -> list:
    """Return the derivatives of a function of scalars in all modes."""
    p = traced(lambda *v: [function(*v)], len(x))
    return [derivative(p, ["x"], mode=mode).interpret(list(x))[0][0].tolist() for mode in MODES]


def test_choices_have_the_derivative_of_the_selected_value():
    """Differentiate a minimum, an absolute value and a clamp on both sides of their kinks, and at them."""
    least = lambda a, b: scalars.where(a < b, a * a, b)  # noqa: E731
    assert at(least, 0.5, 2.0) == [[1.0, 0.0]] * 3
    assert at(least, 3.0, 2.0) == [[0.0, 1.0]] * 3
    assert at(least, 2.0, 2.0) == [[0.0, 1.0]] * 3
    size = lambda a: scalars.where(a < 0.0, -a, a)  # noqa: E731
    assert [at(size, x)[0] for x in (-3.0, 0.0, 3.0)] == [[-1.0], [1.0], [1.0]]


def test_values_that_are_not_selected_have_no_effect():
    """Differentiate a choice whose other value has an infinite derivative, and find a finite one."""
    root = lambda a: scalars.where(a > 0.0, scalars.sqrt(a), 3.0 * a)  # noqa: E731
    assert at(root, 0.0) == [[3.0]] * 3
    log = lambda a: scalars.where(a > 1.0, scalars.log(scalars.where(a > 1.0, a, 1.0)), 2.0 * a)  # noqa: E731
    assert at(log, 0.0) == [[2.0]] * 3


def test_lengths_have_no_slope_at_zero():
    """Differentiate the length of a vector at zero, and find zero."""
    assert at(lambda a, b: scalars.sqrt(a * a + b * b), 0.0, 0.0) == [[0.0, 0.0]] * 3
