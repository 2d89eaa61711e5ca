"""The layout of shared memory: for each warp, the rows of its samples, and waiting values of its threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...compiler.ir.operations import Op
from ...compiler.ir.program import Program
from ..llvm import arithmetic, elementary
from ..llvm.scalar import Fusion, fusions
from ..llvm.writer import Writer
from .schedule import BUDGET, Moves, last_uses, most_in_use, place_stays, register_stays

# --- The head of a kernel: its parameters, the sample of a thread, and the angles that are reduced beforehand ---


REGISTERS = ("tid", "ctaid", "ntid")
"""Registers with the number of a thread in its block, the number of its block, and the threads of a block."""
GLOBAL = "ptr addrspace(1)"
"""The type of addresses in global memory."""


def head(program: Program, w: Writer, name: str) -> None:
    """Write the head of an entry, up to the index %i of the thread's sample."""
    arrays = [f"{GLOBAL} noalias readonly %p{k}" for k in range(len(program.inputs))]
    arrays += [f"{GLOBAL} noalias %p{len(arrays) + k}" for k in range(len(program.outputs))]
    parameters = ", ".join(f"{a}, i64 %s{k}, i64 %e{k}" for k, a in enumerate(arrays))
    w.lines += [f"define ptx_kernel void @{name}({parameters}, i64 %n) #0 {{"]
    w.begin("entry")
    tid, ctaid, ntid = registers(w)
    block = w.new(f"mul i64 {w.new(f'zext i32 {ctaid} to i64')}, {w.new(f'zext i32 {ntid} to i64')}")
    w.do(f"%i = add i64 {block}, {w.new(f'zext i32 {tid} to i64')}")


def registers(w: Writer) -> list[str]:
    """Write the reading of the registers with the numbers of a thread and its block, and the threads of a block."""
    w.used |= {f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}.x()" for name in REGISTERS}
    return [w.new(f"call i32 @llvm.nvvm.read.ptx.sreg.{name}.x()") for name in REGISTERS]


def row(w: Writer, k: int, sample: str) -> str:
    """Write the address of a sample of array k."""
    return w.new(f"getelementptr {w.lanes.scalar}, {GLOBAL} %p{k}, i64 {w.new(f'mul i64 {sample}, %s{k}')}")


def reduce_angles(angles: list[tuple[int, int]], w: Writer, known: dict[tuple[int, int], str]) -> None:
    """Write the reduction of bare angles among known entries of inputs to one revolution, if one of them is large."""
    if angles:
        small = elementary.within_a_revolution(w, [known[place] for place in angles])
        known.update(zip(angles, small, strict=True))


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
        moves = place_stays(register_stays(program, BUDGET[size], home), home, busy, count + capacity - used)
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


# --- Shared memory of a block of threads: addresses, and moves between it and registers ---

SHARED = "ptr addrspace(3)"
"""The type of addresses in shared memory."""

DECLARATIONS = (
    "declare void @llvm.nvvm.bar.warp.sync(i32)",
    "declare void @llvm.nvvm.cp.async.wait.all()",
    f"declare void @llvm.nvvm.cp.async.ca.shared.global.8({SHARED}, {GLOBAL})",
    f"declare void @llvm.nvvm.cp.async.cg.shared.global.16({SHARED}, {GLOBAL})",
)


