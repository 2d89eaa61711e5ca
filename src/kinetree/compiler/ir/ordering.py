"""The order of a Program's operations in which each is computed shortly before it is used."""

from __future__ import annotations

from dataclasses import replace

from .operations import Op
from .program import Program


def depth_first(program: Program) -> Program:
    """Return the same operations, result after result, each with its operands before it.

    A page of sweeps computes all bodies outward, then all bodies inward. Most of its values then wait in memory. Here
    those of a limb are used before the next limb begins. Of two operands, the one that takes more registers comes
    first [Sethi1970]. Values do not change.
    """
    needs = _registers(program)
    order: list[int] = []
    placed = bytearray(len(program.ops))
    stack = [k for entries in reversed(program.results) for k in reversed(entries)]
    while stack:
        k = stack[-1]
        op = program.ops[k]
        waiting = [] if op[0] <= Op.CONST else [j for j in op[1:] if not placed[j]]
        if waiting and not placed[k]:
            stack += sorted(waiting, key=lambda j: needs[j])
            continue
        stack.pop()
        if not placed[k]:
            placed[k] = 1
            order.append(k)
    place = {k: i for i, k in enumerate(order)}
    ops = (program.ops[k] for k in order)
    return replace(
        program,
        ops=tuple(op if op[0] <= Op.CONST else (op[0], *(place[k] for k in op[1:])) for op in ops),
        results=tuple(tuple(place[k] for k in entries) for entries in program.results),
    )


def _registers(program: Program) -> list[int]:
    """Return how many registers each value would take if it were the only one, and no value had two uses."""
    needs: list[int] = []
    for op in program.ops:
        if op[0] <= Op.CONST:
            needs.append(int(op[0] is Op.INPUT))
        else:
            least = sorted((needs[j] for j in op[1:]), reverse=True)
            needs.append(max(x + k for k, x in enumerate(least)))
    return needs
