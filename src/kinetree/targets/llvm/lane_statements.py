"""LLVM assembly of the statements of the lane language: on vectors, inside `EachLane` on the scalars of one lane.

With one lane, as on a graphics card, all values are scalars.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...compiler.lanes import form
from ...compiler.lanes.form import Constant, Kernel, Kind, Operand, Statement, every, visit
from .writer import Lanes, Scalars, Text, number

FLOATS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
"""The instructions of arithmetic. On vectors they have no flags, so that no product is fused with a sum."""

COMPARISONS = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq"}
"""The predicates for integers; numbers are compared by ordered predicates."""

STAGES, REGISTERS = 16, 256
"""The longest loops whose iterations are written one by one: over the stages of a method, and over entries in
registers, of which a thread of a graphics card has 255."""

REAL = (Kind.LANE, Kind.SCALAR, Kind.DOUBLE)

STORED = {"float64": "double", "float32": "float", "int64": "i64", "bool": "i8"}
"""The types in memory of the entries of arrays."""


class Statements:
    """The writer of a kernel's statements; `lane` is the name of the lane inside `EachLane`."""

    def __init__(self, kernel: Kernel, t: Text, lanes: Lanes | Scalars) -> None:
        """Store the kernel; the assembly defines its memory, its arguments and the sample of the first lane."""
        self.t, self.lanes, self.alone = t, lanes, lanes.count == 1
        self.kinds = {m.name: m.kind for m in kernel.memory}
        self.types = {a.name: STORED.get(a.type, lanes.scalar) for a in kernel.arguments}
        self.values: dict[int, tuple[str, Kind, bool]] = {}  # text, kind, whether it is a vector
        self.lane: str | None = None
        self.rows: dict[str, str] = {}
        self.places, self.sample = {m.name: f"%m_{m.name}" for m in kernel.memory}, "%i"

    def write(self, body: Iterable[Statement]) -> None:
        """Write statements in order."""
        visit(self, body)

    def element(self, kind: Kind) -> str:
        """Return the type of the value of one lane, or of a uniform value."""
        if kind in REAL:
            return "double" if kind is Kind.DOUBLE else self.lanes.scalar
        return "i64" if kind in (Kind.INDEX, Kind.COUNT) else "i1"

    def wide(self, kind: Kind) -> bool:
        """Return whether values of a kind are vectors in the current block."""
        return self.lane is None and not kind.uniform and not self.alone

    def type(self, kind: Kind) -> str:
        """Return the type of values of a kind in the current block."""
        element = self.element(kind)
        return f"<{self.lanes.count} x {element}>" if self.wide(kind) else element

    def width(self, kind: Kind) -> int:
        """Return the bytes of an entry of the memory; booleans take one per lane."""
        size = {"i1": 1, "float": 4}.get(self.element(kind), 8)
        return size if kind.uniform else size * self.lanes.count

    def text(self, x: Operand) -> str:
        """Return the text of an operand in the current block."""
        if isinstance(x, Constant):
            bits = 64 if x.kind is Kind.DOUBLE else self.lanes.bits
            plain = number(x.value, bits) if x.kind in REAL else str(x.value).lower()
            return f"splat ({self.element(x.kind)} {plain})" if self.wide(x.kind) else plain
        text, kind, is_vector = self.values[x]
        if is_vector and self.lane is not None:
            return self.t.new(f"extractelement <{self.lanes.count} x {self.element(kind)}> {text}, i64 {self.lane}")
        return text

    def kind(self, x: Operand) -> Kind:
        """Return the kind of an operand."""
        return x.kind if isinstance(x, Constant) else self.values[x][1]

    def let(self, s: form.Let) -> None:
        """Write an operation."""
        self.values[s.to] = (self._operation(s), s.kind, self.wide(s.kind))

    def _operation(self, s: form.Let) -> str:
        if s.op == "load":
            return self._load(s)
        if s.op in ("own", "shared"):
            return self._read(s)
        if s.op == "extent":
            return "%count"
        return self._arithmetic(s, s.operands)

    def _read(self, s: form.Let) -> str:
        """Write the load of an entry of an array, and its conversion."""
        stored, t = self.types[s.array], self.t
        x, S = t.new(f"load {stored}, ptr {self._place(s.array, s.operands, s.op)}"), self.element(s.kind)
        if stored == S:
            return x
        if stored == "i8":
            return t.new(f"uitofp i8 {x} to {S}")
        return t.new(f"{'sitofp' if stored == 'i64' else 'fpext'} {stored} {x} to {S}")

    def _arithmetic(self, s: form.Let, args: tuple[Operand, ...]) -> str:
        t, T, x = self.t, self.type(s.kind), [self.text(a) for a in args]
        if (known := fold_counts(s, x)) is not None:
            return known
        of = self.kind(args[0])
        if s.op in FLOATS:
            how = FLOATS[s.op] + " contract" * self.alone if s.kind in REAL else s.op
            return t.new(f"{how} {T} {x[0]}, {x[1]}")
        if s.op in COMPARISONS:
            how = f"fcmp o{s.op}" if of in REAL else f"icmp {COMPARISONS[s.op]}"
            return t.new(f"{how} {self.type(of)} {x[0]}, {x[1]}")
        if s.op in ("and", "or"):
            return t.new(f"{s.op} {T} {x[0]}, {x[1]}")
        if s.op == "not":
            return t.new(f"xor {T} {x[0]}, {'splat (i1 true)' if self.wide(s.kind) else 'true'}")
        if s.op == "select":
            return t.new(f"select {self.type(of)} {x[0]}, {T} {x[1]}, {T} {x[2]}")
        if s.op == "choose":
            return self._choice(x[0], x[1:])
        if s.op in ("abs", "sqrt"):
            return self._intrinsic({"abs": "fabs"}.get(s.op, s.op), x[0], s.kind)
        if s.op == "number":
            return t.new(f"sitofp i64 {x[0]} to {T}")
        if s.op == "whole":
            return t.new(f"fptosi {self.lanes.scalar} {x[0]} to i64")
        if s.op == "round":
            return x[0] if self.type(of) == T else t.new(f"fptrunc {self.type(of)} {x[0]} to {T}")
        if s.op in ("bits", "unbits"):
            return self._pattern(s.op, x[0], T, s.kind)
        if s.op == "any":
            return self._any(x[0])
        assert s.op == "splat", s.op
        return self._splat(x[0], self.element(s.kind)) if self.wide(s.kind) else x[0]

    def _intrinsic(self, name: str, x: str, kind: Kind) -> str:
        suffix = self.lanes.suffix if self.wide(kind) else f"f{self.lanes.bits}"
        full, T = f"llvm.{name}.{suffix}", self.type(kind)
        self.t.used.add(f"declare {T} @{full}({T})")
        return self.t.new(f"call {T} @{full}({T} {x})")

    def _choice(self, index: str, table: list[str]) -> str:
        """Write the load of an entry of a table of constants; equal tables are one."""
        S = self.lanes.scalar
        if self.alone:  # few numbers, for which selects are quicker than a load
            chosen = table[-1]
            for i in reversed(range(len(table) - 1)):
                here = self.t.new(f"icmp eq i64 {index}, {i}")
                chosen = self.t.new(f"select i1 {here}, {S} {table[i]}, {S} {chosen}")
            return chosen
        name = "@table_" + "_".join(x.removeprefix("0x") for x in table)
        entries = ", ".join(f"{S} {x}" for x in table)
        self.t.used.add(f"{name} = internal constant [{len(table)} x {S}] [{entries}]")
        return self.t.new(f"load {S}, ptr {self.t.new(f'getelementptr {S}, ptr {name}, i64 {index}')}")

    def _pattern(self, op: str, x: str, T: str, kind: Kind) -> str:
        integers = self.lanes.integers if self.wide(kind) else f"i{self.lanes.bits}"
        if op == "bits":
            return self.t.new(f"sitofp {integers} {self.t.new(f'bitcast {T} {x} to {integers}')} to {T}")
        return self.t.new(f"bitcast {integers} {self.t.new(f'fptosi {T} {x} to {integers}')} to {T}")

    def _any(self, x: str) -> str:
        if self.lane is not None or self.alone:
            return x
        L = self.lanes.count
        return self.t.new(f"icmp ne i{L} {self.t.new(f'bitcast {self.lanes.mask} {x} to i{L}')}, 0")

    def _splat(self, x: str, element: str) -> str:
        V = f"<{self.lanes.count} x {element}>"
        one = self.t.new(f"insertelement {V} poison, {element} {x}, i32 0")
        return self.t.new(f"shufflevector {V} {one}, {V} poison, <{self.lanes.count} x i32> zeroinitializer")

    def _entry(self, memory: str, index: Operand) -> tuple[Kind, str, str, int]:
        """Write the address of an entry; return its kind, the type in memory, the address and its alignment."""
        kind = self.kinds[memory]
        element = "i8" if self.element(kind) == "i1" else self.element(kind)
        whole = element if kind.uniform or self.alone else f"<{self.lanes.count} x {element}>"
        place = self.t.new(f"getelementptr {whole}, ptr {self.places[memory]}, i64 {self.text(index)}")
        if kind.uniform or self.lane is None or self.alone:
            return kind, whole, place, self.width(kind)
        place = self.t.new(f"getelementptr {element}, ptr {place}, i64 {self.lane}")
        return kind, element, place, self.width(kind) // self.lanes.count

    def _entries(self, memory: str, index: Operand) -> tuple[str, str, str]:
        """Write the addresses of the entries that lanes choose; return the type in memory, its name, the addresses."""
        t, L, kind = self.t, self.lanes.count, self.kinds[memory]
        element = "i8" if self.element(kind) == "i1" else self.element(kind)
        counts = ", ".join(f"i64 {i}" for i in range(L))
        first = t.new(f"mul <{L} x i64> {self.text(index)}, splat (i64 {L})")
        at = t.new(f"add <{L} x i64> {first}, <{counts}>")
        places = t.new(f"getelementptr {element}, ptr {self.places[memory]}, <{L} x i64> {at}")
        name = {"double": "f64", "float": "f32"}.get(element, element)
        return f"<{L} x {element}>", f"v{L}{name}.v{L}p0", places

    def _gathered(self, s: form.Let) -> str:
        """Write a load with an index per lane."""
        T, name, places = self._entries(s.array, s.operands[0])
        L, align = self.lanes.count, self.width(self.kinds[s.array]) // self.lanes.count
        full = f"@llvm.masked.gather.{name}"
        self.t.used.add(f"declare {T} {full}(<{L} x ptr>, i32, <{L} x i1>, {T})")
        given = f"<{L} x ptr> {places}, i32 {align}, <{L} x i1> splat (i1 true), {T} poison"
        return self.t.new(f"call {T} {full}({given})")

    def _scatter(self, s: form.Store) -> None:
        """Write a store with an index per lane."""
        T, name, places = self._entries(s.memory, s.index)
        L, kind = self.lanes.count, self.kinds[s.memory]
        x = self.text(s.value)
        if self.element(kind) == "i1":
            x = self.t.new(f"zext {self.type(kind)} {x} to {T}")
        full, align = f"@llvm.masked.scatter.{name}", self.width(kind) // L
        self.t.used.add(f"declare void {full}({T}, <{L} x ptr>, i32, <{L} x i1>)")
        self.t.put(f"  call void {full}({T} {x}, <{L} x ptr> {places}, i32 {align}, <{L} x i1> splat (i1 true))")

    def _of_lanes(self, index: Operand) -> bool:
        """Return whether each lane has an index of its own in the current block."""
        return self.kind(index) is Kind.INDEX and self.wide(Kind.INDEX)

    def _load(self, s: form.Let) -> str:
        if self._of_lanes(s.operands[0]):
            x, T = self._gathered(s), f"<{self.lanes.count} x i8>"
            return self.t.new(f"icmp ne {T} {x}, zeroinitializer") if s.kind is Kind.MASK else x
        kind, T, place, align = self._entry(s.array, s.operands[0])
        x = self.t.new(f"load {T}, ptr {place}, align {min(align, 64)}")
        return self.t.new(f"icmp ne {T} {x}, zeroinitializer") if self.element(kind) == "i1" else x

    def store(self, s: form.Store) -> None:
        """Write a store into the memory."""
        if self._of_lanes(s.index):
            self._scatter(s)
            return
        kind, T, place, align = self._entry(s.memory, s.index)
        x = self.text(s.value)
        if self.element(kind) == "i1":
            x = self.t.new(f"zext {self.type(kind)} {x} to {T}")
        self.t.put(f"  store {T} {x}, ptr {place}, align {min(align, 64)}")

    def _place(self, argument: str, indices: Iterable[Any], how: str) -> str:
        """Write the address of an entry of an argument, in the lane's own sample or in the first."""
        place = f"%p_{argument}" if how == "shared" else self.rows[argument]
        for d, index in enumerate(indices):
            offset = self.t.new(f"mul i64 %c_{argument}_{d}, {self.text(index)}")
            place = self.t.new(f"getelementptr i8, ptr {place}, i64 {offset}")
        return place

    def put(self, s: form.Put) -> None:
        """Write a store into an output."""
        place, stored, x, t = (
            self._place(s.argument, s.indices, "own"),
            self.types[s.argument],
            self.text(s.value),
            self.t,
        )
        S = self.element(self.kind(s.value))
        if stored == "i8":
            x = t.new(f"zext i1 {t.new(f'fcmp ogt {S} {x}, 5.0e-01')} to i8")
        elif stored == "i64":
            x = t.new(f"fptosi {S} {x} to i64")
        elif stored != S:
            x = t.new(f"fptrunc {S} {x} to {stored}")
        t.put(f"  store {stored} {x}, ptr {place}")

    def call(self, s: form.Call) -> None:
        """Write the call of a Program."""
        target = self.t.new(f"getelementptr {self.lanes.vector}, ptr {self.places[s.target]}, i64 {self.text(s.first)}")
        bad = "" if self.alone else ", ptr %bad"
        self.t.put(f"  call void @{s.program}(ptr {self.places[s.source]}, ptr {target}{bad})")

    def loop(self, s: form.Loop) -> None:
        """Write a loop over a counter."""

        def body(counter: str) -> None:
            self.values[s.counter] = (counter, Kind.COUNT, False)
            self.write(s.body)

        stop = self.text(s.stop)
        if isinstance(s.stop, Constant):
            if self._one_by_one(s):
                for counter in range(int(s.stop.value)):
                    body(str(counter))
            elif s.stop.value > 0:
                self.t.loop(stop, 1, body)
        else:  # loops in the assembly run at least once
            self.t.if_(self.t.new(f"icmp sgt i64 {stop}, 0"), lambda: self.t.loop(stop, 1, body))

    def _one_by_one(self, s: form.Loop) -> bool:
        """Return whether the iterations of a loop are written one by one.

        Vectors are in memory, and the stages of a step are written out. A single lane is in registers, which have no
        index: loops over entries are written out, and the stages are a loop, because the code of their Program must
        fit into a small instruction cache.
        """
        assert isinstance(s.stop, Constant)
        return calls_programs(s.body) != self.alone and s.stop.value <= (REGISTERS if self.alone else STAGES)

    def repeat(self, s: form.Repeat) -> None:
        """Write a loop with its test at the end."""

        def body() -> str:
            self.write(s.body)
            return self.text(s.again)

        self.t.repeat(body)

    def while_(self, s: form.While) -> None:
        """Write a loop with its test at the start."""

        def test() -> str:
            self.write(s.test)
            return self.text(s.condition)

        self.t.while_(test, lambda: self.write(s.body))

    def when(self, s: form.When) -> None:
        """Write statements under a condition."""
        condition = self.text(s.condition)
        if condition == "true":
            self.write(s.body)
        elif condition != "false":
            self.t.if_(condition, lambda: self.write(s.body))

    def meet(self, s: form.Meet) -> None:
        """Write nothing: lanes of a processor are always together."""

    def each_lane(self, s: form.EachLane) -> None:
        """Write a loop over the lanes, or the statements themselves for a single one."""

        def body(lane: str) -> None:
            self.lane = lane
            self.rows = {name: self._row(name, lane) for name in sorted(arguments_of(s.body))}
            self.write(s.body)
            self.lane, self.rows = None, {}

        if self.alone:
            body("0")
        else:
            self.t.loop(self.lanes.count, 1, body)

    def _row(self, name: str, lane: str) -> str:
        """Write the address of a lane's own sample; idle lanes share the last one."""
        t = self.t
        if self.alone:
            return t.new(f"getelementptr i8, ptr %p_{name}, i64 {t.new(f'mul i64 {self.sample}, %s_{name}')}")
        index = t.new(f"add i64 {self.sample}, {lane}")
        inside = t.new(f"select i1 {t.new(f'icmp slt i64 {index}, %n')}, i64 {index}, i64 %last")
        return t.new(f"getelementptr i8, ptr %p_{name}, i64 {t.new(f'mul i64 {inside}, %s_{name}')}")


def fold_counts(s: form.Let, x: list[str]) -> str | None:
    """Return the text of an operation on known counts and flags, as in loops whose iterations are written one by one.

    None if it depends on values that are not known.
    """
    if s.op == "select" and x[0] in ("true", "false"):
        return x[1] if x[0] == "true" else x[2]
    if not x or not x[0].isdigit():
        return None
    if s.op == "choose":
        return x[1 + int(x[0])]
    if len(x) == 2 and x[1].isdigit():
        a, b = map(int, x)
        if s.op in ("add", "mul"):
            return str(a + b if s.op == "add" else a * b)
        if s.op in ("eq", "lt"):
            return str(a == b if s.op == "eq" else a < b).lower()
    return None


def calls_programs(body: Iterable[Statement]) -> bool:
    """Return whether statements call a Program."""
    return any(isinstance(s, form.Call) for s in every(body))


def arguments_of(body: Iterable[Statement]) -> set[str]:
    """Return the arguments whose own samples statements read or write."""
    written = {s.argument for s in every(body) if isinstance(s, form.Put)}
    return written | {s.array for s in every(body) if isinstance(s, form.Let) and s.op == "own"}
