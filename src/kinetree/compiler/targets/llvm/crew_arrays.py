"""LLVM assembly of the loop over NumPy arrays with several leading axes, which it shares with the crew."""

from __future__ import annotations

from ..crew import ARRAYS, CORE, STEPS, Share
from ..entry import ALIGNED, MAY_WRITE, Offset
from .crew_portions import Job
from .flags import all_flags, reported_flags
from .words import begin, ended, field, load, pointer, smaller, store, word


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
    return ended(t)


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
    return ended(t)


def _sweep() -> str:
    """Write the loop over arrays; it returns -1 without any result if NumPy must prepare the arrays."""
    t = begin("define i64 @sweep(ptr %share, ptr %arrays, i64 %axes)")
    t.put(
        f"  %job = alloca [{Job.SIZE:d} x i64], align 64",
        f"  %pointers = alloca [{ARRAYS} x i64]",
        f"  %strides = alloca [{ARRAYS} x i64]",
        f"  %bounds = alloca [{2 * ARRAYS} x i64]",
        f"  %steps = alloca [{STEPS} x i64]",
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
    return ended(t)
