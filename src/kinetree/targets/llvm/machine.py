"""LLVM on this machine: from assembly to object code to addresses, without a C compiler."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from ...compiler.ir.program import Program
from ...compiler.lanes.form import Kernel
from ...errors import InputError
from ..protocol import Unit
from .arithmetic import operations
from .child_process import compile_in_child
from .code_generation import Options
from .crew_threads import LIBRARY as WAITING
from .lane_statements import Statements
from .number_types import SCALARS, Writer
from .scalar import Entries, LibraryFunctions, scalar_function
from .vector_math import LIBRARY
from .writer import Text

LEVEL = 2
"""The optimization level of code generation; level 3 takes longer, and its code was no faster."""


@cache
def _ready() -> None:
    """Prepare LLVM for this processor, once, and register the addresses of the C library's functions."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in (*LIBRARY, "feclearexcept", "fetestexcept", "malloc", "free"):
        llvm.add_symbol(f"kt_{name}", _library_address(name))
    if sys.platform == "linux":
        for name in WAITING:
            llvm.add_symbol(f"kt_{name}", ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0)


def machine() -> llvm.TargetMachine:
    """Return a target machine with all vector instructions of this computer; an engine takes ownership of it.

    LLVM's model of code in memory takes each constant by its whole address. The small code model, with constants
    relative to the code, gave the same bits 3 to 5 percent faster. It is not used because code and constants must then
    be at most 2 GiB apart, which the linker of code in memory does not ensure.
    """
    _ready()
    return llvm.Target.from_default_triple().create_target_machine(**_options())


def _options() -> Options:
    return {"cpu": llvm.get_host_cpu_name(), "features": llvm.get_host_cpu_features().flatten(), "opt": LEVEL}


@cache
def fingerprint() -> str:
    """Return a text of all that object code depends on besides the Program: processor, features, version of LLVM."""
    version = ".".join(map(str, llvm.llvm_version_info))
    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()} llvm-{version} O{LEVEL}"


def compile_assembly(assembly: str) -> bytes:
    """Return the object code of a module."""
    _ready()
    return compile_in_child(assembly, llvm.get_default_triple(), _options())


