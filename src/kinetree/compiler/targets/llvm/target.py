"""The target LLVM: vector code for this processor, without a C compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.program import Program
from ...lanes.form import Kernel
from ...rolled.context import RolledUnit
from ...rolled.program import Step
from ..crew import Crew
from ..entry import Entry
from ..protocol import Unit
from ..samples_last import SamplesLast
from ..xla_frame import Handler
from .arithmetic import emit
from .crew_code import emit_crew
from .direct_entry import emit_entry
from .lane_kernel import emit_lanes
from .machine import Loaded, compile_assembly, fingerprint
from .rolled import emit_maker, emit_rolled
from .sample_blocks import emit_samples_last
from .xla_handler import emit_handler

EMITTERS: dict[type, Callable[[Any, str], str]] = {
    Program: emit,
    SamplesLast: emit_samples_last,
    Kernel: emit_lanes,
    RolledUnit: emit_rolled,
    Step: emit_maker,
    Entry: emit_entry,
    Handler: emit_handler,
    Crew: emit_crew,
}


class LLVM:
    """The target of this machine."""

    def fingerprint(self) -> str:
        """Return the processor, its features and the version of LLVM."""
        return fingerprint()

    def emit(self, unit: Unit, dtype: str) -> str:
        """Return the assembly of a unit."""
        return EMITTERS[type(unit)](unit, dtype)

    def build(self, source: str) -> bytes:
        """Return the object code of assembly."""
        return compile_assembly(source)

    def load(self, code: bytes) -> Loaded:
        """Link object code into this process."""
        return Loaded(code)
