"""A compiled function as an exportable one: its Program, the meaning of its arrays, and a self-test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...errors import InputError
from ...model.mechanism import Mechanism
from ..export.distinct import distinct
from ..export.exportable import Exportable, Meaning
from ..export.meanings import meanings, summary
from ..export.selftest import selftest
from ..ir.program import Program
from ..lower.build import Request, signature
from .derived import derived
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
    if request.derivative is not None:
        found |= _derivative_meanings(mechanism, replace(request, derivative=None))
    test = selftest(unit, request.dtype, sample_inputs(mechanism, unit.inputs, function))
    return Exportable(unit, request.dtype, mechanism.name, about, found, test)


def jacobian_exportable(function: Any, name: str) -> Exportable:
    """Return the Jacobian of a function with respect to all its inputs, for files, under the name that CasADi expects.

    Coordinates are displaced entry by entry, as CasADi does.
    """
    plain = derived(function, "jacobian", None, tangent=False).exportable(f"jac_{name}")
    unit = distinct(function.program, name)
    return replace(plain, nominal=tuple((a.name, a.shape) for a in unit.outputs))


def _derivative_meanings(mechanism: Mechanism, request: Request) -> dict[str, Meaning]:
    inputs, outputs = signature(mechanism, request)
    return {
        f"d{o.name}_d{a.name}": Meaning(f"the derivative of {o.name} with respect to {a.name}, output entries first")
        for o in outputs
        for a in inputs
    }


def refuse_empty(mechanism: Mechanism, program: Program) -> None:
    """Raise InputError for arrays without entries, which C does not have."""
    for a in (*program.inputs, *program.outputs):
        if not a.size:
            raise InputError(f"{program.name} of {mechanism.name!r} is not exported: its array {a.name} has no entries")
