"""Copies of samples to a workspace and back, for any strides, and the test for numbers that are not finite."""

from __future__ import annotations

import math
from collections.abc import Callable

from .dense_rows import transposed
from .number_types import Lanes
from .rolled_context import Module, vector_at
from .writer import Text

SIZES = ("d0", "d1", "d2")
STRIDES = ("s0", "s1", "s2")


def bring_function(lanes: Lanes, wide: Lanes, module: Module, *, store: bool) -> None:
    """Write the function that copies an array with up to three core dimensions to the workspace, or back from it.

    `%p` points to the first of %valid samples, `%step` is the stride between samples. Idle lanes read and write the
    last sample.
    """
    t = Text()
    L, size = lanes.count, lanes.bits // 8
    dense, expected = "true", str(size)
    for d, s in zip(reversed(SIZES), reversed(STRIDES), strict=True):
        fits = t.new(f"icmp eq i64 %{s}, {expected}")
        flat = t.new(f"icmp eq i64 %{d}, 1")
        dense = t.new(f"and i1 {dense}, {t.new(f'or i1 {fits}, {flat}')}")
        expected = t.new(f"mul i64 {expected}, %{d}")
    last = t.new("sub i64 %valid, 1")
    total = t.new(f"sdiv i64 {expected}, {size}")
    t.put(f"  br i1 {dense}, label %fast, label %slow", "slow:")
    _by_strides(t, lanes, last, store)
    t.put("  ret void", "fast:")
    rows = []
    for lane in range(L):
        index = t.new(f"select i1 {t.new(f'icmp slt i64 {lane}, %valid')}, i64 {lane}, i64 {last}")
        rows.append(t.new(f"getelementptr i8, ptr %p, i64 {t.new(f'mul i64 {index}, %step')}"))
    _dense(t, lanes, wide, rows, total, store)
    t.put("  ret void")
    arguments = ", ".join(f"i64 %{x}" for x in (*SIZES, *STRIDES))
    name = "send" if store else "bring"
    module.add(f"internal void @{name}{L}(ptr %p, i64 %step, i64 %valid, {arguments}, ptr %block) noinline", t)


def _dense(t: Text, lanes: Lanes, wide: Lanes, rows: list[str], total: str, store: bool) -> None:
    """Copy dense rows: square blocks are transposed, the rest is copied entry by entry."""
    S, size, W = lanes.scalar, lanes.bits // 8, wide.vector

    def at(row: str, k: str) -> str:
        return t.new(f"getelementptr {S}, ptr {row}, i64 {k}")

    def square(start: str) -> None:
        k = t.new(f"mul i64 {start}, {wide.count}")
        if lanes.count == 1:
            pair = at(rows[0], k), at("%block", k)
            source, target = reversed(pair) if store else pair
            t.put(f"  store {W} {t.new(f'load {W}, ptr {source}, align {size}')}, ptr {target}, align {size}")
            return
        places = [vector_at(t, lanes, "%block", t.new(f"add i64 {k}, {j}")) for j in range(lanes.count)]
        ends = [at(row, k) for row in rows]
        sources, targets = (places, ends) if store else (ends, places)
        align = (64, size) if store else (size, 64)
        pieces = [t.new(f"load {W}, ptr {p}, align {align[0]}") for p in sources]
        for p, x in zip(targets, transposed(t, lanes, pieces), strict=True):
            t.put(f"  store {W} {x}, ptr {p}, align {align[1]}")

    def one(k: str) -> None:
        for lane, row in enumerate(rows):
            pair = at(row, k), t.new(f"getelementptr {S}, ptr {vector_at(t, lanes, '%block', k)}, i64 {lane}")
            source, target = reversed(pair) if store else pair
            t.put(f"  store {S} {t.new(f'load {S}, ptr {source}, align {size}')}, ptr {target}, align {size}")

    squares = t.new(f"sdiv i64 {total}, {wide.count}")
    t.if_(t.new(f"icmp sgt i64 {squares}, 0"), lambda: t.loop(squares, 1, square))
    done = t.new(f"mul i64 {squares}, {wide.count}")
    rest = t.new(f"sub i64 {total}, {done}")
    t.if_(t.new(f"icmp sgt i64 {rest}, 0"), lambda: t.loop(rest, 1, lambda k: one(t.new(f"add i64 {done}, {k}"))))


def _by_strides(t: Text, lanes: Lanes, last: str, store: bool) -> None:
    """Copy rows with any strides, entry by entry."""
    S, size = lanes.scalar, lanes.bits // 8

    def moved(p: str, stride: str, k: str) -> str:
        return t.new(f"getelementptr i8, ptr {p}, i64 {t.new(f'mul i64 {stride}, {k}')}")

    def one_lane(lane: str) -> None:
        index = t.new(f"select i1 {t.new(f'icmp slt i64 {lane}, %valid')}, i64 {lane}, i64 {last}")

        def entries(d: int, p: str, flat: str) -> None:
            if d < len(SIZES):
                inner: Callable[[str], None] = lambda k: entries(  # noqa: E731
                    d + 1, moved(p, f"%{STRIDES[d]}", k), t.new(f"add i64 {t.new(f'mul i64 {flat}, %{SIZES[d]}')}, {k}")
                )
                t.loop(f"%{SIZES[d]}", 1, inner)
                return
            pair = p, t.new(f"getelementptr {S}, ptr {vector_at(t, lanes, '%block', flat)}, i64 {lane}")
            source, target = reversed(pair) if store else pair
            t.put(f"  store {S} {t.new(f'load {S}, ptr {source}, align {size}')}, ptr {target}, align {size}")

        entries(0, moved("%p", "%step", index), "0")

    t.loop(lanes.count, 1, one_lane)


def scan_function(wide: Lanes, module: Module) -> None:
    """Write the function that returns whether vectors of 64 bytes contain a number that is not finite.

    Without their sign, floats are ordered like their bit patterns as integers, infinity and NaN last. Comparing
    integers raises no floating-point flags, which NumPy would report.
    """
    t = Text()
    ints, bits, L = wide.integers, wide.bits, wide.count
    maximum = f"llvm.umax.v{L}i{bits}"
    t.used.add(f"declare {ints} @{maximum}({ints}, {ints})")
    t.put(f"  %top = alloca {ints}, align 64", f"  store {ints} zeroinitializer, ptr %top, align 64")

    def look(k: str) -> None:
        x = t.new(f"load {ints}, ptr {vector_at(t, wide, '%p', k)}, align 64")
        size = t.new(f"and {ints} {x}, splat (i{bits} {2 ** (bits - 1) - 1})")
        top = t.new(f"call {ints} @{maximum}({ints} {t.new(f'load {ints}, ptr %top, align 64')}, {ints} {size})")
        t.put(f"  store {ints} {top}, ptr %top, align 64")

    t.loop("%count", 1, look)
    over = t.new(
        f"icmp uge {ints} {t.new(f'load {ints}, ptr %top, align 64')}, splat (i{bits} {wide.pattern(math.inf)})"
    )
    some = t.new(f"icmp ne i{L} {t.new(f'bitcast {wide.mask} {over} to i{L}')}, 0")
    t.put(f"  ret i1 {some}")
    module.add("internal i1 @scan(ptr %p, i64 %count) noinline", t)
