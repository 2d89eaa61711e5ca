"""Results stored as vectors of samples: every layout and remainder, and numbers that are not finite."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from kinetree.algebra import scalars
from kinetree.compiler.runtime.samples_last import sample_major
from kinetree.compiler.targets.llvm import sample_blocks
from kinetree.compiler.targets.llvm.sample_blocks import is_zero, raises_flags
from kinetree.compiler.targets.samples_last import SamplesLast
from layouts import LAYOUTS
from native_program import compiled, registered, traced

COUNT = 11
"""Entries of the input; the output has 3 x 5."""


def mixed(*x):
    """Return entries that depend on their place, repeated ones and constants."""
    return [
        *(x[k] * (k + 2.0) - x[(k + 1) % COUNT] for k in range(COUNT)),
        0.0,
        1.5,
        x[0] * 2.0,
        x[0] * 2.0,
    ]


def expected(x):
    """Return the same by NumPy, for integers that float32 holds exactly."""
    first = x * (np.arange(COUNT) + 2.0) - np.roll(x, -1, axis=-1)
    rest = np.stack([0 * x[..., 0], 0 * x[..., 0] + 1.5, 2 * x[..., 0], 2 * x[..., 0]], axis=-1)
    return np.concatenate([first, rest], axis=-1).reshape(*x.shape[:-1], 3, 5)


def gufunc(function, *, past: bool = False, zeros: bool = True, dtype: str = "float64", shape=(3, 5)):
    """Return the gufunc of a function of COUNT numbers, and its two counts of blocks that are not finite."""
    program, counts = traced(function, COUNT, shape), (ctypes.c_int64 * 2)()
    return registered(compiled(SamplesLast(program, past, zeros), dtype), program, dtype, counts), counts


def integers(n: int, dtype: str) -> np.ndarray:
    return np.random.default_rng(n).integers(-99, 99, (n, COUNT)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("past", [False, True])
def test_every_batch_size(past, dtype):
    """Run batches with and without a remainder, from rows and from samples next to each other; write nothing around."""
    f, _ = gufunc(mixed, past=past, dtype=dtype)
    for n in (1, 7, 8, 16, 31, 50):
        rows = integers(n, dtype)
        columns = sample_major((n,), (COUNT,), dtype)
        columns[...] = rows
        for x in (rows, columns, np.broadcast_to(rows[0], rows.shape)):
            wide = sample_major((n + 32,), (3, 5), dtype)
            wide[...] = 0.25
            out = wide[16 : 16 + n]
            f(x, out=out)
            assert np.array_equal(out, expected(x)), f"{n} samples with strides {x.strides}"
            out[...] = 0.25
            assert np.all(wide == 0.25), f"{n} samples: written around them"


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_other_layout(layout, past):
    """Store rows, Fortran order, gaps, reversed and unaligned arrays correctly."""
    f, _ = gufunc(mixed, past=past)
    x = integers(21, "float64")
    for out in (np.zeros((21, 3, 5)), layout(np.zeros((21, 3, 5)))):
        f(layout(x), out=out)
        assert np.array_equal(out, expected(x))


@pytest.mark.parametrize("past", [False, True])
def test_zeros_that_memory_holds(past):
    """Store no zeros in whole blocks, but all entries of a remainder and of other layouts."""
    f, counts = gufunc(mixed, past=past, zeros=False)
    x = integers(21, "float64")
    out = sample_major((21,), (3, 5), "float64")
    out[...] = 0.25
    f(x, out=out)
    assert (out[:16, 2, 1] == 0.25).all() and not out[16:, 2, 1].any()
    out[:16, 2, 1] = 0.0
    assert np.array_equal(out, expected(x))
    assert np.array_equal(f(x), expected(x)) and list(counts) == [0, 0]


def test_zeros_of_the_other_sign():
    """Tell a negative zero from the zeros of cleared memory."""
    for value, zero in ((0.0, True), (-0.0, False), (1.5, False)):
        program = traced(lambda x, value=value: [x, value], 1)
        assert [is_zero(program, k) for k in program.results[0]] == [False, zero]


def test_lines_that_begin_elsewhere():
    """Store results that begin between cache lines, which cannot bypass the caches, like all others."""
    x = integers(24, "float64")
    for past in (False, True):
        f, _ = gufunc(mixed, past=past)
        out = np.zeros((15, 27)).T[3:].reshape(24, 3, 5)
        f(x, out=out)
        assert np.array_equal(out, expected(x))


@pytest.mark.parametrize("lane", [0, 13, 20])
def test_results_that_are_not_finite_are_counted(lane):
    """Count a block with overflow once, in whole blocks and in the rest, and warn like NumPy."""
    f, counts = gufunc(mixed)
    x = np.ones((21, COUNT))
    x[lane, 4] = 1.7e308
    out = sample_major((21,), (3, 5), "float64")
    with pytest.warns(RuntimeWarning, match="overflow encountered"):
        f(x, out=out)
    assert np.isinf(out[lane]).sum() == 1 and np.isfinite(np.delete(out, lane, axis=0)).all()
    assert list(counts) == [0, 1]


def test_inputs_that_are_not_finite_are_counted():
    """Count a block with NaN twice, as input and as a number, without a warning."""
    f, counts = gufunc(mixed)
    x = np.ones((24, COUNT))
    x[9, 2] = np.nan
    f(x, out=sample_major((24,), (3, 5), "float64"))
    assert list(counts) == [1, 1]


def test_functions_of_the_library_are_examined():
    """Examine the results of a function without flags of its own, whose values may come from the C library."""
    f, counts = gufunc(lambda *x: [scalars.log(x[0]), *x[1:5]], shape=(5,))
    assert not raises_flags(traced(lambda *x: [scalars.log(x[0])], 1, (1,)))
    x = np.full((16, COUNT), 2.0)
    x[3, 0] = 0.0
    out = sample_major((16,), (5,), "float64")
    with np.errstate(divide="ignore"):
        f(x, out=out)
    assert counts[1] == 1 and out[3, 0] == -np.inf
    assert np.array_equal(out[4:], np.broadcast_to([np.log(2.0), 2.0, 2.0, 2.0, 2.0], (12, 5)))


def test_machines_without_known_flags(monkeypatch):
    """Examine all results where the flags of the processor are unknown."""
    monkeypatch.setattr(sample_blocks, "reported_flags", lambda: 0)
    assert not raises_flags(traced(lambda x: [x + 1.0], 1, (1,)))
