"""Values of a Program that wait in shared memory, because a thread has too few registers for all that are in use.

Local memory, to which the assembler spills registers, is beyond the caches when all threads of a GPU use it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ...ir.operations import BOOLEANS, Op
from ...ir.program import Program

BUDGET = {8: 96, 4: 200}
"""The values that registers hold, by the size of a number [bytes]: some 200 of the 255 registers of a thread.

The others are for addresses and for the polynomials of sines."""


NEVER = 1 << 62


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
    Conditions have registers of their own, and stay there.
    """
    varying = [op[0] is not Op.CONST and op[0] not in BOOLEANS for op in program.ops]
    operands = [{k for k in op[1:] if varying[k]} if op[0] > Op.CONST else set() for op in program.ops]
    uses: list[list[int]] = [[] for _ in program.ops]
    for i in reversed(range(len(operands))):
        for k in operands[i]:
            uses[k].append(i)  # the next use is the last entry
    following = [x[-1] if x else 0 for x in uses]
    held: set[int] = set()
    out: dict[int, int] = dict.fromkeys(home, 0)
    back: dict[int, list[int]] = defaultdict(list)
    for i, own in enumerate(operands):
        for k in own - held:
            back[k].append(i)
            held.add(k)
        if varying[i] and uses[i]:
            held.add(i)
        for k in own:
            uses[k].pop()
            if uses[k]:
                following[k] = uses[k][-1]
            else:
                held.remove(k)
        while len(held) > budget:
            k = max(held, key=following.__getitem__)
            held.remove(k)
            out.setdefault(k, i + 1)
    return [Stay(k, out[k], tuple(back[k])) for k in sorted(back)]


def last_uses(program: Program) -> dict[int, int]:
    """Return the last operation that uses each value."""
    return {k: i for i, op in enumerate(program.ops) if op[0] > Op.CONST for k in op[1:]}


def placed(found: list[Stay], home: Mapping[int, int], busy: list[list[tuple[int, int]]], capacity: int) -> Moves:
    """Return the moves of stays, each to the first place that is free during it.

    `busy` has the intervals of operations during which each place is in use, from the beginning or to the end; new
    places are appended up to the capacity. Values for which there is no place stay in registers, and the assembler
    spills some to local memory.
    """
    moves: dict[int, list[Move]] = defaultdict(list)
    after = [max((end for start, end in taken if start == 0), default=-1) for taken in busy]
    until = [min((start for start, _ in taken if start > 0), default=NEVER) for taken in busy]
    for stay in sorted(found, key=lambda s: s.out):
        place = home.get(stay.value)
        if place is None:
            last = stay.back[-1]
            free = (p for p, end in enumerate(after) if end < stay.out and last < until[p])
            place = next(free, len(busy))
            if place >= capacity:
                continue
            if place == len(busy):
                busy.append([])
                after.append(-1)
                until.append(NEVER)
            busy[place].append((stay.out, last))
            after[place] = last
            moves[stay.out].append(Move(stay.value, place, back=False))
        for i in stay.back:
            moves[i].append(Move(stay.value, place, back=True))
    return moves
