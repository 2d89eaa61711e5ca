"""A compiled function as an exportable one: its Program, the meaning of its arrays, and a self-test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.arrays import Numbers
from ..compiler.export.exportable import Exportable, Meaning, distinct, meanings, selftest, summary
from ..compiler.ir.program import Array, Program
from ..compiler.lower.build import Request, signature
from ..errors import InputError, ModelError
from ..joints import kind
from ..joints.random_states import drawn_coordinates
from ..model.mechanism import Mechanism
from .derived import derive

if TYPE_CHECKING:
    from .function import Function

# --- Random inputs of functions for self-tests: awkward numbers, and states whose loops are closed ---

CANDIDATES = 16
"""The number of candidates for the samples of a self-test."""
STARTS = 96
"""The random positions from which Newton's method starts to close loops; the candidates are the best closed ones."""
ROUNDS = 40
"""The steps of Newton's method."""


def sample_inputs(
    mechanism: Mechanism, inputs: Iterable[Array], function: Callable[[str], Any], count: int = CANDIDATES
) -> dict[str, Numbers]:
    """Return arrays [count, *shape] by name; `function(name)` returns the functions that close loops.

    Coordinates and velocities belong to closed positions, as far as Newton's method finds them.
    """
    rng = np.random.default_rng(11)
    nominal = np.array([p.value for p in mechanism.free_parameters], dtype=float)
    values = nominal * (1.0 + 0.02 * rng.uniform(-1.0, 1.0, size=(count, len(nominal))))
    more = (values,) if len(nominal) else ()
    q, qd = states(mechanism, rng, count, more, function)
    known = {"q": q, "qd": qd, "parameters": values}

    def drawn(a: Array) -> Numbers:
        if a.name in known:
            return known[a.name]
        if a.name == "q2":
            return states(mechanism, rng, count, more, function)[0]
        x = rng.normal(size=(count, *a.shape))
        return np.abs(x) if a.name in ("added", "t") else x

    return {a.name: drawn(a) for a in inputs}


def states(mechanism: Mechanism, rng: np.random.Generator, count: int, more: tuple, function) -> tuple:
    """Return random coordinates [count, nq] and velocities [count, nv] of closed positions."""
    joints = [(joint, kind(joint.kind)) for joint in mechanism.resolved_joints]
    if not mechanism.closures:
        return drawn_coordinates(joints, rng, (count,)), rng.normal(size=(count, mechanism.nv))
    tries = -(-STARTS // count) * count
    q, qd = drawn_coordinates(joints, rng, (tries,)), rng.normal(size=(tries, mechanism.nv))
    given = tuple(np.tile(x, (tries // count, 1)) for x in more)
    try:
        step, integrate, speed, gap = (
            function(name) for name in ("closing_step", "integrate", "closing_speed", "closure_residual")
        )
    except ModelError:  # the inertia matrix is singular, so that no step is nearest
        return q[:count], qd[:count]
    with np.errstate(all="ignore"):
        for _ in range(ROUNDS):
            q = integrate(q, step(q, *given), *given)
        open_by = np.nan_to_num(np.abs(gap(q, *given)).max(axis=-1), nan=np.inf, posinf=np.inf)
        qd = speed(q, qd, *given)
    # The best closed positions among those that share the parameters of a candidate.
    groups = open_by.reshape(tries // count, count)
    best = np.argmin(groups, axis=0) * count + np.arange(count)
    return q[best], qd[best]


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


def jacobian_exportable(function: Function, program: Program, name: str) -> Exportable:
    """Return the Jacobian of a function with respect to all its inputs, for files, under the name that CasADi expects.

    Coordinates are displaced entry by entry, as CasADi does.
    """
    plain = derive(function, "jacobian", None, tangent=False).exportable(f"jac_{name}")
    unit = distinct(program, name)
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
