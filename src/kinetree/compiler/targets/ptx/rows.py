"""The GPU kernel for row-major arrays, which copies rows through shared memory."""

from __future__ import annotations

from ...ir.program import Program
from ..llvm import elementary
from ..llvm.arithmetic import Writer, operations
from ..llvm.scalar import Entries, OwnFunctions
from .head import GLOBAL, bare_angles, head, row
from .staging import WARP, Layout, layout

SHARED = "ptr addrspace(3)"
"""The type of addresses in shared memory."""


def write_rows(program: Program, w: Writer) -> None:
    """Write the entry for row-major arrays."""
    S, size, count = w.lanes.scalar, w.lanes.bits // 8, len(program.inputs)
    places = layout(program, size)
    w.lines.append(f"@stage = external addrspace(3) global [0 x {S}], align 16")
    head(program, w, "rows")
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
    direct = {k: row(w, k, own) for k, at in enumerate((*places.inputs, *places.outputs)) if at is None}

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

    bare, angles = bare_angles(program)
    staged = [at + index for group, index in angles if (at := places.inputs[group]) is not None]
    if len(staged) < len(angles):
        bare = set()  # in arrays that are too large for shared memory
    elif staged:
        moves.reduce(staged)
    operations(program, w, Entries(program, w, OwnFunctions(), load, store, bare))
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
        rows, last = row(w, k, "%first"), w.new("sub i32 %valid, 1")
        for j in range(count):
            s = self._sample(count, j)
            read = w.new(f"call i32 @llvm.umin.i32(i32 {s}, i32 {last})")
            entry = w.new(f"sub i32 {w.new(f'add i32 %lane, {WARP * j}')}, {w.new(f'mul i32 {s}, {count}')}")
            x = w.new(f"load {S}, {GLOBAL} {self._outside(k, rows, read, entry)}, align {size}")
            w.do(f"store {S} {x}, {SHARED} {self._inside(s, entry, at)}, align {size}")

    def reduce(self, angles: list[int]) -> None:
        """Write the reduction of the thread's own angles to one revolution, if one of them is large."""
        w, S, size = self.w, self.w.lanes.scalar, self.w.lanes.bits // 8

        def load(place: int) -> str:
            return w.new(f"load {S}, {SHARED} {self.own(place)}, align {size}")

        def rare() -> None:
            for place in angles:
                w.do(f"store {S} {elementary.call(w, 'revolution', [load(place)])}, {SHARED} {self.own(place)}")

        elementary.if_any_large(w, [load(place) for place in angles], rare)

    def deliver(self, k: int, count: int, at: int) -> None:
        """Write the copy of an output."""
        w, S, size = self.w, self.w.lanes.scalar, self.w.lanes.bits // 8
        rows = row(w, k, "%first")
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
