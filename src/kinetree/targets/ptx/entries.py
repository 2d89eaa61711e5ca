"""LLVM assembly of a Program's GPU kernels, with one thread per sample.

Both entries take, for each input and then each output, a pointer, the distance between samples and the distance between
entries (both in numbers; 0 between samples: all share one), and last the number of samples. `kernel` takes any
distances. `rows` is for row-major arrays, with distance 1 between entries. Outputs must not overlap inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from ...compiler.ir.operations import Op
from ...compiler.ir.program import Program
from ..llvm.arithmetic import operations
from ..llvm.scalar import Entries, OwnFunctions
from ..llvm.writer import SCALARS, Writer
from .schedule import BUDGET, most_in_use, schedule
from .staging import (
    CHUNK,
    GLOBAL,
    SHARED,
    WARP,
    Block,
    Layout,
    Stage,
    bare_angles,
    fused_sums,
    head,
    layout,
    reduce_angles,
    registers,
    row,
)

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


# --- GPU kernels whose threads access the arrays by themselves, with inputs in registers or in shared memory ---


class _Arrays:
    """The addresses of a thread's sample in all arrays, with any distance between entries."""

    def __init__(self, program: Program, w: Writer, entry: str) -> None:
        """Write the head of an entry; threads beyond the last sample repeat it."""
        head(program, w, entry)
        self.w = w
        w.used.add("declare i64 @llvm.umin.i64(i64, i64)")
        own = w.new(f"call i64 @llvm.umin.i64(i64 %i, i64 {w.new('sub i64 %n, 1')})")
        self.last = {k: (0, row(w, k, own)) for k in range(len(program.inputs) + len(program.outputs))}

    def place(self, k: int, index: int) -> str:
        """Write the address of an entry of array k, from the address of the last one."""
        w, S = self.w, self.w.lanes.scalar
        before, address = self.last[k]
        if index != before:
            step = f"%e{k}" if index == before + 1 else w.new(f"mul i64 %e{k}, {index - before}")
            address = w.new(f"getelementptr {S}, {GLOBAL} {address}, i64 {step}")
            self.last[k] = index, address
        return address

    def load(self, k: int, index: int) -> str:
        """Write the load of an entry of array k."""
        S, size = self.w.lanes.scalar, self.w.lanes.bits // 8
        return self.w.new(f"load {S}, {GLOBAL} {self.place(k, index)}, align {size}")


def write_direct(program: Program, w: Writer, entry: str) -> None:
    """Write an entry that reads all inputs into registers.

    In `rows` the distance between entries is known, but addresses with that constant were slower on an H200.
    """
    arrays = _Arrays(program, w, entry)
    read = sorted(op[1:] for op in program.ops if op[0] is Op.INPUT)
    known: dict[tuple[int, int], str] = {place: arrays.load(*place) for place in read}
    reduce_angles(bare_angles(program, None)[1], w, known)
    _finish(program, w, arrays, lambda *place: known[place], None)


def write_staged(program: Program, w: Writer, places: Layout) -> None:
    """Write the entry for any distances, with inputs that each thread copies to shared memory."""
    arrays = _Arrays(program, w, "kernel")
    stage = Stage(w, places)
    for k, block in enumerate(places.inputs):
        if block is not None:
            for index in range(block.count):
                stage.copy(arrays.place(k, index), stage.own(block.place(index)))
    stage.arrived()

    def load(group: int, index: int) -> str:
        block = places.inputs[group]
        return stage.load(block.place(index)) if block is not None else arrays.load(group, index)

    stage.reduced(bare_angles(program, places)[1])
    _finish(program, w, arrays, load, places, stage.before)


def _finish(
    program: Program,
    w: Writer,
    arrays: _Arrays,
    load: Callable[[int, int], str],
    places: Layout | None,
    before: Callable[[int, list[str]], None] | None = None,
) -> None:
    """Write the arithmetic, with results that are stored as soon as they are known."""
    S, size, count = w.lanes.scalar, w.lanes.bits // 8, len(program.inputs)

    def store(group: int, index: int, x: str) -> None:
        w.do(f"store {S} {x}, {GLOBAL} {arrays.place(count + group, index)}, align {size}")

    bare, _ = bare_angles(program, places)
    operations(program, w, Entries(program, w, OwnFunctions(), load, store, bare, before, fused_sums(program, places)))
    w.do("ret void")


ENTRIES = ("kernel", "rows")
THREADS = 64
"""The threads of a block, if their shared memory allows it. On an H200, 128 were up to 14 percent slower."""
SHARED_BLOCK = 99 * 1024
"""The shared memory of a block [bytes] above which it has fewer threads: what a block may take on any GPU."""
CROWDED = {8: 120, 4: 280}
"""The inputs and values in use, by the size of a number [bytes], above which inputs are in shared memory.

On an H200, Talos with 208 (inverse dynamics) is faster so in float64, and with 266 (forward) slower in float32."""
WIDE = 100
"""The bytes of the inputs of a sample above which rows are copied together, through shared memory.

Shorter rows stay in the cache while a thread reads them. On an H200, copies cost a four-bar with 36 bytes 15 percent
and a UR5 with 72 bytes 9 percent. Panda with 108 bytes gains 37 percent by them in inverse dynamics."""


def emit(program: Program, dtype: str, entries: Sequence[str] = ENTRIES) -> str:
    """Return the assembly of a module with some of the entries."""
    w = Writer(SCALARS[dtype])
    for entry in entries:
        ordered, places = arrange(program, dtype, entry)
        if places is None:
            write_direct(ordered, w, entry)
        else:
            {"kernel": write_staged, "rows": write_rows}[entry](ordered, w, places)
        w.lines.append("}")
    return "\n".join([*w.lines, *OwnFunctions().definitions(w), "attributes #0 = { nounwind }\n"])


def launch(program: Program, dtype: str, entry: str) -> tuple[int, int]:
    """Return the threads of a block and its dynamic shared memory [bytes]."""
    _, places = arrange(program, dtype, entry)
    if places is None:
        return THREADS, 0
    size, threads = SCALARS[dtype].bits // 8, THREADS
    while threads > WARP and places.bytes(threads, size) > SHARED_BLOCK:
        threads //= 2
    return threads, places.bytes(threads, size)


@lru_cache(maxsize=4)
def arrange(program: Program, dtype: str, entry: str) -> tuple[Program, Layout | None]:
    """Return a Program in the order for an entry, and the layout of its rows in shared memory if it has some.

    Threads read all inputs into registers first, so that they wait for memory once only. If registers are too few for
    the inputs and the values in use, inputs are in shared memory.
    """
    size = SCALARS[dtype].bits // 8
    ordered = schedule(program) if most_in_use(program) > BUDGET[size] else program
    count = sum(a.size for a in program.inputs)
    crowded = most_in_use(ordered) + count > CROWDED[size]
    if entry == "rows" and (crowded or count * size > WIDE):
        return ordered, layout(ordered, size, rows=True, early=not crowded)
    return ordered, layout(ordered, size, rows=False) if crowded else None
