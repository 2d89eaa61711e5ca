"""Programs of derivatives: the rates of a run with a torque as an input, the closing of its loops, steps in reverse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...algebra.scalars import Numbers, Scalar
from ...compiler.derive.jacobians import jvp, vjp
from ...compiler.derive.recorded import Recorded, trace_inputs
from ...compiler.ir.program import Array, Program
from ...errors import InputError
from ...model.axes import quaternion_places
from ...model.mechanism import Mechanism
from ...runtime.native import native_kernel
from ..acting.drives import drives_of
from ..acting.instants import Controller, Instant
from ..acting.rates import LONGEST, ForcedMechanism, centered_scheme, jacobian_of, measure_program
from ..closing import Baumgarte, closing_program, locked_by
from ..methods.protocol import Scheme
from ..methods.reverse_steps import Reversed, adjoint_kernel
from ..methods.table import names_of
from ..methods.tangent_states import Differentiated
from ..problem import Problem

TORQUE = "added_torque"
"""The name of the input of added torques, before they are appended to the parameters."""


def refuse(problem: Problem) -> None:
    """Raise an InputError for a problem whose run has no derivatives."""
    if reason := obstacle(problem):
        raise InputError(reason)


def obstacle(problem: Problem) -> str:
    """Return the reason why a run has no derivatives; empty if it has."""
    p, name = problem, problem.method.name
    if p.device is not None:
        return "runs on a GPU have no derivatives; give the System itself, not system.on('cuda')"
    if p.outside:
        who = type(p.control).__name__
        return f"{who} is evaluated in Python, and a run with it has no derivatives; use compiled control"
    if p.mechanism.contacts:
        return (
            f"{p.mechanism.name!r} has hard contacts, and a run with their impacts has no derivatives; give "
            "contacts=() to leave them out, or a ground of springs and dampers"
        )
    if p.is_long:
        count = len(p.mechanism.bodies)
        return f"{p.mechanism.name!r} has {count} bodies; runs of at most 64 bodies have derivatives"
    if not p.method.native:
        fixed, adaptive = names_of(adaptive=False), names_of(adaptive=True)
        return f"runs by {name} have no derivatives; use {fixed} with dt, or {adaptive}"
    return ""


def given_parameters(problem: Problem, *, torques: bool, added: Numbers | None = None) -> Numbers | None:
    """Return the parameters of compiled rates: free ones and, with `torques`, added torques [..., nv] or zeros."""
    own = problem.parameters
    if not torques:
        return own
    own, added = np.zeros(0) if own is None else own, np.zeros(problem.system.nv) if added is None else added
    lead = np.broadcast_shapes(own.shape[:-1], added.shape[:-1])
    return np.concatenate([np.broadcast_to(x, (*lead, x.shape[-1])) for x in (own, added)], axis=-1)


class _Added:
    """A controller with torques added to its own, which are a separate input."""

    def __init__(self, control: Controller | None, count: int) -> None:
        self.control, self.drives = control, drives_of(control)
        self.inputs = (Array(TORQUE, (count,)),)

    def torque(self, now: Instant) -> list[Scalar]:
        own = [0.0] * now.mechanism.nv if self.control is None else self.control.torque(now)
        return [a + b for a, b in zip(own, now.given[TORQUE], strict=True)]


def rates_of(problem: Problem, *, torques: bool) -> Program:
    """Return the Program of the rates of a problem, or of its step if the method is one.

    With `torques`, its parameters are [free parameters, added torques].
    """
    return with_torques(problem, scheme_of(problem).make_program, torques=torques)


def scheme_of(problem: Problem) -> Scheme:
    """Return the scheme of a native method, with the Centering of a floating mechanism if its steps are fixed."""
    return centered_scheme(problem.method.scheme, problem.dynamics)


def with_inputs_of(scheme: Scheme, program: Program) -> Scheme:
    """Return a method whose Programs of a Centering have the inputs of the rates, as derivatives require."""
    return convert_centering(scheme, lambda x: x.with_inputs(program.inputs, {}))


def convert_centering(scheme: Scheme, change: Callable[[Program], Program]) -> Scheme:
    """Return a method with the Programs of its Centering changed."""
    now = scheme.centering
    if now is None:
        return scheme
    center = None if now.center is None else change(now.center)
    return scheme.centered(replace(now, center=center, uncenter=change(now.uncenter)))


def conversions_of(scheme: Scheme) -> tuple[Program, ...]:
    """Return the Programs of the Centering of a method; none without one."""
    centering = scheme.centering
    pair = () if centering is None else (centering.center, centering.uncenter)
    return tuple(x for x in pair if x is not None)


def cost_of(problem: Problem, function: Callable[[Instant], Scalar], *, torques: bool) -> Program:
    """Return the Program (t, q, qd[, parameters]) -> value of a function of `now`, with the inputs of `rates_of`."""
    return with_torques(problem, lambda d: measure_program(replace(d, loops=None), function), torques=torques)


def with_torques(problem: Problem, make: Callable[[ForcedMechanism], Program], *, torques: bool) -> Program:
    """Return the Program that `make` returns of what acts; with `torques`, added ones follow the parameters."""
    d, mechanism = problem.dynamics, problem.mechanism
    if not torques:
        return make(d)
    program, free = make(replace(d, control=_Added(d.control, mechanism.nv))), len(mechanism.free_parameters)
    together = Array("parameters", (free + mechanism.nv,))
    after = [a for a in program.inputs[3:] if a.name not in (TORQUE, together.name)]
    return program.with_inputs((*program.inputs[:3], together, *after), {TORQUE: (together.name, free)})


def closing_of(problem: Problem, program: Program, *, start: bool = False) -> Program | None:
    """Return the closing of loops after steps with the inputs of the rates; None if loops are not closed.

    With `start`, it is the one of the start, whose loops are always closed.
    """
    p, drives = problem, drives_of(problem.control)
    if drives is None and (not p.mechanism.closures or (isinstance(p.loops, Baumgarte) and not start)):
        return None
    if start:
        return closing_program(p.mechanism, drives=drives).with_inputs(program.inputs, {})
    centering = scheme_of(p).centering
    kept = centering.kept if centering else None
    return closing_program(p.mechanism, locked_by(p.loops), drives=drives, kept=kept).with_inputs(program.inputs, {})


def differentiate_program(program: Program, parameters: Sequence[int]) -> Differentiated:
    """Return a Program with its derivatives: by its Jacobian, or along one tangent if that is too long to compile."""
    values = sum(a.size for a in program.outputs)
    if len(program.ops) <= LONGEST:
        found = jacobian_of(program, parameters)
        return Differentiated(found.program, None, found.moves, values)
    return Differentiated(program, along(program), None, values)


def along(program: Program) -> Program:
    """Return the derivatives of the first two outputs along tangents of q, qd and, if there are any, parameters."""
    state = replace(program, outputs=program.outputs[:2], results=program.results[:2])
    names = [a.name for a in program.inputs]
    return jvp(state, [name for name in ("q", "qd", "parameters") if name in names])


def free_count(mechanism: Mechanism) -> int:
    """Return the number of free parameters."""
    return len(mechanism.free_parameters)


# --- Compiled parts of the backward mode: steps forward and backward, the cost at the end, the closed start ---


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
    """Return the product of the Jacobian of the first two outputs with cotangents, for q, qd and parameters."""
    return vjp(_state(program), _varied(program))


def _state(program: Program) -> Program:
    return replace(program, outputs=program.outputs[:2], results=program.results[:2])


def _varied(program: Program) -> list[str]:
    names = [a.name for a in program.inputs]
    return [name for name in ("q", "qd", "parameters") if name in names]


def _longer(inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    t, q, qd, *more = inputs
    return (t, q, Array("qd", (qd.size + 1,)), *more)


Cost = Callable[[Instant], Scalar]
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
        around = scheme.centering
        program = with_cost(plain, cost, around.uncenter if around and around.center else None)
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
