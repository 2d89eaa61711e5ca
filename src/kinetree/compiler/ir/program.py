"""Program: the arithmetic of one function in static single assignment, the one thing that every target reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from .trace import UNARY, Op, Trace

VERSION = 1


@dataclass(frozen=True)
class Array:
    """A named input or output with its shape, () for a scalar."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of entries."""
        return prod(self.shape)


@dataclass(frozen=True)
class Program:
    """Operations in order (operands before use), named inputs, named outputs with an operation for each entry."""

    name: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    ops: tuple[tuple, ...]
    results: tuple[tuple[int, ...], ...]

    @classmethod
    def of_trace(cls, name: str, inputs, outputs, trace: Trace, results) -> Program:
        """Return what `results` (a list of scalars for each output) need of a trace, in its order."""
        roots = [[trace.index(x) for x in entries] for entries in results]
        needed = bytearray(len(trace.ops))
        stack = [i for entries in roots for i in entries]
        while stack:
            i = stack.pop()
            if not needed[i]:
                needed[i] = 1
                op = trace.ops[i]
                if op[0] > Op.CONST:
                    stack.extend(op[1:])
        new: dict[int, int] = {}
        ops: list[tuple] = []
        for i, op in enumerate(trace.ops):
            if needed[i]:
                new[i] = len(ops)
                ops.append(op if op[0] <= Op.CONST else (op[0], *(new[k] for k in op[1:])))
        return cls(name, tuple(inputs), tuple(outputs), tuple(ops), tuple(tuple(new[i] for i in e) for e in roots))

    @cached_property
    def hash(self) -> str:
        """A digest of the arithmetic, the names and the shapes."""
        return hashlib.sha256(self.dumps().encode()).hexdigest()

    def cost(self) -> dict[str, int]:
        """Return the counts of multiplications, additions, divisions, square roots and sines, as run for one sample."""
        count: dict[str, int] = dict.fromkeys(
            ("multiplications", "additions", "divisions", "roots", "sines", "others"), 0
        )
        label = {
            Op.MUL: "multiplications",
            Op.ADD: "additions",
            Op.SUB: "additions",
            Op.DIV: "divisions",
            Op.SQRT: "roots",
            Op.SIN: "sines",
            Op.COS: "sines",
        }
        for op, *_ in self.ops:
            if op not in (Op.INPUT, Op.CONST, Op.NEG):
                count[label.get(op, "others")] += 1
        return count

    def dumps(self) -> str:
        """Return the program as text; numbers keep every bit."""
        ops = [[int(op[0]), float(op[1]).hex()] if op[0] is Op.CONST else list(map(int, op)) for op in self.ops]
        arrays = [[[a.name, list(a.shape)] for a in group] for group in (self.inputs, self.outputs)]
        return json.dumps(
            {"kinetree": VERSION, "name": self.name, "arrays": arrays, "ops": ops, "results": self.results},
            separators=(",", ":"),
        )

    @classmethod
    def loads(cls, text: str) -> Program:
        """Return the program that `dumps` wrote."""
        data = json.loads(text)
        if data.get("kinetree") != VERSION:
            raise ValueError(f"a Program of version {data.get('kinetree')}, this reads version {VERSION}")
        inputs, outputs = (tuple(Array(n, tuple(s)) for n, s in group) for group in data["arrays"])
        ops = tuple(
            (Op.CONST, float.fromhex(op[1])) if op[0] == Op.CONST else (Op(op[0]), *op[1:]) for op in data["ops"]
        )
        return cls(data["name"], inputs, outputs, ops, tuple(tuple(r) for r in data["results"]))

    def interpret(self, *arguments: Any) -> list[np.ndarray]:
        """Run the program operation by operation in NumPy: slow, plain, and independent of every target."""
        arrays = [np.asarray(a, dtype=float) for a in arguments]
        lead = np.broadcast_shapes(
            *(a.shape[: a.ndim - len(i.shape)] for a, i in zip(arrays, self.inputs, strict=True))
        )
        flat = [
            np.broadcast_to(a, lead + i.shape).reshape(*lead, i.size) for a, i in zip(arrays, self.inputs, strict=True)
        ]
        entries = [np.moveaxis(a, -1, 0) for a in flat]
        with np.errstate(all="ignore"):
            results = self.replay(entries, lambda op, *x: _NUMPY[op](*x))
        return [
            np.stack([np.broadcast_to(x, lead) for x in values], axis=-1).reshape(lead + out.shape)
            if values
            else np.zeros(lead + out.shape)
            for out, values in zip(self.outputs, results, strict=True)
        ]

    def replay(
        self,
        inputs: Sequence[Any],
        apply: Callable[..., Any],
        constant: Callable[[float], Any] = lambda x: x,
    ) -> list[list[Any]]:
        """Run the program on any scalars, a sequence of them for each input.

        `apply(op, *operands)` does an operation, `constant` reads a number.
        """
        values: list[Any] = []
        for op, *x in self.ops:
            if op is Op.INPUT:
                values.append(inputs[x[0]][x[1]])
            elif op is Op.CONST:
                values.append(constant(x[0]))
            else:
                values.append(apply(op, *(values[k] for k in x)))
        return [[values[k] for k in entries] for entries in self.results]


_NUMPY = {
    Op.ADD: np.add,
    Op.SUB: np.subtract,
    Op.MUL: np.multiply,
    Op.DIV: np.divide,
    Op.NEG: np.negative,
    Op.ATAN2: np.arctan2,
    Op.LESS: np.less,
    Op.SELECT: np.where,
    Op.ASIN: np.arcsin,
    Op.ACOS: np.arccos,
    Op.ATAN: np.arctan,
} | {op: getattr(np, op.name.lower()) for op in UNARY if hasattr(np, op.name.lower())}
