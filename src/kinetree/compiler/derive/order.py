"""The order of a Program's operations: values that are computed when they are needed occupy registers for less time.

The order has no effect on results. Code with fewer values in use at a time has fewer moves between registers and stack.
"""

from __future__ import annotations

from ..ir.operations import Op
from ..ir.ordering import depth_first
from ..ir.program import Program


def compact(program: Program) -> Program:
    """Return a Program of square matrices in the order with the fewest values in use: its own, by pairs, by columns."""
    n = program.outputs[0].shape[0]
    pairs = [e for k in reversed(range(n)) for x in range(k, -1, -1) for e in (x * n + k, k * n + x)]
    columns = [n * i + j for j in reversed(range(n)) for i in range(n)]
    orders = ([r[e] for e in entries for r in program.results] for entries in (pairs, columns))
    return min((program, *(depth_first(program, roots) for roots in orders)), key=values_in_use)


def values_in_use(program: Program) -> int:
    """Return the number of values that are computed and needed later, summed over all operations."""
    last = list(range(len(program.ops)))
    for k, op in enumerate(program.ops):
        if op[0] > Op.CONST:
            for i in op[1:]:
                last[i] = k
    return sum(end - k for k, (end, op) in enumerate(zip(last, program.ops, strict=True)) if op[0] is not Op.CONST)
