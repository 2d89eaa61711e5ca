"""Stores by whole cache lines: rows that begin anywhere, remainders, and stores that bypass the caches."""

from __future__ import annotations

import re

import numpy as np
import pytest

import everyday
from kinetree.targets import target
from kinetree.targets.llvm import cache_lines
from native_program import gufunc, traced

SHORT, EVEN, ODD = 128, 144, 133
"""Entries of a row: the longest that is stored otherwise, a multiple of a vector, and one with a rest."""


def neighbors(count: int):
    """Return a Program whose results depend on their place: x[k] (k + 2) - x[k + 1]."""
    return traced(lambda *x: [x[k] * (k + 2.0) - x[(k + 1) % count] for k in range(count)], count)


def expected(x):
    """Return the same by NumPy, for integers that float32 holds exactly."""
    return x * (np.arange(x.shape[-1]) + 2.0) - np.roll(x, -1, axis=-1)


def stored(f, x, begin: int):
    """Return the results in the middle of an array of another number, and whether that number is left around them."""
    room = np.full(x.size + 64, 0.25, x.dtype)
    out = room[begin : begin + x.size].reshape(x.shape)
    f(x, out=out)
    found = out.copy()
    out[...] = 0.25
    return found, np.all(room == 0.25)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("count", "dtype"), everyday.some([(ODD, "float64"), (EVEN, "float64"), (ODD, "float32")]))
def test_rows_begin_anywhere(monkeypatch, count, dtype, streamed):
    """Store batches with and without a remainder at every offset from a line, and write nothing around them."""
    if streamed:
        monkeypatch.setattr(cache_lines, "STREAMED", 1)
    f = gufunc(neighbors(count), dtype)
    whole = np.random.default_rng(count).integers(-999, 999, (37, count)).astype(dtype)
    for begin in range(17):
        for n in (1, 7, 16, 37):
            found, kept = stored(f, whole[:n], begin)
            assert np.array_equal(found, expected(whole[:n])), f"{n} samples from entry {begin} on"
            assert kept, f"{n} samples from entry {begin} on: written beyond them"


def test_rows_with_gaps_are_stored_one_by_one():
    """Store rows with gaps between them, and leave the gaps."""
    f = gufunc(neighbors(ODD))
    x = np.random.default_rng(3).integers(-999, 999, (24, ODD)).astype(float)
    room = np.full((24, ODD + 5), 0.25)
    f(x, out=room[:, 2:-3])
    assert np.array_equal(room[:, 2:-3], expected(x))
    assert np.all(room[:, :2] == 0.25)
    assert np.all(room[:, -3:] == 0.25)


def test_numbers_that_are_not_finite_are_counted():
    """Overflow in one entry of the last whole line is reported as by short rows."""
    f = gufunc(neighbors(ODD))
    x = np.ones((16, ODD))
    x[11, ODD - 9] = 1.7e308
    with pytest.warns(RuntimeWarning, match="overflow encountered"):
        found = f(x)
    assert np.isinf(found[11, ODD - 9])
    assert np.isfinite(found).sum() == found.size - 1


@pytest.mark.skipif(not cache_lines.aligns(), reason="the processor has no vectors of 64 bytes")
def test_only_long_rows_and_large_outputs():
    """Find no stores by lines for short rows, and those past the caches in a branch of their own."""
    assert "@lines" not in target().emit(neighbors(SHORT), "float64")
    code = target().emit(neighbors(ODD), "float64")
    assert len(re.findall("!nontemporal", code)) == 8
    assert f"icmp sge i64 %n, {-(-cache_lines.STREAMED // (8 * ODD))}" in code


def test_processors_without_such_vectors(monkeypatch):
    """Store long rows otherwise where lines are impossible, with the same bits."""
    x = np.random.default_rng(8).normal(size=(21, ODD))
    found = gufunc(neighbors(ODD))(x)
    monkeypatch.setattr(cache_lines, "aligns", lambda: False)
    assert "@lines" not in target().emit(neighbors(ODD), "float64")
    assert np.array_equal(gufunc(neighbors(ODD))(x), found)
