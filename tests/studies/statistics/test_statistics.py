"""Statistics of studies: bands, histograms, failure probabilities, sensitivity indices, worst cases, bad input."""

from __future__ import annotations

import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinetree as kt
from kinetree.simulation.outcomes import Outcome
from kinetree.studies.statistics.summary import interval
from kinetree.studies.store import STATUS

pytest.importorskip("zarr")
pytest.importorskip("SALib")
TIMES = np.linspace(0.0, 0.3, 7)
SIMULATE = {"times": TIMES, "method": "rk4", "dt": 0.01}
A, B = 7.0, 0.1


def ishigami(run):
    """Return the Ishigami function of the first coordinates of each run."""
    x = run["q"][:, 0]
    return np.sin(x[:, 0]) + A * np.sin(x[:, 1]) ** 2 + B * x[:, 2] ** 4 * np.sin(x[:, 0])


def sensitive(**options):
    """Return a study of the Ishigami function, through the starts of an arm."""
    arm = kt.chain(3)
    names = [f"q.{joint.name}" for joint in arm.joints]
    over = kt.sensitivity(dict.fromkeys(names, (-np.pi, np.pi)), seed=4, **options)
    return kt.study(
        arm, over, simulate={"times": [0.0, 1e-3], "method": "rk4", "dt": 1e-3}, measures={"ishigami": ishigami}
    )


def falling(store, **options):
    arm = kt.load("planar_2r")
    given = {
        "over": {"q.joint1": kt.uniform(-1.0, 1.0), "qd.joint2": kt.normal(0.0, 2.0)}, "samples": 230, "seed": 3,
        "shard": 20, "simulate": SIMULATE, "measures": {"fastest": kt.peak("qd.joint1"), "odd": odd},
        "keep": ["q", "qd.joint1"], "progress": False,
    }  # fmt: skip
    return kt.study(arm, store=store, **given | options)


def odd(run):
    """Return a measure that is not finite for some runs."""
    x = run["q.joint1"][:, 0]
    return np.where(x > 0.9, np.nan, x)


@pytest.fixture(scope="module")
def fallen(tmp_path_factory):
    return falling(tmp_path_factory.mktemp("store") / "fall.zarr")


def test_bands_are_the_quantiles_of_numpy(fallen):
    """Find the bits of numpy.quantile over the finished runs, of whole columns and of entries."""
    q = fallen.store.group["q"][...][fallen.finished]
    assert 0 < len(q) < 230
    levels = (0.05, 0.31, 0.5, 0.95)
    bands = fallen.bands("q", levels)
    assert np.array_equal(bands.values, np.quantile(q, levels, axis=0))
    assert bands.labels == ("joint1", "joint2") and bands.unit == "rad" and (bands.counts == len(q)).all()
    assert np.array_equal(bands.of("joint2"), fallen.bands("q.joint2", levels).values[:, :, 0])
    assert np.array_equal(bands.times, TIMES)
    speed = fallen.store.group["qd.joint1"][...][fallen.finished]
    assert np.array_equal(fallen.bands("qd.joint1").of("qd.joint1")[3], np.median(speed, axis=0))
    assert f"of {len(q)} runs>" in repr(bands)


