"""Packed rows of whole blocks: every remainder, constant and repeated entries, and numbers that are not finite."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
from kinetree.targets import target
from kinetree.targets.llvm.dense_rows import LEAST, LONGEST
from native_program import gufunc, traced

COUNTS = (52, 54, 63)
"""Entries of an input: the rows of the output have 106, 110 and 128 entries, with different rests."""


def mixed(count: int):
    """Return a Program with entries that depend on their place, repeated ones and constants."""

    def rows(*x):
        return [
            *(x[k] * (k + 2.0) - x[(k + 1) % count] for k in range(count)),
            *(0.0 if k % 3 else 1.5 for k in range(count)),
            *(x[0] * 2.0 for _ in range(2)),
        ]

    return traced(rows, count)


def expected(x):
    """Return the same by NumPy, for integers that float32 holds exactly."""
    k = np.arange(x.shape[-1])
    constants = np.broadcast_to(np.where(k % 3, 0.0, 1.5), x.shape)
    twice = np.repeat(2 * x[..., :1], 2, axis=-1)
    return np.concatenate([x * (k + 2.0) - np.roll(x, -1, axis=-1), constants, twice], axis=-1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("count", everyday.some(COUNTS))
def test_every_batch_size(count, dtype):
    """Run packed batches with and without a remainder, also from one row for all; write nothing around them."""
    f = gufunc(mixed(count), dtype)
    whole = np.random.default_rng(count).integers(-99, 99, (50, count)).astype(dtype)
    for n in (1, 7, 8, 9, 16, 31, 32, 50):
        for x in (whole[:n], np.broadcast_to(whole[0], (n, count))):
            wanted = expected(x)
            room = np.full(wanted.size + 40, 0.25, dtype)
            out = room[19 : 19 + wanted.size].reshape(wanted.shape)
            f(x, out=out)
            assert np.array_equal(out, wanted), f"{n} samples with strides {x.strides}"
            out[...] = 0.25
            assert np.all(room == 0.25), f"{n} samples: written around them"


@pytest.mark.parametrize("entry", [0, 51])
def test_numbers_that_are_not_finite_are_counted(entry):
    """Overflow in one entry is reported, also if the entry is repeated."""
    f = gufunc(mixed(52))
    x = np.ones((16, 52))
    x[11, entry] = 1.7e308
    with pytest.warns(RuntimeWarning, match="overflow encountered"):
        found = f(x)
    assert np.isinf(found[11, entry])
    assert np.isfinite(np.delete(found, 11, axis=0)).all()


@pytest.mark.parametrize("gap", [0, 3])
def test_rows_with_gaps_are_stored_one_by_one(gap):
    """Store rows with and without gaps between them, and leave the gaps."""
    f = gufunc(mixed(52))
    x = np.random.default_rng(5).integers(-99, 99, (24, 52)).astype(float)
    room = np.full((24, 106 + gap), 0.25)
    f(x, out=room[:, :106])
    assert np.array_equal(room[:, :106], expected(x))
    assert np.all(room[:, 106:] == 0.25)


@pytest.mark.parametrize(
    ("count", "packed"), [(LEAST, True), (LEAST - 1, False), (LONGEST, True), (LONGEST + 1, False)]
)
def test_lengths_of_packed_rows(count, packed):
    """Find a function for rows within the limits, and none for shorter and longer ones."""
    code = target().emit(traced(lambda *x: [a * 3.0 for a in x], count), "float64")
    assert (f"@packed{count}(" in code) is packed
