"""Execution of a rolled program body by body on scalars of any type, in the order of native code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import joints as joint_kinds
from ..ir.operations import Op
from ..ir.program import Array
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
    Loop,
    RolledProgram,
    Step,
    is_angle,
)

Read = Callable[[Sequence[tuple], tuple], Any]
"""A function of a step's operations and one of them; it returns an input, or the sine or cosine of a coordinate."""


def run_step(step: Step, read: Read, apply: Callable[..., Any], constant: Callable[[float], Any]) -> dict[tuple, Any]:
    """Return the results of a step by their targets."""
    values: list[Any] = []
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
    given: Mapping[str, Sequence[Any]]
    table: list[Any]
    sines: Mapping[Op, Sequence[Any]]
    apply: Callable[..., Any]
    constant: Callable[[float], Any]
    rows: list[list[list[Any]]] = field(default_factory=list)
    slots: dict[int, Any] = field(default_factory=dict)
    out: dict[int, Any] = field(default_factory=dict)

    def results(self, output: Array) -> list[Any]:
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

    def _body(self, loop: Loop, segment: list[int], k: int, carries: list[Any], output: Array) -> list[Any]:
        """Run the step of one body; return its carries."""
        p, c = self.program, segment[CLASS]
        kind = joint_kinds.kind(p.classes[c].kind)
        at = Place(
            segment[FIRST_Q] + k * kind.NQ, segment[FIRST_V] + k * kind.NV, segment[BODY] + k,
            segment[ROW] + k * len(p.columns[c]), segment[SLOT] + k * p.slots[c],
        )  # fmt: skip

        def read(ops: Sequence[Any], op: Any) -> Any:
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

    def _common(self, ops: Sequence[tuple], op: tuple) -> Any:
        """Return an input that does not depend on the body: a shared number, or a carry in a row."""
        _, group, index = op
        if group == GLOBAL:
            return self.table[self.program.shared.index(index)]
        _, sweep, where = group
        k, loop = next((k, x) for k, x in enumerate(self.program.loops) if x.index == sweep)
        return self.rows[k][0 if where == "ground" else len(self.segments)][loop.keys.index(index)]