class Loaded:
    """Object code in memory, alive as long as this object."""

    def __init__(self, code: bytes) -> None:
        """Link the object code into this process."""
        empty = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(empty, machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def find(self, name: str) -> int:
        """Return the address of a function."""
        address = self._engine.get_function_address(name)
        if not address:
            raise OSError(f"the object code has no function {name}")
        return address


def _library_address(name: str) -> int:
    return ctypes.cast(getattr(_mathematics(), name), ctypes.c_void_p).value or 0


@cache
def _mathematics() -> ctypes.CDLL:
    """Return the mathematical functions of the system; to find them, ctypes starts a process on Linux."""
    return ctypes.CDLL("ucrtbase" if sys.platform == "win32" else ctypes.util.find_library("m") or None)


# --- Processors of object code: triples of LLVM with their features, and names for the common ones ---


@dataclass(frozen=True)
class Processor:
    """A triple of LLVM, the processor, its features, and how functions take arguments where there is a choice."""

    triple: str
    cpu: str = ""
    features: str = ""
    abi: str = ""
    reloc: str = "pic"

    @property
    def options(self) -> Options:
        """The options of LLVM's code generator."""
        return {
            "cpu": self.cpu, "features": self.features, "opt": 2, "reloc": self.reloc, "codemodel": "default",
            "abiname": self.abi,
        }  # fmt: skip


PROCESSORS: dict[str, Processor] = {
    "x86_64": Processor("x86_64-unknown-linux-gnu", "x86-64-v2"),
    "aarch64": Processor("aarch64-unknown-linux-gnu", "generic"),
    "riscv64": Processor("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", "lp64d"),
    "cortex-m4": Processor("thumbv7em-none-unknown-eabihf", "cortex-m4", reloc="static"),
    "cortex-m7": Processor("thumbv7em-none-unknown-eabihf", "cortex-m7", reloc="static"),
    "cortex-m33": Processor("thumbv8m.main-none-unknown-eabihf", "cortex-m33", reloc="static"),
}
"""Processors by name, besides "native", which is this computer.

Cortex-M7 computes with doubles itself; M4 and M33 have hardware for single precision only and call the compiler's
library for doubles."""


@cache
def _ready_of_processors() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def processor(name: str) -> Processor:
    """Return a processor by its name, or that of a triple of LLVM."""
    if name == "native":
        features = llvm.get_host_cpu_features().flatten()
        return Processor(llvm.get_process_triple(), llvm.get_host_cpu_name(), features)
    return PROCESSORS.get(name) or Processor(_whole(name))


def _whole(triple: str) -> str:
    """Return a triple with the operating system that people leave out before a binary interface.

    Otherwise LLVM would take the interface for an operating system, and floating-point registers would not be used.
    """
    parts = triple.split("-")
    if len(parts) == 3 and parts[2].startswith(("eabi", "gnueabi", "musleabi")):
        parts.insert(2, "unknown")
    return "-".join(parts)


def target_machine(name: str) -> llvm.TargetMachine:
    """Return LLVM's code generator for a processor."""
    _ready_of_processors()
    chosen = processor(name)
    try:
        found = llvm.Target.from_triple(chosen.triple)
    except RuntimeError as error:
        known = ", ".join(["native", *PROCESSORS])
        raise InputError(
            f"triple is {name!r}, which LLVM does not know ({error}); give one of {known}, or a triple such as "
            "aarch64-apple-darwin"
        ) from None
    return found.create_target_machine(**chosen.options)


# --- The target of object code: Programs and kernels as C functions for a processor, with sines of its C library.


class ObjectCode:
    """Object code for one processor."""

    def __init__(self, name: str) -> None:
        """Choose a processor by name, or by a triple of LLVM; InputError if LLVM does not know it."""
        self.name = name
        target_machine(name)

    def emit(self, unit: Unit, dtype: str) -> bytes:
        """Return the object file of a Program, or of a kernel for one run per call."""
        chosen, layout = processor(self.name), target_machine(self.name).target_data
        head = f'source_filename = "{unit.name}"\ntarget datalayout = "{layout}"\ntarget triple = "{chosen.triple}"\n'  # type: ignore
        return compile_in_child(head + assembly(unit, dtype), chosen.triple, chosen.options)


def assembly(unit: Unit, dtype: str) -> str:
    """Return LLVM assembly that is the same for all processors; its function has the name of the unit."""
    if isinstance(unit, Program):
        return scalar_function(unit, dtype, unit.name, LibraryFunctions())
    if isinstance(unit, Kernel):
        return _kernel(unit, dtype)
    raise InputError(f"object code is not written for a {type(unit).__name__}; use lowering='unrolled'")


def _kernel(kernel: Kernel, dtype: str) -> str:
    """Return the function of a kernel: the number of times, then a pointer to a dense array per argument."""
    scalars = SCALARS[dtype]
    w, t = Writer(scalars), Text()
    programs = [_program(program, w, name) for name, program in kernel.programs]
    statements = Statements(kernel, t, scalars)
    timed = "t" in kernel.dimensions
    arguments = [*(["i32 %nt"] if timed else []), *(f"ptr %p_{a.name}" for a in kernel.arguments)]
    t.put(f"define void @{kernel.name}({', '.join(arguments)}) #0 {{", "entry:")
    for m in kernel.memory:
        t.put(f"  %m_{m.name} = alloca i8, i64 {statements.width(m.kind) * m.size}, align 16")
    t.put("  %i = add i64 0, 0")  # the index of the only sample
    if timed:
        t.put("  %count = sext i32 %nt to i64")
    for a in kernel.arguments:
        t.put(f"  %s_{a.name} = add i64 0, 0")
        step = scalars.bits // 8
        for d in reversed(range(len(a.shape))):
            t.put(f"  %c_{a.name}_{d} = add i64 0, {step}")
            step *= int(a.shape[d]) if a.shape[d] != "t" else 1
    statements.write(kernel.body)
    t.put("  ret void", "}")
    declared = sorted(w.used | t.used)
    return "\n".join([*programs, t.text(), *declared, "attributes #0 = { nounwind }"])


def _program(program: Program, w: Writer, name: str) -> str:
    """Return the function of a Program on blocks of inputs and outputs, which the statements of a kernel call."""
    S, size = w.lanes.scalar, w.lanes.bits // 8
    starts = [sum(a.size for a in program.inputs[:k]) for k in range(len(program.inputs))]
    firsts = [sum(a.size for a in program.outputs[:k]) for k in range(len(program.outputs))]

    def load(group: int, index: int) -> str:
        return w.new(f"load {S}, ptr {w.new(f'getelementptr {S}, ptr %in, i64 {starts[group] + index}')}, align {size}")

    def store(group: int, index: int, x: str) -> None:
        w.do(f"store {S} {x}, ptr {w.new(f'getelementptr {S}, ptr %k, i64 {firsts[group] + index}')}, align {size}")

    w.lines, w.label = [], "entry"
    operations(program, w, Entries(program, w, LibraryFunctions(), load, store), in_memory=True)
    body, w.lines = w.lines, []
    head = f"define internal void @{name}(ptr noalias %in, ptr noalias %k) noinline #0 {{"
    return "\n".join([head, "entry:", *body, "  ret void", "}"])
