"""Compiled parts of the backward mode: steps forward, steps backward, the cost at the end, the closed start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...compiler.derive.products import vjp
from ...compiler.ir.program import Program
from ...compiler.runtime.native import native_kernel
from ...model.axes import quaternion_places
from ..instants import Instant
from ..kernels.adjoint_steps import Reversed, adjoint_kernel
from ..kernels.recorded_runs import recorded_kernel
from ..kernels.recorded_steps import recording_kernel
from ..motion_problem import Problem
from ..rosenbrock import Rosenbrock
from ..slopes import slopes_of
from ..tableaus import Pair, Tableau
from .adjoint_programs import back, bend, closing_with_cost, with_cost
from .programs import closing_of, cost_of, rates_of, refuse

Cost = Callable[[Instant], Any]
"""A function of `now` that returns a number."""


@dataclass(frozen=True)
class Parts:
    """Compiled functions of a gradient; `terminal` has the cost at the end and the product of its gradient.

    With `costed`, the last entry of qd is the integral of a cost. `opened` is the product of the closing of the start
    with cotangents, None without loops. `stages` is the number of evaluations of the rates in a step.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    terminal: tuple[Callable[..., Any], Callable[..., Any]] | None
    opened: Callable[..., Any] | None
    costed: bool
    stages: int


def parts_of(problem: Problem, terminal: Cost | None, running: Cost | None, *, torques: bool) -> Parts:
    """Return the compiled parts of a problem with its costs; without any, the states at output times have cotangents.

    The System keeps them.
    """
    p = problem
    scheme = scheme_of(p)
    cost = None if running is None else cost_of(p, running, torques=torques)
    end = None if terminal is None else cost_of(p, terminal, torques=False)
    key = ("gradient", p.method.name, p.loops, p.acting_key, cost and cost.hash, end and end.hash, torques)
    return p.kept.part(key, lambda: _compiled(p, scheme, cost, end, torques))


def _compiled(
    p: Problem, scheme: Tableau | Pair | None, cost: Program | None, end: Program | None, torques: bool
) -> Parts:
    plain = rates_of(p, torques=torques)
    program, closing = plain, closing_of(p, plain)
    if cost is not None:
        program, closing = with_cost(plain, cost), None if closing is None else closing_with_cost(closing)
    quaternions = tuple(quaternion_places(p.mechanism))
    if isinstance(scheme, Pair):  # torques are parameters of each call
        forward = recorded_kernel(program, scheme, quaternions, closing)
        backward = adjoint_kernel(_reversed(program, closing, scheme), scheme, quaternions, held=0)
    else:
        held = p.system.nv if torques else 0
        forward = recording_kernel(program, scheme, quaternions, closing, held=held)
        backward = adjoint_kernel(
            _reversed(program, closing, scheme), scheme, quaternions, held=held, sampled=cost is None and end is None
        )
    ends = None if end is None else (p.kept.native(end), p.kept.native(_gradient(end)))
    start = closing_of(p, _without_step(plain), start=True)
    opened = None if start is None else p.kept.native(back(start))
    stages = 1 if scheme is None else len(scheme.b)
    return Parts(native_kernel(forward), native_kernel(backward), ends, opened, cost is not None, stages)


def scheme_of(problem: Problem) -> Tableau | Pair | None:
    """Return the tableau of fixed or adaptive steps; InputError for a method that is not native."""
    refuse(problem)
    assert problem.method.scheme is not None, "methods that are not native are refused"
    return problem.method.scheme()


def _reversed(program: Program, closing: Program | None, scheme: Tableau | Pair | None) -> Reversed:
    stiff = isinstance(scheme, Rosenbrock)
    slopes, bent = (slopes_of(program), bend(program)) if stiff else (None, None)
    return Reversed(program, back(program), closing, None if closing is None else back(closing), slopes, bent)


def _gradient(cost: Program) -> Program:
    names = [a.name for a in cost.inputs]
    return vjp(cost, [name for name in ("q", "qd", "parameters") if name in names])


def _without_step(program: Program) -> Program:
    """Return a Program without the input of the length of a step, which closings do not read."""
    if program.inputs[-1].name != "h":
        return program
    return Program(program.name, program.inputs[:-1], (), (), ())
