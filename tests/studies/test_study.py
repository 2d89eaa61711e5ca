"""Studies: results by name, failures, interruption, and bits that do not depend on blocks."""

import pickle

import numpy as np
import pytest

import kinetree as kt
from kinetree.simulation.outcomes import Outcome
from kinetree.studies.evaluating import evaluate
from kinetree.studies.plan import Plan
from kinetree.studies.study import evaluate_plan
from press import press
from tolerance import assert_close

CYCLE = {"drive": "main", "speed": 11.0}


@pytest.fixture(scope="module")
def mapped():
    return kt.study(
        press(), over={"r": kt.grid([0.05, 0.09, 0.3]), "k": kt.grid(0.0, 900.0, 4)}, cycle=CYCLE, steps=40,
        measures={"peak": kt.peak("control.main"), "rms": "rms control.main"},
    )  # fmt: skip


def test_results_have_the_shape_of_the_grids(mapped):
    """Return measures over the grids, equal to those of single cycles."""
    assert mapped.dims == {"r": 3, "k": 4}
    assert mapped["peak"].shape == mapped["r"].shape == (3, 4)
    one = press().cycle("main", speed=11.0, start=0.0, samples=41, parameters={"r": 0.09, "k": 600.0})
    peak = np.abs(one["control.main"]).max()
    assert_close(mapped["peak"][1, 2], peak, 1e-8 * peak, "peak of one design")
    assert "units" not in mapped.units
    assert mapped.units == {"r": "m", "k": "N/m", "peak": "N m", "rms": "N m"}


def test_designs_whose_loops_do_not_close_are_listed(mapped):
    """Keep the designs that work, and name instant and loop of the others."""
    assert (mapped.status[:8] == Outcome.FINISHED).all()
    assert (mapped.status[8:] == Outcome.OPEN).all()
    assert np.isnan(mapped["peak"][2]).all()
    assert np.isfinite(mapped["peak"][:2]).all()
    assert len(mapped.failed) == 4
    text = str(mapped.failed[0])
    assert text.startswith("run 8 (r = 0.3, k = 0): the loops do not close with the driven joints 'main' at t = 0.")
    assert "(loop 'wrist_pin' by" in text
    assert "4 failed" in repr(mapped)


def test_the_best_run_is_within_bounds(mapped):
    """Choose the smallest measure among finished runs, with and without bounds."""
    best = mapped.best("rms")
    assert best.measures["rms"] == np.nanmin(mapped["rms"])
    assert mapped.values_of(best.run) == best.values
    bound = float(np.nanmedian(mapped["peak"]))
    within = mapped.best("rms", largest=True, subject_to={"peak": (None, bound)})
    assert within.measures["peak"] <= bound
    with pytest.raises(kt.InputError, match="no run of the study is within the bounds; see study.failed"):
        mapped.best("rms", subject_to={"peak": (None, 0.0)})
    with pytest.raises(kt.KinetreeError, match="no measure 'rsm'; did you mean 'rms'?"):
        mapped.best("rsm")


def test_no_run_beats_a_run_of_the_front(mapped):
    """Find the Pareto front that comparison of all pairs gives."""
    front = mapped.pareto("peak", "rms")
    assert mapped.pareto("-peak", "-rms").tolist() == [int(np.nanargmax(mapped["peak"]))]
    costs = np.stack([mapped.measures[name] for name in ("peak", "rms")], axis=-1)[:8]
    beaten = [any((other <= own).all() and (other < own).any() for other in costs) for own in costs]
    assert sorted(front.tolist()) == [k for k in range(8) if not beaten[k]]


def test_runs_can_be_had_again(mapped):
    """Return a run of the study with the measures that the study has."""
    one = mapped.run(6)
    assert float(kt.rms("control.main")(one)) == pytest.approx(mapped["rms"].flat[6], rel=1e-12)
    with pytest.raises(kt.InputError, match="run 9 has no motion: the loops do not close"):
        mapped.run(9)


def test_bits_do_not_depend_on_blocks_or_processes(monkeypatch):
    """Evaluate the same runs in blocks of other sizes, from a pickled plan, with equal bits."""
    over = {"r": kt.latin(0.04, 0.1), "m": kt.uniform(0.0, 9.0), "k": kt.sobol(0.0, 900.0)}
    measures = {"rms": "rms control.main", "pin": "peak radial.crank_pin", "mean": "mean power.main"}
    found = kt.study(press(), over, cycle=CYCLE, steps=24, samples=37, seed=5, measures=measures)
    monkeypatch.setattr(Plan, "block", 7)
    again = evaluate_plan(pickle.loads(pickle.dumps(found.plan)))
    part = evaluate(found.plan, 11, 13)
    for name in measures:
        assert np.array_equal(found[name], again[name]), name
        assert np.array_equal(found[name][11:13], part.measures[name]), name


