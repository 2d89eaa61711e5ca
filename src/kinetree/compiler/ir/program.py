"""Program: the arithmetic of one function in static single assignment form, the input of every target."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np

from ...algebra.scalars import Scalar
from .operations import BOOLEANS, OPERATIONS, Op, Type, check, count
from .trace import Trace

# --- What all forms of a program have in common, straight-line or in loops: arrays, text, a hash and an interpreter.

Apply = Callable[..., Scalar]
"""A function of an operation and its operands that carries the operation out."""
Constant = Callable[[float], Scalar]
"""A function that converts a number to the type of scalars on which a program runs."""


@dataclass(frozen=True)
class Array:
    """A named input or output with its shape, () for a scalar."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of entries."""
        return prod(self.shape)


class Form(Protocol):
    """A program that runs on scalars of any type and can be written as text."""

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The named inputs."""
        ...

    @property
    def outputs(self) -> tuple[Array, ...]:
        """The named outputs."""
        ...

    def dumps(self) -> str:
        """Return the program as text; numbers keep every bit."""
        ...

    def replay(self, inputs: Sequence[Scalar], apply: Apply, constant: Constant = ...) -> list[list[Scalar]]:
        """Return the entries of each output."""
        ...


def plain(x: float) -> float:
    """Return a number unchanged: the conversion for scalars that are numbers."""
    return x


def digest(form: Form) -> str:
    """Return a digest of the text of a program, hence of its arithmetic, its numbers, names and shapes."""
    return hashlib.sha256(form.dumps().encode()).hexdigest()


def interpret(form: Form, *arguments: object) -> list[np.ndarray]:
    """Run a program operation by operation in NumPy, all samples at once and without any target: simple and slow."""
    arrays = [np.asarray(a, dtype=float) for a in arguments]
    lead = np.broadcast_shapes(*(a.shape[: a.ndim - len(i.shape)] for a, i in zip(arrays, form.inputs, strict=True)))
    flat = [np.broadcast_to(a, lead + i.shape).reshape(*lead, i.size) for a, i in zip(arrays, form.inputs, strict=True)]
    entries = [np.moveaxis(a, -1, 0) for a in flat]
    with np.errstate(all="ignore"):
        results = form.replay(entries, lambda op, *x: OPERATIONS[op].array(*x))
    return [
        np.stack([np.broadcast_to(x, lead) for x in values], axis=-1).reshape(lead + out.shape)
        if values
        else np.zeros(lead + out.shape)
        for out, values in zip(form.outputs, results, strict=True)
    ]


def arrays_data(form: Form) -> list:
    """Return the inputs and outputs of a program as lists for JSON."""
    return [[[a.name, a.shape] for a in group] for group in (form.inputs, form.outputs)]


def arrays_of(data: list) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return the inputs and outputs that `arrays_data` has turned into lists."""
    inputs, outputs = (tuple(Array(name, tuple(shape)) for name, shape in group) for group in data)
    return inputs, outputs


VERSION = 2
"""The version of the text form of a Program; version 2 introduced booleans."""


@dataclass(frozen=True)
class Program:
    """Operations in order (operands before use), named inputs, and named outputs with one operation per entry.

    Operations are typed (operations.py), and types are checked when a Program is made. Comparisons are booleans, which
    select between numbers. Inputs and results are numbers.
    """

    name: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    ops: tuple[tuple, ...]
    results: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        """Check the operands and types of all operations."""
        check(self.ops, self.results, [a.size for a in self.inputs])

    @cached_property
    def types(self) -> tuple[Type, ...]:
        """The type of each operation's result."""
        return tuple(Type.BOOLEAN if op[0] in BOOLEANS else Type.NUMBER for op in self.ops)

    @classmethod
    def of_trace(cls, name: str, inputs, outputs, trace: Trace, results) -> Program:
        """Return the Program of the traced operations on which `results` depend, one list of scalars per output."""
        roots = [[trace.index(x) for x in entries] for entries in results]
        needed, leaf = bytearray(len(trace.ops)), Op.CONST
        stack = [i for entries in roots for i in entries]
        while stack:
            i = stack.pop()
            if not needed[i]:
                needed[i] = 1
                op = trace.ops[i]
                if op[0] > leaf:
                    stack.extend(op[1:])
        new: dict[int, int] = {}
        ops: list[tuple] = []
        for i, op in enumerate(trace.ops):
            if needed[i]:
                new[i] = len(ops)
                ops.append(op if op[0] <= leaf else (op[0], *(new[k] for k in op[1:])))
        return cls(name, tuple(inputs), tuple(outputs), tuple(ops), tuple(tuple(new[i] for i in e) for e in roots))

    def with_inputs(self, inputs: Sequence[Array], places: Mapping[str, tuple[str, int]]) -> Program:
        """Return the same arithmetic on other input arrays.

        `places` maps the name of an old input to a new array and to the entry at which the old one begins there. Inputs
        without a place keep their names.
        """
        group = {a.name: g for g, a in enumerate(inputs)}
        starts = [places.get(a.name, (a.name, 0)) for a in self.inputs]
        ops = (
            (op[0], group[starts[op[1]][0]], starts[op[1]][1] + op[2]) if op[0] is Op.INPUT else op for op in self.ops
        )
        return replace(self, inputs=tuple(inputs), ops=tuple(ops))

    hash = cached_property(digest)

    def cost(self) -> dict[str, int]:
        """Return the numbers of multiplications, additions, divisions, square roots and sines for one sample."""
        return count(self.ops)

    def dumps(self) -> str:
        """Return the program as text; numbers keep every bit."""
        ops = [[int(op[0]), float(op[1]).hex()] if op[0] is Op.CONST else list(map(int, op)) for op in self.ops]
        return json.dumps(
            {"kinetree": VERSION, "name": self.name, "arrays": arrays_data(self), "ops": ops, "results": self.results},
            separators=(",", ":"),
        )

    @classmethod
    def loads(cls, text: str) -> Program:
        """Return the program of a text that `dumps` returned."""
        data = json.loads(text)
        if data.get("kinetree") != VERSION:
            raise ValueError(f"the text is a Program of version {data.get('kinetree')}; expected version {VERSION}")
        inputs, outputs = arrays_of(data["arrays"])
        ops = tuple(
            (Op.CONST, float.fromhex(op[1])) if op[0] == Op.CONST else (Op(op[0]), *op[1:]) for op in data["ops"]
        )
        return cls(data["name"], inputs, outputs, ops, tuple(tuple(r) for r in data["results"]))

    interpret = interpret

    def replay(self, inputs: Sequence[Scalar], apply: Apply, constant: Constant = plain) -> list[list[Scalar]]:
        """Run the program on scalars of any type, given as one sequence per input.

        `apply(op, *operands)` carries out an operation, `constant` converts a number.
        """
        values: list[Scalar] = []
        for op, *x in self.ops:
            if op is Op.INPUT:
                values.append(inputs[x[0]][x[1]])
            elif op is Op.CONST:
                values.append(constant(x[0]))
            else:
                values.append(apply(op, *(values[k] for k in x)))
        return [[values[k] for k in entries] for entries in self.results]
