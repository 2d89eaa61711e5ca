"""The target PTX: Programs and kernels of the lane language as GPU kernels with one sample per thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from ...compiler.ir.program import Program
from ...compiler.lanes.form import Kernel, Meet
from ...errors import InputError
from .. import Loaded, Unit
from ..llvm import elementary
from ..llvm.arithmetic import operations
from ..llvm.lane_statements import Statements
from ..llvm.scalar import Entries, OwnFunctions
from ..llvm.writer import SCALARS, Text, Writer
from . import driver
from .entries import emit
from .schedule import schedule
from .staging import REGISTERS, bare_angles

# --- LLVM's back end for PTX ---

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


# --- LLVM assembly of a kernel of the lane language as a GPU kernel, with one run per thread ---
#
# The entry `kernel` takes, for each argument, a pointer, the distances between samples and along its axes (all in
# bytes; 0 between samples: all share one), then the length of the axis t and the number of samples. Its memory is in
# registers, because `assemble` of machine.py inlines its Programs and every index is a constant. Only the stages of
# methods that keep several are in memory, where a stage is found by its number.


class ThreadStatements(Statements):
    """The statements of a thread, which can wait for the others of its block."""

    def meet(self, s: Meet) -> None:
        """Write a barrier; threads that have ended do not count."""
        self.t.used.add("declare void @llvm.nvvm.barrier0()")
        self.t.put("  call void @llvm.nvvm.barrier0()")


def emit_lanes(kernel: Kernel, dtype: str) -> str:
    """Return the module's assembly."""
    lanes = SCALARS[dtype]
    w, t = Writer(lanes), Text()
    programs = [_program(program, w, name) for name, program in kernel.programs]
    _entry(kernel, t, ThreadStatements(kernel, t, lanes))
    w.used |= t.used
    return "\n".join([*programs, t.text(), *OwnFunctions().definitions(w), "attributes #0 = { nounwind }\n"])


def _program(program: Program, w: Writer, name: str) -> str:
    """Return the function `name(in, k)` of a Program, which is inlined where it is called."""
    program = schedule(program)
    S, size = w.lanes.scalar, w.lanes.bits // 8
    bare, angles = bare_angles(program, None)
    starts = [sum(a.size for a in program.inputs[:k]) for k in range(len(program.inputs))]
    firsts = [sum(a.size for a in program.outputs[:k]) for k in range(len(program.outputs))]
    known: dict[tuple[int, int], str] = {}

    def load(group: int, index: int) -> str:
        if (group, index) not in known:
            place = w.new(f"getelementptr {S}, ptr %in, i64 {starts[group] + index}")
            known[group, index] = w.new(f"load {S}, ptr {place}, align {size}")
        return known[group, index]

    def store(group: int, index: int, x: str) -> None:
        w.do(f"store {S} {x}, ptr {w.new(f'getelementptr {S}, ptr %k, i64 {firsts[group] + index}')}, align {size}")

    w.lines, w.label = [], "entry"
    if angles:
        small = elementary.within_a_revolution(w, [load(*place) for place in angles])
        known.update(zip(angles, small, strict=True))
    operations(program, w, Entries(program, w, OwnFunctions(), load, store, bare))
    body, w.lines = w.lines, []
    head = f"define internal void @{name}(ptr noalias %in, ptr noalias %k) alwaysinline #0 {{"
    return "\n".join([head, "entry:", *body, "  ret void", "}"])


def _entry(kernel: Kernel, t: Text, statements: Statements) -> None:
    """Write the entry: the memory of a run, the index of its sample, and the statements."""
    parameters = []
    for a in kernel.arguments:
        parameters += [f"ptr noalias {'' if a.output else 'readonly '}%p_{a.name}", f"i64 %s_{a.name}"]
        parameters += [f"i64 %c_{a.name}_{d}" for d in range(len(a.shape))]
    t.put(f"define ptx_kernel void @kernel({', '.join(parameters)}, i64 %count, i64 %n) #0 {{", "entry:")
    for m in kernel.memory:
        t.put(f"  %m_{m.name} = alloca i8, i64 {statements.width(m.kind) * m.size}, align 16")
    for register in REGISTERS:
        t.used.add(f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}.x()")
        t.put(f"  %{register} = zext i32 {t.new(f'call i32 @llvm.nvvm.read.ptx.sreg.{register}.x()')} to i64")
    t.put(
        f"  %i = add i64 {t.new('mul i64 %ctaid, %ntid')}, %tid",
        "  %inside = icmp slt i64 %i, %n",
        "  br i1 %inside, label %start, label %done",
        "start:",
    )
    statements.write(kernel.body)
    t.put("  br label %done", "done:", "  ret void", "}")


EMITTERS: dict[type, Callable[[Any, str], str]] = {Program: emit, Kernel: emit_lanes}


class PTX:
    """The target of NVIDIA GPUs, whose code the driver compiles for the GPU that is present."""

    def fingerprint(self) -> str:
        """Return the oldest GPU that runs the code, the version of PTX and the version of LLVM."""
        return fingerprint()

    def emit(self, unit: Unit, dtype: str) -> str:
        """Return the LLVM assembly: of a Program with its entries `kernel` and `rows`, of a kernel with `kernel`."""
        if type(unit) not in EMITTERS:
            raise InputError(f"PTX is written for a Program, not for a {type(unit).__name__}; use lowering='unrolled'")
        return EMITTERS[type(unit)](unit, dtype)

    def build(self, source: str) -> bytes:
        """Return the PTX of LLVM assembly."""
        return assemble(source)

    def load(self, code: bytes) -> Loaded:
        """Load PTX into the memory of the first GPU, whose driver compiles it."""
        return driver.driver().device().load(code)


# --- PTX as a file, for hosts that load it with the CUDA driver themselves ---


class PTXFile:
    """The text of PTX; its entries have the name of the unit, and that name with the ending _rows."""

    def emit(self, unit: Unit, dtype: str) -> str:
        """Return the PTX of a unit."""
        target = PTX()
        source = target.emit(unit, dtype)
        assert isinstance(unit, Program | Kernel)  # others are refused
        named = source.replace("@kernel(", f"@{unit.name}(").replace("@rows(", f"@{unit.name}_rows(")
        return target.build(named).decode()
