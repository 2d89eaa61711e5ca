"""NumPy's inner loop around a body: copies of samples to blocks of vectors and back.

NumPy passes pointers, the number of samples, the stride between samples of each array, and the strides of its core
dimensions. If the core of every array is dense, blocks are loaded row by row and transposed in registers. Other layouts
are copied entry by entry. Idle lanes of the last block repeat the last sample.
"""

from __future__ import annotations

import math
from itertools import accumulate

from ...compiler.ir.program import Array
from .aligned_lines import begin_lines, finish, long_outputs, store_lines
from .block_checks import check_inputs, reaches, reduce_angles, release, reserve, scan
from .dense_rows import (
    load_one,
    load_rows,
    output_vector,
    packed_outputs,
    sample_indices,
    store_one,
    store_packed,
    store_rows,
)
from .prefetch import Request, arguments
from .writer import Text, clear_flags


def kernel(program, lanes, w, angles: list[int], slots: list[int], found: list[Request]) -> str:
    """Return the assembly of `kernel(char **args, npy_intp *dims, npy_intp *steps, void *bad)`.

    `bad` points to two 64-bit counts, of blocks with an input, and with any number, that is not finite. `angles` are
    the indices of bare angles in the block, which are reduced to one revolution before the body runs if they are
    large. `slots` has the index of the vector in the body's output block for each entry of the outputs. `found` are the
    body's requests for rows.
    """
    arrays = [*program.inputs, *program.outputs]
    n_in = sum(a.size for a in program.inputs)
    n_out = max(slots, default=0) + 1
    L, size = lanes.count, lanes.bits // 8
    t = Text()
    t.put(
        f"@slots = internal constant [{len(slots)} x i64] [{', '.join(f'i64 {j}' for j in slots)}]",
        "define void @kernel(ptr %args, ptr %dims, ptr %steps, ptr %bad) #0 {",
        "entry:",
    )
    block = L * size
    heap = reserve(t, {"in": max(n_in, 1) * block, "out": max(n_out, 1) * block, "top": block, "top_out": block})
    t.put("  %seen = load i64, ptr %bad", "  %n = load i64, ptr %dims")
    cores = write_layouts(t, arrays, size)
    if longs := long_outputs(program):
        begin_lines(t, lanes, program, longs)
    t.put(
        "  %last = sub i64 %n, 1",
        "  br label %head",
        "head:",
        f"  %i = phi i64 [ 0, %{'ready' if heap else 'entry'} ], [ %next, %after ]",
        "  %more = icmp slt i64 %i, %n",
        "  br i1 %more, label %choose, label %done",
        "choose:",
        f"  store {lanes.integers} zeroinitializer, ptr %top, align 64",
        f"  store {lanes.integers} zeroinitializer, ptr %top_out, align 64",
        "  %is_last = icmp eq i64 %i, %last",
        "  %is_one = and i1 %dense, %is_last",
    )
    inputs, outputs = number_arrays(program.inputs), number_arrays(program.outputs, len(program.inputs))
    samples, packed = sample_indices(t, lanes), packed_outputs(program)

    def read_one() -> None:
        for k, a, at in inputs:
            load_one(t, lanes, k, a.size, at)

    def read_dense() -> None:
        for k, a, at in inputs:
            load_rows(t, lanes, samples, k, a.size, at)

    def read_any() -> None:
        for k, a, at in inputs:
            entry_by_entry(t, lanes, k, a.shape, cores[k], at, store=False)
        scan(t, lanes, "%in", n_in, "%top")

    def write_one() -> None:
        for k, a, at in outputs:
            store_one(t, lanes, k, a.size, at)
        scan(t, lanes, "%out", n_out, "%top_out")

    def write_dense() -> None:
        t.put(f"  %full = icmp sle i64 {t.new(f'add i64 %i, {L}')}, %n")
        whole = t.new(f"and i1 {'%packed' if longs else 'false'}, %full")
        for g, (k, a, at) in enumerate(outputs):
            copy = (t, lanes, samples, k, a.size, at)
            if g in longs:
                t.either(whole, lambda copy=copy: store_lines(*copy), lambda copy=copy: store_rows(*copy))
            elif g in packed:
                store_packed(t, lanes, k, a, at, lambda copy=copy: store_rows(*copy))
            else:
                store_rows(*copy)

    def write_any() -> None:
        for k, a, at in outputs:
            entry_by_entry(t, lanes, k, a.shape, cores[k], at, store=True)
        scan(t, lanes, "%out", n_out, "%top_out")

    _by_layout(t, "load", read_one, read_dense, read_any)
    check_inputs(t, lanes)
    t.put(f"  call void @body(ptr %in, ptr %out{arguments(t, lanes, program, found)})")
    _by_layout(t, "store", write_one, write_dense, write_any)
    place = t.new("getelementptr i64, ptr %bad, i64 1")
    t.if_(reaches(t, lanes, "%top_out", math.inf), lambda: t.new(f"atomicrmw add ptr {place}, i64 1 monotonic"))
    t.put("  br label %after", "after:", f"  %next = add i64 %i, {L}", "  br label %head", "done:")
    # Input that is not finite is reported by the caller, so NumPy must not warn about operations on it.
    changed = t.new(f"icmp ne i64 {t.new('load i64, ptr %bad')}, %seen")
    t.if_(changed, lambda: clear_flags(t))
    if longs:
        t.if_("%past", lambda: finish(t))
    if heap:
        release(t)
    t.put("  ret void", "}")
    w.used |= t.used
    return t.text() + "\n" + reduce_angles(lanes, w, angles)