class Stage:
    """The shared memory of a block of threads, and the copies between it and global memory.

    %row and a number is the address from which places with this pitch are counted.
    """

    def __init__(self, w: Writer, places: Layout) -> None:
        """Write the addresses."""
        self.w, self.places = w, places
        self.size = w.lanes.bits // 8
        S = w.lanes.scalar
        w.used |= {f"@stage = external addrspace(3) global [0 x {S}], align 16", *DECLARATIONS}
        tid = registers(w)[0]
        base, lane = self.base(tid), w.new(f"and i32 {tid}, {WARP - 1}")
        for pitch in places.pitches:
            w.do(f"%row{pitch} = getelementptr {S}, {SHARED} {base}, i32 {w.new(f'mul i32 {lane}, {pitch}')}")

    def base(self, tid: str) -> str:
        """Write the address of the memory of a thread's warp."""
        w = self.w
        start = w.new(f"mul i32 {w.new(f'lshr i32 {tid}, {WARP.bit_length() - 1}')}, {self.places.numbers}")
        return w.new(f"getelementptr {w.lanes.scalar}, {SHARED} @stage, i32 {start}")

    def own(self, place: Place) -> str:
        """Write the address of a place of the thread's own."""
        return self.w.new(f"getelementptr {self.w.lanes.scalar}, {SHARED} %row{place.pitch}, i32 {place.offset}")

    def load(self, place: Place) -> str:
        """Write the load of a number of the thread's own."""
        return self.w.new(f"load {self.w.lanes.scalar}, {SHARED} {self.own(place)}, align {self.size}")

    def store(self, place: Place, x: str) -> None:
        """Write a store to a place of the thread's own."""
        self.w.do(f"store {self.w.lanes.scalar} {x}, {SHARED} {self.own(place)}, align {self.size}")

    def whole_row(self, block: Block) -> list[str]:
        """Write the loads of the thread's own row, as many numbers at once as its address allows."""
        w, S, names = self.w, self.w.lanes.scalar, []
        width = next(n for n in (CHUNK // self.size, 2, 1) if block.pitch % n == 0)
        for first in range(0, block.count - block.count % width, width):
            V = f"<{width} x {S}>" if width > 1 else S
            x = w.new(f"load {V}, {SHARED} {self.own(block.place(first))}, align {width * self.size}")
            names += [w.new(f"extractelement {V} {x}, i32 {i}") for i in range(width)] if width > 1 else [x]
        return [*names, *(self.load(block.place(i)) for i in range(len(names), block.count))]

    def before(self, k: int, names: list[str]) -> None:
        """Write the moves of values between registers and shared memory that come before operation k."""
        for move in self.places.moves.get(k, ()):
            place = self.places.places[move.place]
            if move.back:
                names[move.value] = self.load(place)
            else:
                self.store(place, names[move.value])

    def copy(self, source: str, target: str) -> None:
        """Write a copy of a number from global memory, which is complete after `arrived`.

        Numbers of 8 bytes are copied past the registers. For 4 bytes, that was slower on an H200.
        """
        w, S, size = self.w, self.w.lanes.scalar, self.size
        if size == 8:
            w.do(f"call void @llvm.nvvm.cp.async.ca.shared.global.8({SHARED} {target}, {GLOBAL} {source})")
        else:
            x = w.new(f"load {S}, {GLOBAL} {source}, align {size}")
            w.do(f"store {S} {x}, {SHARED} {target}, align {size}")

    def copy_chunk(self, source: str, target: str) -> None:
        """Write a copy of a chunk from global memory past the registers, which is complete after `arrived`."""
        self.w.do(f"call void @llvm.nvvm.cp.async.cg.shared.global.16({SHARED} {target}, {GLOBAL} {source})")

    def arrived(self) -> None:
        """Write the wait for the thread's own copies."""
        self.w.do("call void @llvm.nvvm.cp.async.wait.all()")

    def meet(self) -> None:
        """Write a barrier of the warp, after which its threads see the stores of each other."""
        self.w.do("call void @llvm.nvvm.bar.warp.sync(i32 -1)")

    def reduced(self, angles: list[tuple[int, int]]) -> None:
        """Write the reduction of the thread's own bare angles to one revolution, if one of them is large."""
        blocks = self.places.inputs
        places = [b.place(index) for group, index in angles if (b := blocks[group]) is not None]

        def rare() -> None:
            for place in places:
                self.store(place, elementary.call(self.w, "revolution", [self.load(place)]))

        if places:
            elementary.if_any_large(self.w, [self.load(place) for place in places], rare)


# --- Choices that determine the bits of results, the same for all code of an entry: fused products, and bare angles.


def fused_sums(program: Program, places: Layout | None) -> dict[int, Fusion]:
    """Return the sums of a Program that are fused with a product.

    A product that waits in shared memory before it is added is not fused, because its factors would be in use longer.
    """
    returns: dict[int, int] = {}
    for i, moves in places.moves.items() if places is not None else ():
        for move in moves:
            if move.back:
                returns[move.value] = min(i, returns.get(move.value, i))
    return fusions(program, lambda product, i: returns.get(product, i + 1) > i)


def bare_angles(program: Program, places: Layout | None) -> tuple[set[int], list[tuple[int, int]]]:
    """Return the operations that are bare angles, and the entries of inputs that they come from.

    If inputs are in shared memory, there are none if some are in arrays too large for it.
    """
    bare, found = arithmetic.bare_angles(program)
    starts = arithmetic.offsets(program)
    groups = range(len(starts))
    angles = [next((g, p - starts[g]) for g in reversed(groups) if starts[g] <= p) for p in found]
    if places is not None and not places.early and any(places.inputs[group] is None for group, _ in angles):
        return set(), []
    return bare, angles
