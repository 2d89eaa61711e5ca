"""Checks of blocks of vectors: numbers that are not finite, and angles beyond the range of the sine's polynomials."""

from __future__ import annotations

import math
from collections.abc import Mapping

from . import vector_math
from .writer import Text


def raise_top(t, lanes, top: str, vectors: list[str]) -> None:
    """Write the maximum of the magnitudes of some vectors, and of the integers at `top`, to `top`.

    Without their sign, floats are ordered like their bit patterns as integers, infinity and NaN last. Comparing
    integers raises no floating-point flags, which NumPy would report.
    """
    ints, bits = lanes.integers, lanes.bits
    maximum = f"llvm.umax.v{lanes.count}i{bits}"
    t.used.add(f"declare {ints} @{maximum}({ints}, {ints})")
    plain = [t.new(f"bitcast {lanes.vector} {x} to {ints}") for x in vectors]
    sizes = [t.new(f"and {ints} {x}, splat (i{bits} {2 ** (bits - 1) - 1})") for x in plain]
    sizes.append(t.new(f"load {ints}, ptr {top}, align 64"))
    while len(sizes) > 1:  # by pairs, because a chain would wait for every maximum
        pairs = zip(sizes[::2], sizes[1::2], strict=False)
        larger = [t.new(f"call {ints} @{maximum}({ints} {a}, {ints} {b})") for a, b in pairs]
        sizes = [*larger, *sizes[2 * len(larger) :]]
    t.put(f"  store {ints} {sizes[0]}, ptr {top}, align 64")


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


def pieces(t, n: int, L: int, piece) -> None:
    """Run `piece(start, used)` for the whole pieces of a row, in a loop if there are several, and for the rest."""
    whole = n - n % L
    if whole == L:
        piece("0", L)
    elif whole:
        t.loop(whole, L, lambda start: piece(start, L))
    if n % L:
        piece(str(whole), n % L)


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
