"""Gradients of adaptive runs: those of their accepted steps, by complex steps, forward derivatives and differences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_mechanisms import start_of
from complex_runs import assert_gradient, weighted
from kinetree.model import parse
from kinetree.simulation.derivatives import adjoint
from kinetree.simulation.derivatives.adjoint import AdaptivePath
from kinetree.simulation.derivatives.of_runs import differentiable
from kinetree.simulation.derivatives.programs import parts_of
from kinetree.simulation.methods.table import METHODS
from pendulums import pendulum
from tolerance import assert_close

slow = pytest.mark.slow
ADAPTIVE = [name for name, m in METHODS.items() if m.native and m.adaptive]
TIMES = np.array([0.0, 0.11, 0.17])
LOOSE = {"rtol": 1e-6, "atol": 1e-8}


def accepted(problem, torques=None):
    """Return the accepted steps of a run that is not a batch: their beginnings and lengths [s]."""
    path = AdaptivePath(problem, parts_of(problem, None, None, torques=torques is not None), torques, 2**26)
    path.forward(None)
    known = [segment.known for span in path.spans for segment in span]
    return np.concatenate([x[2][:-1] for x in known]), np.concatenate([x[3][:-1] for x in known])


@everyday.long
@pytest.mark.parametrize("method", everyday.only(ADAPTIVE, ["rodas5p"]))
@pytest.mark.parametrize(
    "name", ["pendulum", *(pytest.param(x, marks=slow) for x in ("spatial_pendulum", "space_robot_3r", "four_bar"))]
)
def test_complex_steps_over_the_accepted_steps(name, method):
    """Return the gradient of the accepted steps, with their lengths held fixed, also by parameters."""
    system = pendulum() if name == "pendulum" else kt.load(name)
    q, qd = start_of(system)
    terminal, slope = weighted(system)
    options = {"times": TIMES, "method": method, **LOOSE}
    found = kt.simulation_gradient(system, q, qd, terminal=terminal, **options)
    problem, _ = differentiable(system, q, qd, None, dict(options))
    begins, lengths = accepted(problem)
    assert len(begins) > 2 and np.isclose(begins[-1] + lengths[-1], TIMES[-1])
    assert_gradient(found, slope, problem, begins, lengths)


@pytest.mark.parametrize("method", everyday.only(ADAPTIVE, ["rodas5p"]))
@pytest.mark.parametrize("name", ["pendulum", *(pytest.param(x, marks=slow) for x in ("spatial_pendulum", "press"))])
def test_forward_and_backward_agree(name, method):
    """Agree with forward derivatives, to rounding if tolerances are so wide that both modes take the same steps."""
    system = pendulum() if name == "pendulum" else kt.load(name)
    q, qd = start_of(system)
    terminal, slope = weighted(system)
    wide = {"rtol": 1e-12, "atol": 1e-13} if system.closures else {"rtol": 1e6, "atol": 1e6}
    options = {"times": [0.0, 0.03], "method": method, **wide}
    found = kt.simulation_gradient(system, q, qd, terminal=terminal, **options)
    d = kt.simulation_derivatives(system, q, qd, **options)
    E = np.stack([np.asarray(system.coordinate_rate(d.run.q[-1], e)) for e in np.eye(system.nv)], axis=-1)
    expected = slope(d.run.q[-1]) @ np.concatenate([E @ d.dq[-1], d.dqd[-1]])
    mine = np.concatenate([found.q0, found.qd0, *([] if found.parameters is None else [found.parameters])])
    bound = 1e-10 if system.closures else 1e-12
    assert_close(mine, expected, bound * np.abs(expected).max(), f"both modes of {method}, {name}")


def sprung(k: float) -> kt.System:
    """Return a mass on a stiff spring with a free stiffness, and its mass free as well."""
    body = kt.Body("mass", parse("m"), (0.0, 0.0, 0.0), (0.1, 0.1, 0.1, 0.0, 0.0, 0.0))
    rail = kt.Joint("rail", "prismatic", "ground", "mass", axis=(1.0, 0.0, 0.0))
    free = [kt.Parameter("m", 1.7, free=True), kt.Parameter("k", k, free=True)]
    return kt.System(kt.build_mechanism("sprung", [body], [rail], parameters=free))


@pytest.mark.parametrize("method", everyday.only(ADAPTIVE, ["dopri5"]))
def test_running_costs_torques_and_gains(method):
    """Differentiate an integral, the torques of all intervals and gains of control; compare with differences."""
    system = sprung(23.0)
    torques, along = 0.3 * np.random.default_rng(4).normal(size=(2, 3, 1))
    options = {
        "times": np.array([0.0, 0.2, 0.5, 0.6]), "method": method, "rtol": 1e-11, "atol": 1e-12,
        "control": kt.PD(parse("k"), 1.5, kt.Cosine(0.2, 0.7)), "terminal": lambda now: now.q[0],
        "running": lambda now: now.qd[0] * now.qd[0] + now.control[0] * now.control[0] * 0.01 + now.parameter("m"),
    }  # fmt: skip

    def value(e):
        by = {"m": 1.7 + 0.3 * e, "k": 23.0 - 4.0 * e}
        start = [0.31 + 0.2 * e], [-0.44 + e]
        return kt.simulation_gradient(system, *start, torques=torques + e * along, parameters=by, **options).value

    g, h = kt.simulation_gradient(system, [0.31], [-0.44], torques=torques, **options), 4e-3
    slopes = [(value(k * h) - value(-k * h)) / (2 * k * h) for k in (1, 2, 4)]
    once = [(4 * a - b) / 3 for a, b in pairwise(slopes)]
    expected = (16 * once[0] - once[1]) / 15
    got = 0.2 * g.q0[0] + g.qd0[0] + 0.3 * g["m"] - 4.0 * g["k"] + (g.torques * along).sum()
    assert_close(got, expected, 1e-8 * max(1.0, abs(expected)), f"gradient of {method}")
    assert g.torques.shape == (3, 1) and np.isfinite(g.run["control"]).all()


@everyday.long
def test_batches_have_the_bits_of_single_runs(monkeypatch):
    """Return for a row of a batch, whose runs take different steps, the bits of the run alone."""
    system = pendulum()
    q, qd = np.linspace(0.2, 2.9, 11)[:, None], np.linspace(0.4, -9.0, 11)[:, None]
    options = {"times": TIMES, "method": "dopri5", "terminal": lambda now: now.q[0], "rtol": 1e-9}
    length = np.linspace(0.4, 0.6, 11)
    many = kt.simulation_gradient(system, q, qd, parameters={"l": length}, **options)
    one = kt.simulation_gradient(system, q[7], qd[7], parameters={"l": length[7]}, **options)
    assert np.array_equal(many.q0[7], one.q0) and np.array_equal(many.parameters[7], one.parameters)
    assert np.array_equal(many.run.q[7], one.run.q)
    monkeypatch.setattr(adjoint, "MEMORY", 1000)
    again = kt.simulation_gradient(system, q, qd, parameters={"l": length}, **options)
    assert np.array_equal(again.q0, many.q0) and np.array_equal(again.parameters, many.parameters)


def test_memory_is_bounded(monkeypatch):
    """Keep only the beginnings of segments once the states of steps fill the memory."""
    problem, _ = differentiable(pendulum(), [0.7], [0.4], None, {"times": [0.0, 9.0], "method": "dopri5"})
    monkeypatch.setattr(adjoint, "MANY", 32)
    path = AdaptivePath(problem, parts_of(problem, None, None, torques=False), None, 4000)
    path.forward(None)
    (segments,) = path.spans
    kept = sum(x.nbytes for s in segments if s.known for x in s.known)
    assert len(segments) > 10 and kept <= 4000 and segments[-1].known is None


def test_failed_runs_have_no_gradient():
    """Return NaN for a run that does not finish, the reason in its status, and the gradient of the other runs."""
    q, qd = np.array([[0.3], [0.7]]), np.array([[0.1], [60.0]])
    g = kt.simulation_gradient(
        pendulum(), q, qd, terminal=lambda now: now.q[0], times=[0.0, 0.5, 1.0], method="dopri5", max_steps=60
    )
    assert np.isfinite(g.q0[0]).all() and np.isnan(g.q0[1]).all() and np.isnan(g.value[1])
    assert list(g.run.failures) == [1] and "max_steps" in g.run.status


@slow
@pytest.mark.parametrize("name", ["planar_2r", "spatial_pendulum", "four_bar"])
@pytest.mark.parametrize("method", ADAPTIVE)
def test_differences_of_accurate_runs_agree(name, method):
    """Agree in the limit with differences of accurate runs of `simulate` along the velocities of the start."""
    system = kt.load(name)
    q, qd = start_of(system)
    terminal, slope = weighted(system)
    tight = {"times": TIMES, "rtol": 1e-12, "atol": 1e-13}
    dv = np.random.default_rng(4).normal(size=system.nv)
    if system.closures:
        dv = np.asarray(system.closing_speed(q, dv))
    found = kt.simulation_gradient(system, q, qd, terminal=terminal, method=method, **tight)

    def value(e):
        end = kt.simulate(system, q, qd + e * dv, method="dop853", **tight)
        y = end.q[-1]
        w = slope(np.zeros_like(y))
        squares = 0.5 * (slope(y) - w)[: system.nq] @ y
        return squares + w @ np.concatenate([y, end.qd[-1]])

    h = 2e-3
    slopes = [(value(k * h) - value(-k * h)) / (2 * k * h) for k in (1, 2, 4)]
    once = [(4 * a - b) / 3 for a, b in pairwise(slopes)]
    expected = (16 * once[0] - once[1]) / 15
    assert_close(found.qd0 @ dv, expected, 1e-7 * max(1.0, abs(expected)), f"{method} of {name}")
