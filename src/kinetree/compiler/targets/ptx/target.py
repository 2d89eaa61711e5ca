"""The target PTX: Programs and kernels of the lane language as GPU kernels with one sample per thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....errors import InputError
from ...ir.program import Program
from ...lanes.form import Kernel
from ..protocol import Loaded, Unit
from .driver import driver
from .entries import emit
from .lane_entry import emit_lanes
from .machine import assemble, fingerprint

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
        return driver().device().load(code)
