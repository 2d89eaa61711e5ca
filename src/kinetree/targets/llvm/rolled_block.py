"""LLVM assembly of the function of a RolledProgram that runs a block of samples in a workspace."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from ...compiler.ir.trace import Op
from ...compiler.rolled.program import GLOBAL, PAD, SHAPE, Layout, RolledProgram, RolledUnit, Step, is_angle
from . import vector_math
from .dense_rows import write_transpose
from .writer import Lanes, Text, Writer, instruction

# --- LLVM assembly of the steps of a RolledProgram: straight-line arithmetic, and the loads of its inputs ---

# --- Access of rolled code to its context, an array of 64-bit integers, and the module that its functions form.


class Context(Layout):
    """The layout of the context, with the assembly that reads it."""

    def place(self, w: Writer | Text, name: str) -> str:
        """Write the address of a field."""
        return w.new(f"getelementptr i64, ptr %ctx, i64 {self.places[name]}")

    def value(self, w: Writer | Text, name: str) -> str:
        """Write the load of a field."""
        return w.new(f"load i64, ptr {self.place(w, name)}")

    def pointer(self, w: Writer | Text, name: str) -> str:
        """Write the load of a field that is a pointer."""
        return w.new(f"load ptr, ptr {self.place(w, name)}")

    def region(self, w: Writer | Text, lanes: Lanes, name: str) -> str:
        """Write the address of a part of the workspace %ws."""
        return vector_at(w, lanes, "%ws", self.value(w, f"{name}@"))


def vector_at(w: Writer | Text, lanes: Lanes, base: str, index: str | int) -> str:
    """Write the address of a vector."""
    return w.new(f"getelementptr {lanes.vector}, ptr {base}, i64 {index}")


def splat(w: Writer | Text, lanes: Lanes, x: str) -> str:
    """Write a vector with a scalar in every lane."""
    one = w.new(f"insertelement {lanes.vector} poison, {lanes.scalar} {x}, i32 0")
    return w.new(f"shufflevector {lanes.vector} {one}, {lanes.vector} poison, <{lanes.count} x i32> zeroinitializer")


class Module:
    """The functions of a module, with their declarations."""

    def __init__(self) -> None:
        """Start without functions."""
        self.parts: list[str] = []
        self.used: set[str] = set()
        self._library: dict[Lanes, Writer] = {}

    def add(self, head: str, w: Writer | Text, lanes: Lanes | None = None) -> None:
        """Add a function by its head and text; functions of the C library are declared for their numbers of lanes."""
        text = "\n".join([f"define {head} #0 {{", "entry:", *w.lines, "}"])
        notes = {u for u in w.used if u.startswith(";")}
        if lanes is not None:
            text = text.replace("@exact_", f"@exact{lanes.count}_")
            self._library.setdefault(lanes, Writer(lanes)).used |= notes
        self.used |= w.used - notes
        self.parts.append(text)

    def text(self, tail: str) -> str:
        """Return the assembly of the module."""
        parts = list(self.parts)
        for lanes, w in self._library.items():
            text = vector_math.exact_functions(lanes, w).replace("@exact_", f"@exact{lanes.count}_")
            parts += [line for line in text.splitlines() if not line.startswith(("declare", "!0"))]
            self.used |= {line for line in text.splitlines() if line.startswith("declare")}
        return "\n".join([*parts, '!0 = !{!"branch_weights", i32 1, i32 100000}', *sorted(self.used), tail])


SUMS = (Op.ADD, Op.SUB)


def arithmetic(w: Writer, step: Step, read) -> list[str]:
    """Write the operations of a step and return their names.

    `read(ops, op)` writes an input, or the sine or cosine of a coordinate. A product that is used in one sum only is
    fused with it.
    """
    ops, uses, users = step.ops, _uses(step), _users(step)
    bare = Counter(op[1] for op in ops if is_angle(ops, op))
    names: list[str] = [""] * len(ops)
    trig: dict[int, tuple[str, str]] = {}

    def fusible(k: int) -> bool:
        return ops[k][0] is Op.MUL and uses[k] == 1

    def given(k: int) -> list[str]:
        return [names[j] for j in ops[k][1:]]

    def negative(x: str) -> str:
        return w.new(f"fneg {w.lanes.vector} {x}")

    def fused(k: int, other: str, sign: str) -> str:
        a, b = given(k)
        return w.intrinsic("llvm.fma", negative(a) if sign == "-" else a, b, other)

    def total(j: int) -> str | None:
        op, a, b = ops[j]
        if fusible(b):
            left = names[a] or w.new(f"fmul {w.lanes.vector} {', '.join(given(a))}")
            return fused(b, left, "-" if op is Op.SUB else "+")
        if fusible(a):
            return fused(a, negative(names[b]) if op is Op.SUB else names[b], "+")
        return None

    for j, op in enumerate(ops):
        code, *x = op
        if code is Op.INPUT:
            if bare[j] < uses[j]:  # it is read directly, not only by its sine and cosine
                names[j] = read(ops, op)
        elif code is Op.CONST:
            names[j] = w.lanes.constant(x[0])
        elif is_angle(ops, op):
            names[j] = read(ops, op)
        elif code in (Op.SIN, Op.COS):
            if x[0] not in trig:
                trig[x[0]] = vector_math.guarded_sines(w, names[x[0]])
            names[j] = trig[x[0]][code is Op.COS]
        elif fusible(j) and j in users and ops[users[j]][0] in SUMS:
            continue  # written with its sum
        else:
            name = (total(j) if code in SUMS else None) or instruction(w, code, given(j))
            names[j] = name or vector_math.by_library(w, code.name.lower(), given(j))
    return names


def _users(step: Step) -> dict[int, int]:
    """Return the last operation that reads each one."""
    return {k: j for j, (op, *x) in enumerate(step.ops) if op > Op.CONST for k in x}


def _uses(step: Step) -> Counter[int]:
    """Return how often each operation is read, by others or as a result."""
    read = Counter(k for op, *x in step.ops if op > Op.CONST for k in x)
    read.update(k for _, k in step.results)
    return read


class Reader:
    """The writer of loads of a step's inputs: shared numbers, numbers of a body, and carries in rows."""

    def __init__(self, program: RolledProgram, context: Context, w: Writer, parametric: bool) -> None:
        """Store the function to which loads are written."""
        self.program, self.context, self.w, self.lanes, self.parametric = program, context, w, w.lanes, parametric
        self._bases: dict[str, str] = {}

    def base(self, name: str) -> str:
        """Return the address of a part of the workspace, written by `prepare`."""
        return self._bases[name]

    def prepare(self, *names: str) -> None:
        """Write the addresses of parts of the workspace."""
        for name in names:
            self._bases[name] = self.context.region(self.w, self.lanes, name)
        if not self.parametric:
            self._bases["table"] = self.context.pointer(self.w, "table")

    def number(self, place: str, k: int) -> str:
        """Write the load of the k-th entry of the table after an address in it."""
        w, lanes = self.w, self.lanes
        if self.parametric:
            return self.vector(vector_at(w, lanes, place, k))
        size = lanes.bits // 8
        x = w.new(
            f"load {lanes.scalar}, ptr {w.new(f'getelementptr {lanes.scalar}, ptr {place}, i64 {k}')}, align {size}"
        )
        return splat(w, lanes, x)

    def vector(self, place: str) -> str:
        """Write the load of a vector of the workspace."""
        return self.w.new(f"load {self.lanes.vector}, ptr {place}, align {self.lanes.bits // 8 * self.lanes.count}")

    def store(self, x: str, place: str) -> None:
        """Write the store of a vector into the workspace."""
        self.w.do(f"store {self.lanes.vector} {x}, ptr {place}, align {self.lanes.bits // 8 * self.lanes.count}")

    def common(self, ops, op: tuple) -> str:
        """Write the load of an input that does not depend on the body."""
        _, group, index = op
        if group == GLOBAL:
            return self.number(self.base("table"), self.program.shared.index(index))
        _, sweep, where = group
        loop, k = next((x, k) for k, x in enumerate(self.program.loops) if x.index == sweep)
        rows = self.base(f"rows{k}")
        row = "0" if where == "ground" else self.w.new(f"mul i64 {self.base('frame')}, {len(loop.keys)}")
        place = vector_at(self.w, self.lanes, vector_at(self.w, self.lanes, rows, row), loop.keys.index(index))
        return self.vector(place)

    def all_rows(self) -> None:
        """Write the addresses that `common` uses."""
        self.prepare(*(["table"] if self.parametric else []), *(f"rows{k}" for k in range(len(self.program.loops))))
        self._bases["frame"] = self.context.value(self.w, "frame")


