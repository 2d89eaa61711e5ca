"""LLVM assembly of the loops of a RolledProgram: over segments, then over their bodies, with carries in registers."""

from __future__ import annotations

from .... import joints as joint_kinds
from ...ir.trace import Op
from ...rolled.program import (
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
    Step,
)
from .instructions import Writer
from .number_types import Lanes
from .rolled_context import Context, Module, vector_at
from .rolled_steps import Reader, arithmetic


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
        w, lanes, reader = self.w, self.lanes, self.reader
        V = lanes.vector
        kind = joint_kinds.kind(self.program.classes[c].kind)
        w.begin(f"class{c}")
        count = self.field(COUNT)
        own = w.new(f"mul i64 {w.new('add i64 %s, 1')}, {self.width}")
        parent = w.new(f"mul i64 {self.field(PARENT)}, {self.width}")
        own, parent = (vector_at(w, lanes, self.rows, x) for x in (own, parent))
        source, target = (own, parent) if self.inward else (parent, own)
        carries = [reader.vector(vector_at(w, lanes, source, j)) for j in range(self.width)]
        fields = {"q": FIRST_Q, "v": FIRST_V, "body": BODY, "row": ROW, "slot": SLOT}
        starts = {name: self.field(x) for name, x in fields.items()}
        begin, last = w.label, w.new(f"sub i64 {count}, 1")
        w.do(f"br label %body{c}")
        w.begin(f"body{c}")
        place = len(w.lines)
        i = f"%i{c}"

        def at(name: str, stride: int) -> str:
            return w.new(f"add i64 {starts[name]}, {w.new(f'mul i64 {i}, {stride}')}")

        at_q, at_v, at_body = at("q", kind.NQ), at("v", kind.NV), at("body", 1)
        row = at("row", len(self.program.columns[c]))
        table = vector_at(w, lanes, reader.base("table"), row) if self.parametric else w.new(
            f"getelementptr {lanes.scalar}, ptr {reader.base('table')}, i64 {row}"
        )  # fmt: skip
        slots = vector_at(w, lanes, reader.base("slots"), at("slot", self.program.slots[c]))
        places = {"q": at_q, "q2": at_q, "wrenches": w.new(f"mul i64 {at_body}, 6")}
        arrays = {
            name: vector_at(w, lanes, reader.base(name), places.get(name, at_v))
            for name in self.program.inputs
            if name != "parameters"
        }
        trig = {name: vector_at(w, lanes, reader.base(name), at_q) for name in ("sin", "cos")}

        def read(ops, op: tuple) -> str:
            if op[0] is not Op.INPUT:
                return reader.vector(vector_at(w, lanes, trig[op[0].name.lower()], ops[op[1]][2]))
            _, group, index = op
            if group == TABLE:
                return reader.number(table, self.program.columns[c].index(index))
            if group[0] == "array":
                return reader.vector(vector_at(w, lanes, arrays[group[1]], index))
            if group == ("slot",):
                return reader.vector(vector_at(w, lanes, slots, index))
            if group == ("in", self.loop.index):
                return f"%carry{c}_{self.loop.keys.index(index)}"
            return reader.common(ops, op)

        names = arithmetic(w, step, read)
        size = max((t[1] + 1 for t, _ in step.results if t[0] == "out"), default=0)
        out_at = {"joints": at_q if self.program.coordinates else at_v, "columns": at_v}.get(
            self.program.output, w.new(f"mul i64 {at_body}, {size}")
        )
        out = vector_at(w, lanes, reader.base("out"), out_at)
        handed = {}
        for target_, j in step.results:
            if target_[0] == "carry":
                handed[target_[1]] = names[j]
            elif target_[0] == "slot":
                reader.store(names[j], vector_at(w, lanes, slots, target_[1]))
            elif target_[0] == "out":
                reader.store(names[j], vector_at(w, lanes, out, target_[1]))
            else:
                far = w.new(f"add i64 {w.new(f'mul i64 {self.nv}, {target_[1]}')}, {target_[2]}")
                reader.store(names[j], vector_at(w, lanes, out, far))
        end = w.label
        w.do(f"{i}_next = add i64 {i}, {-1 if self.inward else 1}")
        w.do(f"%go{c} = icmp {f'sge i64 {i}_next, 0' if self.inward else f'slt i64 {i}_next, {count}'}")
        w.do(f"br i1 %go{c}, label %body{c}, label %end{c}")
        phis = [f"  {i} = phi i64 [ {last if self.inward else 0}, %{begin} ], [ {i}_next, %{end} ]"]
        phis += [
            f"  %carry{c}_{j} = phi {V} [ {carries[j]}, %{begin} ], [ {handed[j]}, %{end} ]" for j in range(self.width)
        ]
        w.lines[place:place] = phis
        w.begin(f"end{c}")
        for j in range(self.width):
            spot = vector_at(w, lanes, target, j)
            x = handed[j]
            if self.inward:
                x = w.new(f"fadd {V} {reader.vector(spot)}, {x}")
            reader.store(x, spot)
        w.do("br label %latch")
