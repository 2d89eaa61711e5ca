"""LLVM assembly of a RolledProgram: the same loops for one sample and for a vector of samples.

`kernel` is NumPy's inner loop. It divides a batch into blocks of as many samples as a vector holds, and runs a single
remaining sample by scalar code. The function of a block (`block<lanes>`) copies its rows to a workspace with one vector
per entry, computes sines and cosines of all coordinates, runs the loops and copies the results back. Products and sums
are fused here, not by LLVM, so that the bits of a sample do not depend on the number of lanes.

The code does not depend on the number of bodies or on their masses and lengths. These are in the context
(rolled/context.py), which `kernel` receives as its data.
"""

from __future__ import annotations

from ...rolled.context import PAD, SHAPE, RolledUnit
from ...rolled.program import Step
from . import vector_math
from .arithmetic import attributes
from .flags import clear_flags
from .instructions import Writer
from .number_types import LANES, Lanes
from .rolled_context import Context, Module, splat, vector_at
from .rolled_loops import last_function, loop_function
from .rolled_rows import bring_function, scan_function
from .rolled_steps import arithmetic
from .writer import Text

BYTES = 64


def emit_rolled(unit: RolledUnit, dtype: str) -> str:
    """Return the module's assembly."""
    program, ranks, parametric = unit.program, unit.ranks, unit.parametric
    wide = LANES[dtype]
    context, module = Context(program), Module()
    scan_function(wide, module)
    _workspaces(module)
    for lanes in (Lanes(wide.scalar, wide.bits, 1), wide):
        for store in (False, True):
            bring_function(lanes, wide, module, store=store)
        for k in range(len(program.loops)):
            loop_function(program, k, context, lanes, parametric, module)
        last_function(program, context, lanes, parametric, module)
        if program.angles:
            _angles_function(context, lanes, wide, module)
        _block(program, ranks, context, lanes, wide, module, parametric)
    _kernel(context, wide, module)
    return module.text(attributes())


def emit_maker(step: Step, dtype: str) -> str:
    """Return the assembly of a step from parameters to numbers: functions `make1` and `make` on blocks of vectors."""
    wide, module = LANES[dtype], Module()
    for lanes, name in ((Lanes(wide.scalar, wide.bits, 1), "make1"), (wide, "make")):
        _maker_function(step, lanes, name, module)
    return module.text(attributes())


def _maker_function(step: Step, lanes: Lanes, name: str, module: Module) -> None:
    w, V, align = Writer(lanes), lanes.vector, lanes.count * lanes.bits // 8

    def read(_, op: tuple) -> str:
        return w.new(f"load {V}, ptr {vector_at(w, lanes, '%in', op[2])}, align {align}")

    names = arithmetic(w, step, read)
    for (_, place), k in step.results:
        w.do(f"store {V} {names[k]}, ptr {vector_at(w, lanes, '%out', place)}, align {align}")
    w.do("ret void")
    module.add(f"void @{name}(ptr %in, ptr %out)", w, lanes)


def _angles_function(context: Context, lanes: Lanes, wide: Lanes, module: Module) -> None:
    """Write the function that computes sine and cosine of every coordinate, shifted by its theta.

    For a single sample, as many coordinates as a vector holds are computed at once.
    """
    w = Writer(wide)
    V, S, size = wide.vector, wide.scalar, wide.bits // 8
    count, shifts = context.value(w, "coordinates"), context.pointer(w, "shifts")
    q, sines, cosines = (context.region(w, lanes, name) for name in ("q", "sin", "cos"))
    w.do("br label %again")
    w.begin("again")
    place = len(w.lines)
    x = w.new(f"load {V}, ptr {vector_at(w, lanes, q, '%k')}, align {BYTES}")
    shift = w.new(f"getelementptr {S}, ptr {shifts}, i64 %k")
    if lanes.count == 1:
        theta = w.new(f"load {V}, ptr {shift}, align {size}")
    else:
        theta = splat(w, wide, w.new(f"load {S}, ptr {shift}, align {size}"))
    pair = vector_math.guarded_sines(w, x, theta)
    for value, target in zip(pair, (sines, cosines), strict=True):
        w.do(f"store {V} {value}, ptr {vector_at(w, lanes, target, '%k')}, align {BYTES}")
    w.do(f"%next = add i64 %k, {wide.count // lanes.count}")
    w.do(f"%more = icmp slt i64 %next, {count}")
    w.lines.insert(place, f"  %k = phi i64 [ 0, %entry ], [ %next, %{w.label} ]")
    w.do("br i1 %more, label %again, label %done")
    w.begin("done")
    w.do("ret void")
    module.add(f"internal void @angles{lanes.count}(ptr %ctx, ptr %ws) noinline", w, wide)


