"""NumPy's inner loop around a body: copies of samples to blocks of vectors and back.

NumPy passes pointers, the number of samples, the stride between samples of each array, and the strides of its core
dimensions. If the core of every array is dense, whole blocks are loaded row by row and transposed in registers. Other
layouts, and the remainder, are copied entry by entry with the last sample repeated.
"""

from __future__ import annotations

import math

from . import vector_math
from .flags import clear_flags
from .memory import release, reserve
from .writer import Text


def kernel(program, lanes, w, angles: list[int], slots: list[int]) -> str:
    """Return the assembly of `kernel(char **args, npy_intp *dims, npy_intp *steps, void *bad)`.

    `bad` points to two 64-bit counts, of blocks with an input, and with any number, that is not finite. `angles` are
    the indices of bare angles in the block, which are reduced to one revolution before the body runs if they are
    large. `slots` has the index of the vector in the body's output block for each entry of the outputs.
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
    for k in range(len(arrays)):
        t.put(
            f"  %pp{k} = getelementptr ptr, ptr %args, i64 {k}",
            f"  %p{k} = load ptr, ptr %pp{k}",
            f"  %sp{k} = getelementptr i64, ptr %steps, i64 {k}",
            f"  %s{k} = load i64, ptr %sp{k}",
        )
    # Core strides follow, one per core dimension of each array; the fast path requires that all are dense.
    at, dense, cores = len(arrays), "true", []
    for k, a in enumerate(arrays):
        mine, expected = [], size
        for d in range(len(a.shape)):
            t.put(f"  %cp{k}_{d} = getelementptr i64, ptr %steps, i64 {at}", f"  %c{k}_{d} = load i64, ptr %cp{k}_{d}")
            mine.append(f"%c{k}_{d}")
            at += 1
        for d in reversed(range(len(a.shape))):
            if a.shape[d] > 1:
                ok = t.new(f"icmp eq i64 {mine[d]}, {expected}")
                dense = t.new(f"and i1 {dense}, {ok}")
            expected *= a.shape[d]
        cores.append(mine)
    t.put(
        f"  %whole = and i64 %n, -{L}",
        f"  %fast = select i1 {dense}, i64 %whole, i64 0",
        "  br label %head",
        "head:",
        f"  %i = phi i64 [ 0, %{'ready' if heap else 'entry'} ], [ %next, %after ]",
        "  %more = icmp slt i64 %i, %n",
        "  br i1 %more, label %choose, label %done",
        "choose:",
        f"  store {lanes.integers} zeroinitializer, ptr %top, align 64",
        f"  store {lanes.integers} zeroinitializer, ptr %top_out, align 64",
        "  %is_fast = icmp slt i64 %i, %fast",
        "  br i1 %is_fast, label %load_fast, label %load_slow",
        "load_fast:",
    )
    at = 0
    for k, a in enumerate(program.inputs):
        _load_rows(t, lanes, k, a.size, at)
        at += a.size
    t.put("  br label %compute", "load_slow:")
    at = 0
    for k, a in enumerate(program.inputs):
        _entry_by_entry(t, lanes, k, a.shape, cores[k], at, store=False)
        at += a.size
    scan(t, lanes, "%in", n_in, "%top")
    t.put("  br label %compute", "compute:")
    check_inputs(t, lanes)
    t.put("  call void @body(ptr %in, ptr %out)")
    t.put("  br i1 %is_fast, label %store_fast, label %store_slow", "store_fast:")
    at = 0
    for j, a in enumerate(program.outputs):
        _store_rows(t, lanes, len(program.inputs) + j, a.size, at)
        at += a.size
    t.put("  br label %stored", "store_slow:")
    at = 0
    for j, a in enumerate(program.outputs):
        k = len(program.inputs) + j
        _entry_by_entry(t, lanes, k, a.shape, cores[k], at, store=True)
        at += a.size
    scan(t, lanes, "%out", n_out, "%top_out")
    t.put("  br label %stored", "stored:")
    place = t.new("getelementptr i64, ptr %bad, i64 1")
    t.if_(_reaches(t, lanes, "%top_out", math.inf), lambda: t.new(f"atomicrmw add ptr {place}, i64 1 monotonic"))
    t.put("  br label %after", "after:", f"  %next = add i64 %i, {L}", "  br label %head", "done:")
    # Input that is not finite is reported by the caller, so NumPy must not warn about operations on it.
    changed = t.new(f"icmp ne i64 {t.new('load i64, ptr %bad')}, %seen")
    t.if_(changed, lambda: clear_flags(t))
    if heap:
        release(t)
    t.put("  ret void", "}")
    w.used |= t.used
    return t.text() + "\n" + reduce_angles(lanes, w, angles)


def _row(t, lanes, k: int, lane: int) -> str:
    """Return a pointer to the sample in a lane of array k."""
    index = t.new(f"add i64 %i, {lane}")
    return t.new(f"getelementptr i8, ptr %p{k}, i64 {t.new(f'mul i64 {index}, %s{k}')}")


def _mask(count: int, used: int) -> str:
    return "<" + ", ".join(f"i1 {'true' if j < used else 'false'}" for j in range(count)) + ">"


def _load_rows(t, lanes, k: int, n: int, at: int) -> None:
    """Load the rows of 8 (16) samples piece by piece, and transpose each piece into vectors."""
    V, L, size = lanes.vector, lanes.count, lanes.bits // 8
    rows = [_row(t, lanes, k, lane) for lane in range(L)]

    def piece(start: str, used: int) -> None:
        offset = t.new(f"mul i64 {start}, {size}")
        pieces = [_load_piece(t, lanes, t.new(f"getelementptr i8, ptr {row}, i64 {offset}"), used) for row in rows]
        first = t.new(f"add i64 {start}, {at}")
        columns = _transposed(t, lanes, pieces)[:used]
        _raise_top(t, lanes, "%top", columns)
        for j, column in enumerate(columns):
            p = t.new(f"getelementptr {V}, ptr %in, i64 {t.new(f'add i64 {first}, {j}')}")
            t.put(f"  store {V} {column}, ptr {p}, align 64")

    _pieces(t, n, L, piece)


def _store_rows(t, lanes, k: int, n: int, at: int) -> None:
    """Transpose pieces of the output back into rows and store them."""
    V, L, size = lanes.vector, lanes.count, lanes.bits // 8
    rows = [_row(t, lanes, k, lane) for lane in range(L)]

    def piece(start: str, used: int) -> None:
        first = t.new(f"add i64 {start}, {at}")
        columns = []
        for j in range(used):
            p = output_vector(t, lanes, t.new(f"add i64 {first}, {j}"))
            columns.append(t.new(f"load {V}, ptr {p}, align 64"))
        _raise_top(t, lanes, "%top_out", columns)
        columns += ["zeroinitializer"] * (L - used)
        offset = t.new(f"mul i64 {start}, {size}")
        for row, values in zip(rows, _transposed(t, lanes, columns), strict=True):
            _store_piece(t, lanes, t.new(f"getelementptr i8, ptr {row}, i64 {offset}"), values, used)

    _pieces(t, n, L, piece)


def output_vector(t, lanes, entry: str, slots: str = "slots") -> str:
    """Return a pointer to the vector of an entry of the outputs."""
    slot = t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr @{slots}, i64 {entry}')}")
    return t.new(f"getelementptr {lanes.vector}, ptr %out, i64 {slot}")


def _pieces(t, n: int, L: int, piece) -> None:
    """Run `piece(start, used)` for the whole pieces of a row, in a loop if there are several, and for the rest."""
    whole = n - n % L
    if whole == L:
        piece("0", L)
    elif whole:
        t.loop(whole, L, lambda start: piece(start, L))
    if n % L:
        piece(str(whole), n % L)


def _load_piece(t, lanes, p: str, used: int) -> str:
    """Return a vector with the first `used` entries from memory; no entry after them is accessed."""
    V, L, S, size = lanes.vector, lanes.count, lanes.scalar, lanes.bits // 8
    if used == 1:
        return t.new(f"insertelement {V} poison, {S} {t.new(f'load {S}, ptr {p}, align {size}')}, i32 0")
    if used == L:
        return t.new(f"load {V}, ptr {p}, align {size}")
    name = f"llvm.masked.load.v{L}f{lanes.bits}.p0"
    t.used.add(f"declare {V} @{name}(ptr, {lanes.mask}, {V})")
    return t.new(f"call {V} @{name}(ptr align {size} {p}, {lanes.mask} {_mask(L, used)}, {V} zeroinitializer)")


def _store_piece(t, lanes, p: str, values: str, used: int) -> None:
    """Store the first `used` entries of a vector; no entry after them is accessed."""
    V, L, S, size = lanes.vector, lanes.count, lanes.scalar, lanes.bits // 8
    if used == 1:
        t.put(f"  store {S} {t.new(f'extractelement {V} {values}, i32 0')}, ptr {p}, align {size}")
    elif used == L:
        t.put(f"  store {V} {values}, ptr {p}, align {size}")
    else:
        name = f"llvm.masked.store.v{L}f{lanes.bits}.p0"
        t.used.add(f"declare void @{name}({V}, ptr, {lanes.mask})")
        t.put(f"  call void @{name}({V} {values}, ptr align {size} {p}, {lanes.mask} {_mask(L, used)})")


def _transposed(t, lanes, rows: list[str]) -> list[str]:
    """Transpose a square of vectors by log2(L) rounds of two-way shuffles (a butterfly)."""
    V, L = lanes.vector, lanes.count
    rows = list(rows)
    step = 1
    while step < L:
        low = [(j if not j & step else L + j - step) for j in range(L)]
        high = [(j + step if not j & step else L + j) for j in range(L)]
        new = list(rows)
        for i in range(L):
            if not i & step:
                a, b = rows[i], rows[i + step]
                new[i] = t.new(f"shufflevector {V} {a}, {V} {b}, <{L} x i32> <{_ints(low)}>")
                new[i + step] = t.new(f"shufflevector {V} {a}, {V} {b}, <{L} x i32> <{_ints(high)}>")
        rows, step = new, step * 2
    return rows


def _ints(indices: list[int]) -> str:
    return ", ".join(f"i32 {j}" for j in indices)


def _entry_by_entry(t, lanes, k: int, shape, core: list[str], at: int, *, store: bool) -> None:
    """Copy an array with any strides; idle lanes read and write the last sample."""
    last = t.new("sub i64 %n, 1")

    def sample(lane: str) -> str:
        index = t.new(f"add i64 %i, {lane}")
        row = t.new(f"select i1 {t.new(f'icmp slt i64 {index}, %n')}, i64 {index}, i64 {last}")
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


def _raise_top(t, lanes, top: str, vectors: list[str]) -> None:
    """Write the maximum of the magnitudes of some vectors, and of the integers at `top`, to `top`.

    Without their sign, floats are ordered like their bit patterns as integers, infinity and NaN last. Comparing
    integers raises no floating-point flags, which NumPy would report.
    """
    ints, bits = lanes.integers, lanes.bits
    maximum = f"llvm.umax.v{lanes.count}i{bits}"
    t.used.add(f"declare {ints} @{maximum}({ints}, {ints})")
    known = t.new(f"load {ints}, ptr {top}, align 64")
    for x in vectors:
        size = t.new(
            f"and {ints} {t.new(f'bitcast {lanes.vector} {x} to {ints}')}, splat (i{bits} {2 ** (bits - 1) - 1})"
        )
        known = t.new(f"call {ints} @{maximum}({ints} {known}, {ints} {size})")
    t.put(f"  store {ints} {known}, ptr {top}, align 64")


def scan(t, lanes, block: str, count: int, top: str) -> None:
    """Write the largest magnitude of the vectors of a block to the integers at `top`."""

    def some(start: str, used: int) -> None:
        places = [
            t.new(f"getelementptr {lanes.vector}, ptr {block}, i64 {t.new(f'add i64 {start}, {k}')}")
            for k in range(used)
        ]
        _raise_top(t, lanes, top, [t.new(f"load {lanes.vector}, ptr {p}, align 64") for p in places])

    _pieces(t, count, 8, some)


def _reaches(t, lanes, top: str, limit: float) -> str:
    """Write whether the magnitude at `top` reaches a limit in any lane."""
    ints, L, bits = lanes.integers, lanes.count, lanes.bits
    sizes = t.new(f"load {ints}, ptr {top}, align 64")
    over = t.new(f"icmp uge {ints} {sizes}, splat (i{bits} {lanes.pattern(limit)})")
    return t.new(f"icmp ne i{L} {t.new(f'bitcast {lanes.mask} {over} to i{L}')}, 0")


def check_inputs(t, lanes, reduce: str = "reduce") -> None:
    """Increment both counts at %bad if an input of the block is not finite, and reduce large angles."""

    def unusual() -> None:
        one = t.new(f"zext i1 {_reaches(t, lanes, '%top', math.inf)} to i64")
        for place in ("%bad", t.new("getelementptr i64, ptr %bad, i64 1")):
            t.new(f"atomicrmw add ptr {place}, i64 {one} monotonic")
        t.put(f"  call void @{reduce}(ptr %in)")

    t.if_(_reaches(t, lanes, "%top", vector_math.LIMIT[lanes.bits]), unusual)


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
