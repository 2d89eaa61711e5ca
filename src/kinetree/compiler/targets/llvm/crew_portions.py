"""LLVM assembly of the portions of a batch: a job, its division, and the loop that takes the next portions of it."""

from __future__ import annotations

from enum import IntEnum, auto

from ..crew import ARRAYS
from .words import begin, double, ended, load, pointer, smaller, store, whole, word


class Job(IntEnum):
    """The places in a job, of 8 bytes each: a kernel and its arrays, and the next portion."""

    KERNEL = 0
    DATA = auto()
    ARRAYS = auto()
    POINTERS = auto()  # of the first sample
    STEPS = auto()  # the third argument of the kernel
    AXES = auto()  # that are before the last one
    SHAPE = auto()
    STRIDES = auto()  # per array, the address of its strides along the axes
    INNER = auto()  # samples along the last axis
    PIECE = auto()  # samples of a portion
    PIECES = auto()  # portions along the last axis
    PORTIONS = auto()
    GRAB = auto()  # portions that are taken at once
    NEXT = 16  # the first portion that nobody has taken, in a cache line of its own
    FLAGS = 24
    ENVIRONMENT = 32  # fenv_t of the caller, at most 64 bytes
    SIZE = 40


def _portion() -> str:
    """Write a function that runs the kernel on one portion, and returns its number of samples."""
    t = begin("define internal i64 @portion(ptr %job, i64 %index)")
    t.put(f"  %place = alloca [{ARRAYS} x ptr]", "  %n = alloca i64", "  %rest = alloca i64")
    arrays, steps, axes = (load(t, "%job", x) for x in (Job.ARRAYS, Job.STEPS, Job.AXES))
    inner, piece, pieces = (load(t, "%job", x) for x in (Job.INNER, Job.PIECE, Job.PIECES))
    steps, pointers = pointer(t, steps), pointer(t, load(t, "%job", Job.POINTERS))
    first = t.new(f"mul i64 {t.new(f'urem i64 %index, {pieces}')}, {piece}")
    t.put(f"  store i64 {smaller(t, piece, t.new(f'sub i64 {inner}, {first}'))}, ptr %n")
    t.put(f"  store i64 {t.new(f'udiv i64 %index, {pieces}')}, ptr %rest")

    def move(k: str, count: str, step: str) -> None:
        store(t, "%place", k, t.new(f"add i64 {load(t, '%place', k)}, {t.new(f'mul i64 {count}, {step}')}"))

    def start(k: str) -> None:
        store(t, "%place", k, load(t, pointers, k))
        move(k, first, load(t, steps, k))

    def along(d: str) -> None:
        axis = t.new(f"sub i64 {t.new(f'sub i64 {axes}, 1')}, {d}")
        length, rest = load(t, pointer(t, load(t, "%job", Job.SHAPE)), axis), t.new("load i64, ptr %rest")
        at = t.new(f"urem i64 {rest}, {length}")
        t.put(f"  store i64 {t.new(f'udiv i64 {rest}, {length}')}, ptr %rest")
        tables = pointer(t, load(t, "%job", Job.STRIDES))
        t.loop(arrays, 1, lambda k: move(k, at, load(t, pointer(t, load(t, tables, k)), axis)))

    t.loop(arrays, 1, start)
    t.if_(t.new(f"icmp sgt i64 {axes}, 0"), lambda: t.loop(axes, 1, along))
    kernel, data = (pointer(t, load(t, "%job", x)) for x in (Job.KERNEL, Job.DATA))
    t.put(f"  call void {kernel}(ptr %place, ptr %n, ptr {steps}, ptr {data})")
    t.put(f"  ret i64 {t.new('load i64, ptr %n')}")
    return ended(t)


def _portions() -> str:
    """Write a function that runs portions until none is left, and returns their number of samples."""
    t = begin("define internal i64 @portions(ptr %job)")
    t.put("  %at = alloca i64", "  %end = alloca i64", "  %done = alloca i64", "  store i64 0, ptr %done")
    portions, grab = load(t, "%job", Job.PORTIONS), load(t, "%job", Job.GRAB)

    def taken() -> str:
        at = t.new(f"atomicrmw add ptr {word(t, '%job', Job.NEXT)}, i64 {grab} monotonic")
        t.put(f"  store i64 {at}, ptr %at")
        t.put(f"  store i64 {smaller(t, portions, t.new(f'add i64 {at}, {grab}'))}, ptr %end")
        return t.new(f"icmp slt i64 {at}, {portions}")

    def run() -> str:
        at = t.new("load i64, ptr %at")
        n = t.new(f"call i64 @portion(ptr %job, i64 {at})")
        done = t.new("load i64, ptr %done")
        t.put(f"  store i64 {t.new(f'add i64 {done}, {n}')}, ptr %done")
        after = t.new(f"add i64 {at}, 1")
        t.put(f"  store i64 {after}, ptr %at")
        return t.new(f"icmp slt i64 {after}, {t.new('load i64, ptr %end')}")

    t.while_(taken, lambda: t.repeat(run))
    t.put(f"  ret i64 {t.new('load i64, ptr %done')}")
    return ended(t)


def _plan() -> str:
    """Write a function that divides a job of some rows into portions; `grabbed` samples are taken at once."""
    t = begin("define internal void @plan(ptr %job, i64 %rows, i64 %piece, double %grabbed)")
    inner = load(t, "%job", Job.INNER)
    piece = smaller(t, inner, "%piece")
    rounded = t.new(f"add i64 {inner}, {t.new(f'sub i64 {piece}, 1')}")
    pieces = t.new(f"udiv i64 {rounded}, {piece}")
    grab = whole(t, f"fdiv double %grabbed, {double(t, piece)}")
    for place, value in (
        (Job.PIECE, piece),
        (Job.PIECES, pieces),
        (Job.PORTIONS, t.new(f"mul i64 {pieces}, %rows")),
        (Job.GRAB, t.new(f"call i64 @llvm.smax.i64(i64 1, i64 {grab})")),
    ):
        store(t, "%job", place, value)
    t.put("  ret void")
    return ended(t)


def emit_portions() -> tuple[str, ...]:
    """Return the assembly of the functions @portion, @portions and @plan."""
    return _portion(), _portions(), _plan()