BYTES = 64
"""The size of a line of the workspace, to which it is aligned [bytes]."""


class Block:
    """The writer of the function that runs a block of %valid samples, the first of which has the index %i."""

    def __init__(self, unit: RolledUnit, context: Context, lanes: Lanes, module: Module) -> None:
        """Start an empty function."""
        self.unit, self.context, self.lanes, self.module = unit, context, lanes, module
        self.t, self.size = Text(), lanes.bits // 8 * lanes.count

    def write(self) -> None:
        """Write the function and add it to the module."""
        t, context, L = self.t, self.context, self.lanes.count
        suffix = "_1" if L == 1 else ""
        pool = context.place(t, f"pool{suffix}")
        bytes_ = t.new(f"mul i64 {context.value(t, 'vectors')}, {self.size}")
        base = t.new(f"call i64 @take(ptr {pool}, i64 {bytes_})")
        bad, bad_any, failed = (context.place(t, name) for name in ("bad", "bad_any", "failed"))
        t.put(f"  %lost = icmp eq i64 {base}, 0", "  br i1 %lost, label %give_up, label %go", "give_up:")
        self.count(bad_any, failed)
        t.put("  ret void", "go:", f"  %ws = inttoptr i64 {base} to ptr")
        strides = self.strides()
        for k, name in enumerate(self.unit.program.inputs):
            self.zero(vector_at(t, self.lanes, "%ws", t.new(f"sub i64 {self.end_of(name)}, {PAD}")), PAD)
            self.transfer(k, name, "bring", strides[k])
        self.count_unless_finite("%ws", context.value(t, "input_vectors"), bad, bad_any)
        if self.unit.parametric:
            _make_table(t, context, self.lanes, suffix)
        if self.unit.program.angles:
            t.put(f"  call void @angles{L}(ptr %ctx, ptr %ws)")
        room = context.region(t, self.lanes, "out")
        self.zero(room, self.size_of("out"))
        for k in range(len(self.unit.program.loops)):
            t.put(f"  call void @loop{k}_{L}(ptr %ctx, ptr %ws)")
        t.put(f"  call void @last{L}(ptr %ctx, ptr %ws)")
        self.count_unless_finite(room, self.size_of("out"), bad_any)
        self.transfer(len(self.unit.ranks) - 1, "out", "send", strides[-1])
        t.put(f"  call void @put(ptr {pool}, i64 {base})", "  ret void")
        head = f"internal void @block{L}(ptr %args, ptr %steps, i64 %i, i64 %valid, ptr %ctx) noinline"
        self.module.add(head, t)

    def strides(self) -> list[list[str]]:
        """Write the loads of the strides of all core dimensions, with zeros in front up to SHAPE per array."""
        t, out, at = self.t, [], len(self.unit.ranks)
        for rank in self.unit.ranks:
            mine = [
                t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr %steps, i64 {at + d}')}") for d in range(rank)
            ]
            out.append(["0"] * (SHAPE - rank) + mine)
            at += rank
        return out

    def transfer(self, k: int, name: str, what: str, strides: list[str]) -> None:
        """Write the call of `bring` or `send` for array k and its part of the workspace."""
        t = self.t
        p = t.new(f"load ptr, ptr {t.new(f'getelementptr ptr, ptr %args, i64 {k}')}")
        step = t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr %steps, i64 {k}')}")
        p = t.new(f"getelementptr i8, ptr {p}, i64 {t.new(f'mul i64 {step}, %i')}")
        sizes = [self.context.value(t, f"{name}.{d}") for d in range(SHAPE)]
        numbers = ", ".join(f"i64 {x}" for x in (*sizes, *strides))
        block = self.context.region(t, self.lanes, name)
        t.put(f"  call void @{what}{self.lanes.count}(ptr {p}, i64 {step}, i64 %valid, {numbers}, ptr {block})")

    def count(self, *places: str) -> None:
        """Write increments of counts of all threads."""
        for place in places:
            self.t.new(f"atomicrmw add ptr {place}, i64 1 monotonic")

    def count_unless_finite(self, first: str, vectors: str, *places: str) -> None:
        """Write increments of counts if any of some vectors is not finite."""
        t = self.t
        lines = t.new(f"sdiv i64 {t.new(f'mul i64 {vectors}, {self.size}')}, {BYTES}")
        t.if_(t.new(f"call i1 @scan(ptr {first}, i64 {lines})"), lambda: self.count(*places))

    def zero(self, first: str, vectors: str | int) -> None:
        """Write zeros into some vectors."""
        self.module.used.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        size = self.t.new(f"mul i64 {vectors}, {self.size}")
        self.t.put(f"  call void @llvm.memset.p0.i64(ptr {first}, i8 0, i64 {size}, i1 false)")

    def end_of(self, name: str) -> str:
        """Write the load of the first vector after a part of the workspace."""
        after = self.context.regions[self.context.regions.index(name) + 1]
        return self.context.value(self.t, f"{after}@")

    def size_of(self, name: str) -> str:
        """Write the number of vectors of a part of the workspace."""
        return self.t.new(f"sub i64 {self.end_of(name)}, {self.context.value(self.t, f'{name}@')}")


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


