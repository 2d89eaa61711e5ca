"""LLVM assembly of the crew: loops over samples that share their work with threads."""

from __future__ import annotations

from ..crew import MOST, TRIAL, Crew, Post, Share
from .crew_arrays import emit_arrays
from .crew_portions import Job, emit_portions
from .crew_threads import emit_threads
from .words import begin, double, ended, load, pointer, since, smaller, store, whole, word
from .writer import Text


def emit_crew(crew: Crew, dtype: str) -> str:
    """Return the module's assembly, which is the same for all dtypes of kernels."""
    declared = (
        "declare i32 @kt_sem_wait(ptr)", "declare i32 @kt_sem_post(ptr)", "declare i32 @kt_clock_gettime(i32, ptr)",
        "declare i32 @kt_fegetenv(ptr)", "declare i32 @kt_fesetenv(ptr)", "declare i32 @kt_feraiseexcept(i32)",
        "declare i32 @kt_feclearexcept(i32)", "declare i32 @kt_fetestexcept(i32)",
        "declare i64 @llvm.smin.i64(i64, i64)", "declare i64 @llvm.smax.i64(i64, i64)",
    )  # fmt: skip
    return "\n".join([*declared, *emit_portions(), *emit_threads(), _share(), _loop(), *emit_arrays()])


def _share() -> str:
    """Write a function that runs a job of a number of rows, in other threads too if that pays."""
    t = begin("define internal void @share(ptr %share, ptr %job, i64 %rows)")
    t.put(f"  %used = alloca [{MOST} x ptr]", "  %count = alloca i64", "  store i64 0, ptr %count")
    for mine, theirs in ((Job.KERNEL, Share.KERNEL), (Job.DATA, Share.DATA), (Job.ARRAYS, Share.ARRAYS)):
        store(t, "%job", mine, load(t, "%share", theirs))
    for place in (Job.NEXT, Job.FLAGS):
        store(t, "%job", place, "0")
    known = t.new(f"fcmp une double {_pace(t)}, 0.0")
    t.either(known, lambda: _divide(t), lambda: _try(t))
    pace, samples = _pace(t), t.new(f"mul i64 {load(t, '%job', Job.INNER)}, %rows")
    paid = whole(t, f"fdiv double {t.new(f'fmul double {pace}, {double(t, samples)}')}, {_number(t, Share.LEAST)}")
    others = t.new(f"sub i64 {smaller(t, smaller(t, paid, load(t, '%share', Share.THREADS)), _portions_left(t))}, 1")
    t.if_(t.new(f"icmp sgt i64 {others}, 0"), lambda: _offer_all(t, others))
    start = t.new("call i64 @now()")
    done = t.new("call i64 @portions(ptr %job)")
    t.if_(t.new(f"icmp sgt i64 {done}, 0"), lambda: _learn(t, start, done))
    count = t.new("load i64, ptr %count")

    def settle(k: str) -> None:
        t.put(f"  call void @settle(ptr {pointer(t, load(t, '%used', k))})")

    t.if_(t.new(f"icmp sgt i64 {count}, 0"), lambda: t.loop(count, 1, settle))
    flags = t.new(f"trunc i64 {load(t, '%job', Job.FLAGS)} to i32")
    t.if_(t.new(f"icmp ne i32 {flags}, 0"), lambda: t.new(f"call i32 @kt_feraiseexcept(i32 {flags})"))
    t.put("  ret void")
    return ended(t)


def _divide(t: Text) -> None:
    """Write the division into portions of about the same time, of whole grains."""
    grain, samples = load(t, "%share", Share.GRAIN), _samples(t)
    long = _least_streamed(t)
    wanted = t.new(f"call i64 @llvm.smax.i64(i64 {long}, i64 {t.new(f'fptosi double {samples} to i64')})")
    grains = t.new(f"sdiv i64 {wanted}, {grain}")
    piece = t.new(f"mul i64 {t.new(f'call i64 @llvm.smax.i64(i64 1, i64 {grains})')}, {grain}")
    t.put(f"  call void @plan(ptr %job, i64 %rows, i64 {piece}, double {samples})")


def _least_streamed(t: Text) -> str:
    """Write the samples of a portion whose results bypass the caches, 0 if those of the whole batch do not."""
    streamed = load(t, "%share", Share.STREAMED)
    many = t.new(f"icmp sge i64 {load(t, '%job', Job.INNER)}, {t.new(f'mul i64 {streamed}, 2')}")
    return t.new(f"select i1 {many}, i64 {streamed}, i64 0")


