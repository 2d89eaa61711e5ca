"""The target WebAssembly: one module for one or several Programs and kernels.

For each unit the module exports a function `name` of one sample, whose parameters are the addresses of its arrays in
the exported memory, inputs first. A kernel with an axis of times has the number of times as the last parameter. The
function `name_batch` has the number of samples first, then an address and a stride [bytes] per array. Arrays are dense
and row-major; inputs and outputs do not overlap. The global `heap` is the first address that the module does not use
itself. A module imports nothing: elementary functions are parts of it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from ..._support import VERSION
from ...compiler.ir.operations import OPERATIONS
from ...compiler.ir.program import Program
from ...compiler.lanes import form
from ...compiler.lanes.form import Constant, Kernel, Operand, Statement, visit
from ...errors import InputError
from .. import Unit, digest
from .arithmetic import CALLED, REALS, SINES, SIZES, Place, groups_of_angles, program_body
from .elementary import add_functions
from .module import BLOCKS, PLAIN, Module, access, body, code, indexed_instruction, integer
from .values import Code, Token, Values, assign

# --- Statements of the lane language as structured WebAssembly, for one lane ---

ORDERED = {"lt": "lt_s", "le": "le_s", "gt": "gt_s", "ge": "ge_s"}
"""The comparisons of integers that have a signed form."""

UNROLLED = 16
"""The longest loop inside another one that is written as a sequence: the state of an arm with eight joints."""


class Statements:
    """The writer of a kernel's statements; values are numbered as in the kernel."""

    def __init__(self, kernel: Kernel, number: str, module: Module, functions: Mapping[str, int]) -> None:
        """Reserve the memory of the kernel; `functions` are its Programs, and its arguments are the parameters."""
        self.number, self.module, self.functions = number, module, functions
        self.values = Values(kernel.body, number)
        self.memory = {m.name: self.values.type(m.kind) for m in kernel.memory}
        self.blocks = {m.name: module.reserve(SIZES[self.memory[m.name]] * m.size) for m in kernel.memory}
        self.arguments = {a.name: (k, a.shape) for k, a in enumerate(kernel.arguments)}
        self.inputs = {name: sum(a.size for a in p.inputs) for name, p in kernel.programs}
        self.extent = len(kernel.arguments)
        self.loops: list[tuple[int, int]] = []
        self.depth = 0  # of loops

    def write(self, body: Iterable[Statement]) -> None:
        """Write statements in order."""
        visit(self, body)

    def let(self, s: form.Let) -> None:
        """Write an operation, or keep it for the only statement that uses it."""
        if self.values.is_shift(s):
            self.values.keep_shift(s)
        else:
            reads = self.values.reads_memory(s)
            self.values.keep(s, self._operation(s), reads=reads)

    def _operation(self, s: form.Let) -> Code:
        push, number = self.values.push, self.number
        if s.op == "load":
            memory = s.array
            address, offset = self._entry(memory, s.operands[0])
            return [*address, access(f"{self.memory[memory]}.load", offset)]
        if s.op in ("own", "shared"):
            return [*self._place(s.array, s.operands), access(f"{number}.load", 0)]
        if s.op == "extent":
            return [indexed_instruction("local.get", self.extent) + PLAIN["i64.extend_i32_u"]]
        if s.op == "choose":
            format_ = "<d" if number == "f64" else "<f"
            numbers = [x.value for x in s.args[1:] if isinstance(x, Constant)]
            table = self.module.constants(b"".join(struct.pack(format_, x) for x in numbers))
            return [*self._scaled(s.args[0], SIZES[number]), access(f"{number}.load", table)]
        if s.op == "select":
            return [*push(s.args[1], s.args[2], s.args[0]), PLAIN["select"]]
        return [*push(*s.args), *self._instruction(s)]

    def _instruction(self, s: form.Let) -> Code:
        if s.op in ("splat", "any"):  # one lane
            return []
        assert not isinstance(s.args[0], str)
        of = self.values.type_of(s.args[0])
        whole = of.replace("f", "i")
        special = {
            "not": "i32.eqz",
            "number": f"{self.number}.convert_i64_s",
            "whole": f"i64.trunc_sat_{self.number}_s",
            "bits": f"{whole}.reinterpret_{of} {of}.convert_{whole}_s",
            "unbits": f"{whole}.trunc_sat_{of}_s {of}.reinterpret_{whole}",
        }
        name = ORDERED.get(s.op, s.op) if of[0] == "i" else s.op
        return [code(special.get(s.op, f"{of}.{name}"))]

    def _entry(self, memory: str, index: Operand | str) -> tuple[Code, int]:
        """Return the code of an address in a memory block, and an offset."""
        assert not isinstance(index, str)
        size = SIZES[self.memory[memory]]
        value, first = self.values.place(index)
        return [integer(0)] if value is None else self._scaled(value, size), self.blocks[memory] + size * first

    def _scaled(self, index: Operand | str, size: int) -> Code:
        """Return the code of an index in bytes."""
        return [*self.values.push(index), code(f"i32.wrap_i64 i32.const {size.bit_length() - 1} i32.shl")]

    def _place(self, argument: str, indices: Iterable[Operand | str]) -> Code:
        """Return the code of the address of an entry of an argument, in dense row-major order."""
        parameter, shape = self.arguments[argument]
        address: Code = []
        for d, index in enumerate(indices):
            if d:
                address.append(
                    indexed_instruction("local.get", self.extent) if shape[d] == "t" else integer(int(shape[d]))
                )
                address.append(PLAIN["i32.mul"])
            address += [*self.values.push(index), PLAIN["i32.wrap_i64"]]
            if d:
                address.append(PLAIN["i32.add"])
        if not address:
            return [indexed_instruction("local.get", parameter)]
        shift = SIZES[self.number].bit_length() - 1
        return [
            *address,
            code(f"i32.const {shift} i32.shl"),
            indexed_instruction("local.get", parameter),
            PLAIN["i32.add"],
        ]

    def store(self, s: form.Store) -> None:
        """Write a store into the memory."""
        address, offset = self._entry(s.memory, s.index)
        self._change([*address, *self.values.push(s.value), access(f"{self.memory[s.memory]}.store", offset)])

    def put(self, s: form.Put) -> None:
        """Write a store into an output."""
        address = self._place(s.argument, s.indices)
        self._change([*address, *self.values.push(s.value), access(f"{self.number}.store", 0)])

    def call(self, s: form.Call) -> None:
        """Write the call of a Program, which may store results before it has read all inputs."""
        behind = isinstance(s.first, Constant) and s.first.value >= self.inputs[s.program]
        assert s.source != s.target or behind, f"{s.program} writes to its own inputs"
        address, offset = self._entry(s.target, s.first)
        target = [*address, code(f"i32.const {offset} i32.add")] if len(address) > 1 else [integer(offset)]
        self._change([integer(self.blocks[s.source]), *target, indexed_instruction("call", self.functions[s.program])])

    def _change(self, made: Code) -> None:
        """Write code that changes the memory."""
        self.values.settle_reads()
        self._put(*made)

    def _put(self, *tokens: Token) -> None:
        self.values.code += tokens

    def _block(self, body: Iterable[Statement]) -> None:
        """Write statements that leave no values on the stack."""
        self.write(body)
        self.values.settle()

    def loop(self, s: form.Loop) -> None:
        """Write a loop over a counter."""
        stop = int(s.stop.value) if isinstance(s.stop, Constant) else None
        if stop is not None and stop <= 0:
            return
        self.values.add_counter(s.counter)
        self.values.settle()
        if stop is not None and self.depth and stop <= UNROLLED and _simple(s.body):
            self._sequence(s, stop)
            return
        self.depth += 1
        counter = ("local.get", s.counter)
        self._put(integer(0, "i64"), ("local.set", s.counter))
        if stop is None:
            self._put(counter, *self.values.push(s.stop), PLAIN["i64.lt_s"], BLOCKS["if"])
        with self._looped():
            self._put(BLOCKS["loop"])
            self._block(s.body)
            self._put(counter, code("i64.const 1 i64.add"), ("local.tee", s.counter), *self.values.push(s.stop))
            self._put(PLAIN["i64.lt_s"], indexed_instruction("br_if", 0), PLAIN["end"])
        self.depth -= 1
        if stop is None:
            self._put(PLAIN["end"])

    def _sequence(self, s: form.Loop, stop: int) -> None:
        """Write the statements of a loop once per value of its counter, without tests and with fixed addresses."""
        for number in range(stop):
            self.values.known[s.counter] = number
            self._block(s.body)

    def repeat(self, s: form.Repeat) -> None:
        """Write a loop with its test at the end."""
        self.values.settle()
        with self._looped():
            self._put(BLOCKS["loop"])
            self.write(s.body)
            self._test(s.again, indexed_instruction("br_if", 0), PLAIN["end"])

    def while_(self, s: form.While) -> None:
        """Write a loop with its test at the start."""
        self.values.settle()
        with self._looped():
            self._put(BLOCKS["block"], BLOCKS["loop"])
            self.write(s.test)
            self._test(s.condition, PLAIN["i32.eqz"], indexed_instruction("br_if", 1))
            self._block(s.body)
            self._put(indexed_instruction("br", 0), PLAIN["end"], PLAIN["end"])

    @contextmanager
    def _looped(self) -> Iterator[None]:
        """Note the first and last places of the code written inside."""
        start = len(self.values.code)
        yield
        self.loops.append((start, len(self.values.code) - 1))

    def when(self, s: form.When) -> None:
        """Write statements under a condition."""
        self._test(s.condition, BLOCKS["if"])
        self._block(s.body)
        self._put(PLAIN["end"])

    def _test(self, condition: Operand, *branch: Token) -> None:
        """Write a condition and the branch that takes it, with no other values on the stack."""
        pushed = self.values.push(condition)
        self.values.settle()
        self._put(*pushed, *branch)

    def each_lane(self, s: form.EachLane) -> None:
        """Write the statements of the single lane."""
        self.write(s.body)


