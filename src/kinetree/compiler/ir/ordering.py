"""Orders of a Program's operations, such as the one in which each is computed shortly before it is used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .operations import Op
from .program import Program


def limb_by_limb(program: Program) -> Program:
    """Return the same operations, result after result, each with its operands before it.

    A page of sweeps computes all bodies outward, then all bodies inward. Most of its values then wait in memory. Here
    those of a limb are used before the next limb begins. Of two operands, the one that takes more registers comes
    first [Sethi1970]. Values do not change.
    """
    return depth_first(program, (k for entries in program.results for k in entries), _registers(program))


def depth_first(program: Program, roots: Iterable[int], ranks: Sequence[int] | None = None) -> Program:
    """Return a Program whose operations come as late as the roots allow, which are taken one after the other.

    Of the operands of an operation, the one with the highest rank comes first; by default the last one of the Program.
    """
    ranks = range(len(program.ops)) if ranks is None else ranks
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
                    stack.extend((i, False) for i in sorted(program.ops[k][1:], key=ranks.__getitem__))
    return reordered(program, order)


def reordered(program: Program, order: Sequence[int]) -> Program:
    """Return the operations with these numbers in this order; each must follow its operands."""
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
