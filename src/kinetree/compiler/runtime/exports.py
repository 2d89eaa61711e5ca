"""A compiled function as an exportable one: its Program, the meaning of its arrays, and a self-test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import InputError
from ...model.mechanism import Mechanism
from ..export.distinct import distinct
from ..export.exportable import Exportable
from ..export.meanings import meanings, summary
from ..export.selftest import selftest
from ..ir.program import Program
from ..lower.build import Request
from .sample_inputs import sample_inputs


def exportable(
    mechanism: Mechanism, request: Request, program: Program, name: str, function: Callable[[str], Any]
) -> Exportable:
    """Return the exportable function of a request under a name; `function(name)` returns other compiled functions."""
    refuse_empty(mechanism, program)
    unit = distinct(program, name)
    found = meanings(mechanism, request.name)
    about = summary(request.name) if request.derivative is None else request.title
    if request.frame:
        about += f"; frame {request.frame}" + (f", {request.axes} axes" if request.axes else "")
    if request.forces:
        about += "; springs, dampers and friction of the mechanism act"
    test = selftest(unit, request.dtype, sample_inputs(mechanism, unit.inputs, function))
    return Exportable(unit, request.dtype, mechanism.name, about, found, test)


def refuse_empty(mechanism: Mechanism, program: Program) -> None:
    """Raise InputError for arrays without entries, which C does not have."""
    for a in (*program.inputs, *program.outputs):
        if not a.size:
            raise InputError(f"{program.name} of {mechanism.name!r} is not exported: its array {a.name} has no entries")
