"""Sums as chains: the same values, and a product fused with each addition."""

from __future__ import annotations

import numpy as np

from kinetree.compiler.derive.build import chain_sums
from kinetree.compiler.ir.operations import Op
from native_program import traced
from tolerance import assert_close


def kinds(program) -> list[Op]:
    """Return the kinds of all operations but inputs and constants."""
    return [op[0] for op in program.ops if op[0] > Op.CONST]


def values(program, count: int):
    """Return the results for some numbers."""
    return program.interpret(np.random.default_rng(count).normal(size=(5, count)))[0]


def test_products_come_last():
    """Write a tree of four products and two other terms, some of them negative, as one chain without negations."""
    p = traced(lambda a, b, c, d, e, f: [(a * b - c * d) - (e - (-(a * c) + (f - b * d)))], 6)
    q = chain_sums(p)
    assert kinds(q)[-5:] == [op for op in kinds(q) if op in (Op.ADD, Op.SUB)]
    assert Op.NEG not in kinds(q)
    last = q.ops[q.results[0][0]]
    while q.ops[last[2]][0] is Op.MUL:  # from the end of the chain inward
        last = q.ops[last[1]]
    assert last[0] is Op.SUB
    assert {q.ops[k][0] for k in last[1:]} == {Op.INPUT}
    assert_close(values(q, 6), values(p, 6), 1e-14)


def test_negative_sums_are_negated_once():
    """Write a sum of negative terms as a chain with one negation at its end."""
    p = traced(lambda a, b, c, d: [-(a * b) - c - d * c], 4)
    q = chain_sums(p)
    assert kinds(q).count(Op.NEG) == 1
    assert_close(values(q, 4), values(p, 4), 1e-14)


def test_shared_values_and_short_sums_stay():
    """Keep sums and products of several uses, results that are terms of others, and sums without products."""

    def shared(a, b, c, d):
        product, total = a * b, a + c * d
        return [product + c, product - d, total + a * d, total - b * c, (a + b) + (c + d), total]

    p = traced(shared, 4)
    q = chain_sums(p)
    assert sorted(kinds(q)) == sorted(kinds(p))
    assert np.array_equal(values(q, 4), values(p, 4))
