"""Optimization: known minima, bounds, failed designs, and confirmation by a sweep."""

import numpy as np
import pytest

import everyday
import kinetree as kt
from press import press
from tolerance import assert_close

CYCLE = {"cycle": {"drive": "main", "speed": 11.0}, "steps": 30}


def test_a_known_minimum_is_found():
    """Find the minimum of a function of the parameters, to the precision of differences."""
    found = kt.optimize(
        press(), {"m": (0.0, 9.0), "k": (0.0, 900.0)},
        minimize=lambda run: (run.parameters[:, 0] - 3.7) ** 2 + 1e-4 * (run.parameters[:, 2] - 512.0) ** 2 + 2.0,
        **CYCLE,
    )  # fmt: skip
    assert_close(found.values["m"], 3.7, 1e-5, "m of the minimum")
    assert_close(found.values["k"], 512.0, 1e-3, "k of the minimum")
    assert found.minimize == "objective"
    assert found.feasible and not found.active


def test_a_bound_is_met_exactly():
    """Stop at a bound of another measure, and name it as active."""
    found = kt.optimize(
        press(), {"m": (0.0, 9.0), "k": (0.0, 900.0)}, minimize="cost", subject_to={"side": (4.0, None)},
        measures={"cost": lambda run: run.parameters[:, 0] ** 2 + 1.0, "side": lambda run: run.parameters[:, 0] * 1.0},
        **CYCLE,
    )  # fmt: skip
    assert_close(found.values["m"], 4.0, 1e-6, "m at the bound")
    assert found.feasible
    assert found.violation == 0.0
    assert "side" in found.active


def test_the_optimum_beats_a_sweep():
    """Find a counterweight and spring that no sample of a sweep beats; the drive works less than without them."""
    found = kt.optimize(
        press(), {"m": (0.0, 9.0), "k": (0.0, 2000.0)}, minimize="rms", measures={"rms": kt.rms("control.main")},
        parameters={"m": 0.0, "k": 0.0}, **CYCLE,
    )  # fmt: skip
    confirmed = found.confirmed(500)
    assert confirmed.holds
    assert confirmed.best.measures["rms"] < 1.2 * found.cost
    assert found.cost < found.nominal["rms"]
    assert "samples (500 finished)" in str(confirmed)
    assert f"(nominal {found.nominal['rms']:.6g})" in str(found)
    assert_close(float(kt.rms("control.main")(found.run())), found.cost, 1e-9 * found.cost, "cost of the optimal run")


@everyday.long
def test_designs_that_fail_lose():
    """Find the largest stroke whose loop closes through a whole revolution."""
    found = kt.optimize(
        press(), {"r": (0.05, 0.6)}, minimize=lambda run: -run.parameters[:, 1],
        generations=25, population=8, **CYCLE,
    )  # fmt: skip
    assert 0.2 < found.values["r"] <= 0.2501
    assert found.feasible


def test_impossible_bounds_are_reported():
    """Return the design that violates least, and say so."""
    found = kt.optimize(
        press(), {"m": (0.0, 9.0)}, minimize="rms",
        measures={"rms": "rms control.main", "m_out": lambda run: run.parameters[:, 0] * 1.0},
        subject_to={"m_out": (10.0, None)}, generations=20, population=8, **CYCLE,
    )  # fmt: skip
    assert not found.feasible
    assert_close(found.violation, 0.1, 1e-6, "violation of the bound, relative to it")
    assert "no design within all bounds was found" in str(found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"over": {}}, "over is {}; give intervals by name"),
        ({"over": {"m": 3.0}}, "'m' varies over 3.0; give an interval (lo, hi)"),
        ({"over": {"m": (3.0, 1.0)}}, "'m' varies from 3 to 1; give lo below hi"),
        ({"minimize": "other"}, "minimize is 'other'; give the name of a measure (rms)"),
        ({"subject_to": {"peak": (None, 1.0)}}, "subject_to: no measure 'peak'"),
        ({"subject_to": {"rms": (2.0, 1.0)}}, "the bounds of 'rms' are 2 and 1; give the lower one first"),
        ({"subject_to": {"rms": 3.0}}, "the bounds of 'rms' are 3.0; give (lower, upper), None for no bound"),
        ({"over": {"r": (0.4, 0.6)}, "generations": 3, "population": 8}, "all designs within the bounds failed"),
    ],
)
def test_impossible_searches_are_refused(change, message):
    """Refuse intervals, measures and bounds that make no sense."""
    given = {"over": {"m": (0.0, 1.0)}, "minimize": "rms", "measures": {"rms": "rms control.main"}} | change
    with pytest.raises(kt.KinetreeError) as caught:
        kt.optimize(press(), **given, **CYCLE)
    assert str(caught.value).startswith(message)


def test_the_same_seed_gives_the_same_optimum():
    """Repeat a search with the same bits."""
    options = {"minimize": "rms control.main", "generations": 12, "population": 8} | CYCLE
    first, second = (kt.optimize(press(), {"m": (0.0, 9.0)}, seed=4, **options) for _ in range(2))
    assert first.values == second.values
    assert np.array_equal(first.history, second.history)


@pytest.mark.parametrize("after", [3, 40])
def test_an_interrupted_search_keeps_its_best_design(after):
    """Press Ctrl-C in the global and in the local search: the best design so far is kept, with its measures."""
    calls, costs = [], []

    def cost(run):
        calls.append(run)
        if len(calls) == after:
            raise KeyboardInterrupt
        costs.append((run.parameters[:, 0] - 3.7) ** 2 + 2.0)
        return costs[-1]

    with pytest.raises(
        KeyboardInterrupt, match="optimize was interrupted after .* designs; the best one is `optimum`"
    ) as stop:
        kt.optimize(press(), {"m": (0.0, 9.0)}, minimize=cost, **CYCLE)
    found = stop.value.optimum
    assert found.cost == min(x.min() for x in costs)
    assert_close((found.values["m"] - 3.7) ** 2 + 2.0, found.cost, 1e-12, "cost of the best design")
    assert found.evaluations == sum(map(len, costs))
