"""Tables in Programs: trees of selections of constants, by comparisons of one number."""

from __future__ import annotations

import math

import pytest

from kinetree.algebra.scalars import where
from kinetree.compiler.ir.operations import Op
from kinetree.targets.llvm.arithmetic import LEAST, lookups
from native_program import traced, tree

COUNT = 37
AT = [0.1 + 0.3 * k for k in range(COUNT - 1)]
HEIGHTS = [math.sin(1.7 * k) for k in range(COUNT)]


def test_a_tree_of_constants_is_a_table():
    """Find thresholds and leaves in order, and the operations that only the tree used."""
    program = traced(lambda u, v: [tree(u + v, AT, HEIGHTS) * u, u + v], 2)
    found, unused = lookups(program)
    ((root, table),) = found.items()
    assert program.ops[root][0] is Op.SELECT
    assert program.ops[table.number][0] is Op.ADD
    assert table.thresholds == tuple(AT)
    assert table.leaves == tuple(HEIGHTS)
    left = [op[0] for k, op in enumerate(program.ops) if k not in unused]
    assert left == [Op.INPUT, Op.INPUT, Op.ADD, Op.SELECT, Op.MUL]


def test_results_and_other_uses_stay():
    """Keep a comparison and a part of the tree that something else reads."""

    def function(u):
        inner = tree(u, AT, HEIGHTS)
        outer = where(u < 50.0, inner, 3.0)
        return [outer, inner, where(u < AT[2], u, 2.0)]

    program = traced(function)
    found, unused = lookups(program)
    assert sorted(len(table.leaves) for table in found.values()) == [COUNT, COUNT + 1]
    comparisons = [k for k, op in enumerate(program.ops) if op[0] is Op.LESS and k not in unused]
    assert len(comparisons) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda u: [tree(u, AT[: LEAST - 2], HEIGHTS[: LEAST - 1])],
        lambda u: [tree(u, AT[::-1], HEIGHTS)],
        lambda u: [tree(u, AT, [*HEIGHTS[:-1], u])],
        lambda u: [tree(u, [*AT[:-1], math.inf], HEIGHTS)],
    ],
    ids=["few leaves", "falling thresholds", "a leaf that is no constant", "an infinite threshold"],
)
def test_other_trees_are_left_alone(function):
    """Leave out trees that are small, in no order, or not of constants."""
    found, unused = lookups(traced(function))
    assert not found
    assert not unused


def test_shared_trees_are_examined_once():
    """Examine 200 levels of selections, each of which has the level below it on both sides: 2^200 leaves."""

    def function(u):
        shared = where(u < 0.0, 1.5, 2.5)
        for k in range(200):
            shared = where(u < k + 1.0, where(u < -k - 1.0, 3.5 + k, shared), where(u < 300.0 + k, shared, 4.5 + k))
        return [shared, tree(u, AT, HEIGHTS)]

    found, _ = lookups(traced(function))
    assert [table.leaves for table in found.values()] == [tuple(HEIGHTS)]
