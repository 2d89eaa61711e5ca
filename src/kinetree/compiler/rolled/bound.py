"""BoundProgram: a rolled program with the numbers of a mechanism's bodies, complete for running one sample."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ... import joints as joint_kinds
from ...algebra.scalars import Scalar
from ..ir.operations import COSTS, Op, count
from ..ir.program import Apply, Array, Constant, arrays_data, arrays_of, digest, interpret, plain
from .program import (
    BODY,
    CLASS,
    COUNT,
    FIRST_Q,
    FIRST_V,
    GLOBAL,
    PARENT,
    ROW,
    SLOT,
    TABLE,
    BodyClass,
    Loop,
    RolledProgram,
    Step,
    is_angle,
)

# --- Execution of a rolled program body by body on scalars of any type, in the order of native code ---

Read = Callable[[Sequence[tuple], tuple], Scalar]
"""A function of a step's operations and one of them; it returns an input, or the sine or cosine of a coordinate."""


def run_step(
    step: Step, read: Read, apply: Callable[..., Scalar], constant: Callable[[float], Scalar]
) -> dict[tuple, Scalar]:
    """Return the results of a step by their targets."""
    values: list[Scalar] = []
    for op in step.ops:
        if op[0] is Op.INPUT or is_angle(step.ops, op):
            values.append(read(step.ops, op))
        elif op[0] is Op.CONST:
            values.append(constant(op[1]))
        else:
            values.append(apply(op[0], *(values[k] for k in op[1:])))
    return {target: values[k] for target, k in step.results}


@dataclass(frozen=True)
class Place:
    """The indices at which a body's entries begin: in q, in qd, among bodies, in the table and among the slots."""

    q: int
    v: int
    body: int
    row: int
    slot: int

    def of(self, array: str) -> int:
        """Return the index at which the body's entries of an input array begin."""
        return {"q": self.q, "q2": self.q, "wrenches": 6 * self.body}.get(array, self.v)


@dataclass
class Replay:
    """One run; `rows` has the ground's row and one row per segment for each loop, `slots` the stored scalars."""

    program: RolledProgram
    segments: list[list[int]]
    given: Mapping[str, Sequence[Scalar]]
    table: list[Scalar]
    sines: Mapping[Op, Sequence[Scalar]]
    apply: Callable[..., Scalar]
    constant: Callable[[float], Scalar]
    rows: list[list[list[Scalar]]] = field(default_factory=list)
    slots: dict[int, Scalar] = field(default_factory=dict)
    out: dict[int, Scalar] = field(default_factory=dict)

    def results(self, output: Array) -> list[Scalar]:
        """Run all loops and the last step; return the entries of the output."""
        for loop in self.program.loops:
            self._loop(loop, output)
        last = run_step(self.program.last, self._common, self.apply, self.constant)
        self.out.update({target[1]: x for target, x in last.items()})
        return [self.out[k] if k in self.out else self.constant(0.0) for k in range(output.size)]

    def _loop(self, loop: Loop, output: Array) -> None:
        inward, width = loop.direction == "inward", len(loop.keys)
        rows = [[self.constant(0.0)] * width for _ in range(len(self.segments) + 1)]
        self.rows.append(rows)
        for (_, k), x in run_step(loop.ground, self._common, self.apply, self.constant).items():
            rows[0][k] = x
        for s in reversed(range(len(self.segments))) if inward else range(len(self.segments)):
            segment = self.segments[s]
            step = loop.steps[segment[CLASS]]
            if not step.results:
                continue
            source, target = (s + 1, segment[PARENT]) if inward else (segment[PARENT], s + 1)
            handed = rows[source]
            for k in reversed(range(segment[COUNT])) if inward else range(segment[COUNT]):
                handed = self._body(loop, segment, k, handed, output)
            add = self.apply
            rows[target] = [add(Op.ADD, a, b) for a, b in zip(rows[target], handed, strict=True)] if inward else handed

    def _body(self, loop: Loop, segment: list[int], k: int, carries: list[Scalar], output: Array) -> list[Scalar]:
        """Run the step of one body; return its carries."""
        p, c = self.program, segment[CLASS]
        kind = joint_kinds.kind(p.classes[c].kind)
        at = Place(
            segment[FIRST_Q] + k * kind.NQ,
            segment[FIRST_V] + k * kind.NV,
            segment[BODY] + k,
            segment[ROW] + k * len(p.columns[c]),
            segment[SLOT] + k * p.slots[c],
        )

        def read(ops: Sequence[Scalar], op: Scalar) -> Scalar:
            if op[0] is not Op.INPUT:
                return self.sines[op[0]][at.q + ops[op[1]][2]]
            _, group, index = op
            if group == TABLE:
                return self.table[at.row + p.columns[c].index(index)]
            if group[0] == "array":
                return self.given[group[1]][at.of(group[1]) + index]
            if group == ("slot",):
                return self.slots[at.slot + index]
            if group == ("in", loop.index):
                return carries[loop.keys.index(index)]
            return self._common(ops, op)

        step = loop.steps[c]
        results = run_step(step, read, self.apply, self.constant)
        size = max((t[1] + 1 for t in results if t[0] == "out"), default=0)
        first = {"joints": at.q if p.coordinates else at.v, "columns": at.v}.get(p.output, at.body * size)
        for target, x in results.items():
            if target[0] == "slot":
                self.slots[at.slot + target[1]] = x
            elif target[0] == "out":
                self.out[first + target[1]] = x
            elif target[0] == "column":
                self.out[first + target[1] * output.shape[-1] + target[2]] = x
        return [results["carry", j] for j in range(len(loop.keys))]

    def _common(self, ops: Sequence[tuple], op: tuple) -> Scalar:
        """Return an input that does not depend on the body: a shared number, or a carry in a row."""
        _, group, index = op
        if group == GLOBAL:
            return self.table[self.program.shared.index(index)]
        _, sweep, where = group
        k, loop = next((k, x) for k, x in enumerate(self.program.loops) if x.index == sweep)
        return self.rows[k][0 if where == "ground" else len(self.segments)][loop.keys.index(index)]


