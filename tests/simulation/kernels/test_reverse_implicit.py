"""Gradients of runs by implicit methods: their steps in reverse, against complex steps and forward derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from closed_mechanisms import start_of
from complex_runs import assert_gradient, weighted
from kinetree.model import parse
from kinetree.simulation.derivatives import adjoint
from kinetree.simulation.derivatives.adjoint import steps_of
from kinetree.simulation.derivatives.of_runs import differentiable
from pendulums import pendulum
from tolerance import assert_close

slow = pytest.mark.slow
METHODS = ["midpoint", "gauss"]
TIMES = np.array([0.0, 0.11, 0.17])
H = 0.02


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "name", ["pendulum", *(pytest.param(x, marks=slow) for x in ("spatial_pendulum", "space_robot_3r", "four_bar"))]
)
def test_complex_steps(name, method):
    """Return the gradient of the steps, with loops, quaternions and a free parameter."""
    system = pendulum() if name == "pendulum" else kt.load(name)
    q, qd = start_of(system)
    terminal, slope = weighted(system)
    options = {"times": TIMES, "method": method, "dt": H}
    found = kt.simulation_gradient(system, q, qd, terminal=terminal, **options)
    problem, _ = differentiable(system, q, qd, None, dict(options))
    begins, lengths, _ = steps_of(TIMES, H)
    assert_gradient(found, slope, problem, begins[:-1], lengths[:-1])


@pytest.mark.parametrize("method", [pytest.param("midpoint", marks=slow), "gauss"])
def test_control_and_torques(method, monkeypatch):
    """Differentiate by gains of control and torques of intervals, in a batch bit by bit, also segment by segment."""
    system = kt.System(kt.with_parameters(pendulum(), k=7.0, c=1.5))
    options = {"times": TIMES, "method": method, "dt": H, "control": kt.PD(parse("k"), parse("c"), kt.Hold([0.2]))}
    q, qd = np.linspace(0.2, 1.2, 9)[:, None], np.linspace(0.4, -0.3, 9)[:, None]
    torques = np.array([[0.3], [-0.2]])
    costs = {"terminal": lambda now: now.q[0] * now.q[0], "running": lambda now: now.qd[0]}
    many = kt.simulation_gradient(system, q, qd, torques=torques, **costs, **options)
    names = ("value", "q0", "qd0", "parameters", "torques")
    one = kt.simulation_gradient(system, q[4], qd[4], torques=torques, **costs, **options)
    for name in names:
        assert np.array_equal(getattr(many, name)[4], getattr(one, name)), name
    same = kt.simulation_gradient(system, q[4], qd[4], torques=0.0 * torques, **costs, **options)
    d = kt.simulation_derivatives(system, q[4], qd[4], wrt=("q0", "qd0", "l", "k", "c", "tau"), **options)
    expected = 2.0 * d.run.q[-1, 0] * d.dq[-1, 0] + d.dq[-1, 0] - d.dq[0, 0]  # the integral of qd is the change of q
    mine = [*same.q0, *same.qd0, *same.parameters, same.torques.sum()]
    assert_close(mine, expected, 1e-13, "both modes")
    monkeypatch.setattr(adjoint, "MEMORY", 100)
    parts = kt.simulation_gradient(system, q[4], qd[4], torques=torques, **costs, **options)
    assert np.array_equal(parts.q0, one.q0) and np.array_equal(parts.torques, one.torques)
