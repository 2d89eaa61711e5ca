"""Object code for other processors: Programs and kernels as C functions, with sines of the processor's C library."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from ...compiler.ir.program import Program
from ...compiler.lanes.form import Kernel
from ...errors import InputError
from .. import Unit
from . import compile_in_child
from .code_generation import Options
from .lane_kernels import emit_scalar_kernel
from .scalar import LibraryFunctions, scalar_function

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
            "cpu": self.cpu,
            "features": self.features,
            "opt": 2,
            "reloc": self.reloc,
            "codemodel": "default",
            "abiname": self.abi,
        }


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
    """Return a processor by its name, or by a triple of LLVM."""
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
        text = assembly(unit, dtype)
        assert isinstance(unit, Program | Kernel)
        head = f'source_filename = "{unit.name}"\ntarget datalayout = "{layout}"\ntarget triple = "{chosen.triple}"\n'
        return compile_in_child(head + text, chosen.triple, chosen.options)


def assembly(unit: Unit, dtype: str) -> str:
    """Return LLVM assembly that is the same for all processors; its function has the name of the unit."""
    if isinstance(unit, Program):
        return scalar_function(unit, dtype, unit.name, LibraryFunctions())
    if isinstance(unit, Kernel):
        return emit_scalar_kernel(unit, dtype)
    raise InputError(f"object code is not written for a {type(unit).__name__}; use lowering='unrolled'")
