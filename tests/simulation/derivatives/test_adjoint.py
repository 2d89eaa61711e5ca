"""Gradients of runs by their steps in reverse, against forward derivatives and differences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_mechanisms import start_of
from kinetree.errors import KinetreeError
from kinetree.model import parse
from kinetree.simulation.derivatives import adjoint
from kinetree.simulation.methods.table import METHODS, names_of
from pendulums import pendulum
from tolerance import assert_close

TIMES = np.linspace(0.0, 0.3, 4)
H = 0.02


class Objective:
    """Costs with random weights, and the gradient of the cost at the end with respect to the entries of the state."""

    def __init__(self, system: kt.System) -> None:
        rng = np.random.default_rng(9)
        self.a, self.b, self.c = rng.normal(size=system.nq), rng.normal(size=system.nv), rng.normal(size=system.nv)

    def terminal(self, now):
        squares = sum(a * x * x for a, x in zip(self.a, now.q, strict=True))
        return squares + sum(b * v for b, v in zip(self.b, now.qd, strict=True))

    def running(self, now):
        return sum(c * v * v for c, v in zip(self.c, now.qd, strict=True)) + now.q[0] + sum(u * u for u in now.control)

    def at_end(self, system: kt.System, q: np.ndarray) -> np.ndarray:
        E = np.stack([np.asarray(system.coordinate_rate(q, e)) for e in np.eye(system.nv)], axis=-1)
        return np.concatenate([E.T @ (2.0 * self.a * q), self.b])


ALL = [
    "spatial_pendulum",
    "four_bar",
    *(
        pytest.param(x, marks=pytest.mark.slow)
        for x in ("stanford", "space_robot_3r", "five_bar", "press", "three_rrr")
    ),
]


@pytest.mark.parametrize(
    "method", everyday.only([name for name, m in METHODS.items() if m.native and not m.adaptive], ["rk4"])
)
@pytest.mark.parametrize("name", everyday.some(ALL))
def test_forward_and_backward_agree(name, method):
    """Return the gradient of a cost at the end that forward derivatives give, with loops and quaternions."""
    system = kt.load(name)
    (q, qd), objective = start_of(system), Objective(system)
    options = {"times": TIMES, "method": method, "dt": H}
    found = kt.simulation_gradient(system, q, qd, terminal=objective.terminal, **options)
    d = kt.simulation_derivatives(system, q, qd, **options)
    whole = np.concatenate([d.dq[-1], d.dqd[-1]])
    expected = objective.at_end(system, d.run.q[-1]) @ whole
    mine = [found.q0, found.qd0, *([] if found.parameters is None else [found.parameters])]
    assert_close(found.run.q, d.run.q, 1e-11, "the run itself")
    assert_close(np.concatenate(mine), expected, 1e-12 * np.abs(expected).max(), f"both modes of {name}")


@pytest.mark.parametrize(
    "name", ["planar_2r", *(pytest.param(x, marks=pytest.mark.slow) for x in ("space_robot_3r", "four_bar", "press"))]
)
@pytest.mark.parametrize("method", ["rk4", pytest.param("euler", marks=pytest.mark.slow)])
def test_differences_of_values_agree(name, method):
    """Agree with extrapolated differences of the value along the velocities and the torques of all intervals."""
    system = kt.load(name)
    (q, qd), objective = start_of(system), Objective(system)
    rng = np.random.default_rng(4)
    torques, along = 0.3 * rng.normal(size=(2, 3, system.nv))
    dv = rng.normal(size=system.nv)
    if system.closures:
        dv = np.asarray(system.closing_speed(q, dv))
    costs = {"terminal": objective.terminal, "running": objective.running}
    options = costs | {"times": TIMES, "method": method, "dt": H}

    def value(e):
        return kt.simulation_gradient(system, q, qd + e * dv, torques=torques + e * along, **options).value

    found, h = kt.simulation_gradient(system, q, qd, torques=torques, **options), 1e-3
    slopes = [(value(k * h) - value(-k * h)) / (2 * k * h) for k in (1, 2, 4)]
    once = [(4 * a - b) / 3 for a, b in pairwise(slopes)]
    expected = (16 * once[0] - once[1]) / 15
    got = found.qd0 @ dv + (found.torques * along).sum()
    assert found.torques.shape == (3, system.nv)
    assert_close(got, expected, 1e-9 * max(1.0, abs(expected)), f"gradient of {name} by {method}")


def test_parameters_of_mechanism_and_control():
    """Differentiate with respect to a length and to gains of control, against exact differences of forward runs."""
    system = kt.System(kt.with_parameters(pendulum(), k=7.0, c=1.5))
    control = kt.PD(parse("k"), parse("c"), kt.Hold([0.2]))
    options = {"times": TIMES, "method": "rk4", "dt": H, "control": control}
    found = kt.simulation_gradient(
        system, [0.7], [-0.4], terminal=lambda now: now.q[0] * now.q[0] + now.parameter("k") * 0.01, **options
    )
    d = kt.simulation_derivatives(system, [0.7], [-0.4], wrt=("l", "k", "c"), **options)
    expected = 2.0 * d.run.q[-1, 0] * d["parameters"][-1, 0] + np.array([0.0, 0.01, 0.0])
    assert_close(found.parameters, expected, 1e-14, "both modes")
    assert found["c"] == found.parameters[2]
    with pytest.raises(KinetreeError, match="no free parameter 'm'; available: l, k, c"):
        found["m"]


def test_running_cost_is_the_integral():
    """Integrate a running cost with the accuracy of the method, and find its gradient in a batch, bit by bit."""
    system = pendulum()
    q, qd = np.linspace(0.2, 1.2, 9)[:, None], np.linspace(0.4, -0.3, 9)[:, None]
    options = {"times": TIMES, "method": "rk4", "dt": 1e-3}
    costs = {"running": lambda now: now.qd[0]}
    many = kt.simulation_gradient(system, q, qd, **costs, **options)
    one = kt.simulation_gradient(system, q[4], qd[4], **costs, **options)
    assert_close(many.value, (many.run.q[:, -1] - q)[:, 0], 1e-10, "the integral of a velocity")
    assert many.q0.shape == (9, 1) and many.parameters.shape == (9, 1)
    assert np.array_equal(many.q0[4], one.q0) and np.array_equal(many.parameters[4], one.parameters)


def test_segments_do_not_change_the_gradient(monkeypatch):
    """Return the same gradient if the states of steps do not fit into memory and are computed again."""
    system, torques = pendulum(), np.array([[0.3], [-0.2], [0.5]])
    options = {"times": TIMES, "method": "rk4", "dt": 1e-3, "terminal": lambda now: now.q[0], "torques": torques}
    whole = kt.simulation_gradient(system, [0.7], [0.4], **options)
    monkeypatch.setattr(adjoint, "MEMORY", 1000)
    parts = kt.simulation_gradient(system, [0.7], [0.4], **options)
    for name in ("value", "q0", "qd0", "torques"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name)), name
    assert_close(parts.parameters, whole.parameters, 1e-14, "parameters, summed in another order")
    assert_close(parts.run["control"][:, 0], [0.3, -0.2, 0.5, 0.5], 0.0, "added torques in the run")


@pytest.mark.slow
def test_driven_joints():
    """Agree with forward derivatives where a joint is driven."""
    system = kt.load("planar_2r")
    options = {"times": TIMES, "method": "rk4", "dt": H, "control": kt.Driven("joint1", kt.Cosine(0.3, 0.5))}
    found = kt.simulation_gradient(system, terminal=lambda now: now.qd[1], **options)
    d = kt.simulation_derivatives(system, **options)
    assert_close(np.concatenate([found.q0, found.qd0]), d.dqd[-1, 1], 1e-13, "a driven run")
    with pytest.raises(KinetreeError, match="torques are given, and joints are driven; leave one of both out"):
        kt.simulation_gradient(system, terminal=lambda now: now.qd[1], torques=np.zeros((3, 2)), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"terminal": None},
            "terminal and running: give at least one of them, a function of `now` that returns a numb",
        ),
        ({"terminal": 3.0}, "terminal is 3.0; give a function of `now` that returns a number"),
        ({"terminal": lambda now: abs(now.q[0])}, "terminal cannot be compiled ("),
        (
            {"terminal": lambda now: now.q},
            "terminal returns 1 values; give a function of `now` that returns one number",
        ),
        ({"running": lambda now: None}, "running returns None; give a function of `now` that returns one number"),
        (
            {"method": "bdf", "dt": None},
            f"runs by bdf have no derivatives; use {names_of(adaptive=False)} with dt, or {names_of(adaptive=True)}",
        ),
        ({"events": kt.Event(lambda now: now.q[0])}, "events: the time of an event depends on the run, and a run wit"),
        ({"torques": np.zeros((2, 1))}, "torques have the shape (2, 1); expected [..., nt - 1, nv], (3, 1) at the end"),
        ({"torques": np.full((3, 1), np.nan)}, "torques have entries that are not finite; give finite numbers"),
    ],
)
def test_bad_input_is_refused(options, message):
    """Refuse costs that cannot be compiled, methods without a backward mode, and torques of another shape."""
    usual = {"times": TIMES, "method": "rk4", "dt": H, "terminal": lambda now: now.q[0]}
    with pytest.raises(KinetreeError) as caught:
        kt.simulation_gradient(pendulum(), [0.3], [0.1], **(usual | options))
    assert str(caught.value).startswith(message)
