"""LLVM assembly of a RolledProgram: the same loops for one sample and for a vector of samples.

`kernel` is NumPy's inner loop. It divides a batch into blocks of as many samples as a vector holds, and runs a single
remaining sample by scalar code. The function of a block (`block<lanes>`) copies its rows to a workspace with one vector
per entry, computes sines and cosines of all coordinates, runs the loops and copies the results back. Products and sums
are fused here, not by LLVM, so that the bits of a sample do not depend on the number of lanes.

The code does not depend on the number of bodies or on their masses and lengths. These are in the context
(rolled/context.py), which `kernel` receives as its data.
"""

from __future__ import annotations

from collections.abc import Iterator

from ... import joints as joint_kinds
from ...compiler.ir.trace import Op
from ...compiler.rolled.program import (
    BODY,
    CLASS,
    COUNT,
    FIRST_Q,
    FIRST_V,
    PARENT,
    ROW,
    SLOT,
    TABLE,
    Loop,
    RolledProgram,
    RolledUnit,
    Step,
)
from . import vector_math
from .arithmetic import attributes
from .rolled_block import (
    BYTES,
    Block,
    Context,
    Module,
    Reader,
    arithmetic,
    bring_function,
    scan_function,
    splat,
    vector_at,
)
from .writer import LANES, Lanes, Text, Writer, clear_flags

# --- LLVM assembly of the loops of a RolledProgram: over segments, then over their bodies, with carries in registers.

STARTS = {"q": FIRST_Q, "v": FIRST_V, "body": BODY, "row": ROW, "slot": SLOT}
"""The entries of a segment that are the places of its first body."""


def last_function(program: RolledProgram, context: Context, lanes: Lanes, parametric: bool, module: Module) -> None:
    """Write the function that computes results of the whole mechanism."""
    w = Writer(lanes)
    reader = Reader(program, context, w, parametric)
    reader.all_rows()
    reader.prepare("out")
    names = arithmetic(w, program.last, reader.common)
    for (_, entry), k in program.last.results:
        reader.store(names[k], vector_at(w, lanes, reader.base("out"), entry))
    w.do("ret void")
    module.add(f"internal void @last{lanes.count}(ptr %ctx, ptr %ws) noinline", w, lanes)


def loop_function(program: RolledProgram, k: int, context: Context, lanes: Lanes, parametric: bool, module: Module):
    """Write the function of one loop over all bodies."""
    w = Writer(lanes)
    _LoopWriter(program, k, context, w, parametric).write()
    module.add(f"internal void @loop{k}_{lanes.count}(ptr noalias %ctx, ptr %ws) noinline", w, lanes)


class _LoopWriter:
    def __init__(self, program: RolledProgram, k: int, context: Context, w: Writer, parametric: bool) -> None:
        self.program, self.k, self.context, self.w, self.lanes = program, k, context, w, w.lanes
        self.loop: Loop = program.loops[k]
        self.inward = self.loop.direction == "inward"
        self.reader = Reader(program, context, w, parametric)
        self.width = len(self.loop.keys)
        self.parametric = parametric

    def write(self) -> None:
        w, reader, context = self.w, self.reader, self.context
        reader.all_rows()
        reader.prepare("slots", "out", "sin", "cos", *self.program.inputs)
        self.rows = reader.base(f"rows{self.k}")
        self.nv = context.value(w, "nv")
        segments, count = context.pointer(w, "segments"), context.value(w, "segment_count")
        if self.inward and self.width:
            size = self.lanes.count * self.lanes.bits // 8 * self.width
            size = w.new(f"mul i64 {w.new(f'add i64 {count}, 1')}, {size}")
            w.used.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            w.do(f"call void @llvm.memset.p0.i64(ptr {self.rows}, i8 0, i64 {size}, i1 false)")
        else:
            names = arithmetic(w, self.loop.ground, reader.common)
            for (_, place), j in self.loop.ground.results:
                reader.store(names[j], vector_at(w, self.lanes, self.rows, place))
        begin = w.label
        first = w.new(f"sub i64 {count}, 1") if self.inward else "0"
        some = w.new(f"icmp sgt i64 {count}, 0")
        w.do(f"br i1 {some}, label %segment, label %done")
        w.begin("segment")
        w.do(f"%s = phi i64 [ {first}, %{begin} ], [ %s_next, %latch ]")
        start = w.new("mul i64 %s, 8")
        self.segment = w.new(f"getelementptr i64, ptr {segments}, i64 {start}")
        cases = [c for c, step in enumerate(self.loop.steps) if step.results]
        targets = " ".join(f"i64 {c}, label %class{c}" for c in cases)
        w.do(f"switch i64 {self.field(CLASS)}, label %latch [ {targets} ]")
        for c in cases:
            self.segment_of(c, self.loop.steps[c])
        w.begin("latch")
        w.do(f"%s_next = add i64 %s, {-1 if self.inward else 1}")
        w.do(f"%more = icmp {'sge i64 %s_next, 0' if self.inward else f'slt i64 %s_next, {count}'}")
        w.do("br i1 %more, label %segment, label %done")
        w.begin("done")
        w.do("ret void")

    def field(self, k: int) -> str:
        return self.w.new(f"load i64, ptr {self.w.new(f'getelementptr i64, ptr {self.segment}, i64 {k}')}")

    def segment_of(self, c: int, step: Step) -> None:
        """Write the loop over the bodies of a segment of class c."""
        w, V = self.w, self.lanes.vector
        w.begin(f"class{c}")
        count = self.field(COUNT)
        source, target = self.rows_of_carries()
        carries = [self.reader.vector(place) for place in self.entries_of(source)]
        starts = {name: self.field(x) for name, x in STARTS.items()}
        begin, last = w.label, w.new(f"sub i64 {count}, 1")
        w.do(f"br label %body{c}")
        w.begin(f"body{c}")
        place = len(w.lines)
        i = f"%i{c}"
        body = _Body(self, c, starts)
        handed = body.store(step, arithmetic(w, step, body.read))
        end = w.label
        w.do(f"{i}_next = add i64 {i}, {-1 if self.inward else 1}")
        w.do(f"%go{c} = icmp {f'sge i64 {i}_next, 0' if self.inward else f'slt i64 {i}_next, {count}'}")
        w.do(f"br i1 %go{c}, label %body{c}, label %end{c}")
        w.lines[place:place] = [
            f"  {i} = phi i64 [ {last if self.inward else 0}, %{begin} ], [ {i}_next, %{end} ]",
            *(
                f"  {body.carry(j)} = phi {V} [ {carries[j]}, %{begin} ], [ {handed[j]}, %{end} ]"
                for j in range(self.width)
            ),
        ]
        w.begin(f"end{c}")
        for j, spot in enumerate(self.entries_of(target)):
            x = w.new(f"fadd {V} {self.reader.vector(spot)}, {handed[j]}") if self.inward else handed[j]
            self.reader.store(x, spot)
        w.do("br label %latch")

    def rows_of_carries(self) -> tuple[str, str]:
        """Write the addresses of the carries before and after the bodies of the segment."""
        w = self.w
        own = w.new(f"mul i64 {w.new('add i64 %s, 1')}, {self.width}")
        parent = w.new(f"mul i64 {self.field(PARENT)}, {self.width}")
        own, parent = (vector_at(w, self.lanes, self.rows, x) for x in (own, parent))
        return (own, parent) if self.inward else (parent, own)

    def entries_of(self, row: str) -> Iterator[str]:
        """Write the addresses of the carries in a row, one by one."""
        return (vector_at(self.w, self.lanes, row, j) for j in range(self.width))


