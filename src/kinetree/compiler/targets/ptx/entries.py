"""LLVM assembly of a Program's GPU kernels, with one thread per sample.

Both entries take, for each input and then each output, a pointer, the distance between samples and the distance between
entries (both in numbers; 0 between samples: all share one), and last the number of samples. `kernel` takes any
distances. `rows` is for row-major arrays, with distance 1 between entries: each warp copies the rows of its samples
through shared memory, so that neighboring threads access neighboring addresses. Outputs must not overlap inputs.
"""

from __future__ import annotations

from ...ir.program import Program
from ..llvm import elementary
from ..llvm.arithmetic import Writer, operations
from ..llvm.number_types import SCALARS
from ..llvm.scalar import Entries, OwnFunctions
from .staging import WARP, Layout, layout

GLOBAL = "ptr addrspace(1)"
SHARED = "ptr addrspace(3)"
THREADS = 128
"""The threads of a block."""


def emit(program: Program, dtype: str) -> str:
    """Return the module's assembly."""
    parts, used = [], set()
    for write in (_kernel, _rows):
        w = Writer(SCALARS[dtype])
        write(program, w)
        parts += [*w.lines, "}"]
        used |= w.used
    w = Writer(SCALARS[dtype])
    w.used = used
    return "\n".join([*parts, *OwnFunctions().definitions(w), "attributes #0 = { nounwind }\n"])


def launch(program: Program, dtype: str, entry: str) -> tuple[int, int]:
    """Return the threads of a block and its dynamic shared memory [bytes]."""
    if entry == "kernel":
        return THREADS, 0
    size = SCALARS[dtype].bits // 8
    places = layout(program, size)
    threads = THREADS
    while threads > WARP and places.bytes(threads, size) > 24 * 1024:
        threads //= 2
    return threads, places.bytes(threads, size)


class _Functions(Entries):
    """Own functions; bare angles have been reduced to one revolution before the arithmetic."""


def _head(program: Program, w: Writer, name: str) -> None:
    """Write the head of an entry, up to the index %i of the thread's sample."""
    arrays = [f"{GLOBAL} noalias readonly %p{k}" for k in range(len(program.inputs))]
    arrays += [f"{GLOBAL} noalias %p{len(arrays) + k}" for k in range(len(program.outputs))]
    parameters = ", ".join(f"{a}, i64 %s{k}, i64 %e{k}" for k, a in enumerate(arrays))
    w.lines += [f"define ptx_kernel void @{name}({parameters}, i64 %n) #0 {{", "entry:"]
    for register in ("tid", "ctaid", "ntid"):
        w.used.add(f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}.x()")
        w.do(f"%{register} = call i32 @llvm.nvvm.read.ptx.sreg.{register}.x()")
    w.do("%block = zext i32 %ctaid to i64")
    w.do("%width = zext i32 %ntid to i64")
    w.do("%thread = zext i32 %tid to i64")
    w.do(f"%i = add i64 {w.new('mul i64 %block, %width')}, %thread")


def _row(w: Writer, k: int, sample: str) -> str:
    """Write the address of a sample of array k."""
    return w.new(f"getelementptr {w.lanes.scalar}, {GLOBAL} %p{k}, i64 {w.new(f'mul i64 {sample}, %s{k}')}")


def _entry(w: Writer, k: int, row: str, index: int) -> str:
    """Write the address of an entry of a sample with any distance between entries."""
    return w.new(f"getelementptr {w.lanes.scalar}, {GLOBAL} {row}, i64 {w.new(f'mul i64 %e{k}, {index}')}")


