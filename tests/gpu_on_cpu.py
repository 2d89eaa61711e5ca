"""GPU kernels on this processor: the same LLVM assembly with the registers and barriers of a GPU played by Python."""

from __future__ import annotations

import ctypes
import re
import threading
from functools import cache
from typing import Literal

import llvmlite.binding as llvm
import numpy as np

from kinetree.compiler.ir.program import Program
from kinetree.compiler.lanes.form import Kernel
from kinetree.targets import target
from kinetree.targets.llvm import Loaded, compile_assembly
from kinetree.targets.ptx.entries import emit, launch

SHARED_NUMBERS = 1 << 16
"""The numbers that the shared memory of a block holds here, more than any block takes."""

_thread = threading.local()


def _wait(_mask: int) -> None:
    _thread.barrier.wait()


def _wait_for_block() -> None:
    if _thread.block is not None:  # threads that run in turn need not wait
        _thread.block.wait()


@cache
def _callbacks() -> list:
    """Register the functions that stand for special registers and for the barrier; return them, to keep them alive."""
    made = [ctypes.CFUNCTYPE(None, ctypes.c_int32)(_wait)]
    llvm.add_symbol("gpu_wait", ctypes.cast(made[0], ctypes.c_void_p).value)
    made.append(ctypes.CFUNCTYPE(None)(_wait_for_block))
    llvm.add_symbol("gpu_wait_for_block", ctypes.cast(made[1], ctypes.c_void_p).value)
    for name in ("tid", "ctaid", "ntid"):
        read = ctypes.CFUNCTYPE(ctypes.c_int32)(lambda name=name: getattr(_thread, name))
        llvm.add_symbol(f"gpu_{name}", ctypes.cast(read, ctypes.c_void_p).value)
        made.append(read)
    return made


def hosted(source: str) -> Loaded:
    """Compile the assembly of GPU kernels for this processor."""
    _callbacks()
    text = re.sub(r" addrspace\([134]\)", "", source).replace("ptx_kernel ", "")
    text = re.sub(r"@llvm\.nvvm\.read\.ptx\.sreg\.(\w+)\.x", r"@gpu_\1", text)
    text = text.replace("@llvm.nvvm.bar.warp.sync", "@gpu_wait").replace("@llvm.nvvm.barrier0", "@gpu_wait_for_block")
    text = re.sub(r"call ptr asm .*\(ptr (%\w+)\)", r"getelementptr i8, ptr \1, i32 0", text)
    for name, bits in (("ca.shared.global.8", 64), ("cg.shared.global.16", 128)):  # copies are complete at once
        text = text.replace(f"@llvm.nvvm.cp.async.{name}(", f"@gpu_copy_{bits}(")
        body = f"%x = load i{bits}, ptr %from\n store i{bits} %x, ptr %to\n ret void"
        declared, head = (f"void @gpu_copy_{bits}({x})" for x in ("ptr, ptr", "ptr %to, ptr %from"))
        text = text.replace(f"declare {declared}", f"define internal {head} {{\n {body}\n}}")
    text = re.sub(r".*@llvm\.nvvm\.cp\.async\.wait\.all\(\)", "", text)
    text = re.sub(
        r"@stage = external global \[0 x (\w+)\]", rf"@stage = global [{SHARED_NUMBERS} x \1] zeroinitializer", text
    )
    return Loaded(compile_assembly(text))


def run(
    program: Program, entry: str, inputs, *, dtype: str = "float64", order: Literal["C", "F"] = "C", spare: int = 0
) -> list[np.ndarray]:
    """Run an entry of GPU code on arrays [samples, entries] of a memory order ("C" or "F"); return the outputs.

    An input with a single row among several samples is shared by all. Arrays are parts of wider ones, which have some
    spare columns in front.
    """
    code = hosted(emit(program, dtype, (entry,)))
    threads = launch(program, dtype, entry)[0] if entry == "rows" else 32
    return _run(program, code.find(entry), threads, inputs, dtype, order, spare, together=entry == "rows")


def _run(program, function, threads, inputs, dtype, order, spare, *, together) -> list[np.ndarray]:
    assert len(inputs) == len(program.inputs), "an array per input"
    count = max(len(x) for x in inputs)
    rows = [np.reshape(x, (len(x), -1)) for x in inputs]
    arrays = [np.array(np.pad(x, ((0, 0), (spare, 0))), dtype, order=order)[:, spare:] for x in rows]
    outputs = [np.full((count, spare + a.size), np.nan, dtype, order=order)[:, spare:] for a in program.outputs]
    parameters: list = []
    for x in (*arrays, *outputs):
        steps = [s // x.itemsize for s in x.strides]
        parameters += [ctypes.c_void_p(x.ctypes.data), ctypes.c_int64(steps[0] if len(x) == count else 0)]
        parameters += [ctypes.c_int64(steps[1])]
    parameters += [ctypes.c_int64(count)]
    kernel = ctypes.CFUNCTYPE(None, *(type(p) for p in parameters))(function)
    for block in range(-(-count // threads)):
        run_block(lambda: kernel(*parameters), block, threads, together=together)
    return [x.reshape(count, *a.shape) for x, a in zip(outputs, program.outputs, strict=True)]


def run_block(call, block: int, threads: int, *, together: bool) -> None:
    """Run the threads of a block: at the same time if they wait for each other, otherwise in turn."""

    def one(k: int, barrier: threading.Barrier | None) -> None:
        _thread.tid, _thread.ctaid, _thread.ntid, _thread.barrier = k, block, threads, barrier
        _thread.block = everybody if together else None
        call()

    everybody = threading.Barrier(threads)

    if not together:
        for k in range(threads):
            one(k, None)
        return
    barriers = [threading.Barrier(32) for _ in range(threads // 32)]
    running = [threading.Thread(target=one, args=(k, barriers[k // 32])) for k in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def run_kernel(kernel: Kernel, arguments, *, dtype: str = "float64") -> list[np.ndarray]:
    """Run the GPU code of a kernel of the lane language on arrays [runs, ...], or one of all runs.

    The outputs are [runs, ...] in memory with neighboring runs next to each other, as on a GPU.
    """
    code, (inputs, _) = hosted(target("ptx").emit(kernel, dtype)), kernel.arity
    arrays = [np.asarray(x, dtype) for x in arguments]
    given = list(zip(kernel.arguments, arrays, strict=False))
    count = max(len(x) for a, x in given if x.ndim > len(a.shape))
    extent = next((len(x) for a, x in given if a.shape == ("t",)), 0)
    for a in kernel.arguments[inputs:]:
        shape = [extent if d == "t" else int(d) for d in a.shape]
        arrays.append(np.moveaxis(np.full((*shape, count), np.nan, dtype), -1, 0))
    parameters: list = []
    for a, x in zip(kernel.arguments, arrays, strict=True):
        own = x.ndim > len(a.shape)
        strides = x.strides if own else (0, *x.strides)
        parameters += [ctypes.c_void_p(x.ctypes.data), *map(ctypes.c_int64, strides)]
    parameters += [ctypes.c_int64(extent), ctypes.c_int64(count)]
    function = ctypes.CFUNCTYPE(None, *map(type, parameters))(code.find("kernel"))
    run_block(lambda: function(*parameters), 0, count + 1, together=False)
    return arrays[inputs:]
