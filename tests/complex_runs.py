"""Runs of given steps on complex numbers: an independent route to their derivatives, exact to rounding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import kinetree as kt
from interpreted import STEP
from kinetree.compiler.ir.operations import apply
from kinetree.compiler.ir.program import Program
from kinetree.model.axes import quaternion_places
from kinetree.simulation.acting.rates import Slopes, slopes_of
from kinetree.simulation.derivatives.programs import closing_of, rates_of, scheme_of
from kinetree.simulation.methods.fixed_steps import RK4
from kinetree.simulation.methods.implicit_steps import Implicit
from kinetree.simulation.methods.protocol import Scheme
from kinetree.simulation.methods.rosenbrock import Rosenbrock
from kinetree.simulation.problem import Problem
from tolerance import assert_close

ROUNDS = 10
"""The most steps of Newton's method on the loops of a state."""

ITERATIONS = 120
"""The iterations of the stages of an implicit step."""


def derivatives_of_rk4(
    rates: Program, start: np.ndarray, columns: np.ndarray, steps: int, h: float, method: Any = RK4, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the state [n] after steps of rk4 and its derivatives [n, columns], which are `columns` at the start."""
    return derivatives_of_steps(rates, method, start, columns, h * np.arange(steps), np.full(steps, h), **options)


def weighted(system: kt.System):
    """Return a cost at the end with awkward weights, and its gradient with respect to the entries of the state."""
    a, b = np.random.default_rng(9).normal(size=(2, system.nq)), np.random.default_rng(8).normal(size=system.nv)

    def terminal(now):
        squares = sum(a[0, k] * x * x + a[1, k] * x for k, x in enumerate(now.q))
        return squares + sum(b[k] * v for k, v in enumerate(now.qd))

    return terminal, lambda q: np.concatenate([2.0 * a[0] * q + a[1], b])


def assert_gradient(found: Any, slope: Any, problem: Problem, begins: np.ndarray, lengths: np.ndarray) -> None:
    """Compare the end of a run and the gradient of its weighted cost with complex steps over the same steps.

    Large weights of stages cancel, and rounding grows with them: the order of their sums alone changes the gradient
    of a spatial pendulum by 5e-12 for tsit5 and 2e-11 for dop853.
    """
    size = np.abs(getattr(scheme_of(problem), "b", (1.0,))).sum()
    nq = problem.system.nq
    end, moved = derivatives_of_run(problem, begins, lengths)
    expected = slope(end[:nq]) @ moved
    mine = [found.q0, found.qd0, *([] if found.parameters is None else [found.parameters])]
    assert_close(found.run.q[-1], end[:nq], 1e-12, "the run itself")
    assert_close(np.concatenate(mine), expected, 1e-12 * size * np.abs(expected).max(), "gradient")


def derivatives_of_run(problem: Problem, begins: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the end of a run of given steps, which is not a batch, and its derivatives by q0, qd0 and parameters.

    A displaced start is closed again, so that its columns are those of `simulation_derivatives`.
    """
    system, (q, qd) = problem.system, problem.start
    rates, times = rates_of(problem, torques=False), problem.times[:2]
    start = kt.simulation_derivatives(system, q, qd, times=times, method="rk4", dt=float(times[1] - times[0]))
    E = np.stack([np.asarray(system.coordinate_rate(q, e)) for e in np.eye(system.nv)], axis=-1)
    columns, more = np.concatenate([E @ start.dq[0], start.dqd[0]]), []
    if problem.parameters is not None:
        count = len(problem.parameters)
        units = np.eye(columns.shape[1])[-count:]
        more = [problem.parameters[:, None] + 1j * STEP * units]
    method = scheme_of(problem)
    return derivatives_of_steps(
        rates, method, np.concatenate([q, qd]), columns, begins, lengths, more=more,
        closing=closing_of(problem, rates), quaternions=quaternion_places(system.mechanism),
    )  # fmt: skip


def derivatives_of_steps(
    rates: Program,
    method: Scheme,
    start: np.ndarray,
    columns: np.ndarray,
    begins: np.ndarray,
    lengths: np.ndarray,
    *,
    more: Sequence[np.ndarray] = (),
    closing: Program | None = None,
    quaternions: Sequence[int] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Return the state [n] after steps of a method and its derivatives [n, columns], which are `columns` at the start.

    `more` are further inputs of the rates with the columns as imaginary parts, [size, columns].
    """
    y = start[:, None] + 1j * STEP * columns
    step: Any = partial(_explicit, rates)
    if isinstance(method, Rosenbrock):
        step = partial(_rosenbrock, slopes_of(rates))
    elif isinstance(method, Implicit):
        step = partial(_implicit, rates)
    around = method.centering
    for t, h in zip(begins, lengths, strict=True):
        y = y if around is None else np.concatenate(_outputs(around.center, y, t, more))
        y = step(method, y, t, h, more)
        y = y if around is None else np.concatenate(_outputs(around.uncenter, y, t + h, more))
        y = _unit(y, quaternions)
        if closing is not None:
            y = _closed(closing, y, t + h, more)
    return np.real(y[:, 0]), np.imag(y) / STEP


def _explicit(rates: Program, method: Any, y: np.ndarray, t: float, h: float, more: Sequence[np.ndarray]) -> np.ndarray:
    stages: list[np.ndarray] = []
    for weights, c in zip(method.a, method.c, strict=True):
        at = y + h * sum(a * k for a, k in zip(weights, stages, strict=True))
        stages.append(np.concatenate(_outputs(rates, at, t + c * h, more)))
    return y + h * sum(b * k for b, k in zip(method.b, stages, strict=True))


def _implicit(rates: Program, method: Any, y: np.ndarray, t: float, h: float, more: Sequence[np.ndarray]) -> np.ndarray:
    """Return a step whose stages are found by many more iterations than they need to converge."""
    stages = [np.zeros_like(y) for _ in method.b]
    for _ in range(ITERATIONS):
        points = [y + h * sum(a * k for a, k in zip(row, stages, strict=True)) for row in method.a]
        stages = [np.concatenate(_outputs(rates, at, t + c * h, more)) for at, c in zip(points, method.c, strict=True)]
    return y + h * sum(b * k for b, k in zip(method.b, stages, strict=True))


def _rosenbrock(slopes: Slopes, m: Rosenbrock, y: np.ndarray, t: float, h: float, more: Sequence[np.ndarray]) -> Any:
    """Return a step by the equations of the method with the full matrix, column by column."""
    n, count = y.shape
    *_, by_time, slope = _outputs(slopes.program, y, t, more)
    J = slope.reshape(-1, n, count)
    if slopes.moves is not None:
        upper = np.zeros((n - len(J), n, count), dtype=complex)
        for k, move in enumerate(slopes.moves):
            upper[k, len(upper) + k] = move
        J = np.concatenate([upper, J])
    W = np.eye(n)[:, :, None] - h * m.gamma * J
    stages: list[np.ndarray] = []
    for weights, couplings, c, d in zip(m.a, m.g, m.c, m.d, strict=True):
        at = y + h * sum(a * k for a, k in zip(weights, stages, strict=True))
        rates = np.concatenate(_outputs(slopes.program, at, t + c * h, more)[:2])
        right = m.gamma * (rates + sum(g * k for g, k in zip(couplings, stages, strict=True)) + d * h * by_time)
        stages.append(np.linalg.solve(np.moveaxis(W, -1, 0), right.T[..., None])[..., 0].T)
    return y + h * sum(b * k for b, k in zip(m.b, stages, strict=True))


def _outputs(program: Program, y: np.ndarray, t: float, more: Sequence[np.ndarray]) -> list[np.ndarray]:
    nq = program.inputs[1].size
    found = program.replay([[t], list(y[:nq]), list(y[nq:]), *map(list, more)], apply)
    return [np.array([np.broadcast_to(x, y.shape[1:]) for x in entries]) for entries in found]


def _unit(y: np.ndarray, quaternions: Sequence[int]) -> np.ndarray:
    for place in quaternions:
        part = y[place : place + 4]
        y[place : place + 4] = part / np.sqrt((part * part).sum(axis=0))
    return y


def _closed(closing: Program, y: np.ndarray, t: float, more: Sequence[np.ndarray]) -> np.ndarray:
    """Return a state with its loops closed; its derivatives are projected once more when they are."""
    nq = closing.inputs[1].size
    for _ in range(ROUNDS):
        moved, _, gap = _outputs(closing, y, t, more)
        if np.real(gap).max() <= 1.0:
            y[:nq] = np.real(y[:nq]) + 1j * np.imag(moved)
            break
        y[:nq] = moved
    return np.concatenate([y[:nq], _outputs(closing, y, t, more)[1]])
