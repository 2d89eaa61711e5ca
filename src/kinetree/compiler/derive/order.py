"""The order of a Program's operations: values that are computed when they are needed occupy registers for less time.

The order has no effect on results. Code with fewer values in use at a time has fewer moves between registers and stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..ir.operations import Op
from ..ir.program import Program


def compact(program: Program) -> Program:
    """Return a Program of square matrices in the order with the fewest values in use: its own, by pairs, by columns."""
    n = program.outputs[0].shape[0]
    pairs = [e for k in reversed(range(n)) for x in range(k, -1, -1) for e in (x * n + k, k * n + x)]
    columns = [n * i + j for j in reversed(range(n)) for i in range(n)]
    orders = ([r[e] for e in entries for r in program.results] for entries in (pairs, columns))
    return min((program, *(depth_first(program, roots) for roots in orders)), key=values_in_use)


def depth_first(program: Program, roots: Iterable[int]) -> Program:
    """Return a Program whose operations come as late as the roots allow, which are taken one after the other."""
    seen, order = bytearray(len(program.ops)), []
    for root in roots:
        stack = [(root, False)]
        while stack:
            k, ready = stack.pop()
            if ready:
                order.append(k)
            elif not seen[k]:
                seen[k] = 1
                stack.append((k, True))
                if program.ops[k][0] > Op.CONST:
                    stack.extend((i, False) for i in sorted(program.ops[k][1:]))
    return _reordered(program, order)


def values_in_use(program: Program) -> int:
    """Return the number of values that are computed and needed later, summed over all operations."""
    last = list(range(len(program.ops)))
    for k, op in enumerate(program.ops):
        if op[0] > Op.CONST:
            for i in op[1:]:
                last[i] = k
    return sum(end - k for k, (end, op) in enumerate(zip(last, program.ops, strict=True)) if op[0] is not Op.CONST)


def _reordered(program: Program, order: Sequence[int]) -> Program:
    new = {k: place for place, k in enumerate(order)}
    ops = (program.ops[k] for k in order)
    moved = tuple(op if op[0] <= Op.CONST else (op[0], *(new[i] for i in op[1:])) for op in ops)
    return replace(program, ops=moved, results=tuple(tuple(new[k] for k in r) for r in program.results))