# --- Copies of samples to a workspace and back, for any strides, and the test for numbers that are not finite.

SIZES = ("d0", "d1", "d2")
STRIDES = ("s0", "s1", "s2")


def bring_function(lanes: Lanes, wide: Lanes, module: Module, *, store: bool) -> None:
    """Write the function that copies an array with up to three core dimensions to the workspace, or back from it.

    `%p` points to the first of %valid samples, `%step` is the stride between samples. Idle lanes read and write the
    last sample.
    """
    t = Text()
    L, size = lanes.count, lanes.bits // 8
    dense, expected = "true", str(size)
    for d, s in zip(reversed(SIZES), reversed(STRIDES), strict=True):
        fits = t.new(f"icmp eq i64 %{s}, {expected}")
        flat = t.new(f"icmp eq i64 %{d}, 1")
        dense = t.new(f"and i1 {dense}, {t.new(f'or i1 {fits}, {flat}')}")
        expected = t.new(f"mul i64 {expected}, %{d}")
    last = t.new("sub i64 %valid, 1")
    total = t.new(f"sdiv i64 {expected}, {size}")
    t.put(f"  br i1 {dense}, label %fast, label %slow", "slow:")
    _by_strides(t, lanes, last, store)
    t.put("  ret void", "fast:")
    rows = []
    for lane in range(L):
        index = t.new(f"select i1 {t.new(f'icmp slt i64 {lane}, %valid')}, i64 {lane}, i64 {last}")
        rows.append(t.new(f"getelementptr i8, ptr %p, i64 {t.new(f'mul i64 {index}, %step')}"))
    _dense(t, lanes, wide, rows, total, store)
    t.put("  ret void")
    arguments = ", ".join(f"i64 %{x}" for x in (*SIZES, *STRIDES))
    name = "send" if store else "bring"
    module.add(f"internal void @{name}{L}(ptr %p, i64 %step, i64 %valid, {arguments}, ptr %block) noinline", t)