def _kernel(program: Program, w: Writer) -> None:
    """Write the entry for any distances."""
    S, size, count = w.lanes.scalar, w.lanes.bits // 8, len(program.inputs)
    _head(program, w, "kernel")
    w.do("%inside = icmp slt i64 %i, %n")
    w.do("br i1 %inside, label %go, label %out")
    w.begin("go")
    rows = [_row(w, k, "%i") for k in range(count + len(program.outputs))]
    angles, known = _Angles(program), {}

    def load(group: int, index: int) -> str:
        if (group, index) not in known:
            known[group, index] = w.new(f"load {S}, {GLOBAL} {_entry(w, group, rows[group], index)}, align {size}")
        return known[group, index]

    def store(group: int, index: int, x: str) -> None:
        k = count + group
        w.do(f"store {S} {x}, {GLOBAL} {_entry(w, k, rows[k], index)}, align {size}")

    if angles.places:
        small = elementary.within_a_revolution(w, [load(*place) for place in angles.places])
        known.update(zip(angles.places, small, strict=True))
    operations(program, w, angles.surround(Entries(program, w, OwnFunctions(), load, store)))
    w.do("br label %out")
    w.begin("out")
    w.do("ret void")


def _rows(program: Program, w: Writer) -> None:
    """Write the entry for row-major arrays."""
    S, size, count = w.lanes.scalar, w.lanes.bits // 8, len(program.inputs)
    places = layout(program, size)
    w.lines.append(f"@stage = external addrspace(3) global [0 x {S}], align 16")
    _head(program, w, "rows")
    w.do(f"%lane = and i32 %tid, {WARP - 1}")
    w.do("%lane64 = zext i32 %lane to i64")
    w.do("%first = sub i64 %i, %lane64")
    w.do("%some = icmp slt i64 %first, %n")
    w.do("br i1 %some, label %go, label %out")
    w.begin("go")
    rest = w.new("sub i64 %n, %first")
    w.used.add("declare i64 @llvm.umin.i64(i64, i64)")
    w.do(f"%valid = trunc i64 {w.new(f'call i64 @llvm.umin.i64(i64 {rest}, i64 {WARP})')} to i32")
    # Threads beyond the last sample repeat it.
    last = w.new("sub i64 %n, 1")
    own = w.new(f"call i64 @llvm.umin.i64(i64 %i, i64 {last})")
    warp = w.new(f"mul i32 {w.new('sub i32 %tid, %lane')}, {places.pitch}")
    w.do(f"%base = getelementptr {S}, {SHARED} @stage, i32 {warp}")
    w.do(f"%row = getelementptr {S}, {SHARED} %base, i32 {w.new(f'mul i32 %lane, {places.pitch}')}")
    moves = _Moves(w, places)
    for k, at in enumerate(places.inputs):
        if at is not None:
            moves.fetch(k, program.inputs[k].size, at)
    moves.wait()
    direct = {k: _row(w, k, own) for k, at in enumerate((*places.inputs, *places.outputs)) if at is None}

    def load(group: int, index: int) -> str:
        at = places.inputs[group]
        if at is None:
            place = w.new(f"getelementptr {S}, {GLOBAL} {direct[group]}, i64 {index}")
            return w.new(f"load {S}, {GLOBAL} {place}, align {size}")
        return w.new(f"load {S}, {SHARED} {moves.own(at + index)}, align {size}")

    def store(group: int, index: int, x: str) -> None:
        at = places.outputs[group]
        if at is None:
            place = w.new(f"getelementptr {S}, {GLOBAL} {direct[count + group]}, i64 {index}")
            w.do(f"store {S} {x}, {GLOBAL} {place}, align {size}")
        else:
            w.do(f"store {S} {x}, {SHARED} {moves.own(at + index)}, align {size}")

    operations(program, w, Entries(program, w, OwnFunctions(), load, store))
    if any(at is not None for at in places.outputs):
        moves.wait()
    for j, at in enumerate(places.outputs):
        if at is not None:
            moves.deliver(count + j, program.outputs[j].size, at)
    w.do("br label %out")
    w.begin("out")
    w.do("ret void")