@pytest.mark.slow
def test_memory_is_bounded_for_stores_of_any_size(tmp_path):
    """Read bands of a store with several times the memory, within the memory and a few shards."""
    times = np.linspace(0.0, 0.04, 41)
    study = falling(tmp_path / "large.zarr", samples=10_000, shard=250, keep=["q"],
                    simulate={"times": times, "method": "rk4", "dt": 0.01})  # fmt: skip
    study.bands("q")
    tracemalloc.start()
    bands = study.bands("q", memory=1e6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    q = study.store.group["q"][...]
    assert q.nbytes > 6e6 and peak < 1e6 + 6 * 250 * 41 * 2 * 8
    assert np.array_equal(bands.values, np.quantile(q[study.finished], bands.quantiles, axis=0))


def test_stores_are_read_without_their_mechanism(fallen):
    """Read a store back: the same results, bands and worst cases; its runs need the mechanism."""
    again = kt.read_study(fallen.store.path)
    for name in ("q.joint1", "qd.joint2", "fastest", "odd"):
        assert np.array_equal(again[name], fallen[name], equal_nan=True)
    assert again.units == fallen.units and again.status.tolist() == fallen.status.tolist()
    assert np.array_equal(again.bands("q").values, fallen.bands("q").values)
    assert again.worst("fastest") == fallen.worst("fastest")
    with pytest.raises(kt.InputError, match="read from a file without its mechanism; call kt.study again"):
        again.run(0)


def test_grids_are_read_from_stores(tmp_path):
    """Read the values along grids and samples from a store."""
    made = falling(tmp_path / "grid.zarr", over={"q.joint2": kt.grid([0.1, 0.7, 1.3]), "q.joint1": kt.uniform(-1, 1)},
                   samples=5, shard=4)  # fmt: skip
    again = kt.read_study(tmp_path / "grid.zarr")
    assert again.dims == made.dims == {"q.joint2": 3, "sample": 5}
    for name in ("q.joint2", "q.joint1", "fastest"):
        assert np.array_equal(again[name], made[name], equal_nan=True), name


def test_worst_cases_are_evaluated_again_with_equal_bits(fallen):
    """Find the largest measures, and evaluate these runs again: stored columns and measures are equal bit for bit."""
    worst = fallen.worst("fastest", n=3)
    values = np.sort(fallen["fastest"][fallen.finished])
    assert [case.measures["fastest"] for case in worst] == values[::-1][:3].tolist()
    assert fallen.worst("fastest", 1, largest=False)[0].measures["fastest"] == values[0]
    for case in worst:
        run = fallen.run(case.run)
        assert np.array_equal(run.q, fallen.store.group["q"][case.run])
        assert np.array_equal(run["qd.joint1"], fallen.store.group["qd.joint1"][case.run])
        assert kt.peak("qd.joint1")(run) == case.measures["fastest"]


def test_histograms_count_the_finished_runs(fallen):
    """Count as NumPy does, with mean and median."""
    found = fallen.histogram("fastest", bins=13)
    values = fallen["fastest"][fallen.finished]
    assert np.array_equal(found.counts, np.histogram(values, 13)[0]) and found.counts.sum() == len(values)
    assert found.median == np.median(values) and found.unit == "rad/s"


def test_histograms_of_values_that_differ_by_rounding(fallen):
    """Count values that are equal up to their last digits, and values that are equal."""
    for step in (0.0, 1.0):
        values = 132.88 + step * np.spacing(132.88) * (np.arange(fallen.runs) % 3)
        found = replace(fallen, measures={"fastest": values}).histogram("fastest")
        assert found.counts.sum() == fallen.finished.sum() and (np.diff(found.edges) > 0).all()


def test_failures_are_counted_by_reason(fallen):
    """Count runs without result, and those that exceed a limit, each once."""
    bound = float(np.nanmedian(fallen["fastest"]))
    found = fallen.failure_probability({"fastest": (None, bound)})
    lost, above = int((~fallen.finished).sum()), int((fallen["fastest"] > bound).sum())
    assert found.failed == lost + above and found.evaluated == 230
    assert found.reasons == {"a measure is not a finite number": lost, f"fastest above {bound:g} rad/s": above}
    assert found.low < found.value < found.high
    alone = fallen.failure_probability({"fastest": (None, bound)}, count_failed=False)
    assert alone.failed == above and alone.evaluated == 230 - lost
    assert "95 % confidence" in str(found) and "(clopper-pearson)" in str(found)


@settings(max_examples=15, deadline=None)
@given(p=st.floats(0.003, 0.997), count=st.integers(3, 400), confidence=st.sampled_from([0.8, 0.95, 0.99]))
def test_intervals_cover_the_truth(p, count, confidence):
    """Sum the probabilities of all counts whose interval has the truth: at least the confidence."""
    from scipy.stats import binom

    k = np.arange(count + 1)
    ends = np.array([interval(int(x), count, confidence) for x in k])
    covered = binom.pmf(k, count, p)[(ends[:, 0] <= p) & (p <= ends[:, 1])].sum()
    assert covered >= confidence - 1e-12
    wilson = np.array([interval(int(x), count, confidence, "wilson") for x in k])
    assert (wilson[:, 1] - wilson[:, 0]).mean() < (ends[:, 1] - ends[:, 0]).mean()


def test_sobol_indices_are_those_of_the_formula():
    """Find the indices of the Ishigami function within their confidence intervals, also those of pairs."""
    found = sensitive(samples=2048, second_order=True).sensitivity("ishigami", confidence=0.99)
    v1 = 0.5 * (1.0 + B * np.pi**4 / 5.0) ** 2
    v2, v13 = A**2 / 8.0, B**2 * np.pi**8 * 8.0 / 225.0
    total = v1 + v2 + v13
    first = np.array([v1, v2, 0.0]) / total
    whole = np.array([v1 + v13, v2, v13]) / total
    assert (np.abs(found["first"] - first) <= found.margins["first"]).all()
    assert (np.abs(found["total"] - whole) <= found.margins["total"]).all()
    assert np.abs(found["second"][0, 2] - v13 / total) <= found.margins["second"][0, 2]
    assert max(found.margins["total"]) < 0.12 and found.used == 2048
    assert found.order == [0, 1, 2]


def test_new_runs_give_indices_of_random_studies(fallen):
    """Make new runs with the distributions of a study; grids have none."""
    found = fallen.sensitivity("fastest", samples=64, seed=5)
    assert found.names == ("q.joint1", "qd.joint2") and found.planned == 64
    assert (found["total"] > 0.0).all()
    grid = falling(None, over={"q.joint1": kt.grid(0.0, 1.0, 3)}, samples=None, keep=[], shard=None)
    with pytest.raises(kt.InputError, match="'q.joint1' is on a grid or in a table, and has no distribution"):
        grid.sensitivity("fastest", samples=64)
    with pytest.raises(kt.InputError, match="without its mechanism; call kt.study again for new runs"):
        kt.read_study(fallen.store.path).sensitivity("fastest", samples=64)


def test_morris_effects_rank_the_quantities():
    """Find elementary effects of the Ishigami function: those of the second quantity have one magnitude."""
    found = sensitive(method="morris", samples=60).sensitivity("ishigami")
    assert found.method == "morris" and found.planned == 60
    # of four levels, those two apart: sin(pi)^2 - sin(pi / 3)^2 = -3/4, over 2/3 of the interval
    np.testing.assert_allclose(found["effect"][1], 0.75 * A / (2.0 / 3.0), rtol=1e-12)
    assert (found["spread"] > 1.0).all() and found["effect"].shape == (3,)


def test_base_samples_with_failed_runs_are_left_out():
    """Leave out whole base samples, and say how many are used."""
    study = sensitive(samples=64)
    study.status[7], study.measures["ishigami"][7] = Outcome.LOST, np.nan
    assert "63 of 64 base samples" in repr(study.sensitivity("ishigami"))
    study.status[5:] = Outcome.NOT_EVALUATED
    with pytest.raises(kt.InputError, match="1 of 64 base samples have results of all their 5 runs"):
        study.sensitivity("ishigami")


def test_unfinished_studies_state_the_number_of_runs(fallen, tmp_path):
    """Use the finished shards of a store, and say of how many runs."""
    made = falling(tmp_path / "part.zarr")
    for k in (0, 3, 4, 11):
        (made.store.path / STATUS / "c" / str(k)).unlink()
    part = kt.read_study(made.store.path)
    assert part.evaluated == 160
    q = made.store.group["q"][...][part.finished]
    assert np.array_equal(part.bands("q", [0.5]).values[0], np.median(q, axis=0))
    assert "(unfinished: 230 runs planned)" in repr(part.bands("q"))
    assert "of 160 runs, of 230 planned failed" in str(part.failure_probability())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.histogram("fastst"), "no measure 'fastst'; did you mean 'fastest'"),
        (lambda s: s.worst("slow"), "no measure 'slow'"),
        (lambda s: s.sensitivity("slow"), "no measure 'slow'"),
        (lambda s: s.failure_probability({"slow": (0, 1)}), "no measure 'slow'"),
        (lambda s: s.failure_probability(confidence=95), "confidence is 95; give a probability between 0 and 1"),
        (lambda s: s.failure_probability(method="wald"), "no confidence interval 'wald'"),
        (lambda s: s.bands("q.joint3"), "no stored column 'q.joint3'; did you mean 'q.joint"),
        (lambda s: s.bands("q", [5.0]), "give numbers from 0 to 1"),
        (lambda s: s.bands("q", memory=10.0), "memory is 10 bytes; give at least 1e.06"),
        (lambda s: s.sensitivity("fastest"), "not those of a sensitivity scheme; call kt.study with over=kt.sensitiv"),
        (lambda s: s.report("report.pdf"), "report.pdf: is not the name of a page; use one that ends with .html"),
    ],
)
def test_bad_input_is_refused(fallen, call, message):
    """Name the measure, column or option that is wrong."""
    with pytest.raises(kt.KinetreeError, match=message):
        call(fallen)