def test_bits_of_common_motions_do_not_depend_on_blocks(monkeypatch):
    """Evaluate designs that make one motion in blocks of other sizes with equal bits."""
    over, measures = {"m": kt.uniform(0.0, 9.0)}, {"pin": "rms force.wrist_pin", "main": "peak radial.main"}
    found = kt.study(press(), over, cycle=CYCLE, steps=24, samples=21, measures=measures)
    assert found.plan.evaluation.same_for_all
    monkeypatch.setattr(Plan, "block", 1)
    again = evaluate_plan(found.plan)
    for name in measures:
        assert np.array_equal(found[name], again[name]), name


def test_interruption_keeps_what_is_done(monkeypatch):
    """Return the blocks that were evaluated before Ctrl-C."""
    calls = []

    def interrupting(run):
        calls.append(run)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run["control.main"].max(axis=1)

    monkeypatch.setattr(Plan, "block", 4)
    with pytest.raises(KeyboardInterrupt, match="the study was interrupted after 8 of 20 runs") as stop:
        kt.study(press(), {"m": kt.grid(0.0, 3.0, 20)}, cycle=CYCLE, steps=12, measures={"x": interrupting})
    found = stop.value.study
    assert not found.complete
    assert np.isfinite(found["x"][:8]).all()
    assert (found.status[8:] == Outcome.NOT_EVALUATED).all()
    assert "12 not evaluated" in repr(found)
    assert len(found.failed) == 0


def test_measures_that_are_not_numbers_have_a_status():
    """Mark runs with a measure that is not finite, and name the measure."""
    found = kt.study(
        press(), {"m": kt.grid([1.0, 2.0])}, cycle=CYCLE, steps=12,
        measures={"x": lambda run: np.where(run.parameters[:, 0] > 1.5, np.nan, 1.0), "rms": "rms control.main"},
    )  # fmt: skip
    assert found.status.tolist() == [Outcome.FINISHED, Outcome.NOT_A_NUMBER]
    assert found.failed[0].reason == "the measure 'x' is not a finite number"
    line = "1 failed, the first is run 1 (m = 2): the measure 'x' is not a finite number"
    assert str(found) == f"{found!r}\n  {line}" and line in found._repr_html_().replace("&#x27;", "'")
    assert np.isnan(found["rms"][1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"over": {"mm": kt.grid([1.0])}}, "no free parameter or initial state 'mm'; did you mean 'm'?"),
        ({"over": {"q.mian": kt.grid([1.0])}}, "no free parameter or initial state 'q.mian'; did you mean 'q.main'?"),
        ({"over": {"mass.slidr": kt.grid([1.0])}}, "no number of 'press' matches 'mass.slidr'; available: mass."),
        ({"over": {"q.main": kt.grid([1.0])}}, "'q.main' is an initial state, and a motion determines all states"),
        ({"cycle": None}, "give one of motion={joint: reference}, cycle="),
        ({"cycle": {"drive": "main"}}, "cycle is {'drive': 'main'}; give {'drive': joint, 'speed': rad/s}"),
        ({"cycle": {"drive": "main", "speed": 0.0}}, "the speed of cycle is 0"),
        ({"duration": 3.0}, "a cycle has its own duration"),
        ({"parameters": [1.0]}, "parameters have shape (1,); expected [..., 3], for m, r, k"),
        ({"parameters": {"r": 0.4}}, "with the driven joints of t = 0 s and the nominal parameters"),
    ],
)
def test_impossible_studies_are_refused(change, message):
    """Refuse unknown parameters, fixed ones, and evaluations that do not fit, before any run."""
    given = {"over": {"m": kt.grid([1.0])}, "cycle": {"drive": "main", "speed": 3.0, "start": 1.4}, "steps": 9} | change
    if "duration" not in change and change.get("cycle", given["cycle"]) == given["cycle"] and "parameters" in change:
        given["cycle"] = {"drive": "main", "speed": 3.0, "start": 1.4}
    with pytest.raises(kt.KinetreeError) as caught:
        kt.study(press(), measures={"x": "rms control.main"}, **given)
    assert message in str(caught.value)
