"""The target WebAssembly: one module for one or several Programs and kernels.

For each unit the module exports a function `name` of one sample, whose parameters are the addresses of its arrays in
the exported memory, inputs first. A kernel with an axis of times has the number of times as the last parameter. The
function `name_batch` has the number of samples first, then an address and a stride [bytes] per array. Arrays are dense
and row-major; inputs and outputs do not overlap. The global `heap` is the first address that the module does not use
itself. A module imports nothing: elementary functions are parts of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

from ..._support.version import VERSION
from ...compiler.ir.operations import OPERATIONS
from ...compiler.ir.program import Program
from ...compiler.lanes.form import Kernel
from ...errors import InputError
from ..protocol import Unit, digest
from .arithmetic import CALLED, REALS, SINES, SIZES, Place, groups_of_angles, program_body
from .elementary import add_functions
from .module import Module, body, code
from .statements import Statements
from .values import assign

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
