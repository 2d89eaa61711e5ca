"""Exact gradients of measures against differences, and the searches that use them."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.model import parse
from kinetree.studies import optimizing
from kinetree.studies.exact_slopes import SLOPES, exact_slopes, is_smooth, series_of
from kinetree.studies.measures import REDUCTIONS
from kinetree.studies.plan import StudyOptions, plan_of
from kinetree.studies.samplings import Sobol
from kinetree.studies.searching import Objective, checked_bounds, differences
from press import press
from tolerance import assert_close

CYCLE = {"cycle": {"drive": "main", "speed": 11.0}, "steps": 30}


def objective_of(system, over, measures, minimize, bounds=None, **evaluation) -> Objective:
    """Return the objective of an optimization."""
    options = StudyOptions(samples=8, **evaluation)
    plan = plan_of(system, {k: Sobol(*x) for k, x in over.items()}, measures, options)
    lo, hi = (np.array([x[k] for x in over.values()]) for k in (0, 1))
    return Objective(plan, minimize, checked_bounds(bounds, plan.measures), lo, hi)


def agree(objective: Objective, x: np.ndarray, bound: float) -> None:
    """Compare exact gradients of cost and margins with differences."""
    series = series_of(objective)
    assert series is not None
    (found, cost, margins), (same, by_cost, by_margins) = (f(objective, x) for f in (exact_slopes(series), differences))
    assert found.cost[0] == same.cost[0]
    assert_close(cost, by_cost, bound * max(1.0, np.abs(by_cost).max()), "gradient of the cost")
    assert_close(margins, by_margins, bound * max(1.0, np.abs(by_margins).max(initial=0.0)), "gradients of margins")


@pytest.mark.slow
def test_torques_along_a_motion():
    """Differentiate every reduction of a torque of a press with respect to counterweight and spring."""
    measures = {name: kt.Measure(name, "control.main") for name in REDUCTIONS}
    bounds = {name: (0.1, 7.0) for name in REDUCTIONS if name != "rms"}
    over = {"m": (0.0, 9.0), "k": (0.0, 2000.0)}
    objective = objective_of(press(), over, measures, "rms", bounds, **CYCLE)
    agree(objective, np.array([0.37, 0.61]), 1e-6)
    assert not is_smooth(objective)


def arm() -> kt.System:
    """Return an arm whose gains of control are free parameters."""
    return kt.System(kt.with_parameters(kt.load("planar_2r"), k=40.0, c=4.0))


OPTIONS = {
    "q0": [0.6, -0.4], "times": np.linspace(0.0, 0.5, 26), "method": "rk4", "dt": 0.01,
    "control": kt.PD(parse("k"), parse("c"), kt.Hold([0.0, 0.0])),
}  # fmt: skip


@pytest.mark.slow
def test_states_of_simulated_runs():
    """Differentiate reductions of coordinates and velocities with respect to gains and the start."""
    measures = {"x": kt.rms("q.joint1"), "v": kt.at_end("qd.joint2"), "p": kt.maximum("q.joint2")}
    over = {"k": (5.0, 60.0), "q.joint2": (-0.6, 0.2), "c": (0.5, 9.0), "qd.joint1": (-1.0, 1.0)}
    objective = objective_of(arm(), over, measures, "x", {"v": (-3.0, None), "p": (None, 2.0)}, simulate=OPTIONS)
    agree(objective, np.array([0.3, 0.7, 0.4, 0.6]), 2e-6)


def test_other_objectives_have_differences():
    """Return no derivatives of functions of runs, of other columns, and of motions that the design changes."""
    over = {"m": (0.0, 9.0)}
    for measure in (lambda run: run.parameters[:, 0], kt.rms("qd.main"), kt.rms("force.main")):
        assert series_of(objective_of(press(), over, {"x": measure}, "x", **CYCLE)) is None
    moved = objective_of(press(), {"r": (0.1, 0.2)}, {"x": kt.rms("control.main")}, "x", **CYCLE)
    assert series_of(moved) is None
    assert set(SLOPES) == set(REDUCTIONS)
    options = OPTIONS | {"control": kt.Sampled(OPTIONS["control"], 100.0)}
    sampled = objective_of(arm(), {"k": (5.0, 60.0)}, {"x": kt.rms("q.joint1")}, "x", simulate=options)
    assert series_of(sampled) is None


@pytest.mark.slow
def test_fewer_designs_for_the_same_optimum(monkeypatch):
    """Find the same optimum with exact gradients, with fewer designs."""

    def found():
        return kt.optimize(
            press(), {"m": (0.0, 9.0), "k": (0.0, 2000.0)}, minimize="rms", measures={"rms": kt.rms("control.main")},
            parameters={"m": 0.0, "k": 0.0}, **CYCLE,
        )  # fmt: skip

    exact = found()
    monkeypatch.setattr(optimizing, "series_of", lambda objective: None)
    other = found()
    assert exact.evaluations < other.evaluations - 500
    assert_close(exact.cost, other.cost, 1e-12 * other.cost, "cost of both")