def test_studies_without_columns_have_no_bands(tmp_path):
    """Say how to store columns over time."""
    with pytest.raises(kt.InputError, match="no column over time; call kt.study with another store"):
        falling(tmp_path / "measures.zarr", keep=[], samples=30).bands("q")
    with pytest.raises(kt.InputError, match="this study has no store; call kt.study with store='study.zarr'"):
        falling(None, keep=[], samples=30, shard=None).bands("q")


@pytest.mark.parametrize(
    ("over", "options", "message"),
    [
        ({"a": (0, 1)}, {}, "give intervals of two or more quantities"),
        ({"a": (1, 0), "b": (0, 1)}, {}, "'a' varies over .*; give an interval .lo, hi. with lo below hi or normal"),
        ({"a": kt.normal(0, 1), "b": (0, 1)}, {"method": "morris"}, "'a' varies over"),
        ({"a": (0, 1), "b": (0, 1)}, {"samples": 1000}, "samples is 1000; the Sobol sequence is balanced for powers"),
        ({"a": (0, 1), "b": (0, 1)}, {"method": "fast"}, "no method of sensitivity 'fast'"),
        ({"a": (0, 1), "b": (0, 1)}, {"method": "morris", "levels": 3}, "levels is 3; give an even number"),
    ],
)
def test_wrong_schemes_are_refused(over, options, message):
    """Name the quantity or option that is wrong."""
    with pytest.raises(kt.KinetreeError, match=message):
        kt.sensitivity(over, **options)


def test_a_missing_salib_is_named(monkeypatch):
    """Name the package and the command that installs it."""
    for name in [x for x in sys.modules if x.startswith("SALib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "SALib", None)
    with pytest.raises(kt.InputError, match=r"need the package SALib, which is not installed; pip install 'kinetree\["):
        kt.sensitivity({"a": (0, 1), "b": (0, 1)})
