"""GPU kernels whose threads access the arrays by themselves, with inputs in registers or in shared memory."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.operations import Op
from ...ir.program import Program
from ..llvm.arithmetic import operations
from ..llvm.instructions import Writer
from ..llvm.scalar import Entries, OwnFunctions
from .choices import bare_angles, fused
from .head import GLOBAL, head, reduce_angles, row
from .stage import Stage
from .staging import Layout


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
    operations(program, w, Entries(program, w, OwnFunctions(), load, store, bare, before, fused(program, places)))
    w.do("ret void")
