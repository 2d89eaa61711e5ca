"""Rows of samples and blocks of vectors: every remainder, padded rows, and prefetched batches."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kinetree.compiler.targets import target
from kinetree.compiler.targets.llvm import dense_rows
from native_program import gufunc, traced

SHORT, LONG = 3, 37
"""Entries of a row: fewer than a vector holds, and more than four vectors hold."""


def neighbors(count: int):
    """Return a Program whose results depend on their place: x[k] (k + 2) - x[k + 1]."""
    return traced(lambda *x: [x[k] * (k + 2.0) - x[(k + 1) % count] for k in range(count)], count)


def expected(x):
    """Return the same by NumPy, for integers that float32 holds exactly."""
    return x * (np.arange(x.shape[-1]) + 2.0) - np.roll(x, -1, axis=-1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("count", [SHORT, LONG])
def test_every_batch_size_and_layout(count, dtype):
    """Run batches of 0 to 40 in dense, padded, strided and reversed rows; write nothing beyond them."""
    f = gufunc(neighbors(count), dtype)
    whole = np.random.default_rng(count).integers(-999, 999, (90, 2 * count + 3)).astype(dtype)
    for n in range(41):
        for x in (
            whole[:n, :count],
            np.ascontiguousarray(whole[:n, :count]),
            whole[: 2 * n : 2, 1 : count + 1],
            whole[:n, 2 : 2 + 2 * count : 2],
            whole[:n, :count][::-1],
            np.broadcast_to(whole[0, :count], (n, count)),
        ):
            room = np.full((n + 2, count + 5), 0.25, dtype)
            f(x, out=room[1:-1, 2 : count + 2])
            assert np.array_equal(room[1:-1, 2 : count + 2], expected(x)), f"{n} samples with strides {x.strides}"
            room[1:-1, 2 : count + 2] = 0.25
            assert np.all(room == 0.25), f"{n} samples with strides {x.strides}: written beyond them"


def test_large_batches_are_prefetched_with_the_same_bits(monkeypatch):
    """Find one prefetch per cache line of a block; run batches of any size with prefetch and get the same numbers."""
    program, lines = neighbors(LONG), -(-8 * LONG * 8 // 64)
    code = target().emit(program, "float64")
    for write in (0, 1):
        assert len(re.findall(rf"call void @llvm.prefetch.p0\(ptr %\w+, i32 {write},", code)) == lines
    assert f"icmp sge i64 %n, {-(-dense_rows.LARGE // (2 * LONG * 8))}" in code
    assert "call void @llvm.prefetch" not in target().emit(neighbors(dense_rows.LONGEST + 1), "float64")
    x = np.random.default_rng(5).normal(size=(50, LONG))
    expected_rows = gufunc(program)(x)
    monkeypatch.setattr(dense_rows, "LARGE", 1)
    f = gufunc(program)
    for n in range(51):
        assert np.array_equal(f(x[:n]), expected_rows[:n])
