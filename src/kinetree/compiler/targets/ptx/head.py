"""The head of a GPU kernel: its parameters, the sample of a thread, and the angles that are reduced beforehand."""

from __future__ import annotations

from ...ir.program import Program
from ..llvm import arithmetic
from ..llvm.arithmetic import Writer

GLOBAL = "ptr addrspace(1)"
"""The type of addresses in global memory."""


def head(program: Program, w: Writer, name: str) -> None:
    """Write the head of an entry, up to the index %i of the thread's sample."""
    arrays = [f"{GLOBAL} noalias readonly %p{k}" for k in range(len(program.inputs))]
    arrays += [f"{GLOBAL} noalias %p{len(arrays) + k}" for k in range(len(program.outputs))]
    parameters = ", ".join(f"{a}, i64 %s{k}, i64 %e{k}" for k, a in enumerate(arrays))
    w.lines += [f"define ptx_kernel void @{name}({parameters}, i64 %n) #0 {{"]
    w.begin("entry")
    for register in ("tid", "ctaid", "ntid"):
        w.used.add(f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}.x()")
        w.do(f"%{register} = call i32 @llvm.nvvm.read.ptx.sreg.{register}.x()")
    w.do("%block = zext i32 %ctaid to i64")
    w.do("%width = zext i32 %ntid to i64")
    w.do("%thread = zext i32 %tid to i64")
    w.do(f"%i = add i64 {w.new('mul i64 %block, %width')}, %thread")


def row(w: Writer, k: int, sample: str) -> str:
    """Write the address of a sample of array k."""
    return w.new(f"getelementptr {w.lanes.scalar}, {GLOBAL} %p{k}, i64 {w.new(f'mul i64 {sample}, %s{k}')}")


def bare_angles(program: Program) -> tuple[set[int], list[tuple[int, int]]]:
    """Return the operations that are bare angles, and the entries of inputs that they come from."""
    bare, places = arithmetic.bare_angles(program)
    starts = arithmetic.offsets(program)
    groups = range(len(starts))
    return bare, [next((g, p - starts[g]) for g in reversed(groups) if starts[g] <= p) for p in places]
