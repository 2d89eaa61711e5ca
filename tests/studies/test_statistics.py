"""Statistics of studies: bands of stores, probabilities, Sobol indices."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.studies import statistics
from press import press
from tolerance import assert_close

SIMULATE = {"times": np.linspace(0.0, 0.4, 9), "method": "rk4", "dt": 1e-2}


@pytest.fixture(scope="module")
def fall(tmp_path_factory):
    pytest.importorskip("zarr")
    return kt.study(
        kt.load("planar_2r"), {"q.joint1": kt.normal(0.3, 0.2), "qd.joint2": kt.uniform(-3.0, 3.0)}, samples=250,
        seed=3, simulate=SIMULATE, measures={"peak": kt.peak("qd.joint1")},
        keep=["q", "qd.joint1"], shard=40, store=tmp_path_factory.mktemp("bands") / "fall.zarr",
    )  # fmt: skip


def test_bands_are_quantiles_of_all_runs(fall, monkeypatch):
    """Compare bands, computed in small portions, with quantiles of all samples at once."""
    runs = np.stack([fall.run(k).q for k in range(250)])
    expected = np.quantile(runs[:, :, 1], [0.1, 0.5, 0.9], axis=0)
    for memory in (1e9, 8 * 250 * 2):
        monkeypatch.setattr(statistics, "MEMORY", memory)
        found = fall.bands("q.joint2", (0.1, 0.5, 0.9))
        assert_close(found.values, expected, 1e-12, "quantiles over time")
    assert (found.unit, found.runs, len(found.t)) == ("rad", 250, 9)
    assert fall.bands("qd.joint1").values.shape == (5, 9)
    assert found.plot().get_suptitle() == "250 runs"


def test_bands_need_stored_columns(fall):
    """Refuse columns that are not stored, and studies without a store."""
    with pytest.raises(kt.KinetreeError, match="no stored column 'q.joint3'; did you mean 'q.joint"):
        fall.bands("q.joint3")
    with pytest.raises(kt.InputError, match="the quantiles are"):
        fall.bands("q.joint2", (0.5, 1.5))
    with pytest.raises(kt.InputError, match="bands need the store of the study"):
        kt.study(press(), {"m": kt.grid([1.0])}, cycle={"drive": "main", "speed": 3.0}, steps=8,
                 measures={"x": "rms control.main"}).bands("q.main")  # fmt: skip


def test_stores_are_read_as_studies(fall):
    """Read a store without its mechanism: values, measures and bands."""
    back = kt.read_study(fall.store)
    assert np.array_equal(back["peak"], fall["peak"])
    assert np.array_equal(back["q.joint1"], fall["q.joint1"])
    assert back.bands("q.joint1").runs == 250


def test_probabilities_have_exact_intervals(fall):
    """Count runs beyond a bound, with the interval of Clopper and Pearson."""
    from scipy.stats import binomtest

    bound = float(np.quantile(fall["peak"], 0.93))
    found = fall.failure_probability({"peak": (None, bound)})
    assert found.count == int((fall["peak"] > bound).sum())
    expected = binomtest(found.count, 250).proportion_ci(0.95, "exact")
    assert_close([found.low, found.high], [expected.low, expected.high], 1e-12, "interval")
    assert str(found).endswith(f"95 % confidence: {found.low:.4g} to {found.high:.4g}")
    none = fall.failure_probability({"peak": (None, 1e9)})
    assert (none.value, none.low) == (0.0, 0.0)
    assert 0.01 < none.high < 0.02
    with pytest.raises(kt.InputError, match="confidence is 95; give a number between 0 and 1"):
        fall.failure_probability(confidence=95)


def ishigami(run):
    x = run.parameters
    return np.sin(x[:, 0]) + 7.0 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])


def test_sobol_indices_are_the_analytic_ones():
    """Find the indices of the Ishigami function, which are known."""
    found = kt.study(
        press(), dict.fromkeys(("m", "r", "k"), kt.uniform(-np.pi, np.pi)), samples=3, steps=1,
        motion={"main": kt.Hold(0.3)}, duration=0.1, measures={"f": ishigami},
    )  # fmt: skip
    object.__setattr__(found.plan, "_made", {"evaluation": Parameters()})
    indices = found.sensitivity("f", samples=4096)
    a, b, pi = 7.0, 0.1, np.pi
    variance = a**2 / 8 + b * pi**4 / 5 + b**2 * pi**8 / 18 + 0.5
    first = np.array([0.5 * (1 + b * pi**4 / 5) ** 2, a**2 / 8, 0.0]) / variance
    third = 8 * b**2 * pi**8 / 225 / variance
    assert_close(indices.first, first, 0.02, "first-order indices")
    assert_close(indices.total, first + np.array([third, 0.0, third]), 0.02, "total indices")
    assert (np.abs(indices.first - first) < 2 * indices.first_width + 0.005).all()
    assert indices.runs == 4096 * 5
    assert "alone" in str(indices)


class Parameters:
    """An evaluation without any motion: runs have their parameters only."""

    times = np.array([0.0, 0.1])

    def outcome(self, values):
        from kinetree.studies.outcomes import Outcome

        count = len(values["m"])
        run = kt.Trajectory(
            press(), self.times, np.zeros((count, 2, 3)), np.zeros((count, 2, 3)),
            parameters=np.stack([values["m"], values["r"], values["k"]], axis=-1),
        )  # fmt: skip
        return Outcome(run, np.arange(count), np.zeros(count, dtype=np.uint8), np.full(count, np.nan), {})


def test_sensitivity_needs_distributions(fall):
    """Refuse grids, unknown measures, and studies that were read from files."""
    with pytest.raises(kt.KinetreeError, match="no measure 'peek'; did you mean 'peak'"):
        fall.sensitivity("peek")
    with pytest.raises(kt.InputError, match="read from a file without its mechanism"):
        kt.read_study(fall.store).sensitivity("peak")
    grid = kt.study(press(), {"m": kt.grid([1.0])}, cycle={"drive": "main", "speed": 3.0}, steps=8,
                    measures={"x": "rms control.main"})  # fmt: skip
    with pytest.raises(kt.InputError, match="'m' is on a grid or in a table, and has no distribution"):
        grid.sensitivity("x")
