"""The layout of shared memory: for each warp, the rows of its samples, and waiting values of its threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...ir.operations import Op
from ...ir.program import Program
from .schedule import most_in_use
from .spills import BUDGET, Moves, last_uses, placed, stays

WARP = 32
LIMIT = 56 * 1024
"""The largest shared memory of a warp [bytes], so that several warps run at the same time."""
CHUNK = 16
"""The bytes that a thread copies at once between global and shared memory."""

Busy = list[list[tuple[int, int]]]
"""The intervals of operations during which each place is in use."""


class Place(NamedTuple):
    """The place of a number of each thread of a warp: at `offset`, and `pitch` further for each lane."""

    pitch: int
    offset: int


@dataclass(frozen=True)
class Block:
    """An array in the shared memory of a warp: `count` numbers of each lane, `step` apart; lanes are `pitch` apart."""

    start: int
    count: int
    pitch: int
    step: int

    def place(self, index: int) -> Place:
        """Return the place of an entry."""
        return Place(self.pitch, self.start + index * self.step)


@dataclass(frozen=True)
class Layout:
    """The blocks of arrays, None for those that threads access directly in global memory, and places of moves.

    `numbers` is the size of a warp's memory. With `early`, threads read all inputs at once, and outputs are placed over
    them.
    """

    inputs: tuple[Block | None, ...]
    outputs: tuple[Block | None, ...]
    places: tuple[Place, ...]
    moves: Moves
    numbers: int
    early: bool

    @property
    def pitches(self) -> list[int]:
        """The distances between lanes that occur."""
        blocks = (b for b in (*self.inputs, *self.outputs) if b is not None)
        return sorted({b.pitch for b in blocks} | {p.pitch for p in self.places})

    def bytes(self, threads: int, size: int) -> int:
        """Return the shared memory of whole warps, for numbers of this size."""
        return threads // WARP * self.numbers * size


def layout(program: Program, size: int, *, rows: bool, early: bool = False) -> Layout:
    """Return the layout of a Program's inputs, of outputs if arrays are row-major, and of waiting values.

    Numbers have `size` bytes. Small arrays come first until the memory is full. Outputs are placed over inputs that are
    no longer read, and so are waiting values. Columns have neighboring lanes next to each other, and so have waiting
    values beside the blocks.
    """
    capacity = LIMIT // (WARP * size)
    inputs, used = _blocks([a.size for a in program.inputs], size, capacity, rows)
    outputs: list[Block | None] = [None] * len(program.outputs)
    if early:
        outputs, beside = _blocks([a.size for a in program.outputs], size, capacity, rows)
        return Layout(tuple(inputs), tuple(outputs), (), {}, WARP * max(used, beside), early)
    places = [p for b in inputs if b is not None for p in _all_places(b)]
    at = {place: i for i, place in enumerate(places)}
    home = {
        k: at[b.place(op[2])]
        for k, op in enumerate(program.ops)
        if op[0] is Op.INPUT and (b := inputs[op[1]]) is not None
    }
    busy: Busy = [[] for _ in places]
    last, end = last_uses(program), len(program.ops)
    for k, place in home.items():
        busy[place].append((0, last.get(k, k)))
    for j in sorted(range(len(outputs)), key=lambda j: program.outputs[j].size) if rows else ():
        entries = program.results[j]
        width = row_pitch(len(entries), size)
        free = (b for b in inputs if b is not None and b.pitch == width and _fits(entries, b, at, busy))
        block = next(free, None)
        if block is None and 1 < len(entries) and width <= capacity - used:
            block, used = Block(WARP * used, len(entries), width, 1), used + width
            at |= {place: len(places) + i for i, place in enumerate(_all_places(block))}
            places += _all_places(block)
            busy += [[] for _ in range(width)]
        if block is not None:
            outputs[j] = Block(block.start, len(entries), width, 1)
            for e, k in enumerate(entries):
                busy[at[block.place(e)]].append((k, end))
    moves: Moves = {}
    count = len(places)
    if most_in_use(program) > BUDGET[size]:
        moves = placed(stays(program, BUDGET[size], home), home, busy, count + capacity - used)
    places += [Place(1, WARP * (used + i)) for i in range(len(busy) - count)]
    return Layout(tuple(inputs), tuple(outputs), tuple(places), moves, WARP * (used + len(busy) - count), early)


def row_pitch(count: int, size: int) -> int:
    """Return the distance between rows of some numbers of a size [bytes].

    Rows of whole chunks are an odd number of chunks apart, so that threads that read chunks of their rows use different
    banks. Other rows follow each other: at most two threads that read a number use the same bank.
    """
    chunks, rest = divmod(count * size, CHUNK)
    return count if rest or chunks % 2 else count + CHUNK // size


def _blocks(counts: list[int], size: int, capacity: int, rows: bool) -> tuple[list[Block | None], int]:
    """Return the blocks of arrays, small ones first until the memory is full, and the numbers of a lane."""
    blocks: list[Block | None] = [None] * len(counts)
    used = 0
    for k in sorted(range(len(counts)), key=lambda k: counts[k]):
        width = row_pitch(counts[k], size) if rows else counts[k]
        if counts[k] > 1 and width <= capacity - used:
            blocks[k] = Block(WARP * used, counts[k], *((width, 1) if rows else (1, WARP)))
            used += width
    return blocks, used


def _all_places(block: Block) -> list[Place]:
    """Return the places of a block, for rows also those between them."""
    return [block.place(i) for i in range(block.pitch if block.step == 1 else block.count)]


def _fits(entries: tuple[int, ...], block: Block, at: dict[Place, int], busy: Busy) -> bool:
    """Return whether each entry is written after the last use of what it overwrites."""
    ends = (max((end for _, end in busy[at[block.place(e)]]), default=-1) for e in range(len(entries)))
    return len(entries) > 1 and all(end < k for end, k in zip(ends, entries, strict=True))
