"""The order of operations: the same results with fewer values in use."""

from __future__ import annotations

import numpy as np

import everyday
from kinetree.compiler.derive.build import compact, page, values_in_use
from kinetree.compiler.ir.operations import Op
from kinetree.compiler.ir.staging import depth_first
from kinetree.compiler.lower.build import Request
from native_program import traced
from strategies import random_mechanism
from tolerance import assert_close


def test_values_are_computed_when_they_are_needed():
    """Order sums whose terms are all computed first, and find each sum after its own terms."""

    def sums(*x):
        squares = [a * a for a in x]
        return [a + b for a, b in zip(squares, x, strict=True)]

    p = traced(sums, 6)
    q = depth_first(p, p.results[0])
    assert [op[0] for op in q.ops] == [Op.INPUT, Op.MUL, Op.ADD] * 6
    assert values_in_use(q) < values_in_use(p)
    x = np.random.default_rng(1).normal(size=(5, 6))
    assert np.array_equal(p.interpret(x)[0], q.interpret(x)[0])


@everyday.long
def test_jacobians_are_compact():
    """Order the derivatives of a branched robot output by output, then compactly: the same up to rounding."""
    mechanism = random_mechanism(["free", *["revolute"] * 6], [-1, 0, 1, 2, 0, 4, 5], 4)
    p = page(mechanism, Request("inverse_dynamics").checked(mechanism), ("q", "qd", "qdd"))
    assert p is not None
    worse = depth_first(p, [k for r in p.results for k in r])
    best = compact(worse)
    assert max(values_in_use(best), values_in_use(p)) < 0.9 * values_in_use(worse)
    rng = np.random.default_rng(2)
    state = [rng.normal(size=(3, a.size)) for a in p.inputs]
    for a, b, c in zip(p.interpret(*state), worse.interpret(*state), best.interpret(*state), strict=True):
        assert np.array_equal(a, b)
        assert_close(c, a, 1e-13 * np.abs(a).max())
