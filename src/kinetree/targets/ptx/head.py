"""The head of a GPU kernel: its parameters, the sample of a thread, and the angles that are reduced beforehand."""

from __future__ import annotations

from ...compiler.ir.program import Program
from ..llvm import elementary
from ..llvm.writer import Writer

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
