"""Tables in a Program: trees of selections between constants, by comparisons of one number with constants.

Splines of many knots are written as such trees: the coefficients of the interval of u, by halving. A target may keep
thresholds and leaves as arrays in memory, and find the leaf by a search: the same bits with far less code.
"""

from __future__ import annotations

import math
from itertools import pairwise
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


def lookups(program: Program) -> tuple[dict[int, Lookup], frozenset[int]]:
    """Return the tables by the operations that they replace, and the operations that nothing needs then."""
    numbers = _numbers(program)
    if not numbers:
        return {}, frozenset()
    found: dict[int, Lookup] = {}
    live = {k for entries in program.results for k in entries}
    for k in range(len(program.ops) - 1, -1, -1):
        if k not in live or program.ops[k][0] <= Op.CONST:
            continue
        table = _expanded(program, k, numbers) if k in numbers else None
        if table is not None:
            found[k] = table
            live.add(table.number)
        else:
            live.update(program.ops[k][1:])
    return found, frozenset(range(len(program.ops))) - live if found else frozenset()


def _numbers(program: Program) -> dict[int, int]:
    """Return the number by which each tree of selections chooses, by the operation at its root."""
    ops, numbers = program.ops, {}
    for k, op in enumerate(ops):
        if op[0] is not Op.SELECT:
            continue
        _, condition, *sides = op
        less, *compared = ops[condition]
        if less is not Op.LESS or ops[compared[1]][0] is not Op.CONST:
            continue
        if all(ops[side][0] is Op.CONST or numbers.get(side) == compared[0] for side in sides):
            numbers[k] = compared[0]
    return numbers


def _expanded(program: Program, root: int, numbers: dict[int, int]) -> Lookup | None:
    """Return the table of a tree, unless it is small, or not one of halves with rising thresholds."""
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
    rising = all(a <= b for a, b in pairwise(thresholds)) and all(map(math.isfinite, thresholds))
    return Lookup(numbers[root], tuple(thresholds), tuple(leaves)) if len(leaves) >= LEAST and rising else None
