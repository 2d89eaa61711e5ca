"""LLVM's back end for PTX."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

TRIPLE = "nvptx64-nvidia-cuda"
ARCHITECTURE = "sm_80"
"""The oldest GPU that runs the code (Ampere, 2020), the first that copies to shared memory without registers.

The driver compiles PTX for the GPU that is present."""
VERSION = "ptx70"
"""The version of PTX, 7.0, that drivers since 2020 (CUDA 11.0) read."""
STRAIGHT, LOOPS = 0, 3
"""The optimization levels of code generation, for Programs and for kernels with loops.

The operations of a Program are already in order, and the driver's compiler optimizes them again: LLVM's passes change
little but take most of its time."""


@cache
def _ready() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def machine(level: int) -> llvm.TargetMachine:
    """Return the target machine for an optimization level."""
    _ready()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=ARCHITECTURE, features=f"+{VERSION}", opt=level)


@cache
def fingerprint() -> str:
    """Return a text of all that PTX depends on besides its source."""
    version = ".".join(map(str, llvm.llvm_version_info))
    return f"{TRIPLE} {ARCHITECTURE} {VERSION} llvm-{version} O{STRAIGHT}{LOOPS}"


def assemble(assembly: str) -> bytes:
    """Return the PTX of a module, which is text."""
    loops = "alloca" in assembly
    chosen = machine(LOOPS if loops else STRAIGHT)
    module = llvm.parse_assembly(assembly)
    module.triple, module.data_layout = TRIPLE, str(chosen.target_data)
    module.verify()
    if loops:
        _into_registers(module, chosen)
    return chosen.emit_assembly(module).encode()


def _into_registers(module: llvm.ModuleRef, chosen: llvm.TargetMachine) -> None:
    """Inline functions where they are called, and put memory with constant indices into registers."""
    builder = llvm.create_pass_builder(chosen, llvm.create_pipeline_tuning_options(speed_level=2))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_instruction_combine_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_dead_code_elimination_pass()
    passes.run(module, builder)
