"""Values of a Program that wait in shared memory, because a thread has too few registers for all that are in use.

Local memory, to which the assembler spills registers, is beyond the caches when all threads of a GPU use it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ...ir.operations import Op
from ...ir.program import Program

BUDGET = {8: 100, 4: 200}
"""The values that registers hold, by the size of a number [bytes]: some 200 of the 255 registers of a thread.

The others are for addresses and for the polynomials of sines."""


@dataclass(frozen=True)
class Move:
    """A move of a value into its place in the row, or back."""

    value: int
    place: int
    back: bool


Moves = Mapping[int, list[Move]]
"""The moves before each operation."""


@dataclass(frozen=True)
class Stay:
    """The stay of a value outside of registers: operations before which it is moved out and back."""

    value: int
    out: int
    back: tuple[int, ...]


def stays(program: Program, budget: int, home: Mapping[int, int]) -> list[Stay]:
    """Return the stays of values that keep those in registers to the budget.

    The value that is needed last of all leaves. Values at `home` in the row are dropped instead of moved out.
    """
    uses: list[list[int]] = [[] for _ in program.ops]
    for i, op in enumerate(program.ops):
        if op[0] > Op.CONST:
            for k in {k for k in op[1:] if program.ops[k][0] is not Op.CONST}:
                uses[k].append(i)
    for x in uses:
        x.reverse()  # the next use is the last entry
    held: set[int] = set()
    out: dict[int, int] = dict.fromkeys(home, 0)
    back: dict[int, list[int]] = defaultdict(list)
    for i, op in enumerate(program.ops):
        operands = {k for k in op[1:] if program.ops[k][0] is not Op.CONST} if op[0] > Op.CONST else set()
        for k in operands - held:
            back[k].append(i)
            held.add(k)
        if op[0] is not Op.CONST and uses[i]:
            held.add(i)
        for k in operands:
            uses[k].pop()
            if not uses[k]:
                held.remove(k)
        while len(held) > budget:
            k = max(held, key=lambda k: uses[k][-1])
            held.remove(k)
            out.setdefault(k, i + 1)
    return [Stay(k, out[k], tuple(back[k])) for k in sorted(back)]


def last_uses(program: Program) -> dict[int, int]:
    """Return the last operation that uses each value."""
    return {k: i for i, op in enumerate(program.ops) if op[0] > Op.CONST for k in op[1:]}


def placed(found: list[Stay], home: Mapping[int, int], busy: list[list[tuple[int, int]]], capacity: int) -> Moves:
    """Return the moves of stays, each to the first place of a row that is free during it.

    `busy` has the intervals of operations during which each place is in use; it grows up to the capacity. Values for
    which there is no place stay in registers, and the assembler spills some to local memory.
    """
    moves: dict[int, list[Move]] = defaultdict(list)
    for stay in sorted(found, key=lambda s: s.out):
        place = home.get(stay.value)
        if place is None:
            interval = (stay.out, stay.back[-1])
            place = next((p for p, taken in enumerate(busy) if _free(taken, interval)), len(busy))
            if place >= capacity:
                continue
            if place == len(busy):
                busy.append([])
            busy[place].append(interval)
            moves[stay.out].append(Move(stay.value, place, back=False))
        for i in stay.back:
            moves[i].append(Move(stay.value, place, back=True))
    return moves


def _free(taken: list[tuple[int, int]], interval: tuple[int, int]) -> bool:
    """Return whether an interval begins at or after the end of each other one, or ends before it begins."""
    return all(interval[0] > end or interval[1] < start for start, end in taken)