def _simple(body: Iterable[Statement]) -> bool:
    """Return whether all statements are operations and stores."""
    return all(isinstance(s, form.Let | form.Store) for s in body)


ROOM = 65536
"""The bytes of memory beyond those that the module uses itself; the host may allocate more."""


class Wasm:
    """The target WebAssembly, whose modules run in browsers, in Node and in any other host."""

    def emit(self, unit: Unit, dtype: str) -> bytes:
        """Return the module of a Program or kernel."""
        if not isinstance(unit, Program | Kernel):
            raise InputError(
                f"WebAssembly is written for a Program or a kernel, not for a {type(unit).__name__}; "
                "use lowering='unrolled'"
            )
        return wasm_module([unit], dtype)


def wasm_module(units: Sequence[Program | Kernel], dtype: str = "float64", *, model: str = "") -> bytes:
    """Return a module with several functions, which share its memory; `model` is the name of their mechanism."""
    names = [u.name for u in units]
    if len({*names}) < len(names):
        raise InputError(f"two functions of a module have one name: {', '.join(names)}; rename one of them")
    module = Module()
    functions = _functions(module, units)
    for unit in units:
        if isinstance(unit, Program):
            _add_program(module, unit, dtype, functions)
        else:
            _add_kernel(module, unit, dtype, functions)
    described = {
        "kinetree": VERSION,
        "model": model,
        "dtype": dtype,
        "functions": [_described(unit, dtype) for unit in units],
    }
    return module.bytes(described, ROOM)


