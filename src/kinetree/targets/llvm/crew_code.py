"""LLVM assembly of the crew: loops over samples that share their work with threads."""

from __future__ import annotations

from ..abi import ALIGNED, CORE, CREW_ARRAYS, CREW_STEPS, MAY_WRITE, MOST, TRIAL, Crew, Offset, Post, Share
from .crew_threads import Job, emit_portions, emit_threads
from .writer import (
    Text,
    all_flags,
    begin,
    double,
    field,
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

# --- LLVM assembly of the loop over NumPy arrays with several leading axes, which it shares with the crew ---


def emit_arrays() -> tuple[str, ...]:
    """Return the assembly of the functions @fits, @apart and @sweep."""
    return _fits(), _apart(), _sweep()


def _fits() -> str:
    """Write a function that returns whether array k can be read or written, and stores the bounds of its memory."""
    t = begin("define internal i1 @fits(ptr %share, ptr %array, i64 %k, ptr %lead, i64 %axes, i32 %flags, ptr %bounds)")
    for offset, place in ((Offset.TYPE, Share.ARRAY_TYPE), (Offset.DTYPE, Share.DTYPE)):
        t.require(t.new(f"icmp eq i64 {field(t, '%array', offset, 'i64')}, {load(t, '%share', place)}"), "no")
    own = t.new(f"and i32 {field(t, '%array', Offset.FLAGS, 'i32')}, %flags")
    t.require(t.new(f"icmp eq i32 {own}, %flags"), "no")
    core = t.new(f"getelementptr [{CORE} x i64], ptr {pointer(t, load(t, '%share', Share.CORES))}, i64 %k")
    dimensions = t.new(f"sext i32 {field(t, '%array', Offset.NDIM, 'i32')} to i64")
    t.require(t.new(f"icmp eq i64 {dimensions}, {t.new(f'add i64 %axes, {load(t, core, 0)}')}"), "no")
    shape, strides = field(t, "%array", Offset.SHAPE), field(t, "%array", Offset.STRIDES)
    expected = word(t, core, 1)
    for place in (0, 1):
        store(t, "%bounds", place, field(t, "%array", Offset.DATA, "i64"))

    def along(d: str) -> None:
        n, leads = load(t, shape, d), t.new(f"icmp slt i64 {d}, %axes")
        rest = word(t, expected, t.new(f"sub i64 {d}, %axes"))
        wanted = t.new(f"select i1 {leads}, ptr {word(t, '%lead', d)}, ptr {rest}")
        t.require(t.new(f"icmp eq i64 {n}, {t.new(f'load i64, ptr {wanted}')}"), "no")
        t.require(t.new(f"icmp sgt i64 {n}, 0"), "no")
        span = t.new(f"mul i64 {t.new(f'sub i64 {n}, 1')}, {load(t, strides, d)}")
        lower, upper = smaller(t, "0", span), t.new(f"call i64 @llvm.smax.i64(i64 0, i64 {span})")
        for place, more in ((0, lower), (1, upper)):
            store(t, "%bounds", place, t.new(f"add i64 {load(t, '%bounds', place)}, {more}"))

    t.loop(dimensions, 1, along)
    store(t, "%bounds", 1, t.new(f"add i64 {load(t, '%bounds', 1)}, {load(t, '%share', Share.ITEM)}"))
    t.put("  ret i1 true", "no:", "  ret i1 false")
    return finish(t)


def _apart() -> str:
    """Write a function that returns whether the bounds of a result are apart from those of all inputs."""
    t = begin("define internal i1 @apart(ptr %share, ptr %bounds, ptr %result)")
    first, last = load(t, "%result", 0), load(t, "%result", 1)

    def one(k: str) -> None:
        other = t.new(f"getelementptr [2 x i64], ptr %bounds, i64 {k}")
        before = t.new(f"icmp ule i64 {last}, {load(t, other, 0)}")
        after = t.new(f"icmp ule i64 {load(t, other, 1)}, {first}")
        t.require(t.new(f"or i1 {before}, {after}"), "no")

    t.loop(load(t, "%share", Share.INPUTS), 1, one)
    t.put("  ret i1 true", "no:", "  ret i1 false")
    return finish(t)


def _sweep() -> str:
    """Write the loop over arrays; it returns -1 without any result if NumPy must prepare the arrays."""
    t = begin("define i64 @sweep(ptr %share, ptr %arrays, i64 %axes)")
    t.put(
        f"  %job = alloca [{Job.SIZE:d} x i64], align 64",
        f"  %pointers = alloca [{CREW_ARRAYS} x i64]",
        f"  %strides = alloca [{CREW_ARRAYS} x i64]",
        f"  %bounds = alloca [{2 * CREW_ARRAYS} x i64]",
        f"  %steps = alloca [{CREW_STEPS} x i64]",
        "  %next = alloca i64",
        "  %rows = alloca i64",
        "  store i64 1, ptr %rows",
    )
    count, inputs = load(t, "%share", Share.ARRAYS), load(t, "%share", Share.INPUTS)
    t.put(f"  store i64 {count}, ptr %next")
    last = t.new("sub i64 %axes, 1")
    # The first result has the leading axes of the batch.
    lead = field(t, pointer(t, load(t, "%arrays", inputs)), Offset.SHAPE)

    def take(k: str) -> None:
        array = pointer(t, load(t, "%arrays", k))
        bounds = t.new(f"getelementptr [2 x i64], ptr %bounds, i64 {k}")
        result = t.new(f"icmp sge i64 {k}, {inputs}")
        flags = t.new(f"select i1 {result}, i32 {ALIGNED | MAY_WRITE}, i32 {ALIGNED}")
        given = f"ptr %share, ptr {array}, i64 {k}, ptr {lead}, i64 %axes, i32 {flags}, ptr {bounds}"
        t.require(t.new(f"call i1 @fits({given})"), "unsuitable")
        store(t, "%pointers", k, field(t, array, Offset.DATA, "i64"))
        own = field(t, array, Offset.STRIDES)
        store(t, "%strides", k, t.new(f"ptrtoint ptr {own} to i64"))
        store(t, "%steps", k, load(t, own, last))
        dimensions = t.new(f"sext i32 {field(t, array, Offset.NDIM, 'i32')} to i64")
        core = t.new(f"sub i64 {dimensions}, %axes")

        def core_step(d: str) -> None:
            at = t.new("load i64, ptr %next")
            store(t, "%steps", at, load(t, own, t.new(f"add i64 %axes, {d}")))
            t.put(f"  store i64 {t.new(f'add i64 {at}, 1')}, ptr %next")

        t.if_(t.new(f"icmp sgt i64 {core}, 0"), lambda: t.loop(core, 1, core_step))

    def check(k: str) -> None:
        result = t.new(f"getelementptr [2 x i64], ptr %bounds, i64 {t.new(f'add i64 {inputs}, {k}')}")
        t.require(t.new(f"call i1 @apart(ptr %share, ptr %bounds, ptr {result})"), "unsuitable")

    def multiply(d: str) -> None:
        rows = t.new("load i64, ptr %rows")
        t.put(f"  store i64 {t.new(f'mul i64 {rows}, {load(t, lead, d)}')}, ptr %rows")

    t.loop(count, 1, take)
    t.loop(t.new(f"sub i64 {count}, {inputs}"), 1, check)
    t.if_(t.new(f"icmp sgt i64 {last}, 0"), lambda: t.loop(last, 1, multiply))
    for place, value in (
        (Job.POINTERS, t.new("ptrtoint ptr %pointers to i64")),
        (Job.STEPS, t.new("ptrtoint ptr %steps to i64")),
        (Job.STRIDES, t.new("ptrtoint ptr %strides to i64")),
        (Job.AXES, last),
        (Job.SHAPE, t.new(f"ptrtoint ptr {lead} to i64")),
        (Job.INNER, load(t, lead, last)),
    ):
        store(t, "%job", place, value)
    t.new(f"call i32 @kt_feclearexcept(i32 {all_flags()})")
    t.put(f"  call void @share(ptr %share, ptr %job, i64 {t.new('load i64, ptr %rows')})")
    flags = t.new(f"call i32 @kt_fetestexcept(i32 {reported_flags()})")
    t.put(f"  ret i64 {t.new(f'zext i32 {flags} to i64')}", "unsuitable:", "  ret i64 -1")
    return finish(t)


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
    return finish(t)


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
    return finish(t)


def _number(t: Text, place: Share) -> str:
    return t.new(f"load double, ptr {word(t, '%share', place)}")


def _pace(t: Text) -> str:
    return _number(t, Share.PACE)


def _samples(t: Text) -> str:
    """Write the number of samples that take the time of a portion."""
    return t.new(f"fdiv double {_number(t, Share.PORTION)}, {_pace(t)}")


def _portions_left(t: Text) -> str:
    return t.new(f"sub i64 {load(t, '%job', Job.PORTIONS)}, {load(t, '%job', Job.NEXT)}")
