"""Statements of the lane language as structured WebAssembly, for one lane.

A value that is used once, in the block in which it is computed, stays on the stack. Loads are not moved past stores.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...lanes.form import (
    Call,
    Constant,
    EachLane,
    Kernel,
    Kind,
    Let,
    Loop,
    Operand,
    Put,
    Repeat,
    Statement,
    Store,
    When,
    While,
)
from .arithmetic import SIZES
from .binary import BLOCKS, PLAIN, access, code, indexed, integer, real
from .module import Module
from .single_uses import used_once
from .variables import Token

READS = ("load", "own", "shared")
"""The operations that read memory."""

ORDERED = {"lt": "lt_s", "le": "le_s", "gt": "gt_s", "ge": "ge_s"}
"""The comparisons of integers that have a signed form."""

UNROLLED = 16
"""The longest loop inside another one that is written as a sequence: the state of an arm with eight joints."""

Code = list[Token]


class Statements:
    """The writer of a kernel's statements; values are numbered as in the kernel."""

    def __init__(self, kernel: Kernel, kind: str, module: Module, functions: Mapping[str, int]) -> None:
        """Reserve the memory of the kernel; `functions` are its Programs, and its arguments are the parameters."""
        self.kind, self.module, self.functions = kind, module, functions
        self.memory = {m.name: m.kind for m in kernel.memory}
        self.blocks = {m.name: module.reserve(SIZES[self.type(m.kind)] * m.size) for m in kernel.memory}
        self.arguments = {a.name: (k, a.shape) for k, a in enumerate(kernel.arguments)}
        self.extent = len(kernel.arguments)
        self.tokens: Code = []
        self.types: dict[int, str] = {}
        self.loops: list[tuple[int, int]] = []
        self.once = used_once(kernel.body)
        self.pending: dict[int, tuple[Code, bool]] = {}  # code of values on the stack, whether it reads memory
        self.shifted: dict[int, tuple[int, int]] = {}  # counters plus constants, for addresses
        self.counters: set[int] = set()
        self.numbers: dict[int, int] = {}  # counters of loops that are written as a sequence
        self.depth = 0  # of loops
        self._steps: dict[type, Callable[[Any], None]] = {
            Let: self.let, Store: self.store, Put: self.put, Call: self.call, Loop: self.loop, Repeat: self.repeat,
            While: self.while_, When: self.when, EachLane: lambda s: self.write(s.body),
        }  # fmt: skip

    def write(self, body: Iterable[Statement]) -> None:
        """Write statements in order."""
        for statement in body:
            self._steps[type(statement)](statement)

    def type(self, kind: Kind) -> str:
        """Return the type of values of a kind."""
        if kind in (Kind.LANE, Kind.SCALAR):
            return self.kind
        return "i64" if kind in (Kind.INDEX, Kind.COUNT) else "i32"

    def of(self, x: Operand) -> str:
        """Return the type of an operand."""
        return self.type(x.kind) if isinstance(x, Constant) else self.types[x]

    def push(self, x: Operand | str) -> Code:
        """Return the code that pushes an operand on the stack."""
        assert not isinstance(x, str)
        if isinstance(x, Constant):
            kind = self.type(x.kind)
            return [real(float(x.value), kind) if kind == self.kind else integer(int(x.value), kind)]
        if x in self.numbers:
            return [integer(self.numbers[x], "i64")]
        if x in self.shifted:
            counter, more = self.shifted[x]
            if counter in self.numbers:
                return [integer(self.numbers[counter] + more, "i64")]
            return [("local.get", counter), code(f"i64.const {more} i64.add")]
        if x in self.pending:
            return self.pending.pop(x)[0]
        return [("local.get", x)]

    def settle(self, *, all_values: bool = False) -> None:
        """Write pending values into variables: those that read memory, or all."""
        for k in [k for k, (_, reads) in self.pending.items() if reads or all_values]:
            self.tokens += [*self.pending.pop(k)[0], ("local.set", k)]

    def let(self, s: Let) -> None:
        """Write an operation, or keep it for the only statement that uses it."""
        self.types[s.to] = self.type(s.kind)
        if s.op == "add" and s.args[0] in self.counters and isinstance(s.args[1], Constant):
            self.shifted[s.to] = (int(s.args[0]), int(s.args[1].value))  # type: ignore[arg-type]
            return
        reads = s.op in READS or any(self.pending.get(x, ((), False))[1] for x in s.args if isinstance(x, int))
        made = self._operation(s)
        if s.to in self.once:
            self.pending[s.to] = (made, reads)
        else:
            self.tokens += [*made, ("local.set", s.to)]

    def _operation(self, s: Let) -> Code:
        if s.op == "load":
            kind = self.type(self.memory[str(s.args[0])])
            address, offset = self._entry(str(s.args[0]), s.args[1])
            return [*address, access(f"{kind}.load", offset)]
        if s.op in ("own", "shared"):
            return [*self._place(str(s.args[0]), s.args[1:]), access(f"{self.kind}.load", 0)]
        if s.op == "extent":
            return [indexed("local.get", self.extent) + PLAIN["i64.extend_i32_u"]]
        if s.op == "choose":
            format_ = "<d" if self.kind == "f64" else "<f"
            numbers = [x.value for x in s.args[1:] if isinstance(x, Constant)]
            table = self.module.constants(b"".join(struct.pack(format_, x) for x in numbers))
            return [*self._scaled(s.args[0], SIZES[self.kind]), access(f"{self.kind}.load", table)]
        if s.op == "select":
            return [*self.push(s.args[1]), *self.push(s.args[2]), *self.push(s.args[0]), PLAIN["select"]]
        return [t for x in s.args for t in self.push(x)] + self._instruction(s)

    def _instruction(self, s: Let) -> Code:
        if s.op in ("splat", "any"):  # one lane
            return []
        of = self.of(s.args[0])  # type: ignore[arg-type]
        whole = of.replace("f", "i")
        special = {
            "not": "i32.eqz",
            "number": f"{self.kind}.convert_i64_s",
            "whole": f"i64.trunc_sat_{self.kind}_s",
            "bits": f"{whole}.reinterpret_{of} {of}.convert_{whole}_s",
            "unbits": f"{whole}.trunc_sat_{of}_s {of}.reinterpret_{whole}",
        }
        name = ORDERED.get(s.op, s.op) if of[0] == "i" else s.op
        return [code(special.get(s.op, f"{of}.{name}"))]

    def _entry(self, memory: str, index: Any) -> tuple[Code, int]:
        """Return the code of an address in a memory block, and an offset."""
        base, size = self.blocks[memory], SIZES[self.type(self.memory[memory])]
        if isinstance(index, Constant):
            return [integer(0)], base + size * int(index.value)
        if index in self.shifted:
            index, first = self.shifted[index]
            base += size * first
        if index in self.numbers:
            return [integer(0)], base + size * self.numbers[index]
        return self._scaled(index, size), base

    def _scaled(self, index: Any, size: int) -> Code:
        """Return the code of an index in bytes."""
        return [*self.push(index), code(f"i32.wrap_i64 i32.const {size.bit_length() - 1} i32.shl")]

    def _place(self, argument: str, indices: Iterable[Any]) -> Code:
        """Return the code of the address of an entry of an argument, in dense row-major order."""
        parameter, shape = self.arguments[argument]
        address: Code = []
        for d, index in enumerate(indices):
            if d:
                address.append(indexed("local.get", self.extent) if shape[d] == "t" else integer(int(shape[d])))
                address.append(PLAIN["i32.mul"])
            address += [*self.push(index), PLAIN["i32.wrap_i64"]]
            if d:
                address.append(PLAIN["i32.add"])
        if not address:
            return [indexed("local.get", parameter)]
        shift = SIZES[self.kind].bit_length() - 1
        return [*address, code(f"i32.const {shift} i32.shl"), indexed("local.get", parameter), PLAIN["i32.add"]]

    def store(self, s: Store) -> None:
        """Write a store into the memory."""
        kind = self.type(self.memory[s.memory])
        address, offset = self._entry(s.memory, s.index)
        self._write([*address, *self.push(s.value), access(f"{kind}.store", offset)])

    def put(self, s: Put) -> None:
        """Write a store into an output."""
        address = self._place(s.argument, s.indices)
        self._write([*address, *self.push(s.value), access(f"{self.kind}.store", 0)])

    def _write(self, made: Code) -> None:
        self.settle()
        self.tokens += made

    def call(self, s: Call) -> None:
        """Write the call of a Program, which may store results before it has read all inputs."""
        assert s.source != s.target, f"{s.program} writes to its own inputs"
        address, offset = self._entry(s.target, s.first)
        target = [*address, code(f"i32.const {offset} i32.add")] if len(address) > 1 else [integer(offset)]
        self._write([integer(self.blocks[s.source]), *target, indexed("call", self.functions[s.program])])

    def loop(self, s: Loop) -> None:
        """Write a loop over a counter."""
        constant = isinstance(s.stop, Constant)
        if isinstance(s.stop, Constant) and s.stop.value <= 0:
            return
        self.types[s.counter] = "i64"
        self.counters.add(s.counter)
        self.settle(all_values=True)
        if isinstance(s.stop, Constant) and self.depth and _short(s):
            self._sequence(s, int(s.stop.value))
            return
        self.depth += 1
        counter = ("local.get", s.counter)
        self.tokens += [integer(0, "i64"), ("local.set", s.counter)]
        if not constant:
            self.tokens += [counter, *self.push(s.stop), PLAIN["i64.lt_s"], BLOCKS["if"]]
        start = len(self.tokens)
        self.tokens.append(BLOCKS["loop"])
        self.write(s.body)
        self.settle(all_values=True)
        self.tokens += [counter, code("i64.const 1 i64.add"), ("local.tee", s.counter), *self.push(s.stop)]
        self.tokens += [PLAIN["i64.lt_s"], indexed("br_if", 0), PLAIN["end"]]
        self.loops.append((start, len(self.tokens) - 1))
        self.depth -= 1
        if not constant:
            self.tokens.append(PLAIN["end"])

    def _sequence(self, s: Loop, stop: int) -> None:
        """Write the statements of a loop once per value of its counter, without tests and with fixed addresses."""
        for number in range(stop):
            self.numbers[s.counter] = number
            self.write(s.body)
            self.settle(all_values=True)

    def repeat(self, s: Repeat) -> None:
        """Write a loop with its test at the end."""
        self.settle(all_values=True)
        start = len(self.tokens)
        self.tokens.append(BLOCKS["loop"])
        self.write(s.body)
        again = self.push(s.again)
        self.settle(all_values=True)
        self.tokens += [*again, indexed("br_if", 0), PLAIN["end"]]
        self.loops.append((start, len(self.tokens) - 1))

    def while_(self, s: While) -> None:
        """Write a loop with its test at the start."""
        self.settle(all_values=True)
        start = len(self.tokens)
        self.tokens += [BLOCKS["block"], BLOCKS["loop"]]
        self.write(s.test)
        condition = self.push(s.condition)
        self.settle(all_values=True)
        self.tokens += [*condition, PLAIN["i32.eqz"], indexed("br_if", 1)]
        self.write(s.body)
        self.settle(all_values=True)
        self.tokens += [indexed("br", 0), PLAIN["end"], PLAIN["end"]]
        self.loops.append((start, len(self.tokens) - 1))

    def when(self, s: When) -> None:
        """Write statements under a condition."""
        condition = self.push(s.condition)
        self.settle(all_values=True)
        self.tokens += [*condition, BLOCKS["if"]]
        self.write(s.body)
        self.settle(all_values=True)
        self.tokens.append(PLAIN["end"])


def _short(s: Loop) -> bool:
    """Return whether a loop has few values and only simple statements."""
    return isinstance(s.stop, Constant) and s.stop.value <= UNROLLED and all(isinstance(x, Let | Store) for x in s.body)
