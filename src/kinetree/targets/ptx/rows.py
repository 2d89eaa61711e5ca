"""The GPU kernel for row-major arrays, which copies rows through shared memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from ...compiler.ir.program import Program
from ..llvm.arithmetic import operations
from ..llvm.scalar import Entries, OwnFunctions
from ..llvm.writer import Writer
from .head import GLOBAL, head, reduce_angles, registers, row
from .staging import CHUNK, SHARED, WARP, Block, Layout, Stage, bare_angles, fused_sums

# --- Copies of rows by the threads of a warp together: 32 neighboring chunks at a time ---

ROLLED = {"!1 = distinct !{!1, !2}", '!2 = !{!"llvm.loop.unroll.disable"}'}
"""Marks of loops that stay loops: they are rarely executed, and longer than all other copies if they are unrolled."""


class WarpRows:
    """Copies between row-major arrays and the blocks of a warp, with addresses that are computed when it is made.

    `first` is the first sample of the warp, `valid` the number of its samples. If there are 32, and the rows of an
    array follow each other from an address that is a multiple of a chunk, whole chunks are copied, and their addresses
    are those of the lane and constants. Otherwise a loop copies single numbers. Warps beyond the last sample repeat it,
    so that no thread is missing at barriers.
    """

    def __init__(self, w: Writer, stage: Stage) -> None:
        """Write the samples and the memory of the warp, in a block of its own.

        Registers are read again, so that values of an earlier object need not wait in registers until now.
        """
        self.w, self.stage, self.numbers = w, stage, CHUNK // stage.size
        here = w.block("warp")
        w.do(f"br label %{here}")
        w.begin(here)
        tid, ctaid, ntid = registers(w)
        w.used |= {"declare i32 @llvm.umin.i32(i32, i32)", "declare i64 @llvm.umin.i64(i64, i64)"}
        self.lane = w.new(f"and i32 {tid}, {WARP - 1}")
        block = w.new(f"mul i64 {w.new(f'zext i32 {ctaid} to i64')}, {w.new(f'zext i32 {ntid} to i64')}")
        start = w.new(f"sub i32 {tid}, {self.lane}")
        begin = w.new(f"add i64 {block}, {w.new(f'zext i32 {start} to i64')}")
        self.first = w.new(f"call i64 @llvm.umin.i64(i64 {begin}, i64 {w.new('sub i64 %n, 1')})")
        rest = w.new(f"sub i64 %n, {self.first}")
        self.valid = w.new(f"trunc i64 {w.new(f'call i64 @llvm.umin.i64(i64 {rest}, i64 {WARP})')} to i32")
        self.whole = w.new(f"icmp eq i32 {self.valid}, {WARP}")
        self.last = w.new(f"sub i32 {self.valid}, 1")
        self.base = stage.base(tid)

    def fetch(self, k: int, block: Block) -> None:
        """Write the copy of the rows of an input; rows beyond the last sample repeat it."""
        w, rows, count = self.w, row(self.w, k, self.first), block.count

        def number(at: str) -> None:
            s = w.new(f"udiv i32 {at}, {count}")
            entry = w.new(f"urem i32 {at}, {count}")
            read = w.new(f"call i32 @llvm.umin.i32(i32 {s}, i32 {self.last})")
            self.stage.copy(self._outside(k, rows, read, entry), self._inside(block, s, entry))

        self._either(k, count, lambda: self._chunks(rows, block, self.stage.copy_chunk), number)

    def deliver(self, k: int, block: Block) -> None:
        """Write the copy of an output."""
        w, S, size, count = self.w, self.w.lanes.scalar, self.stage.size, block.count
        rows, V = row(w, k, self.first), f"<{self.numbers} x {S}>"

        def chunk(outside: str, inside: str) -> None:
            x = w.new(f"load {V}, {SHARED} {inside}, align {CHUNK}")
            w.do(f"store {V} {x}, {GLOBAL} {outside}, align {CHUNK}")

        def number(at: str) -> None:
            s = w.new(f"udiv i32 {at}, {count}")
            entry = w.new(f"urem i32 {at}, {count}")
            x = w.new(f"load {S}, {SHARED} {self._inside(block, s, entry)}, align {size}")
            write, after = w.block("write"), w.block("after")
            w.do(f"br i1 {w.new(f'icmp ult i32 {s}, {self.valid}')}, label %{write}, label %{after}")
            w.begin(write)
            w.do(f"store {S} {x}, {GLOBAL} {self._outside(k, rows, s, entry)}, align {size}")
            w.do(f"br label %{after}")
            w.begin(after)

        self._either(k, count, lambda: self._chunks(rows, block, chunk), number)

    def _either(self, k: int, count: int, chunks: Callable[[], None], number: Callable[[str], None]) -> None:
        """Write copies of chunks for 32 rows that follow each other, and a loop over the lane's numbers for others."""
        w = self.w
        follow = w.new(f"icmp eq i64 %s{k}, {count}")
        rest = w.new(f"and i64 {w.new(f'ptrtoint {GLOBAL} %p{k} to i64')}, {CHUNK - 1}")
        even = w.new(f"and i1 {follow}, {w.new(f'icmp eq i64 {rest}, 0')}")
        fast, slow, loop, end = (w.block(hint) for hint in ("chunks", "others", "loop", "copied"))
        w.do(f"br i1 {w.new(f'and i1 {self.whole}, {even}')}, label %{fast}, label %{slow}")
        w.begin(fast)
        chunks()
        w.do(f"br label %{end}")
        w.begin(slow)
        w.do(f"br label %{loop}")
        w.begin(loop)
        place = len(w.lines)
        at = w.block("%at")
        number(at)
        following = w.new(f"add i32 {at}, {WARP}")
        w.lines.insert(place, f"  {at} = phi i32 [ {self.lane}, %{slow} ], [ {following}, %{w.label} ]")
        more = w.new(f"icmp ult i32 {following}, {WARP * count}")
        w.used |= ROLLED
        w.do(f"br i1 {more}, label %{loop}, label %{end}, !llvm.loop !1")
        w.begin(end)

    def _chunks(self, rows: str, block: Block, copy: Callable[[str, str], None]) -> None:
        """Write the copies of the lane's chunks, given their addresses outside and inside."""
        w, S = self.w, self.w.lanes.scalar
        start = w.new(f"mul i32 {self.lane}, {self.numbers}")
        outside = w.new(f"getelementptr {S}, {GLOBAL} {rows}, i64 {w.new(f'zext i32 {start} to i64')}")
        if block.pitch > block.count:
            gaps = w.new(f"udiv i32 {self.lane}, {block.count // self.numbers}")
            start = w.new(f"add i32 {start}, {w.new(f'mul i32 {gaps}, {block.pitch - block.count}')}")
        inside = w.new(f"getelementptr {S}, {SHARED} {self.base}, i32 {start}")
        for lanes, steps in groupby(sorted(self._steps(block), key=lambda s: -s[2]), key=lambda s: s[2]):
            after = w.block("after")
            if lanes < WARP:
                some = w.block("some")
                w.do(f"br i1 {w.new(f'icmp ult i32 {self.lane}, {lanes}')}, label %{some}, label %{after}")
                w.begin(some)
            for source, target, _ in steps:
                copy(
                    w.new(f"getelementptr {S}, {GLOBAL} {outside}, i64 {source}"),
                    w.new(f"getelementptr {S}, {SHARED} {inside}, i32 {block.start + target}"),
                )
            if lanes < WARP:
                w.do(f"br label %{after}")
                w.begin(after)

    def _steps(self, block: Block) -> Iterator[tuple[int, int, int]]:
        """Yield the steps of a copy: offsets outside and inside from the lane's addresses, and the lanes that copy."""
        n, count, pitch = self.numbers, block.count, block.pitch
        if pitch == count:
            chunks = WARP * count // n
            yield from ((n * j, n * j, min(WARP, chunks - j)) for j in range(0, chunks, WARP))
            return
        chunks = count // n
        if chunks > WARP:
            for s in range(WARP):
                yield from (
                    (count * s + n * j, pitch * s + n * j, min(WARP, chunks - j)) for j in range(0, chunks, WARP)
                )
            return
        together = 1 << (WARP // chunks).bit_length() - 1  # rows of a step, a power of two
        yield from ((count * s, pitch * s, together * chunks) for s in range(0, WARP, together))

    def _inside(self, block: Block, s: str, entry: str) -> str:
        """Write the address of an entry of a sample in shared memory."""
        w = self.w
        place = w.new(f"add i32 {w.new(f'mul i32 {s}, {block.pitch}')}, {entry}")
        return w.new(
            f"getelementptr {w.lanes.scalar}, {SHARED} {self.base}, i32 {w.new(f'add i32 {place}, {block.start}')}"
        )

    def _outside(self, k: int, rows: str, s: str, entry: str) -> str:
        """Write the address of an entry of a sample of the warp in global memory."""
        w = self.w
        start = w.new(f"mul i64 {w.new(f'zext i32 {s} to i64')}, %s{k}")
        place = w.new(f"add i64 {start}, {w.new(f'zext i32 {entry} to i64')}")
        return w.new(f"getelementptr {w.lanes.scalar}, {GLOBAL} {rows}, i64 {place}")


Load = Callable[[int, int], str]
"""A function that writes the load of an entry of an input, and returns its name."""


def write_rows(program: Program, w: Writer, places: Layout) -> None:
    """Write the entry for row-major arrays.

    The threads of a warp copy the rows of their samples together, so that neighbors access neighboring addresses.
    """
    S, size, count = w.lanes.scalar, w.lanes.bits // 8, len(program.inputs)
    head(program, w, "rows")
    stage = Stage(w, places)
    copies = WarpRows(w, stage)
    for k, block in enumerate(places.inputs):
        if block is not None:
            copies.fetch(k, block)
    stage.arrived()
    stage.meet()
    own = w.new(f"call i64 @llvm.umin.i64(i64 %i, i64 {w.new('sub i64 %n, 1')})")
    direct = {k: row(w, k, own) for k, block in enumerate((*places.inputs, *places.outputs)) if block is None}

    def load(group: int, index: int) -> str:
        block = places.inputs[group]
        if block is not None:
            return stage.load(block.place(index))
        place = w.new(f"getelementptr {S}, {GLOBAL} {direct[group]}, i64 {index}")
        return w.new(f"load {S}, {GLOBAL} {place}, align {size}")

    def store(group: int, index: int, x: str) -> None:
        block = places.outputs[group]
        if block is not None:
            stage.store(block.place(index), x)
        else:
            place = w.new(f"getelementptr {S}, {GLOBAL} {direct[count + group]}, i64 {index}")
            w.do(f"store {S} {x}, {GLOBAL} {place}, align {size}")

    bare, angles = bare_angles(program, places)
    if places.early:
        read = _all_read(program, w, stage, load, angles)
        stage.meet()  # outputs are placed over rows of other threads
    else:
        read = load
        stage.reduced(angles)
    around = Entries(program, w, OwnFunctions(), read, store, bare, stage.before, fused_sums(program, places))
    operations(program, w, around)
    if any(block is not None for block in places.outputs):
        stage.meet()
        copies = WarpRows(w, stage)
    for j, block in enumerate(places.outputs):
        if block is not None:
            copies.deliver(count + j, block)
    w.do("ret void")


def _all_read(program: Program, w: Writer, stage: Stage, load: Load, angles: list[tuple[int, int]]) -> Load:
    """Write the loads of all inputs, with bare angles reduced to one revolution; return a function of their names."""
    known: dict[tuple[int, int], str] = {}
    for k, block in enumerate(stage.places.inputs):
        names = stage.whole_row(block) if block is not None else [load(k, i) for i in range(program.inputs[k].size)]
        known |= {(k, i): name for i, name in enumerate(names)}
    reduce_angles(angles, w, known)
    return lambda group, index: known[group, index]
