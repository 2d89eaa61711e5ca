"""The order of a Program's operations in which few values are in use at the same time.

A thread of a GPU has 255 registers of 32 bits, so that values in use beyond some 120 doubles are spilled to memory. A
page of sweeps computes all bodies outward, then all bodies inward. Where limbs are independent, it is better to finish
one limb before the next, as the results of a limb depend on its own operations only.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...compiler.ir.operations import BOOLEANS, Op
from ...compiler.ir.program import Program
from ...compiler.ir.staging import reorder

SHARE = 0.5
"""The share of a limb's operations that a result must depend on to belong to it; any from 0.1 to 0.7 does the same."""


@lru_cache(maxsize=4)
def schedule(program: Program) -> Program:
    """Return the same operations in the order with fewer values in use, of the original one and a new one."""
    other = reorder(program, _early(program, _by_limbs(program)))
    return other if most_in_use(other) < most_in_use(program) else program


@lru_cache(maxsize=8)
def most_in_use(program: Program) -> int:
    """Return the largest number of values in use at the same time; inputs and constants do not count."""
    last = {k: i for i, x in enumerate(_operands(program)) for k in x}
    ends = [0] * len(program.ops)
    for i in last.values():
        ends[i] += 1
    count = most = 0
    for i, ending in enumerate(ends):
        count += (i in last) - ending
        most = max(most, count)
    return most


@lru_cache(maxsize=4)
def _operands(program: Program) -> list[set[int]]:
    """Return the operands of each operation that are neither inputs nor constants."""
    computed = [op[0] > Op.CONST for op in program.ops]
    return [{k for k in op[1:] if computed[k]} if own else set() for op, own in zip(program.ops, computed, strict=True)]


def _cones(program: Program) -> dict[int, int]:
    """Return the operations that each result depends on, as bits of an integer."""
    kept = {k for entries in program.results for k in entries}
    users = [0] * len(program.ops)
    for x in _operands(program):
        for k in x:
            users[k] += 1
    cones: dict[int, int] = {}
    for i, x in enumerate(_operands(program)):
        cone = 1 << i
        for k in x:
            cone |= cones[k]
            users[k] -= 1
            if not users[k] and k not in kept:
                del cones[k]
        cones[i] = cone
    return {k: cones[k] for k in kept}


def _by_limbs(program: Program) -> list[int]:
    """Return the rank of each operation: limb after limb, and in the original order within each.

    Results are taken one by one, each time the one that requires the fewest further operations. A result that depends
    on a large share of the limb before it continues that limb.
    """
    cones = _cones(program)
    waiting, done, limbs = sorted(cones, reverse=True), 0, []
    while waiting:
        k = min(waiting, key=lambda k: (cones[k] & ~done).bit_count())
        waiting.remove(k)
        if limbs and (cones[k] & limbs[-1]).bit_count() >= SHARE * limbs[-1].bit_count():
            limbs[-1] |= cones[k] & ~done
        else:
            limbs.append(cones[k] & ~done)
        done |= cones[k]
    rank, count = [0] * len(program.ops), 0
    for limb in limbs:
        while limb:
            lowest = limb & -limb
            rank[lowest.bit_length() - 1] = count
            count += 1
            limb ^= lowest
    return rank


def _early(program: Program, rank: Sequence[int]) -> list[int]:
    """Return the operations by rank, except that those which leave no more values in use come as early as possible."""
    ops, operands = program.ops, _operands(program)
    users: list[list[int]] = [[] for _ in ops]
    for i, x in enumerate(operands):
        for k in x:
            users[k].append(i)
    unused, missing = [len(u) for u in users], [len(x) for x in operands]  # users to come, operands to come
    order: list[int] = []
    placed = bytearray(len(ops))
    ready: list[tuple[int, int]] = []
    early: list[tuple[int, int]] = []

    def offer(i: int) -> None:
        heapq.heappush(ready, (rank[i], i))
        ends = sum(unused[k] == 1 for k in operands[i])
        if ends >= bool(users[i]):
            heapq.heappush(early, (rank[i], i))

    def place(i: int) -> None:
        for k in (*(ops[i][1:] if ops[i][0] > Op.CONST else ()), i):
            if not placed[k]:
                placed[k] = 1
                order.append(k)
        for k in operands[i]:
            unused[k] -= 1
            if unused[k] == 1:
                for u in users[k]:
                    if not placed[u] and not missing[u]:
                        offer(u)
        for u in users[i]:
            missing[u] -= 1
            if not missing[u]:
                offer(u)

    for i, op in enumerate(ops):
        if op[0] > Op.CONST and not missing[i]:
            offer(i)
    while ready:
        i = heapq.heappop(early if early else ready)[1]
        if not placed[i]:
            place(i)
    for k in sorted({k for entries in program.results for k in entries}):  # results that are inputs or constants
        if not placed[k]:
            order.append(k)
            placed[k] = 1
    return order


# --- Values of a Program that wait in shared memory, because a thread has too few registers for all that are in use.
#
# Local memory, to which the assembler spills registers, is beyond the caches when all threads of a GPU use it.

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


def register_stays(program: Program, budget: int, home: Mapping[int, int]) -> list[Stay]:
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


def place_stays(found: list[Stay], home: Mapping[int, int], busy: list[list[tuple[int, int]]], capacity: int) -> Moves:
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
