"""A mechanism's functions in CasADi, returned by `system.casadi(name)`: as expressions, or native with derivatives."""

from __future__ import annotations

from typing import Any

from ..compiled import CompiledMechanism
from ..compiler.export.casadi_expressions import expression
from ..compiler.export.distinct import distinct
from ..compiler.ir.program import Program
from ..compiler.runtime import optional
from ..errors import InputError

FORMS = ("sx", "native")


def casadi_function(system: CompiledMechanism, name: str, *, form: str = "sx", **options: Any) -> Any:
    """Return a function of a mechanism as a casadi.Function; the options are those of `system.function`."""
    optional.casadi()
    if form not in FORMS:
        raise InputError(f"form is {form!r}; expected 'sx' for an expression, or 'native' for compiled code")
    function = system.function(name, **options)
    if function.request.dtype != "float64":
        raise InputError(f"{name}: dtype is {function.request.dtype!r}; CasADi computes in float64")
    program = function.program
    if not isinstance(program, Program):
        raise InputError(
            f"{name} of {system.mechanism.name!r} is compiled with loops over the bodies, and CasADi needs "
            "straight-line code; use lowering='unrolled'"
        )
    program = distinct(program, function.request.name)
    key = "casadi", form, function.request
    if form == "sx":
        return system._part(key, lambda: expression(program))
    from .casadi_callbacks import native

    return system._part(key, lambda: native(function, program))
