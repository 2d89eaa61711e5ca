"""Interpreter of kernels in NumPy, independent of every target: simple and slow."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...algebra.scalars import Scalar
from .form import (
    Call,
    Constant,
    EachLane,
    Kernel,
    Kind,
    Let,
    Loop,
    Meet,
    Operand,
    Put,
    Repeat,
    Statement,
    Store,
    When,
    While,
    visit,
)

TYPES = {Kind.MASK: bool, Kind.INDEX: int, Kind.COUNT: int, Kind.FLAG: bool, Kind.DOUBLE: float}

PLAIN: dict[str, Callable[..., Scalar]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "abs": abs,
    "sqrt": np.sqrt,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "select": np.where,
    "choose": lambda index, *table: table[int(index)],
    "any": np.any,
    "splat": lambda x: x,
}
"""The operations with a counterpart in NumPy, where uniform values are broadcast to lanes."""


def interpret(kernel: Kernel, *arguments: object, dtype: str = "float64") -> list[np.ndarray]:
    """Return the outputs of a kernel for arrays with any leading shape."""
    inputs, _ = kernel.arity
    arrays = [np.asarray(x, dtype=a.type or dtype) for a, x in zip(kernel.arguments, arguments, strict=False)]
    leads, extent = [], 0
    for a, given in zip(kernel.arguments[:inputs], arrays, strict=True):
        leads.append(given.shape[: given.ndim - len(a.shape)])
        if "t" in a.shape:
            extent = given.shape[len(leads[-1]) + a.shape.index("t")]
    lead = np.broadcast_shapes(*leads)
    samples = {}
    for a, given in zip(kernel.arguments[:inputs], arrays, strict=True):
        core = given.shape[given.ndim - len(a.shape) :]
        samples[a.name] = np.broadcast_to(given, lead + core).reshape(-1, *core)
    shapes = {a.name: tuple(extent if d == "t" else int(d) for d in a.shape) for a in kernel.arguments[inputs:]}
    samples |= {a.name: _unwritten((prod(lead), *shapes[a.name]), a.type or dtype) for a in kernel.arguments[inputs:]}
    with np.errstate(all="ignore"):
        _Machine(kernel, samples, prod(lead), extent, np.dtype(dtype)).run(kernel.body)
    return [samples[name].reshape(lead + shape) for name, shape in shapes.items()]


def _unwritten(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return the memory of an output: NaN, or zeros for types without it."""
    return np.full(shape, np.nan, dtype) if dtype.startswith("float") else np.zeros(shape, dtype)


class _Machine:
    """The state of one interpretation: values by index, memory by name, and the lane inside `EachLane`."""

    def __init__(self, kernel: Kernel, samples: dict, lanes: int, extent: int, dtype: np.dtype) -> None:
        self.samples, self.lanes, self.extent, self.dtype = samples, lanes, extent, dtype
        self.integers = np.dtype(f"i{dtype.itemsize}")
        self.programs = dict(kernel.programs)
        self.uniform = {m.name: m.kind.uniform for m in kernel.memory}
        self.memory = {
            m.name: np.zeros(m.size if m.kind.uniform else (m.size, lanes), TYPES.get(m.kind, dtype))
            for m in kernel.memory
        }
        self.values: dict[int, Scalar] = {}
        self.lane: int | None = None

    def run(self, body: tuple[Statement, ...]) -> None:
        visit(self, body)

    def read(self, x: Operand) -> Scalar:
        if isinstance(x, Constant):
            if x.kind is Kind.DOUBLE:
                return np.float64(x.value)
            return self.dtype.type(x.value) if x.kind in (Kind.LANE, Kind.SCALAR) else x.value
        value = self.values[x]
        return value[self.lane] if self.lane is not None and np.ndim(value) else value

    def let(self, s: Let) -> None:
        if s.op in PLAIN:
            self.values[s.to] = PLAIN[s.op](*map(self.read, s.operands))
            return
        special: dict[str, Callable[..., Scalar]] = {
            "number": self.dtype.type,
            "whole": int,
            "round": lambda x: np.asarray(x, self.dtype)[()],
            "bits": lambda x: self.dtype.type(1) * np.asarray(x, self.dtype).view(self.integers).astype(self.dtype),
            "unbits": lambda x: np.asarray(x, self.dtype).astype(self.integers).view(self.dtype),
            "extent": lambda: self.extent,
        }
        if s.op in special:
            self.values[s.to] = special[s.op](*map(self.read, s.operands))
            return
        if s.op == "load":
            self.values[s.to] = self.memory[s.array][self._place(s.array, s.operands[0])].copy()
        else:
            places = tuple(int(self.read(x)) for x in s.operands)
            entry = self.samples[s.array][(0 if s.op == "shared" else self.lane, *places)]
            self.values[s.to] = entry if s.kind is Kind.DOUBLE else self.dtype.type(entry)

    def _place(self, memory: str, index: Any) -> tuple[Any, ...]:
        """Return the entry of a block that is read or written, in all lanes or in one."""
        at = self.read(index)
        if self.uniform[memory]:
            return (int(at),)
        if self.lane is not None:
            return (int(at), self.lane)
        return (at, np.arange(self.lanes)) if np.ndim(at) else (int(at),)

    def store(self, s: Store) -> None:
        self.memory[s.memory][self._place(s.memory, s.index)] = self.read(s.value)

    def put(self, s: Put) -> None:
        places = tuple(int(self.read(x)) for x in s.indices)
        self.samples[s.argument][(self.lane, *places)] = self.read(s.value)

    def call(self, s: Call) -> None:
        program, block, at = self.programs[s.program], self.memory[s.source], 0
        inputs = []
        for a in program.inputs:
            inputs.append(np.moveaxis(block[at : at + a.size], 0, -1).reshape(self.lanes, *a.shape))
            at += a.size
        outputs = [x.reshape(self.lanes, -1).T for x in program.interpret(*inputs)]
        total, first = np.concatenate(outputs), int(self.read(s.first))
        self.memory[s.target][first : first + len(total)] = total

    def loop(self, s: Loop) -> None:
        for k in range(self.read(s.stop)):
            self.values[s.counter] = k
            self.run(s.body)

    def repeat(self, s: Repeat) -> None:
        self.run(s.body)
        while self.read(s.again):
            self.run(s.body)

    def while_(self, s: While) -> None:
        self.run(s.test)
        while self.read(s.condition):
            self.run(s.body)
            self.run(s.test)

    def when(self, s: When) -> None:
        if self.read(s.condition):
            self.run(s.body)

    def meet(self, s: Meet) -> None:
        pass

    def each_lane(self, s: EachLane) -> None:
        for lane in range(self.lanes):
            self.lane = lane
            self.run(s.body)
        self.lane = None
