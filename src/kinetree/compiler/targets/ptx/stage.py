"""Shared memory of a block of threads: addresses, and moves between it and registers."""

from __future__ import annotations

from ..llvm import elementary
from ..llvm.instructions import Writer
from .head import GLOBAL, registers
from .staging import CHUNK, WARP, Block, Layout, Place

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