VERSION = 1
"""The version of the text form of a rolled program; texts of other versions raise ValueError."""

ANGLE = ((Op.ADD, 0, 0), (Op.SIN, 0), (Op.COS, 0))
"""The operations on a coordinate before the loops: add its shift, then take sine and cosine."""


@dataclass(frozen=True, eq=False)
class BoundProgram:
    """A rolled program with the bodies over which it runs; like a Program it has a cost, a hash and an interpreter.

    `segments` [n, 8] are sequences of bodies and `table` the numbers that steps read. `shifts` are added to the
    coordinates before sines are taken, and empty if none are. With free parameters, `make` computes numbers from them.
    `codes` then has the index of the computed number for each entry of the table, or -1 for a plain number.
    """

    program: RolledProgram
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    segments: np.ndarray
    table: np.ndarray
    shifts: np.ndarray
    codes: np.ndarray
    make: Step | None = None

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.program.name

    hash = cached_property(digest)

    def cost(self) -> dict[str, int]:
        """Return the numbers of multiplications, additions, divisions, square roots and sines for one sample."""
        out = dict.fromkeys(COSTS, 0)
        for ops, times in self._parts():
            for what, n in count(ops).items():
                out[what] += n * times
        return out

    def _parts(self) -> Iterator[tuple[Sequence[tuple], int]]:
        """Yield all operations, with the number of times they run."""
        yield ANGLE, len(self.shifts)
        classes, lengths = self.segments[:, CLASS], self.segments[:, COUNT]
        for loop in self.program.loops:
            yield loop.ground.ops, 1
            for c, step in enumerate(loop.steps):
                mine = classes == c
                yield [op for op in step.ops if not is_angle(step.ops, op)], int(lengths[mine].sum())
                if (
                    step.results and loop.direction == "inward"
                ):  # the carries of a segment are added to its parent's sums
                    yield ANGLE[:1], len(loop.keys) * int(mine.sum())
        yield self.program.last.ops, 1
        if self.make is not None:
            yield self.make.ops, 1

    def dumps(self) -> str:
        """Return the program as text; numbers keep every bit."""
        data = {
            "kinetree rolled": VERSION,
            "arrays": arrays_data(self),
            "program": _program_data(self.program),
            "segments": self.segments.tolist(),
            "table": _bits(self.table),
            "shifts": _bits(self.shifts),
            "codes": self.codes.tolist(),
            "make": None if self.make is None else _step_data(self.make),
        }
        return json.dumps(data, separators=(",", ":"))

    @classmethod
    def loads(cls, text: str) -> BoundProgram:
        """Return the program of a text that `dumps` returned."""
        data = json.loads(text)
        version = data.get("kinetree rolled")
        if version != VERSION:
            raise ValueError(f"the text is a rolled program of version {version}; expected version {VERSION}")
        inputs, outputs = arrays_of(data["arrays"])
        segments = np.array(data["segments"], dtype=np.int64).reshape(-1, 8)
        codes, make = np.array(data["codes"], dtype=np.int64), data["make"]
        return cls(
            _program_of(data["program"]),
            inputs,
            outputs,
            segments,
            _floats(data["table"]),
            _floats(data["shifts"]),
            codes,
            None if make is None else _step_of(make),
        )

    interpret = interpret

    def replay(self, inputs: Sequence[Scalar], apply: Apply, constant: Constant = plain) -> list[list[Scalar]]:
        """Run the program on scalars of any type, given as one sequence per input.

        `apply(op, *operands)` carries out an operation, `constant` converts a number.
        """
        given = {a.name: x for a, x in zip(self.inputs, inputs, strict=True)}
        table = [constant(float(x)) for x in self.table]
        if self.make is not None:
            made = run_step(self.make, lambda _, op: given["parameters"][op[2]], apply, constant)
            table = [x if k < 0 else made["made", k] for k, x in zip(self.codes.tolist(), table, strict=True)]
        angles = [apply(Op.ADD, q, constant(float(x))) for q, x in zip(given["q"], self.shifts, strict=False)]
        sines = {op: [apply(op, x) for x in angles] for op in (Op.SIN, Op.COS)}
        run = Replay(self.program, self.segments.tolist(), given, table, sines, apply, constant)
        return [run.results(self.outputs[0])]


