"""LLVM assembly of the steps of a RolledProgram: straight-line arithmetic, and the loads of its inputs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...compiler.ir.trace import Op
from ...compiler.rolled.program import GLOBAL, Layout, RolledProgram, Step, is_angle
from . import vector_math
from .writer import Lanes, Writer, instruction

# --- Access of rolled code to its context, an array of 64-bit integers, and the module that its functions form.


class Context(Layout):
    """The layout of the context, with the assembly that reads it."""

    def place(self, w: Any, name: str) -> str:
        """Write the address of a field."""
        return w.new(f"getelementptr i64, ptr %ctx, i64 {self.places[name]}")

    def value(self, w: Any, name: str) -> str:
        """Write the load of a field."""
        return w.new(f"load i64, ptr {self.place(w, name)}")

    def pointer(self, w: Any, name: str) -> str:
        """Write the load of a field that is a pointer."""
        return w.new(f"load ptr, ptr {self.place(w, name)}")

    def region(self, w: Any, lanes: Lanes, name: str) -> str:
        """Write the address of a part of the workspace %ws."""
        return vector_at(w, lanes, "%ws", self.value(w, f"{name}@"))


def vector_at(w: Any, lanes: Lanes, base: str, index: str | int) -> str:
    """Write the address of a vector."""
    return w.new(f"getelementptr {lanes.vector}, ptr {base}, i64 {index}")


def splat(w: Any, lanes: Lanes, x: str) -> str:
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

    def add(self, head: str, w: Any, lanes: Lanes | None = None) -> None:
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
