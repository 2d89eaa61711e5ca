"""Rows of samples in shared memory: their addresses, and moves between them and registers."""

from __future__ import annotations

from ...ir.program import Program
from ..llvm import elementary
from ..llvm.arithmetic import Writer
from .head import GLOBAL, bare_angles
from .staging import WARP, Layout

SHARED = "ptr addrspace(3)"
"""The type of addresses in shared memory."""

DECLARATIONS = (
    "declare void @llvm.nvvm.bar.warp.sync(i32)",
    "declare void @llvm.nvvm.cp.async.wait.all()",
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
        """Write a copy from global memory, which is complete after `arrived`.

        Numbers of 8 bytes are copied past the registers. For 4 bytes, that was slower on an H200.
        """
        w, S, size = self.w, self.w.lanes.scalar, self.w.lanes.bits // 8
        if size == 8:
            w.do(f"call void @llvm.nvvm.cp.async.ca.shared.global.8({SHARED} {target}, {GLOBAL} {source})")
        else:
            x = w.new(f"load {S}, {GLOBAL} {source}, align {size}")
            w.do(f"store {S} {x}, {SHARED} {target}, align {size}")

    def arrived(self) -> None:
        """Write the wait for the thread's own copies."""
        self.w.do("call void @llvm.nvvm.cp.async.wait.all()")

    def meet(self) -> None:
        """Write a barrier of the warp, after which its threads see the stores of each other."""
        self.w.do("call void @llvm.nvvm.bar.warp.sync(i32 -1)")

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
