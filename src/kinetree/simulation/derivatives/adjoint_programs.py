"""Programs of the backward mode: rates with the rate of a cost, and products of Jacobians with cotangents."""

from __future__ import annotations

from dataclasses import replace

from ...compiler.derive.products import jvp, vjp
from ...compiler.derive.recorded import Recorded, traced
from ...compiler.ir.program import Array, Program


def with_cost(program: Program, cost: Program) -> Program:
    """Return rates (t, q, qd[, ...]) -> (dq, dqd) with the integral of a cost as the last entry of qd.

    For a Program that is a step, the cost is that at the beginning of the step.
    """
    inputs = _longer(program.inputs)
    trace, given = traced(inputs)
    own = given | {"qd": given["qd"][:-1]}
    moved, pushed = Recorded(program, own).outputs().values()
    rate = Recorded(cost, own).outputs()["value"][0]
    if program.inputs[-1].name == "h":
        rate = given["qd"][-1] + given["h"][0] * rate
    outputs = (program.outputs[0], Array(program.outputs[1].name, (len(pushed) + 1,)))
    return Program.of_trace(program.name, inputs, outputs, trace, [moved, [*pushed, rate]])


def closing_with_cost(closing: Program) -> Program:
    """Return the closing of loops with the integral of a cost as the last entry of qd, which it does not change."""
    inputs = _longer(closing.inputs)
    trace, given = traced(inputs)
    q, qd, gap = Recorded(closing, given | {"qd": given["qd"][:-1]}).outputs().values()
    outputs = (closing.outputs[0], Array("qd", (len(qd) + 1,)), closing.outputs[2])
    return Program.of_trace(closing.name, inputs, outputs, trace, [q, [*qd, given["qd"][-1]], gap])


def back(program: Program) -> Program:
    """Return the product of the Jacobian of the first two outputs with cotangents: those of q, qd and parameters."""
    return vjp(_state(program), _varied(program))


def bend(program: Program) -> Program:
    """Return the gradient of a product: rates differentiated along a tangent of t, q and qd, times cotangents.

    Its inputs are those of the rates, the tangent and the cotangents of dq and dqd. Its outputs are those of `back`.
    """
    return vjp(jvp(_state(program), ("t", "q", "qd")), _varied(program))


def _state(program: Program) -> Program:
    return replace(program, outputs=program.outputs[:2], results=program.results[:2])


def _varied(program: Program) -> list[str]:
    names = [a.name for a in program.inputs]
    return [name for name in ("q", "qd", "parameters") if name in names]


def _longer(inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    t, q, qd, *more = inputs
    return (t, q, Array("qd", (qd.size + 1,)), *more)
