"""Measures of runs."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.studies.measures import column_values, measure_runs, measure_unit, measures_of
from press import press
from tolerance import assert_close


@pytest.fixture(scope="module")
def run():
    return press().cycle("main", speed=7.0, start=0.2, samples=90)


def test_reductions_are_those_of_numpy(run):
    """Compare every reduction with its definition on the samples."""
    x, t = run["control.main"], run.t
    span = t[-1] - t[0]
    expected = {
        kt.peak: np.abs(x).max(), kt.maximum: x.max(), kt.minimum: x.min(), kt.span: np.ptp(x), kt.at_end: x[-1],
        kt.integral: np.trapezoid(x, t), kt.mean: np.trapezoid(x, t) / span,
        kt.rms: np.sqrt(np.trapezoid(x * x, t) / span),
    }  # fmt: skip
    for make, value in expected.items():
        assert_close(make("control.main")(run), value, 1e-12 * np.abs(x).max(), make.__name__)


def test_bearing_loads_are_split_by_the_axis(run):
    """Split the reaction at a pin into parts perpendicular to and along its axis, z here."""
    w = run["reactions"][:, 1]
    assert_close(column_values(run, "radial.crank_pin"), np.hypot(w[:, 3], w[:, 4]), 1e-12, "radial")
    assert_close(column_values(run, "axial.crank_pin"), np.abs(w[:, 5]), 1e-12, "axial")
    assert_close(column_values(run, "bending.crank_pin"), np.hypot(w[:, 0], w[:, 1]), 1e-12, "bending")
    assert_close(column_values(run, "torsion.crank_pin"), np.abs(w[:, 2]), 1e-12, "torsion")
    cut = run["loop_reactions"][:, 0]
    assert_close(column_values(run, "force.wrist_pin"), np.linalg.norm(cut[:, 3:], axis=-1), 1e-12, "force")
    slide = run["reactions"][:, 2]  # the axis of the guide is x
    assert_close(column_values(run, "axial.guide"), np.abs(slide[:, 3]), 1e-12 * np.abs(slide).max(), "along the guide")


def test_power_and_positions_are_columns(run):
    """Measure the power of a drive and the position of a body."""
    assert_close(column_values(run, "power.main"), run["control.main"] * run["qd.main"], 1e-12, "power")
    assert_close(column_values(run, "position.ram.x"), run["q.guide"], 1e-12, "position")
    assert_close(column_values(run, "position.ram"), np.abs(run["q.guide"]), 1e-12, "distance")


def test_units_follow_from_columns():
    """Give measures the units of their columns."""
    system = press()
    units = {"peak control.main": "N m", "rms radial.crank_pin": "N", "integral power.main": "W s", "span q.guide": "m"}
    for text, unit in units.items():
        assert measure_unit(system, measures_of(system, {"x": text})["x"]) == unit


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "measures is {}; give measures by name"),
        ({"x": "highest control.main"}, "measure 'x': no reduction 'highest'; available: peak, rms"),
        ({"x": "rms controls.main"}, "measure 'x': no column 'controls.main'; did you mean 'control'?"),
        ({"x": "rms control.mian"}, "measure 'x': no part of column 'control' 'mian'; did you mean 'main'?"),
        ({"x": "rms radial.crank_pni"}, "measure 'x': no joint or loop of 'radial' 'crank_pni'; did you mean"),
        ({"x": "rms control"}, "measure 'x': the entries of 'control' have different units, N m, N; name one"),
        ({"x": "rms"}, "the measure 'x' is 'rms'; give a reduction and a column"),
        ({"x": 3.0}, "the measure 'x' is 3.0; give one such as"),
        ({"a b": "rms control.main"}, "the name of a measure is 'a b'; give an identifier"),
    ],
)
def test_unknown_measures_are_refused(given, message):
    """Refuse unknown reductions, columns and parts, with the nearest name."""
    with pytest.raises(kt.KinetreeError) as caught:
        measures_of(press(), given)
    assert str(caught.value).startswith(message)


def test_functions_must_return_a_number_per_run():
    """Refuse a function that reduces the wrong axis."""
    system = press()
    run = system.cycle("main", speed=7.0, samples=9, parameters={"m": [1.0, 2.0, 3.0]})
    assert measure_runs(run, lambda r: r["control.main"].max(axis=1), "x").shape == (3,)
    with pytest.raises(kt.InputError, match=r"the measure 'x' returned shape \(9,\); expected \(3,\), one number per"):
        measure_runs(run, lambda r: r["control.main"].max(axis=0), "x")
