"""Free parameters in the equations of loops: designs that differ in others only move in the same way."""

from __future__ import annotations

from collections.abc import Sequence

from ..compiler.ir.program import Program
from ..compiler.ir.trace import Op
from ..system import System


def depends_on_parameters(system: System, entries: Sequence[int]) -> bool:
    """Return whether the equations of the loops contain some of the free parameters, by their entries."""
    if not system.closures or not entries:
        return False
    program = system.function("closure_residual").program
    if not isinstance(program, Program):  # rolled code: not examined
        return True
    group = [array.name for array in program.inputs].index("parameters")
    return any(op[0] is Op.INPUT and op[1] == group and op[2] in entries for op in program.ops)
