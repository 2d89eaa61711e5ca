"""LLVM assembly of a RolledProgram: the same loops for one sample and for a vector of samples.

`kernel` is NumPy's inner loop. It divides a batch into blocks of as many samples as a vector holds, and runs a single
remaining sample by scalar code. The function of a block (`block<lanes>`) copies its rows to a workspace with one vector
per entry, computes sines and cosines of all coordinates, runs the loops and copies the results back. Products and sums
are fused here, not by LLVM, so that the bits of a sample do not depend on the number of lanes.

The code does not depend on the number of bodies or on their masses and lengths. These are in the context
(rolled/context.py), which `kernel` receives as its data.
"""

from __future__ import annotations

from ...rolled.context import RolledUnit
from ...rolled.program import Step
from . import vector_math
from .arithmetic import attributes
from .flags import clear_flags
from .instructions import Writer
from .number_types import LANES, Lanes
from .rolled_block import BYTES, Block
from .rolled_context import Context, Module, splat, vector_at
from .rolled_loops import last_function, loop_function
from .rolled_rows import bring_function, scan_function
from .rolled_steps import arithmetic
from .writer import Text


def emit_rolled(unit: RolledUnit, dtype: str) -> str:
    """Return the module's assembly."""
    program, parametric = unit.program, unit.parametric
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
        Block(unit, context, lanes, module).write()
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
