"""Compiled parts of the backward mode: steps forward, steps backward, the cost at the end, the closed start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ...compiler.derive.products import vjp
from ...compiler.derive.recorded import Recorded, trace_inputs
from ...compiler.ir.program import Array, Program
from ...model.axes import quaternion_places
from ...runtime.native import native_kernel
from ..acting.instants import Instant
from ..methods.protocol import Scheme
from ..methods.reverse_steps import Reversed, adjoint_kernel
from ..problem import Problem
from .programs import (
    closing_of,
    conversions_of,
    convert_centering,
    cost_of,
    rates_of,
    refuse,
    scheme_of,
    with_inputs_of,
)

# --- Programs of the backward mode: rates with the rate of a cost, and products of Jacobians with cotangents ---


def with_cost(program: Program, cost: Program, uncenter: Program | None = None) -> Program:
    """Return rates (t, q, qd[, ...]) -> (dq, dqd) with the integral of a cost as the last entry of qd.

    For a Program that is a step, the cost is that at the beginning of the step. Rates of centered states have the
    Program that returns from these.
    """
    inputs = _longer(program.inputs)
    trace, given = trace_inputs(inputs)
    own = given | {"qd": given["qd"][:-1]}
    moved, pushed = Recorded(program, own).outputs().values()
    plain = own if uncenter is None else own | Recorded(uncenter, own).outputs()
    rate = Recorded(cost, plain).outputs()["value"][0]
    if program.inputs[-1].name == "h":
        rate = given["qd"][-1] + given["h"][0] * rate
    outputs = (program.outputs[0], Array(program.outputs[1].name, (len(pushed) + 1,)))
    return Program.of_trace(program.name, inputs, outputs, trace, [moved, [*pushed, rate]])


def passing_cost(program: Program) -> Program:
    """Return a Program of states, such as the closing of loops, that keeps the integral of a cost at the end of qd."""
    inputs = _longer(program.inputs)
    trace, given = trace_inputs(inputs)
    q, qd, *more = Recorded(program, given | {"qd": given["qd"][:-1]}).outputs().values()
    outputs = (program.outputs[0], Array("qd", (len(qd) + 1,)), *program.outputs[2:])
    return Program.of_trace(program.name, inputs, outputs, trace, [q, [*qd, given["qd"][-1]], *more])


def back(program: Program) -> Program:
    """Return the product of the Jacobian of the first two outputs with cotangents: those of q, qd and parameters."""
    return vjp(_state(program), _varied(program))


def _state(program: Program) -> Program:
    return replace(program, outputs=program.outputs[:2], results=program.results[:2])


def _varied(program: Program) -> list[str]:
    names = [a.name for a in program.inputs]
    return [name for name in ("q", "qd", "parameters") if name in names]


def _longer(inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    t, q, qd, *more = inputs
    return (t, q, Array("qd", (qd.size + 1,)), *more)


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
    refuse(p)
    scheme = scheme_of(p)
    cost = None if running is None else cost_of(p, running, torques=torques)
    end = None if terminal is None else cost_of(p, terminal, torques=False)
    key = ("gradient", p.method.name, p.loops, p.acting_key, cost and cost.hash, end and end.hash, torques)
    return p.kept.part(key, lambda: _compiled(p, scheme, cost, end, torques))


def _compiled(p: Problem, scheme: Scheme, cost: Program | None, end: Program | None, torques: bool) -> Parts:
    plain = rates_of(p, torques=torques)
    program, closing, scheme = plain, closing_of(p, plain), with_inputs_of(scheme, plain)
    if cost is not None:
        program = with_cost(plain, cost, *conversions_of(scheme)[1:])
        closing, scheme = None if closing is None else passing_cost(closing), convert_centering(scheme, passing_cost)
    quaternions = tuple(quaternion_places(p.mechanism))
    held = p.system.nv if torques and not scheme.adaptive else 0  # those of adaptive steps are parameters of each call
    sampled = cost is None and end is None and not scheme.adaptive
    forward = scheme.recording_kernel(program, quaternions, closing, held=held)
    backward = adjoint_kernel(_reversed(program, closing, scheme), scheme, quaternions, held=held, sampled=sampled)
    ends = None if end is None else (p.kept.native(end), p.kept.native(_gradient(end)))
    start = closing_of(p, _without_step(plain), start=True)
    opened = None if start is None else p.kept.native(back(start))
    return Parts(native_kernel(forward), native_kernel(backward), ends, opened, cost is not None, scheme.evaluations)


def _reversed(program: Program, closing: Program | None, scheme: Scheme) -> Reversed:
    around = {x.name: back(x) for x in conversions_of(scheme)}
    return Reversed(program, back(program), closing, None if closing is None else back(closing), around)


def _gradient(cost: Program) -> Program:
    names = [a.name for a in cost.inputs]
    return vjp(cost, [name for name in ("q", "qd", "parameters") if name in names])


def _without_step(program: Program) -> Program:
    """Return a Program without the input of the length of a step, which closings do not read."""
    if program.inputs[-1].name != "h":
        return program
    return Program(program.name, program.inputs[:-1], (), (), ())
