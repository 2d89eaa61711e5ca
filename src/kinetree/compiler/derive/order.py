"""The order of a Program's operations: values that are computed when they are needed occupy registers for less time.

Code with fewer values in use at a time has fewer moves between registers and stack. Orders have no effect on results,
and sums as chains change them by rounding only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..ir.operations import Op
from ..ir.ordering import depth_first
from ..ir.program import Program
from .chains import chained

WORTH = 0.94
"""The ratio of values in use below which another order is taken, even if its sums are not chains.

Chains of sums take fewer operations, and orders with almost as many values in use are equally fast."""


def compact(program: Program) -> Program:
    """Return a Program of square matrices with few values in use, with its sums as chains or as they are.

    Its operations are ordered by pairs of entries, or by columns, or stay in their order.
    """
    best, least = program, math.inf
    for found in (x for sums in (chained(program), program) for x in _orders(sums)):
        if (count := values_in_use(found)) < WORTH * least:
            best, least = found, count
    return best


def _orders(program: Program) -> Iterator[Program]:
    n = program.outputs[0].shape[0]
    pairs = [e for k in reversed(range(n)) for x in range(k, -1, -1) for e in (x * n + k, k * n + x)]
    columns = [n * i + j for j in reversed(range(n)) for i in range(n)]
    for entries in (pairs, columns):
        yield depth_first(program, [r[e] for e in entries for r in program.results])
    yield program


def values_in_use(program: Program) -> int:
    """Return the number of values that are computed and needed later, summed over all operations."""
    last = list(range(len(program.ops)))
    for k, op in enumerate(program.ops):
        if op[0] > Op.CONST:
            for i in op[1:]:
                last[i] = k
    return sum(end - k for k, (end, op) in enumerate(zip(last, program.ops, strict=True)) if op[0] is not Op.CONST)