def _program_data(p: RolledProgram) -> list:
    """Return a program as lists for JSON."""
    loops = [[x.index, x.direction, x.keys, [*map(_step_data, x.steps)], _step_data(x.ground)] for x in p.loops]
    classes = [astuple(c) for c in p.classes]
    return [
        p.name,
        p.inputs,
        p.output,
        classes,
        loops,
        _step_data(p.last),
        p.columns,
        p.slots,
        p.shared,
        p.coordinates,
    ]


def _program_of(data: list) -> RolledProgram:
    """Return the program that `_program_data` has turned into lists."""
    name, inputs, output, classes, loops, last, columns, slots, shared, coordinates = data
    made = (
        Loop(index, direction, _tuples(keys), tuple(map(_step_of, steps)), _step_of(ground))
        for index, direction, keys, steps, ground in loops
    )
    return RolledProgram(
        name,
        tuple(inputs),
        output,
        tuple(BodyClass(*c) for c in classes),
        tuple(made),
        _step_of(last),
        _tuples(columns),
        tuple(slots),
        tuple(shared),
        coordinates,
    )


def _step_data(step: Step) -> list:
    """Return a step as lists for JSON."""
    ops = [[int(op[0]), float(op[1]).hex()] if op[0] is Op.CONST else [int(op[0]), *op[1:]] for op in step.ops]
    return [ops, step.results]


def _step_of(data: list) -> Step:
    """Return the step that `_step_data` has turned into lists."""
    ops, results = data
    constant = Op.CONST
    read = ((constant, float.fromhex(op[1])) if op[0] == constant else (Op(op[0]), *_tuples(op[1:])) for op in ops)
    return Step(tuple(read), _tuples(results))


def _tuples(x: object) -> Any:
    """Return lists of lists as tuples of tuples."""
    return tuple(map(_tuples, x)) if isinstance(x, list) else x


def _bits(x: np.ndarray) -> str:
    """Return an array of numbers as text that keeps every bit."""
    return base64.b64encode(x.astype("<f8").tobytes()).decode()


def _floats(text: str) -> np.ndarray:
    """Return the array of a text that `_bits` returned."""
    return np.frombuffer(base64.b64decode(text), dtype="<f8").astype(float)
