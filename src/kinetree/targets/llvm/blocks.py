"""NumPy's inner loop around a body: copies of samples to blocks of vectors and back.

NumPy passes pointers, the number of samples, the stride between samples of each array, and the strides of its core
dimensions. If the core of every array is dense, blocks are loaded row by row and transposed in registers. Other layouts
are copied entry by entry. Idle lanes of the last block repeat the last sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate

from ...compiler.ir.program import Array
from ...compiler.lanes.form import Kernel
from . import vector_math
from .cache_lines import Request, arguments, begin_lines, finish, long_outputs, store_lines
from .dense_rows import (
    load_one,
    load_rows,
    output_vector,
    packed_outputs,
    pieces,
    raise_top,
    sample_indices,
    store_one,
    store_packed,
    store_rows,
)
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


# --- Checks of blocks: numbers that are not finite, and angles beyond the range of the sine's polynomials ---


def scan(t, lanes, block: str, count: int, top: str) -> None:
    """Write the largest magnitude of the vectors of a block to the integers at `top`."""

    def some(start: str, used: int) -> None:
        places = [
            t.new(f"getelementptr {lanes.vector}, ptr {block}, i64 {t.new(f'add i64 {start}, {k}')}")
            for k in range(used)
        ]
        raise_top(t, lanes, top, [t.new(f"load {lanes.vector}, ptr {p}, align 64") for p in places])

    pieces(t, count, 8, some)


def scan_entries(t, lanes, block: str, entries: list[int], top: str) -> None:
    """Write the largest magnitude of some vectors of a block to the integers at `top`."""
    places = [t.new(f"getelementptr {lanes.vector}, ptr {block}, i64 {k}") for k in entries]
    raise_top(t, lanes, top, [t.new(f"load {lanes.vector}, ptr {p}, align 64") for p in places])


def reaches(t, lanes, top: str, limit: float) -> str:
    """Write whether the magnitude at `top` reaches a limit in any lane."""
    ints, L, bits = lanes.integers, lanes.count, lanes.bits
    sizes = t.new(f"load {ints}, ptr {top}, align 64")
    over = t.new(f"icmp uge {ints} {sizes}, splat (i{bits} {lanes.pattern(limit)})")
    return t.new(f"icmp ne i{L} {t.new(f'bitcast {lanes.mask} {over} to i{L}')}, 0")


def check_inputs(t, lanes, reduce: str = "reduce") -> None:
    """Increment both counts at %bad if an input of the block is not finite, and reduce large angles."""

    def unusual() -> None:
        one = t.new(f"zext i1 {reaches(t, lanes, '%top', math.inf)} to i64")
        for place in ("%bad", t.new("getelementptr i64, ptr %bad, i64 1")):
            t.new(f"atomicrmw add ptr {place}, i64 {one} monotonic")
        t.put(f"  call void @{reduce}(ptr %in)")

    t.if_(reaches(t, lanes, "%top", vector_math.LIMIT[lanes.bits]), unusual)


def reduce_angles(lanes, w, angles: list[int], name: str = "reduce") -> str:
    """Return the function that reduces the angles of a block to one revolution."""
    V = lanes.vector
    lines = len(w.lines)
    for place in angles:
        p = w.new(f"getelementptr {V}, ptr %in, i64 {place}")
        x = w.new(f"load {V}, ptr {p}, align 64")
        w.do(f"store {V} {vector_math.within_a_revolution(w, x)}, ptr {p}, align 64")
    body = w.lines[lines:]
    del w.lines[lines:]
    return "\n".join([f"define internal void @{name}(ptr %in) noinline #0 {{", *body, "  ret void", "}"])


# --- Memory of a kernel: small amounts on the stack, larger ones from the heap, once per call ---

STACK = 32 * 1024
"""The largest amount of stack memory of a kernel [bytes]; the stack of a thread may be only a few hundred KiB."""


def reserve(t: Text, sizes: Mapping[str, int]) -> bool:
    """Write pointers %name to memory with these sizes in bytes, aligned to 64; return whether it must be released.

    The code is in the basic block "entry". If memory must be released, the code continues in the block "ready".
    """
    sizes = {name: -(-size // 64) * 64 for name, size in sizes.items()}
    total = sum(sizes.values())
    if total <= STACK:
        t.put(*(f"  %{name} = alloca i8, i64 {size}, align 64" for name, size in sizes.items()))
        return False
    t.used |= {"declare ptr @kt_malloc(i64)", "declare void @kt_free(ptr)"}
    t.put(
        f"  %workspace = call ptr @kt_malloc(i64 {total + 64})",
        "  %none = icmp eq ptr %workspace, null",
        "  br i1 %none, label %lacking, label %ready",
        "lacking:",  # without heap memory, the stack may still be large enough
        f"  %stack = alloca i8, i64 {total + 64}, align 64",
        "  br label %ready",
        "ready:",
        "  %given = phi ptr [ %workspace, %entry ], [ %stack, %lacking ]",
    )
    place = t.new(f"add i64 {t.new('ptrtoint ptr %given to i64')}, 63")
    base = t.new(f"inttoptr i64 {t.new(f'and i64 {place}, -64')} to ptr")
    at = 0
    for name, size in sizes.items():
        t.put(f"  %{name} = getelementptr i8, ptr {base}, i64 {at}")
        at += size
    return True


def release(t: Text) -> None:
    """Write the release of memory that `reserve` took from the heap."""
    t.put("  call void @kt_free(ptr %workspace)")


# --- The arguments of inner loops of kernels ---

PARAMETERS = "(ptr %args, ptr %dims, ptr %steps, ptr %bad)"
"""The parameters of an inner loop."""


def write_arguments(kernel: Kernel, t: Text) -> None:
    """Write the loads of counts, pointers and strides: first between samples, then of the core dimensions."""
    t.put("  %n = load i64, ptr %dims", "  %last = sub i64 %n, 1")
    if "t" in kernel.dimensions:
        at = 1 + kernel.dimensions.index("t")
        t.put(f"  %count = load i64, ptr {t.new(f'getelementptr i64, ptr %dims, i64 {at}')}")
    at = len(kernel.arguments)
    for k, a in enumerate(kernel.arguments):
        t.put(f"  %p_{a.name} = load ptr, ptr {t.new(f'getelementptr ptr, ptr %args, i64 {k}')}")
        t.put(f"  %s_{a.name} = load i64, ptr {t.new(f'getelementptr i64, ptr %steps, i64 {k}')}")
        for d in range(len(a.shape)):
            t.put(f"  %c_{a.name}_{d} = load i64, ptr {t.new(f'getelementptr i64, ptr %steps, i64 {at}')}")
            at += 1
