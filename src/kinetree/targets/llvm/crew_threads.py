"""LLVM assembly of the threads of the crew: they wait for offers, at first without sleep, and take portions of jobs."""

from __future__ import annotations

import platform
from enum import IntEnum, auto

from ..abi import CREW_ARRAYS, SPIN, Post, State
from .writer import (
    Text,
    all_flags,
    begin,
    double,
    finish,
    load,
    pointer,
    reported_flags,
    since,
    smaller,
    store,
    whole,
    word,
)

# --- LLVM assembly of the portions of a batch: a job, its division, and the loop that takes the next portions of it.


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
    t.put(f"  %place = alloca [{CREW_ARRAYS} x ptr]", "  %n = alloca i64", "  %rest = alloca i64")
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
    return finish(t)


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
    return finish(t)


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
    return finish(t)


def emit_portions() -> tuple[str, ...]:
    """Return the assembly of the functions @portion, @portions and @plan."""
    return _portion(), _portions(), _plan()


PAUSE = {"x86_64": ("@llvm.x86.sse2.pause", ""), "aarch64": ("@llvm.aarch64.hint", "i32 1")}
"""The instruction by machine with which a waiting loop leaves the core to its neighbor, as an intrinsic function."""


def _now() -> str:
    """Write a function that returns the time [ns]."""
    t = begin("define internal i64 @now()")
    t.put("  %time = alloca [2 x i64]")
    t.new("call i32 @kt_clock_gettime(i32 1, ptr %time)")  # CLOCK_MONOTONIC
    seconds, rest = load(t, "%time", 0), load(t, "%time", 1)
    whole_seconds = t.new(f"mul i64 {seconds}, {10**9}")
    t.put(f"  ret i64 {t.new(f'add i64 {rest}, {whole_seconds}')}")
    return finish(t)


def _pause() -> str:
    """Write a function that does nothing for a moment."""
    t = Text()
    name, given = PAUSE.get(platform.machine(), ("", ""))
    if name:
        t.put(f"declare void {name}({given.partition(' ')[0]})")
    t.put("define internal void @pause() {", *[f"  call void {name}({given})"] * bool(name), "  ret void", "}")
    return t.text()


def _work() -> str:
    """Write the function of a thread: wait for an offer, at first without sleep, take portions, report."""
    t = begin("define void @work(ptr %post)")
    t.put("  br label %idle", "idle:")
    _watch(t, "eq", State.OFFERED, "take")
    t.require(_changed(t, Post.STATE, State.IDLE, State.SLEEPING), "idle")
    _sleep(t, Post.WAKE)
    t.put("  br label %idle", "take:")
    t.require(_changed(t, Post.STATE, State.OFFERED, State.TAKEN), "idle")
    job = pointer(t, load(t, "%post", Post.JOB))
    t.new(f"call i32 @kt_fesetenv(ptr {word(t, job, Job.ENVIRONMENT)})")  # rounding, and numbers near zero
    t.new(f"call i32 @kt_feclearexcept(i32 {all_flags()})")
    t.new(f"call i64 @portions(ptr {job})")
    flags = t.new(f"zext i32 {t.new(f'call i32 @kt_fetestexcept(i32 {reported_flags()})')} to i64")
    t.new(f"atomicrmw or ptr {word(t, job, Job.FLAGS)}, i64 {flags} monotonic")
    before = t.new(f"atomicrmw xchg ptr {word(t, '%post', Post.STATE)}, i64 {State.IDLE:d} seq_cst")
    done = word(t, "%post", Post.DONE)
    t.if_(t.new(f"icmp eq i64 {before}, {State.AWAITED:d}"), lambda: t.new(f"call i32 @kt_sem_post(ptr {done})"))
    t.put("  br label %idle")
    return finish(t)


def _offer() -> str:
    """Write a function that offers a job to a thread, unless another caller uses it; it returns whether it did."""
    t = begin("define internal i1 @offer(ptr %post, ptr %job)")
    t.require(_changed(t, Post.OWNER, 0, 1), "used")
    store(t, "%post", Post.JOB, t.new("ptrtoint ptr %job to i64"))
    before = t.new(f"atomicrmw xchg ptr {word(t, '%post', Post.STATE)}, i64 {State.OFFERED:d} seq_cst")
    wake = word(t, "%post", Post.WAKE)
    t.if_(t.new(f"icmp eq i64 {before}, {State.SLEEPING:d}"), lambda: t.new(f"call i32 @kt_sem_post(ptr {wake})"))
    t.put("  ret i1 true", "used:", "  ret i1 false")
    return finish(t)


def _settle() -> str:
    """Write a function that withdraws an offer, or waits for the end of the work if it was taken."""
    t = begin("define internal void @settle(ptr %post)")
    withdrawn = _changed(t, Post.STATE, State.OFFERED, State.IDLE)
    t.put(f"  br i1 {withdrawn}, label %free, label %taken", "taken:")
    _watch(t, "ne", State.TAKEN, "free")
    t.require(_changed(t, Post.STATE, State.TAKEN, State.AWAITED), "free")
    _sleep(t, Post.DONE)
    t.put("  br label %free", "free:")
    t.put(f"  store atomic i64 0, ptr {word(t, '%post', Post.OWNER)} release, align 8", "  ret void")
    return finish(t)


def _watch(t: Text, comparison: str, state: State, label: str) -> None:
    """Write the wait for a state (eq) or its end (ne) without sleep, at most `SPIN`, and the branch to a label then."""
    start = t.new("call i64 @now()")

    def waiting() -> str:
        t.put("  call void @pause()")
        found = t.new(f"load atomic i64, ptr {word(t, '%post', Post.STATE)} acquire, align 8")
        reached = t.new(f"icmp {comparison} i64 {found}, {state:d}")
        t.put(f"  br i1 {reached}, label %{label}, label %wait", "wait:")
        return t.new(f"icmp slt i64 {since(t, start)}, {SPIN}")

    t.repeat(waiting)


def _changed(t: Text, place: Post, before: int, after: int) -> str:
    """Write an exchange of a word of a post, and whether it had the expected value."""
    pair = t.new(f"cmpxchg ptr {word(t, '%post', place)}, i64 {int(before)}, i64 {int(after)} seq_cst seq_cst")
    return t.new(f"extractvalue {{ i64, i1 }} {pair}, 1")


def _sleep(t: Text, place: Post) -> None:
    """Write the wait for a semaphore; signals interrupt it."""
    semaphore = word(t, "%post", place)
    t.repeat(lambda: t.new(f"icmp ne i32 {t.new(f'call i32 @kt_sem_wait(ptr {semaphore})')}, 0"))


def emit_threads() -> tuple[str, ...]:
    """Return the assembly of the functions @now, @pause, @work, @offer and @settle."""
    return _now(), _pause(), _work(), _offer(), _settle()