def _dense(t: Text, lanes: Lanes, wide: Lanes, rows: list[str], total: str, store: bool) -> None:
    """Copy dense rows: square blocks are transposed, the rest is copied entry by entry."""
    S, size, W = lanes.scalar, lanes.bits // 8, wide.vector

    def at(row: str, k: str) -> str:
        return t.new(f"getelementptr {S}, ptr {row}, i64 {k}")

    def square(start: str) -> None:
        k = t.new(f"mul i64 {start}, {wide.count}")
        if lanes.count == 1:
            pair = at(rows[0], k), at("%block", k)
            source, target = reversed(pair) if store else pair
            t.put(f"  store {W} {t.new(f'load {W}, ptr {source}, align {size}')}, ptr {target}, align {size}")
            return
        places = [vector_at(t, lanes, "%block", t.new(f"add i64 {k}, {j}")) for j in range(lanes.count)]
        ends = [at(row, k) for row in rows]
        sources, targets = (places, ends) if store else (ends, places)
        align = (64, size) if store else (size, 64)
        pieces = [t.new(f"load {W}, ptr {p}, align {align[0]}") for p in sources]
        for p, x in zip(targets, write_transpose(t, lanes, pieces), strict=True):
            t.put(f"  store {W} {x}, ptr {p}, align {align[1]}")

    def one(k: str) -> None:
        for lane, row in enumerate(rows):
            pair = at(row, k), t.new(f"getelementptr {S}, ptr {vector_at(t, lanes, '%block', k)}, i64 {lane}")
            source, target = reversed(pair) if store else pair
            t.put(f"  store {S} {t.new(f'load {S}, ptr {source}, align {size}')}, ptr {target}, align {size}")

    squares = t.new(f"sdiv i64 {total}, {wide.count}")
    t.if_(t.new(f"icmp sgt i64 {squares}, 0"), lambda: t.loop(squares, 1, square))
    done = t.new(f"mul i64 {squares}, {wide.count}")
    rest = t.new(f"sub i64 {total}, {done}")
    t.if_(t.new(f"icmp sgt i64 {rest}, 0"), lambda: t.loop(rest, 1, lambda k: one(t.new(f"add i64 {done}, {k}"))))