def write_layouts(t, arrays, size: int) -> list[list[str]]:
    """Write pointers, strides and %dense, whether all cores are dense; return the core strides of each array."""
    for k in range(len(arrays)):
        t.put(
            f"  %pp{k} = getelementptr ptr, ptr %args, i64 {k}",
            f"  %p{k} = load ptr, ptr %pp{k}",
            f"  %sp{k} = getelementptr i64, ptr %steps, i64 {k}",
            f"  %s{k} = load i64, ptr %sp{k}",
        )
    # Core strides follow, one per core dimension of each array.
    at, every, cores = len(arrays), "true", []
    for k, a in enumerate(arrays):
        mine, dense, expected = [], "true", size
        for d in range(len(a.shape)):
            t.put(f"  %cp{k}_{d} = getelementptr i64, ptr %steps, i64 {at}", f"  %c{k}_{d} = load i64, ptr %cp{k}_{d}")
            mine.append(f"%c{k}_{d}")
            at += 1
        for d in reversed(range(len(a.shape))):
            if a.shape[d] > 1:
                ok = t.new(f"icmp eq i64 {mine[d]}, {expected}")
                dense = t.new(f"and i1 {dense}, {ok}")
            expected *= a.shape[d]
        every = t.new(f"and i1 {every}, {dense}")
        cores.append(mine)
    t.put(f"  %dense = and i1 {every}, true")
    return cores


def _by_layout(t, name: str, one, dense, other) -> None:
    """Write three ways to copy a block, for a single dense sample, for dense samples, and for any other layout."""
    t.put(f"  br i1 %is_one, label %{name}_one, label %{name}_more")
    for label, copy in (("one", one), ("more", None), ("dense", dense), ("other", other)):
        t.put(f"{name}_{label}:")
        if copy is None:
            t.put(f"  br i1 %dense, label %{name}_dense, label %{name}_other")
        else:
            copy()
            t.put(f"  br label %{name}_done")
    t.put(f"{name}_done:")


def number_arrays(arrays, first: int = 0) -> list[tuple[int, Array, int]]:
    """Return the number of each array, the array, and the index of its first entry in the block."""
    starts = accumulate((a.size for a in arrays), initial=0)
    return [(first + k, a, at) for k, (a, at) in enumerate(zip(arrays, starts, strict=False))]


def entry_by_entry(t, lanes, k: int, shape, core: list[str], at: int, *, store: bool) -> None:
    """Copy an array with any strides; idle lanes read and write the last sample."""

    def sample(lane: str) -> str:
        index = t.new(f"add i64 %i, {lane}")
        row = t.new(f"select i1 {t.new(f'icmp slt i64 {index}, %n')}, i64 {index}, i64 %last")
        return t.new(f"getelementptr i8, ptr %p{k}, i64 {t.new(f'mul i64 {row}, %s{k}')}")

    def vector(flat: str) -> str:
        entry = t.new(f"add i64 {flat}, {at}")
        return output_vector(t, lanes, entry) if store else t.new(f"getelementptr {lanes.vector}, ptr %in, i64 {entry}")

    copy_entries(t, lanes, shape, core, sample, vector, store=store)


def copy_entries(t, lanes, shape, core: list[str], sample, vector, *, store: bool) -> None:
    """Copy entries between samples in memory and a block of vectors, lane by lane and entry by entry.

    `sample(lane)` writes the address of a lane's first entry; `core` are the strides of the core dimensions.
    `vector(flat)` writes the address of the vector of an entry in row-major order. `store` copies from the block.
    """
    S, L, size = lanes.scalar, lanes.count, lanes.bits // 8

    def one_lane(lane: str) -> None:
        def entries(d: int, p: str, flat: str) -> None:
            if d < len(shape):
                t.loop(shape[d], 1, lambda j: entries(d + 1, step(d, p, j), inner(d, flat, j)))
                return
            q = t.new(f"getelementptr {S}, ptr {vector(flat)}, i64 {lane}")
            source, target = (q, p) if store else (p, q)
            t.put(f"  store {S} {t.new(f'load {S}, ptr {source}, align {size}')}, ptr {target}, align {size}")

        entries(0, sample(lane), "0")

    def step(d: int, p: str, j: str) -> str:
        return t.new(f"getelementptr i8, ptr {p}, i64 {t.new(f'mul i64 {core[d]}, {j}')}")

    def inner(d: int, flat: str, j: str) -> str:
        return t.new(f"add i64 {t.new(f'mul i64 {flat}, {shape[d]}')}, {j}")

    t.loop(L, 1, one_lane)