def _workspaces(module: Module) -> None:
    """Write `take` and `put`, which reuse one workspace between calls; concurrent threads allocate their own."""
    t = Text()
    known = t.new("atomicrmw xchg ptr %pool, i64 0 acquire")
    t.put(
        f"  %none = icmp eq i64 {known}, 0", "  br i1 %none, label %new, label %old", "old:",
        f"  ret i64 {known}", "new:",
    )  # fmt: skip
    raw = t.new(f"call i64 @kt_malloc(i64 {t.new(f'add i64 %bytes, {2 * BYTES}')})")
    t.put(
        f"  %failed = icmp eq i64 {raw}, 0", "  br i1 %failed, label %nothing, label %some", "nothing:", "  ret i64 0"
    )
    t.put("some:")
    base = t.new(f"and i64 {t.new(f'add i64 {raw}, {2 * BYTES - 1}')}, -{BYTES}")
    before = t.new(f"inttoptr i64 {t.new(f'sub i64 {base}, 8')} to ptr")
    t.put(f"  store i64 {raw}, ptr {before}", f"  ret i64 {base}")
    module.used |= {"declare i64 @kt_malloc(i64)", "declare void @kt_free(i64)"}
    module.add("internal i64 @take(ptr %pool, i64 %bytes) noinline", t)
    t = Text()
    other = t.new("atomicrmw xchg ptr %pool, i64 %ws release")

    def free() -> None:
        before = t.new(f"inttoptr i64 {t.new(f'sub i64 {other}, 8')} to ptr")
        t.put(f"  call void @kt_free(i64 {t.new(f'load i64, ptr {before}')})")

    t.if_(t.new(f"icmp ne i64 {other}, 0"), free)
    t.put("  ret void")
    module.add("void @put(ptr %pool, i64 %ws) noinline", t)