def _try(t: Text) -> None:
    """Write the first measurement, by the first portion."""
    t.put(f"  call void @plan(ptr %job, i64 %rows, i64 {TRIAL}, double 1.0)")
    start = t.new("call i64 @now()")
    _learn(t, start, t.new("call i64 @portion(ptr %job, i64 0)"))
    t.put(f"  call void @plan(ptr %job, i64 %rows, i64 {TRIAL}, double {_samples(t)})")
    store(t, "%job", Job.NEXT, "1")


def _learn(t: Text, start: str, samples: str) -> None:
    """Write the measurement of the time per sample: the shortest one counts, because a call may be interrupted."""
    taken = t.new(f"call i64 @llvm.smax.i64(i64 1, i64 {since(t, start)})")
    found, pace = t.new(f"fdiv double {double(t, taken)}, {double(t, samples)}"), _pace(t)
    less = t.new(f"fcmp olt double {found}, {pace}")
    better = t.new(f"or i1 {less}, {t.new(f'fcmp oeq double {pace}, 0.0')}")
    t.if_(better, lambda: t.put(f"  store double {found}, ptr {word(t, '%share', Share.PACE)}"))


def _offer_all(t: Text, others: str) -> None:
    """Write the offers to as many threads as are free, at most `others`."""
    t.new(f"call i32 @kt_fegetenv(ptr {word(t, '%job', Job.ENVIRONMENT)})")
    size = t.new(f"load atomic i64, ptr {pointer(t, load(t, '%share', Share.COUNT))} acquire, align 8")
    posts = pointer(t, load(t, "%share", Share.POSTS))

    def offer(k: str) -> None:
        count = t.new("load i64, ptr %count")

        def one() -> None:
            post = t.new(f"getelementptr [{Post.SIZE:d} x i64], ptr {posts}, i64 {k}")
            taken = t.new(f"zext i1 {t.new(f'call i1 @offer(ptr {post}, ptr %job)')} to i64")
            store(t, "%used", count, t.new(f"ptrtoint ptr {post} to i64"))
            t.put(f"  store i64 {t.new(f'add i64 {count}, {taken}')}, ptr %count")

        t.if_(t.new(f"icmp slt i64 {count}, {others}"), one)

    t.if_(t.new(f"icmp sgt i64 {size}, 0"), lambda: t.loop(size, 1, offer))


def _loop() -> str:
    """Write the inner loop of a gufunc: the kernel itself on few samples."""
    t = begin("define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %share)")
    t.put(f"  %job = alloca [{Job.SIZE:d} x i64], align 64")
    n, pace = t.new("load i64, ptr %dims"), _pace(t)
    least = t.new(f"fmul double 2.0, {_number(t, Share.LEAST)}")
    brief = t.new(f"fcmp olt double {t.new(f'fmul double {pace}, {double(t, n)}')}, {least}")
    brief = t.new(f"and i1 {brief}, {t.new(f'fcmp une double {pace}, 0.0')}")
    few = t.new(f"icmp sle i64 {n}, {load(t, '%share', Share.GRAIN)}")
    kernel, data = (pointer(t, load(t, "%share", x)) for x in (Share.KERNEL, Share.DATA))

    def share() -> None:
        store(t, "%job", Job.POINTERS, t.new("ptrtoint ptr %args to i64"))
        store(t, "%job", Job.STEPS, t.new("ptrtoint ptr %steps to i64"))
        store(t, "%job", Job.AXES, "0")
        store(t, "%job", Job.INNER, n)
        t.put("  call void @share(ptr %share, ptr %job, i64 1)")

    alone = f"  call void {kernel}(ptr %args, ptr %dims, ptr %steps, ptr {data})"
    t.either(t.new(f"or i1 {brief}, {few}"), lambda: t.put(alone), share)
    t.put("  ret void")
    return ended(t)


def _number(t: Text, place: Share) -> str:
    return t.new(f"load double, ptr {word(t, '%share', place)}")


def _pace(t: Text) -> str:
    return _number(t, Share.PACE)


def _samples(t: Text) -> str:
    """Write the number of samples that take the time of a portion."""
    return t.new(f"fdiv double {_number(t, Share.PORTION)}, {_pace(t)}")


def _portions_left(t: Text) -> str:
    return t.new(f"sub i64 {load(t, '%job', Job.PORTIONS)}, {load(t, '%job', Job.NEXT)}")