class _Body:
    """Reads and writes of the body %i of a segment of class c; `starts` are the places of the segment's first body."""

    def __init__(self, loop: _LoopWriter, c: int, starts: dict[str, str]) -> None:
        w, lanes, reader, program = loop.w, loop.lanes, loop.reader, loop.program
        kind = joint_kinds.kind(program.classes[c].kind)
        self.loop, self.c = loop, c

        def at(name: str, stride: int) -> str:
            return w.new(f"add i64 {starts[name]}, {w.new(f'mul i64 %i{c}, {stride}')}")

        def vector(name: str, index: str) -> str:
            return vector_at(w, lanes, reader.base(name), index)

        self.at_q, self.at_v, self.at_body = at("q", kind.NQ), at("v", kind.NV), at("body", 1)
        row = at("row", len(program.columns[c]))
        self.table = (
            vector("table", row)
            if loop.parametric
            else w.new(f"getelementptr {lanes.scalar}, ptr {reader.base('table')}, i64 {row}")
        )
        self.slots = vector("slots", at("slot", program.slots[c]))
        places = {"q": self.at_q, "q2": self.at_q, "wrenches": w.new(f"mul i64 {self.at_body}, 6")}
        given = [name for name in program.inputs if name != "parameters"]
        self.arrays = {name: vector(name, places.get(name, self.at_v)) for name in given}
        self.trig = {name: vector(name, self.at_q) for name in ("sin", "cos")}

    def carry(self, j: int) -> str:
        """Return the name of a carry before the body."""
        return f"%carry{self.c}_{j}"

    def read(self, ops, op: tuple) -> str:
        """Write an input, or the sine or cosine of a coordinate."""
        loop = self.loop
        if op[0] is not Op.INPUT:
            return self._load(self.trig[op[0].name.lower()], ops[op[1]][2])
        _, group, index = op
        if group == TABLE:
            return loop.reader.number(self.table, loop.program.columns[self.c].index(index))
        if group[0] == "array":
            return self._load(self.arrays[group[1]], index)
        if group == ("slot",):
            return self._load(self.slots, index)
        if group == ("in", loop.loop.index):
            return self.carry(loop.loop.keys.index(index))
        return loop.reader.common(ops, op)

    def _load(self, first: str, index: int) -> str:
        return self.loop.reader.vector(vector_at(self.loop.w, self.loop.lanes, first, index))

    def store(self, step: Step, names: list[str]) -> dict[int, str]:
        """Write the results of a step, and return the names of the carries after the body."""
        loop, w = self.loop, self.loop.w
        size = max((t[1] + 1 for t, _ in step.results if t[0] == "out"), default=0)
        first = {"joints": self.at_q if loop.program.coordinates else self.at_v, "columns": self.at_v}.get(
            loop.program.output, w.new(f"mul i64 {self.at_body}, {size}")
        )
        out = vector_at(w, loop.lanes, loop.reader.base("out"), first)
        handed = {}
        for (sort, *at), j in step.results:
            if sort == "carry":
                handed[at[0]] = names[j]
            elif sort == "column":
                far = w.new(f"add i64 {w.new(f'mul i64 {loop.nv}, {at[0]}')}, {at[1]}")
                loop.reader.store(names[j], vector_at(w, loop.lanes, out, far))
            else:
                base = self.slots if sort == "slot" else out
                loop.reader.store(names[j], vector_at(w, loop.lanes, base, at[0]))
        return handed


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
        f"  %none = icmp eq i64 {known}, 0",
        "  br i1 %none, label %new, label %old",
        "old:",
        f"  ret i64 {known}",
        "new:",
    )
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
