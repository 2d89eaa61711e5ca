"""LLVM assembly of the threads of the crew: they wait for offers, at first without sleep, and take portions of jobs."""

from __future__ import annotations

import platform

from ..crew import SPIN, Post, State
from .crew_portions import Job
from .flags import all_flags, reported_flags
from .words import begin, ended, load, pointer, since, store, word
from .writer import Text

LIBRARY = ("sem_wait", "sem_post", "clock_gettime", "fegetenv", "fesetenv", "feraiseexcept")
"""The functions of the C library that only this code calls."""

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
    return ended(t)


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
    return ended(t)


def _offer() -> str:
    """Write a function that offers a job to a thread, unless another caller uses it; it returns whether it did."""
    t = begin("define internal i1 @offer(ptr %post, ptr %job)")
    t.require(_changed(t, Post.OWNER, 0, 1), "used")
    store(t, "%post", Post.JOB, t.new("ptrtoint ptr %job to i64"))
    before = t.new(f"atomicrmw xchg ptr {word(t, '%post', Post.STATE)}, i64 {State.OFFERED:d} seq_cst")
    wake = word(t, "%post", Post.WAKE)
    t.if_(t.new(f"icmp eq i64 {before}, {State.SLEEPING:d}"), lambda: t.new(f"call i32 @kt_sem_post(ptr {wake})"))
    t.put("  ret i1 true", "used:", "  ret i1 false")
    return ended(t)


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
    return ended(t)


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
