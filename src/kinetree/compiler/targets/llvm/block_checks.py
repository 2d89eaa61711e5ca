"""Checks of blocks of vectors: numbers that are not finite, and angles beyond the range of the sine's polynomials."""

from __future__ import annotations

import math

from . import vector_math


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