def _functions(module: Module, units: Iterable[Program | Kernel]) -> dict[str, int]:
    """Add the elementary functions that Programs call, and return their indices."""
    programs = [p for u in units for p in ([u] if isinstance(u, Program) else [p for _, p in u.programs])]
    used = {op[0] for p in programs for op in p.ops}
    names = {OPERATIONS[op].name for op in used & CALLED} | ({"sines"} if used & {*SINES} else set())
    names |= {f"sines of {len(angles)}" for p in programs for angles in groups_of_angles(p.ops)}
    return add_functions(module, names)


def _add_program(module: Module, program: Program, dtype: str, functions: dict[str, int]) -> None:
    """Add the functions of a Program for one sample and for many."""
    arrays = [*program.inputs, *program.outputs]
    made = program_body(program, dtype, [(k, 0) for k in range(len(arrays))], len(arrays), functions, module)
    one = module.add(("i32",) * len(arrays), (), made, program.name)
    _add_batch(module, program.name, one, len(arrays), extra=0)


def _add_kernel(module: Module, kernel: Kernel, dtype: str, functions: dict[str, int]) -> None:
    """Add the functions of a kernel for one sample and for many; its Programs are internal functions."""
    called = {
        name: module.add(("i32", "i32"), (), program_body(p, dtype, _consecutive(p, dtype), 2, functions, module))
        for name, p in kernel.programs
    }
    statements = Statements(kernel, REALS[dtype], module, called)
    statements.write(kernel.body)
    extra = int("t" in kernel.dimensions)
    count = len(kernel.arguments) + extra
    made = assign(statements.values.code, statements.values.types, count, kernel.name, statements.loops)
    one = module.add(("i32",) * count, (), body(*made), kernel.name)
    _add_batch(module, kernel.name, one, len(kernel.arguments), extra=extra)


