"""Compiled parts of the backward mode: steps forward, steps backward, the cost at the end, the closed start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...compiler.derive.products import vjp
from ...compiler.ir.program import Program
from ...compiler.runtime.native import native_kernel
from ...errors import InputError
from ...model.axes import quaternion_places
from ..kernels.adjoint_steps import Reversed, adjoint_kernel
from ..kernels.recorded_steps import recording_kernel
from ..motion_problem import Problem
from ..rates import Instant
from ..tableaus import Pair, Tableau
from .adjoint_programs import back, closing_with_cost, with_cost
from .programs import closing_of, cost_of, rates_of, refuse

Cost = Callable[[Instant], Any]
"""A function of `now` that returns a number."""


@dataclass(frozen=True)
class Parts:
    """Compiled functions of a gradient; `terminal` has the cost at the end and the product of its gradient.

    `opened` is the product of the closing of the start with cotangents, None without loops. `held` is the number of
    torques that are held during steps, `stages` that of evaluations of the rates in a step.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    terminal: tuple[Callable[..., Any], Callable[..., Any]] | None
    opened: Callable[..., Any] | None
    held: int
    stages: int


def parts_of(problem: Problem, terminal: Cost | None, running: Cost | None, *, torques: bool) -> Parts:
    """Return the compiled parts of a problem with its costs; the System keeps them."""
    p = problem
    scheme = _scheme(p)
    cost = None if running is None else cost_of(p, running, torques=torques)
    end = None if terminal is None else cost_of(p, terminal, torques=False)
    key = ("gradient", p.method.name, p.loops, p.acting_key, cost and cost.hash, end and end.hash, torques)
    return p.kept.part(key, lambda: _compiled(p, scheme, cost, end, torques))


def _compiled(p: Problem, scheme: Tableau | None, cost: Program | None, end: Program | None, torques: bool) -> Parts:
    plain = rates_of(p, torques=torques)
    program, closing = with_cost(plain, cost), closing_of(p, plain)
    closing = None if closing is None else closing_with_cost(closing)
    held, quaternions = p.system.nv if torques else 0, tuple(quaternion_places(p.mechanism))
    forward = recording_kernel(program, scheme, quaternions, closing, held=held)
    backward = adjoint_kernel(_reversed(program, closing), scheme, quaternions, held=held)
    ends = None if end is None else (p.kept.native(end), p.kept.native(_gradient(end)))
    start = closing_of(p, _without_step(plain), start=True)
    opened = None if start is None else p.kept.native(back(start))
    stages = 1 if scheme is None else len(scheme.b)
    return Parts(native_kernel(forward), native_kernel(backward), ends, opened, held, stages)


def _scheme(problem: Problem) -> Tableau | None:
    """Return the tableau of fixed explicit steps; InputError for another method."""
    refuse(problem)
    assert problem.method.scheme is not None, "methods that are not native are refused"
    scheme = problem.method.scheme()
    if isinstance(scheme, Pair) or (scheme is not None and scheme.implicit):
        raise InputError(
            f"gradients are those of the fixed steps of rk4 and euler, and the method is {problem.method.name}; give dt"
        )
    return scheme


def _reversed(program: Program, closing: Program | None) -> Reversed:
    return Reversed(program, back(program), closing, None if closing is None else back(closing))


def _gradient(cost: Program) -> Program:
    names = [a.name for a in cost.inputs]
    return vjp(cost, [name for name in ("q", "qd", "parameters") if name in names])


def _without_step(program: Program) -> Program:
    """Return a Program without the input of the length of a step, which closings do not read."""
    if program.inputs[-1].name != "h":
        return program
    return Program(program.name, program.inputs[:-1], (), (), ())
