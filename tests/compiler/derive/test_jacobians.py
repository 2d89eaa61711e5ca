"""Jacobians of Programs in all modes: their values, their structural zeros and their operations."""

from __future__ import annotations

import numpy as np
import pytest

from interpreted import program
from kinetree.compiler.derive.jacobians import MODES, derivative, weight
from kinetree.compiler.ir.operations import Op
from native_program import traced
from strategies import random_mechanism
from tolerance import assert_close

EPS = np.finfo(float).eps


def chain(n: int = 4):
    """Return a serial chain of revolute joints."""
    return random_mechanism(["revolute"] * n, [k - 1 for k in range(n)], 3)


def test_modes_agree():
    """Differentiate forward dynamics of a chain in every mode, and find equal Jacobians."""
    p = program(chain(), "forward_dynamics")
    x = np.random.default_rng(1).normal(size=(3, 5, 4))
    first, *others = [derivative(p, ["q", "qd", "tau"], mode=mode).interpret(*x) for mode in MODES]
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert_close(a, b, 1e3 * EPS * np.abs(a).max(), "modes")


def test_auto_is_the_cheapest_mode():
    """Choose the mode by count, and find the weight of the cheapest."""
    p = program(chain(), "inverse_dynamics")
    weights = [weight(derivative(p, ["q"], mode=mode)) for mode in MODES]
    assert weight(derivative(p, ["q"])) == min(weights)
    assert len(set(weights)) > 1


@pytest.mark.parametrize("mode", MODES)
def test_structural_zeros_are_not_computed(mode):
    """Differentiate sums of squares of separate entries, and find a diagonal with one operation per entry."""
    p = traced(lambda *x: [a * a for a in x], 5)
    d = derivative(p, ["x"], mode=mode)
    assert d.cost()["additions"] == 5 and d.cost()["multiplications"] == 0
    assert np.array_equal(d.interpret(np.arange(5.0))[0], np.diag(2 * np.arange(5.0)))
    assert sum(op == (Op.CONST, 0.0) for op in d.ops) == 1


def test_outputs_and_inputs_can_be_chosen():
    """Differentiate one of two outputs by one of three inputs."""
    p = program(chain(), "inverse_dynamics")
    d = derivative(p, ["qdd"], ["tau"])
    assert [a.name for a in d.outputs] == ["dtau_dqdd"]
    q, qd, qdd = np.random.default_rng(2).normal(size=(3, 4))
    I = program(chain(), "inertia_matrix").interpret(q)[0]  # noqa: E741 - the papers' letter
    assert_close(d.interpret(q, qd, qdd)[0], I, 50 * EPS * np.abs(I).max(), "dtau/dqdd = I")


def test_repeated_and_constant_results():
    """Differentiate outputs that are inputs, numbers, and equal to each other."""
    p = traced(lambda x, y: [x, 3.0, x * y, x * y, y], 2)
    for mode in MODES:
        (J,) = derivative(p, ["x"], mode=mode).interpret([2.0, 5.0])
        assert J.tolist() == [[1, 0], [0, 0], [5, 2], [5, 2], [0, 1]]