class _Moves:
    """Copies between rows in global memory and the rows of a warp in shared memory.

    Each step moves 32 consecutive numbers of dense rows.
    """

    def __init__(self, w: Writer, places: Layout) -> None:
        self.w, self.pitch = w, places.pitch
        w.used.add("declare void @llvm.nvvm.bar.warp.sync(i32)")
        w.used.add("declare i32 @llvm.umin.i32(i32, i32)")

    def own(self, place: int) -> str:
        """Write the address of an entry of the thread's own row."""
        return self.w.new(f"getelementptr {self.w.lanes.scalar}, {SHARED} %row, i32 {place}")

    def wait(self) -> None:
        """Write a barrier of the warp."""
        self.w.do("call void @llvm.nvvm.bar.warp.sync(i32 -1)")

    def fetch(self, k: int, count: int, at: int) -> None:
        """Write the copy of an input; rows beyond the last sample repeat it."""
        w, S, size = self.w, self.w.lanes.scalar, self.w.lanes.bits // 8
        rows, last = _row(w, k, "%first"), w.new("sub i32 %valid, 1")
        for j in range(count):
            s = self._sample(count, j)
            read = w.new(f"call i32 @llvm.umin.i32(i32 {s}, i32 {last})")
            entry = w.new(f"sub i32 {w.new(f'add i32 %lane, {WARP * j}')}, {w.new(f'mul i32 {s}, {count}')}")
            x = w.new(f"load {S}, {GLOBAL} {self._outside(k, rows, read, entry)}, align {size}")
            w.do(f"store {S} {x}, {SHARED} {self._inside(s, entry, at)}, align {size}")

    def deliver(self, k: int, count: int, at: int) -> None:
        """Write the copy of an output."""
        w, S, size = self.w, self.w.lanes.scalar, self.w.lanes.bits // 8
        rows = _row(w, k, "%first")
        for j in range(count):
            s = self._sample(count, j)
            entry = w.new(f"sub i32 {w.new(f'add i32 %lane, {WARP * j}')}, {w.new(f'mul i32 {s}, {count}')}")
            x = w.new(f"load {S}, {SHARED} {self._inside(s, entry, at)}, align {size}")
            write, after = w.block("write"), w.block("after")
            w.do(f"br i1 {w.new(f'icmp slt i32 {s}, %valid')}, label %{write}, label %{after}")
            w.begin(write)
            w.do(f"store {S} {x}, {GLOBAL} {self._outside(k, rows, s, entry)}, align {size}")
            w.do(f"br label %{after}")
            w.begin(after)

    def _sample(self, count: int, j: int) -> str:
        """Write the sample in the warp of the lane's number in step j: (lane + 32 j) // count."""
        w, first = self.w, WARP * j // count
        if count >= WARP:  # at most one row ends within a step
            ends = count * (first + 1) - WARP * j
            if ends >= WARP:
                return str(first)
            return w.new(f"select i1 {w.new(f'icmp sge i32 %lane, {ends}')}, i32 {first + 1}, i32 {first}")
        factor = -(-(1 << 16) // count)  # exact for numerators below 32 * 32
        scaled = w.new(f"mul i32 {w.new(f'add i32 %lane, {WARP * j}')}, {factor}")
        return w.new(f"lshr i32 {scaled}, 16")

    def _inside(self, s: str, entry: str, at: int) -> str:
        w = self.w
        place = w.new(f"add i32 {w.new(f'mul i32 {s}, {self.pitch}')}, {entry}")
        return w.new(f"getelementptr {w.lanes.scalar}, {SHARED} %base, i32 {w.new(f'add i32 {place}, {at}')}")

    def _outside(self, k: int, rows: str, s: str, entry: str) -> str:
        w = self.w
        start = w.new(f"mul i64 {w.new(f'zext i32 {s} to i64')}, %s{k}")
        place = w.new(f"add i64 {start}, {w.new(f'zext i32 {entry} to i64')}")
        return w.new(f"getelementptr {w.lanes.scalar}, {GLOBAL} {rows}, i64 {place}")
