"""The layout of rows in shared memory: for each thread, one row with its inputs, its outputs and waiting values."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.operations import Op
from ...ir.program import Program
from .schedule import most_in_use
from .spills import BUDGET, Moves, last_uses, placed, stays

WARP = 32
LIMIT = 56 * 1024
"""The largest shared memory of a warp [bytes], so that several warps run at the same time."""


@dataclass(frozen=True)
class Layout:
    """Places of arrays in the row of a sample; None for arrays that threads access directly in global memory."""

    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]
    moves: Moves
    pitch: int

    def bytes(self, threads: int, size: int) -> int:
        """Return the shared memory of a block of threads, for numbers of this size."""
        return threads * self.pitch * size


def layout(program: Program, size: int, *, outputs: bool) -> Layout:
    """Return the layout of a Program's inputs, optionally its outputs, and waiting values, of `size` bytes each.

    Small arrays come first until the memory is full. Outputs are placed over inputs that are no longer read, and so
    are waiting values. The distance between rows is odd, so that threads that access the same entry of their rows use
    different banks.
    """
    capacity = LIMIT // (WARP * size) - 1
    inputs, used = _inputs(program, capacity)
    home = {
        k: at + op[2] for k, op in enumerate(program.ops) if op[0] is Op.INPUT and (at := inputs[op[1]]) is not None
    }
    last, end = last_uses(program), len(program.ops)
    busy: list[list[tuple[int, int]]] = [[] for _ in range(used)]
    for k, place in home.items():
        busy[place].append((0, last.get(k, k)))
    places: list[int | None] = [None] * len(program.outputs)
    for j in sorted(range(len(places)), key=lambda j: program.outputs[j].size) if outputs else ():
        entries = program.results[j]
        at = _fitting(entries, busy)
        if 1 < len(entries) <= capacity - at:
            places[j] = at
            busy += [[] for _ in range(at + len(entries) - len(busy))]
            for e, k in enumerate(entries):
                busy[at + e].append((k, end))
    moves: Moves = {}
    if most_in_use(program) > BUDGET[size]:
        moves = placed(stays(program, BUDGET[size], home), home, busy, capacity)
    return Layout(tuple(inputs), tuple(places), moves, len(busy) | 1)


def _inputs(program: Program, capacity: int) -> tuple[list[int | None], int]:
    """Return the places of inputs in a row, small arrays first until it is full, and their total size."""
    places: list[int | None] = [None] * len(program.inputs)
    used = 0
    for k in sorted(range(len(places)), key=lambda k: program.inputs[k].size):
        if 1 < program.inputs[k].size <= capacity - used:
            places[k], used = used, used + program.inputs[k].size
    return places, used


def _fitting(entries: tuple[int, ...], busy: list[list[tuple[int, int]]]) -> int:
    """Return the first place at which each entry is written after the last use of what it overwrites."""
    last = [max((end for _, end in taken), default=-1) for taken in busy]
    for at in range(len(last)):
        if all(at + e >= len(last) or last[at + e] < k for e, k in enumerate(entries)):
            return at
    return len(last)
