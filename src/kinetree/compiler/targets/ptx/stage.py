"""Rows of samples in shared memory: their addresses, and copies between them and global memory."""

from __future__ import annotations

from ...ir.program import Program
from ..llvm import elementary
from ..llvm.arithmetic import Writer
from .head import GLOBAL, bare_angles, row
from .staging import WARP, Layout

SHARED = "ptr addrspace(3)"
"""The type of addresses in shared memory."""

DECLARATIONS = (
    "declare void @llvm.nvvm.bar.warp.sync(i32)",
    "declare i32 @llvm.umin.i32(i32, i32)",
    "declare void @llvm.nvvm.cp.async.wait.all()",
    f"declare void @llvm.nvvm.cp.async.ca.shared.global.4({SHARED}, {GLOBAL})",
    f"declare void @llvm.nvvm.cp.async.ca.shared.global.8({SHARED}, {GLOBAL})",
)


class Stage:
    """The rows of a block in shared memory, one per thread, and the copies between them and global memory.

    %row is the address of the thread's own row, %base that of the first row of its warp.
    """

    def __init__(self, w: Writer, places: Layout) -> None:
        """Write the addresses of rows, from the number %tid of the thread."""
        self.w, self.places, self.pitch = w, places, places.pitch
        S = w.lanes.scalar
        w.used |= {f"@stage = external addrspace(3) global [0 x {S}], align 16", *DECLARATIONS}
        w.do(f"%lane = and i32 %tid, {WARP - 1}")
        warp = w.new(f"mul i32 {w.new('sub i32 %tid, %lane')}, {self.pitch}")
        w.do(f"%base = getelementptr {S}, {SHARED} @stage, i32 {warp}")
        w.do(f"%row = getelementptr {S}, {SHARED} %base, i32 {w.new(f'mul i32 %lane, {self.pitch}')}")
        # The same address under a name that LLVM knows nothing of: it would replace moves by registers.
        w.do(f'%again = call {SHARED} asm "mov.b64 $0, $1;", "=l,l"({SHARED} %row)')

    def own(self, place: int) -> str:
        """Write the address of an entry of the thread's own row."""
        return self.w.new(f"getelementptr {self.w.lanes.scalar}, {SHARED} %row, i32 {place}")

    def load(self, place: int) -> str:
        """Write the load of an entry of the thread's own row."""
        S, size = self.w.lanes.scalar, self.w.lanes.bits // 8
        return self.w.new(f"load {S}, {SHARED} {self.own(place)}, align {size}")

    def store(self, place: int, x: str) -> None:
        """Write a store into the thread's own row."""
        S, size = self.w.lanes.scalar, self.w.lanes.bits // 8
        self.w.do(f"store {S} {x}, {SHARED} {self.own(place)}, align {size}")

    def before(self, k: int, names: list[str]) -> None:
        """Write the moves of values between registers and the thread's own row that come before operation k."""
        S, size = self.w.lanes.scalar, self.w.lanes.bits // 8
        for move in self.places.moves.get(k, ()):
            if move.back:
                place = self.w.new(f"getelementptr {S}, {SHARED} %again, i32 {move.place}")
                names[move.value] = self.w.new(f"load {S}, {SHARED} {place}, align {size}")
            else:
                self.store(move.place, names[move.value])

    def copy(self, source: str, target: str) -> None:
        """Write a copy from global memory, which is complete after `arrived`."""
        size = self.w.lanes.bits // 8
        self.w.do(f"call void @llvm.nvvm.cp.async.ca.shared.global.{size}({SHARED} {target}, {GLOBAL} {source})")

    def arrived(self) -> None:
        """Write the wait for the thread's own copies."""
        self.w.do("call void @llvm.nvvm.cp.async.wait.all()")

    def meet(self) -> None:
        """Write a barrier of the warp, after which its threads see the stores of each other."""
        self.w.do("call void @llvm.nvvm.bar.warp.sync(i32 -1)")

    def fetch(self, k: int, count: int, at: int) -> None:
        """Write the copy of the rows of an input; rows beyond the last sample repeat it."""
        w = self.w
        rows, last = row(w, k, "%first"), w.new("sub i32 %valid, 1")
        for j in range(count):
            s = self._sample(count, j)
            read = w.new(f"call i32 @llvm.umin.i32(i32 {s}, i32 {last})")
            entry = w.new(f"sub i32 {w.new(f'add i32 %lane, {WARP * j}')}, {w.new(f'mul i32 {s}, {count}')}")
            self.copy(self._outside(k, rows, read, entry), self._inside(s, entry, at))

    def reduced(self, program: Program) -> set[int]:
        """Write the reduction of the thread's own bare angles to one revolution, if one of them is large.

        Returns the operations that are bare angles; none if some are in arrays too large for shared memory.
        """
        bare, angles = bare_angles(program)
        places = [at + index for group, index in angles if (at := self.places.inputs[group]) is not None]
        if len(places) < len(angles):
            return set()

        def rare() -> None:
            for place in places:
                self.store(place, elementary.call(self.w, "revolution", [self.load(place)]))

        if places:
            elementary.if_any_large(self.w, [self.load(place) for place in places], rare)
        return bare

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