def _consecutive(program: Program, dtype: str) -> list[Place]:
    """Return the places of arrays that follow each other: inputs in the first block, outputs in the second."""
    places = []
    for parameter, arrays in enumerate((program.inputs, program.outputs)):
        at = 0
        for a in arrays:
            places.append((parameter, at))
            at += SIZES[REALS[dtype]] * a.size
    return places


def _add_batch(module: Module, name: str, one: int, arrays: int, *, extra: int) -> None:
    """Add the loop over samples: (count, address, stride, address, stride, ...), with a number of times at the end."""
    given = " ".join(f"local.get {1 + 2 * k}" for k in range(arrays))
    times = f"local.get {1 + 2 * arrays}" if extra else ""
    onward = " ".join(
        f"local.get {1 + 2 * k} local.get {2 + 2 * k} i32.add local.set {1 + 2 * k}" for k in range(arrays)
    )
    source = f"""
        block loop
            local.get 0 i32.const 0 i32.le_s br_if 1
            {given} {times} call {one}
            {onward}
            local.get 0 i32.const 1 i32.sub local.set 0
            br 0
        end end
        """
    module.add(("i32",) * (1 + 2 * arrays + extra), (), body([], code(source)), f"{name}_batch")


def _described(unit: Program | Kernel, dtype: str) -> dict[str, Any]:
    """Return the name, the arrays and the hash of a unit, for the metadata of a module."""
    if isinstance(unit, Program):
        inputs, outputs = ([(a.name, a.shape, False) for a in arrays] for arrays in (unit.inputs, unit.outputs))
    else:
        inputs, outputs = (
            [(a.name, a.shape, a.shared) for a in unit.arguments if a.output is output] for output in (False, True)
        )

    def listed(arrays: list) -> list[dict[str, Any]]:
        return [{"name": n, "shape": list(shape)} | ({"shared": True} if shared else {}) for n, shape, shared in arrays]

    return {"name": unit.name, "inputs": listed(inputs), "outputs": listed(outputs), "hash": digest(unit, dtype)}


# --- The JavaScript module that loads WebAssembly modules of Kinetree: one file, without other packages ---

LOADER = "kinetree.mjs"
"""The name of the file."""


def loader() -> str:
    """Return the source of the loader, an ES module for browsers, Node and other hosts."""
    return (files(__package__ or "") / LOADER).read_text(encoding="utf-8")
