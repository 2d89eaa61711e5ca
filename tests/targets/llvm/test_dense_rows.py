"""Rows of samples and blocks of vectors: every remainder and padded rows."""

from __future__ import annotations

import numpy as np
import pytest

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