def _block(program, ranks, context: Context, lanes: Lanes, wide: Lanes, module: Module, parametric: bool) -> None:
    """Write the function that runs a block of %valid samples, the first of which has the index %i."""
    t, L = Text(), lanes.count
    size = lanes.bits // 8 * L
    suffix = "_1" if L == 1 else ""
    pool = context.place(t, f"pool{suffix}")
    bytes_ = t.new(f"mul i64 {context.value(t, 'vectors')}, {size}")
    base = t.new(f"call i64 @take(ptr {pool}, i64 {bytes_})")
    count_bad = [context.place(t, name) for name in ("bad", "bad_any", "failed")]

    def count(*places: str) -> None:
        for place in places:
            t.new(f"atomicrmw add ptr {place}, i64 1 monotonic")

    t.put(f"  %lost = icmp eq i64 {base}, 0", "  br i1 %lost, label %give_up, label %go", "give_up:")
    count(*count_bad[1:])
    t.put("  ret void", "go:", f"  %ws = inttoptr i64 {base} to ptr")
    strides, at = [], len(ranks)
    for rank in ranks:
        mine = [t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr %steps, i64 {at + d}')}") for d in range(rank)]
        strides.append(["0"] * (SHAPE - rank) + mine)
        at += rank

    def transfer(k: int, name: str, what: str) -> None:
        p = t.new(f"load ptr, ptr {t.new(f'getelementptr ptr, ptr %args, i64 {k}')}")
        step = t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr %steps, i64 {k}')}")
        p = t.new(f"getelementptr i8, ptr {p}, i64 {t.new(f'mul i64 {step}, %i')}")
        sizes = [context.value(t, f"{name}.{d}") for d in range(SHAPE)]
        numbers = ", ".join(f"i64 {x}" for x in (*sizes, *strides[k]))
        block = context.region(t, lanes, name)
        t.put(f"  call void @{what}{L}(ptr {p}, i64 {step}, i64 %valid, {numbers}, ptr {block})")

    def lines(vectors: str) -> str:
        return t.new(f"sdiv i64 {t.new(f'mul i64 {vectors}, {size}')}, {BYTES}")

    def zero(first: str, vectors: str | int) -> None:
        module.used.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        t.put(
            f"  call void @llvm.memset.p0.i64(ptr {first}, i8 0, i64 {t.new(f'mul i64 {vectors}, {size}')}, i1 false)"
        )

    def end_of(name: str) -> str:
        after = context.regions[context.regions.index(name) + 1]
        return context.value(t, f"{after}@")

    def region_size(name: str) -> str:
        return t.new(f"sub i64 {end_of(name)}, {context.value(t, f'{name}@')}")

    for k, name in enumerate(program.inputs):
        zero(vector_at(t, lanes, "%ws", t.new(f"sub i64 {end_of(name)}, {PAD}")), PAD)
        transfer(k, name, "bring")
    bad = t.new(f"call i1 @scan(ptr %ws, i64 {lines(context.value(t, 'input_vectors'))})")
    t.if_(bad, lambda: count(*count_bad[:2]))
    if parametric:
        _make_table(t, context, lanes, suffix)
    if program.angles:
        t.put(f"  call void @angles{L}(ptr %ctx, ptr %ws)")
    room = context.region(t, lanes, "out")
    zero(room, region_size("out"))
    for k in range(len(program.loops)):
        t.put(f"  call void @loop{k}_{L}(ptr %ctx, ptr %ws)")
    t.put(f"  call void @last{L}(ptr %ctx, ptr %ws)")
    bad = t.new(f"call i1 @scan(ptr {room}, i64 {lines(region_size('out'))})")
    t.if_(bad, lambda: count(count_bad[1]))
    transfer(len(ranks) - 1, "out", "send")
    t.put(f"  call void @put(ptr {pool}, i64 {base})", "  ret void")
    module.add(f"internal void @block{L}(ptr %args, ptr %steps, i64 %i, i64 %valid, ptr %ctx) noinline", t)


def _make_table(t: Text, context: Context, lanes: Lanes, suffix: str) -> None:
    """Write the table for the parameters of a block: computed numbers where there is a code, elsewhere plain ones."""
    V, S, size = lanes.vector, lanes.scalar, lanes.bits // 8
    given, made, table = (context.region(t, lanes, name) for name in ("parameters", "made", "table"))
    t.put(f"  call void {context.pointer(t, f'make{suffix}')}(ptr {given}, ptr {made})")
    codes, plain = context.pointer(t, "code"), context.pointer(t, "table")

    def entry(k: str) -> None:
        code = t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr {codes}, i64 {k}')}")
        known = t.new(f"icmp slt i64 {code}, 0")
        index = t.new(f"select i1 {known}, i64 0, i64 {code}")
        number = t.new(f"load {S}, ptr {t.new(f'getelementptr {S}, ptr {plain}, i64 {k}')}, align {size}")
        x = t.new(f"load {V}, ptr {vector_at(t, lanes, made, index)}, align {size * lanes.count}")
        x = t.new(f"select i1 {known}, {V} {splat(t, lanes, number)}, {V} {x}")
        t.put(f"  store {V} {x}, ptr {vector_at(t, lanes, table, k)}, align {size * lanes.count}")

    t.loop(context.value(t, "entries"), 1, entry)


def _kernel(context: Context, wide: Lanes, module: Module) -> None:
    """Write NumPy's inner loop."""
    t, L = Text(), wide.count
    t.put("  %n = load i64, ptr %dims")
    place = context.place(t, "bad_any")
    seen = t.new(f"load i64, ptr {place}")
    t.put("  br label %head", "head:", "  %i = phi i64 [ 0, %entry ], [ %after, %next ]")
    t.put("  %left = sub i64 %n, %i", "  %more = icmp sgt i64 %left, 0", "  br i1 %more, label %choose, label %end")
    t.put("choose:", "  %alone = icmp eq i64 %left, 1", "  br i1 %alone, label %one, label %many", "one:")
    t.put("  call void @block1(ptr %args, ptr %steps, i64 %i, i64 1, ptr %ctx)", "  br label %next", "many:")
    t.put(f"  %whole = icmp sgt i64 %left, {L}", f"  %valid = select i1 %whole, i64 {L}, i64 %left")
    t.put(f"  call void @block{L}(ptr %args, ptr %steps, i64 %i, i64 %valid, ptr %ctx)", "  br label %next", "next:")
    t.put(
        "  %done = phi i64 [ 1, %one ], [ %valid, %many ]", "  %after = add i64 %i, %done", "  br label %head", "end:"
    )
    # Input that is not finite is reported by the caller, so NumPy must not warn about operations on it.
    changed = t.new(f"icmp ne i64 {t.new(f'load i64, ptr {place}')}, {seen}")
    t.if_(changed, lambda: clear_flags(t))
    t.put("  ret void")
    module.add("void @kernel(ptr %args, ptr %dims, ptr %steps, ptr %ctx)", t)
