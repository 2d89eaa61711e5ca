"""BoundProgram: a rolled program with the numbers of a mechanism's bodies, complete for running one sample."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..ir.forms import Apply, Array, Constant, arrays_data, arrays_of, digest, interpret, plain
from ..ir.operations import COSTS, Op, count
from .program import CLASS, COUNT, BodyClass, Loop, RolledProgram, Step, is_angle
from .replay import Replay, run_step

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
            _program_of(data["program"]), inputs, outputs, segments, _floats(data["table"]), _floats(data["shifts"]),
            codes, None if make is None else _step_of(make),
        )  # fmt: skip

    interpret = interpret

    def replay(self, inputs: Sequence[Any], apply: Apply, constant: Constant = plain) -> list[list[Any]]:
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
        p.name, p.inputs, p.output, classes, loops, _step_data(p.last), p.columns, p.slots, p.shared, p.coordinates,
    ]  # fmt: skip


def _program_of(data: list) -> RolledProgram:
    """Return the program that `_program_data` has turned into lists."""
    name, inputs, output, classes, loops, last, columns, slots, shared, coordinates = data
    made = (
        Loop(index, direction, _tuples(keys), tuple(map(_step_of, steps)), _step_of(ground))
        for index, direction, keys, steps, ground in loops
    )
    return RolledProgram(
        name, tuple(inputs), output, tuple(BodyClass(*c) for c in classes), tuple(made), _step_of(last),
        _tuples(columns), tuple(slots), tuple(shared), coordinates,
    )  # fmt: skip


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


def _tuples(x: Any) -> Any:
    """Return lists of lists as tuples of tuples."""
    return tuple(map(_tuples, x)) if isinstance(x, list) else x


def _bits(x: np.ndarray) -> str:
    """Return an array of numbers as text that keeps every bit."""
    return base64.b64encode(x.astype("<f8").tobytes()).decode()


def _floats(text: str) -> np.ndarray:
    """Return the array of a text that `_bits` returned."""
    return np.frombuffer(base64.b64decode(text), dtype="<f8").astype(float)
