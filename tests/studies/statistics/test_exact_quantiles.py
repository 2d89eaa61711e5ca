"""Exact quantiles of columns larger than memory: the bits of NumPy, whatever the values and the memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from kinetree.studies.statistics.bands import SAMPLE, exact_quantiles

LEVELS = np.array([0.0, 0.013, 0.05, 0.25, 0.5, 0.77, 0.95, 0.999, 1.0])


def blocks_of(data, size, passes=None):
    def blocks(first, last):
        if passes is not None:
            passes.append((first, last))
        for at in range(0, len(data), size):
            yield data[at : at + size, first:last]

    return blocks


def columns():
    """Return columns with outliers, ties, constants, sorted values, and values that are not finite."""
    rng = np.random.default_rng(5)
    n = 20_011
    data = rng.normal(size=(n, 9))
    data[17, 0] = 1e300
    data[:, 1] = 0.37
    data[:, 2] = np.round(data[:, 2], 1)
    data[:, 3].sort()
    data[:, 4] = np.where(rng.random(n) < 0.9, -2.5, data[:, 4])
    data[::7, 5] = np.nan
    data[3::11, 5] = np.inf
    data[:, 6] = np.exp(30.0 * data[:, 6])
    data[:, 7] = np.tile(np.arange(100), n)[:n]
    data[:, 8] = np.nan
    return data


@pytest.mark.parametrize("memory", [1e8, 9e5, 2e5])
def test_quantiles_are_those_of_numpy(memory):
    """Find the bits of numpy.quantile in one pass, in three, and in groups of columns."""
    data, passes = columns(), []
    values, counts = exact_quantiles(blocks_of(data, 997, passes), len(data), data.shape[1], LEVELS, memory=memory)
    assert len(passes) == (1 if memory == 1e8 else len(passes)) and (memory == 1e8 or len(passes) >= 3)
    for k, column in enumerate(data.T):
        finite = column[np.isfinite(column)]
        assert counts[k] == len(finite)
        if len(finite):
            assert np.array_equal(values[:, k], np.quantile(finite, LEVELS)), k
        else:
            assert np.isnan(values[:, k]).all()


def test_more_samples_are_taken_if_intervals_exceed_the_memory(monkeypatch):
    """Divide a single column more finely until its intervals fit."""
    monkeypatch.setattr("kinetree.studies.statistics.bands.SAMPLE", 4)
    data, passes = np.random.default_rng(2).normal(size=(30_000, 1)), []
    values, _ = exact_quantiles(blocks_of(data, 1000, passes), len(data), 1, LEVELS, memory=4e4)
    assert np.array_equal(values[:, 0], np.quantile(data[:, 0], LEVELS))
    assert len(passes) > 3


@pytest.mark.slow
def test_memory_stays_below_the_bound():
    """Use no more than the given memory for ten times as many rows."""
    peaks = []
    for rows in (40_000, 400_000):

        def blocks(first, last, rows=rows):
            for at in range(0, rows, 2000):
                yield np.random.default_rng(at).normal(size=(2000, 12))[:, first:last]

        tracemalloc.start()
        values, counts = exact_quantiles(blocks, rows, 12, np.array([0.05, 0.5, 0.95]), memory=2e6)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (counts == rows).all() and (np.abs(values[1]) < 0.03).all()
    assert max(peaks) < 2e6 + 1.5e6  # and a block of rows: 0.2 MB, twice, with its parts
    assert 12 * 400_000 * 8 > 10 * max(peaks)
    assert SAMPLE == 1024
