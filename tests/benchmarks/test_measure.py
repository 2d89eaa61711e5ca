"""Medians, ratios and results that must agree."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np
import pytest


def test_figures_are_medians_with_quartiles():
    """Return the median and the quartiles of uneven rounds, in other units as well."""
    from measure import Figure

    figure = Figure.of([7.0, 1.0, 3.0, 100.0, 2.0])
    assert (figure.median, figure.low, figure.high) == (3.0, 2.0, 7.0)
    assert figure.times(1e3).text() == "3,000 (2,000-7,000)"
    assert Figure.of([1.25]).text() == "1.25 (1.25-1.25)"


def test_ratios_are_taken_round_by_round():
    """Divide within a round, so that a slow moment of the machine cancels; subtract the cost of a call."""
    from measure import ratio

    slow, fast, call = [80.0, 800.0, 88.0], [10.0, 100.0, 11.0], [20.0, 200.0, 22.0]
    assert ratio(slow, fast).median == pytest.approx(8.0)
    assert ratio(slow, fast, call).median == pytest.approx(6.0)
    with pytest.raises(ValueError, match="shorter"):
        ratio(slow, fast[:2])


def test_answers_that_differ_are_not_timed():
    """Refuse a sample that is off, or not a number, by name; let a tolerance of its own pass."""
    from measure import Disagreement, agree

    expected = np.array([[1.0, -2.0], [3e-3, 4e-3]])
    found = expected + np.array([[0.0, 0.0], [0.0, 2e-6]])
    assert agree("arm", found, expected, 1e-3) == pytest.approx(5e-4)
    assert agree("arm", found, expected, np.array([0.0, 1e-3])) == pytest.approx(5e-4)
    with pytest.raises(Disagreement, match=r"^arm: answers of a sample differ by 5.0e-04 relative, more than 1.0e-04$"):
        agree("arm", found, expected, 1e-4)
    with pytest.raises(Disagreement, match="nan relative"):
        agree("arm", found * [[1.0], [np.nan]], expected, 1e-3)


def test_contenders_run_in_turn():
    """Run every contender in every round, each as often as its first call suggests."""
    from measure import Contender, interleaved

    calls: list[str] = []
    contenders = {name: Contender(lambda name=name: calls.append(name), 4) for name in "ab"}
    times = interleaved(contenders, 3)
    assert {name: len(values) for name, values in times.items()} == {"a": 3, "b": 3}
    assert all(x > 0 for values in times.values() for x in values)
    changes = sum(x != y for x, y in pairwise(calls))
    assert changes == 1 + 1 + 5  # from a to b in the warm-up, back for the first round, then at every turn


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system pins no process")
def test_pinning_is_undone_for_threads():
    """Stay on one core, have all of them inside the block, and one again after it."""
    import measure

    before = os.sched_getaffinity(0)
    try:
        assert measure.pin_to_one_core() == f"pinned to core {max(measure.CORES)}"
        assert len(os.sched_getaffinity(0)) == 1
        with measure.all_cores() as cores:
            assert cores == len(os.sched_getaffinity(0)) == len(measure.CORES)
        assert len(os.sched_getaffinity(0)) == 1
    finally:
        os.sched_setaffinity(0, before)
