"""Tables in a Program: trees of selections between constants, by comparisons of one number with constants.

Splines of many knots are written as such trees: the coefficients of the interval of u, by halving. A target may keep
thresholds and leaves as arrays in memory, and find the leaf by a search: the same bits with far less code.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .operations import Op
from .program import Program

LEAST = 32
"""The number of leaves from which a search takes less time than all selections."""


class Lookup(NamedTuple):
    """The leaf whose index is the number of thresholds that are not above the value of operation `number`."""

    number: int
    thresholds: tuple[float, ...]
    leaves: tuple[float, ...]


class Tree(NamedTuple):
    """A tree of selections by operation `number`, with its lowest and highest threshold and the count of leaves."""

    number: int
    lowest: float
    highest: float
    leaves: int


def lookups(program: Program) -> tuple[dict[int, Lookup], frozenset[int]]:
    """Return the tables by the operations that they replace, and the operations that nothing needs then."""
    trees = _trees(program)
    if not trees:
        return {}, frozenset()
    found: dict[int, Lookup] = {}
    live = {k for entries in program.results for k in entries}
    for k in range(len(program.ops) - 1, -1, -1):
        if k not in live or program.ops[k][0] <= Op.CONST:
            continue
        if k in trees and trees[k].leaves >= LEAST:
            found[k] = _expanded(program, k, trees[k].number)
            live.add(trees[k].number)
        else:
            live.update(program.ops[k][1:])
    return found, frozenset(range(len(program.ops))) - live if found else frozenset()


def _trees(program: Program) -> dict[int, Tree]:
    """Return the trees of halves with rising thresholds, by the operation at their root.

    Since thresholds rise, no tree contains another one twice, and all of them are expanded in linear time.
    """
    ops, trees = program.ops, {}
    for k, op in enumerate(ops):
        if op[0] is not Op.SELECT:
            continue
        _, condition, *sides = op
        less, *compared = ops[condition]
        if less is not Op.LESS or ops[compared[1]][0] is not Op.CONST:
            continue
        number, at = compared[0], ops[compared[1]][1]
        leaf = Tree(number, math.inf, -math.inf, 1)
        below, above = (leaf if ops[side][0] is Op.CONST else trees.get(side) for side in sides)
        if below is None or above is None or not below.number == number == above.number:
            continue
        if math.isfinite(at) and below.highest < at < above.lowest:
            trees[k] = Tree(number, min(below.lowest, at), max(above.highest, at), below.leaves + above.leaves)
    return trees


def _expanded(program: Program, root: int, number: int) -> Lookup:
    """Return the table of a tree."""
    ops = program.ops
    thresholds: list[float] = []
    leaves: list[float] = []
    stack: list[tuple[int, float | None]] = [(root, None)]  # operations, each with the threshold before it
    while stack:
        k, before = stack.pop()
        if before is not None:
            thresholds.append(before)
        op = ops[k]
        if op[0] is Op.CONST:
            leaves.append(op[1])
        else:
            stack += [(op[3], ops[ops[op[1]][2]][1]), (op[2], None)]
    return Lookup(number, tuple(thresholds), tuple(leaves))