def _by_strides(t: Text, lanes: Lanes, last: str, store: bool) -> None:
    """Copy rows with any strides, entry by entry."""
    S, size = lanes.scalar, lanes.bits // 8

    def moved(p: str, stride: str, k: str) -> str:
        return t.new(f"getelementptr i8, ptr {p}, i64 {t.new(f'mul i64 {stride}, {k}')}")

    def one_lane(lane: str) -> None:
        index = t.new(f"select i1 {t.new(f'icmp slt i64 {lane}, %valid')}, i64 {lane}, i64 {last}")

        def entries(d: int, p: str, flat: str) -> None:
            if d < len(SIZES):
                inner: Callable[[str], None] = lambda k: entries(  # noqa: E731
                    d + 1, moved(p, f"%{STRIDES[d]}", k), t.new(f"add i64 {t.new(f'mul i64 {flat}, %{SIZES[d]}')}, {k}")
                )
                t.loop(f"%{SIZES[d]}", 1, inner)
                return
            pair = p, t.new(f"getelementptr {S}, ptr {vector_at(t, lanes, '%block', flat)}, i64 {lane}")
            source, target = reversed(pair) if store else pair
            t.put(f"  store {S} {t.new(f'load {S}, ptr {source}, align {size}')}, ptr {target}, align {size}")

        entries(0, moved("%p", "%step", index), "0")

    t.loop(lanes.count, 1, one_lane)


def scan_function(wide: Lanes, module: Module) -> None:
    """Write the function that returns whether vectors of 64 bytes contain a number that is not finite.

    Without their sign, floats are ordered like their bit patterns as integers, infinity and NaN last. Comparing
    integers raises no floating-point flags, which NumPy would report.
    """
    t = Text()
    ints, bits, L = wide.integers, wide.bits, wide.count
    maximum = f"llvm.umax.v{L}i{bits}"
    t.used.add(f"declare {ints} @{maximum}({ints}, {ints})")
    t.put(f"  %top = alloca {ints}, align 64", f"  store {ints} zeroinitializer, ptr %top, align 64")

    def look(k: str) -> None:
        x = t.new(f"load {ints}, ptr {vector_at(t, wide, '%p', k)}, align 64")
        size = t.new(f"and {ints} {x}, splat (i{bits} {2 ** (bits - 1) - 1})")
        top = t.new(f"call {ints} @{maximum}({ints} {t.new(f'load {ints}, ptr %top, align 64')}, {ints} {size})")
        t.put(f"  store {ints} {top}, ptr %top, align 64")

    t.loop("%count", 1, look)
    over = t.new(
        f"icmp uge {ints} {t.new(f'load {ints}, ptr %top, align 64')}, splat (i{bits} {wide.pattern(math.inf)})"
    )
    some = t.new(f"icmp ne i{L} {t.new(f'bitcast {wide.mask} {over} to i{L}')}, 0")
    t.put(f"  ret i1 {some}")
    module.add("internal i1 @scan(ptr %p, i64 %count) noinline", t)
