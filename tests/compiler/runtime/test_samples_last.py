"""Batches whose samples are next to each other in memory: the bits of rows, the layout, and errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from divided_batches import divide_all
from kinetree import InputError, System, load
from kinetree.compiler.runtime.samples_last import LINE, LONG
from same_bits import arguments, assert_same_bits
from strategies import random_mechanism

SMALL = System(random_mechanism(["revolute", "helical"], [-1, 0], 21))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("past", [False, True])
def test_bits_are_those_of_rows(past, dtype):
    """Return the bits of rows for any batch, in new and given arrays, through the caches and past them."""
    rows = SMALL.function("inverse_dynamics", dtype=dtype).jacobian(("q", "qdd"))
    f = rows.samples_last(past=past)
    for batch in ((), (1,), (67,), (3, f.block), (0,), (2, 0)):
        x = arguments(rows, batch)
        wanted = rows(*x)
        assert_same_bits(f(*x), wanted)
        assert_same_bits(f.checked(tuple(x), out=f.empty(batch)), wanted)
        assert_same_bits(f(*x, out=rows.empty(batch)), wanted)


@pytest.mark.parametrize("name", ["potential_energy", "pose"])
def test_single_outputs(name):
    """Return one array for functions of one output, with and without core dimensions."""
    rows = SMALL.function(name, frame="tool" if name == "pose" else None)
    f = rows.samples_last()
    x = arguments(rows, (40,))
    out = f.empty(40)
    assert f(*x, out=out) is out
    assert_same_bits(out, rows(*x))
    assert_same_bits(f(*(a[0] for a in x)), rows(*(a[0] for a in x)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_layout_of_new_arrays(dtype):
    """Find samples next to each other, entries at an odd number of cache lines, and lines of their own."""
    f = SMALL.function("inertia_matrix", dtype=dtype).samples_last()
    for batch in (64, (5, 128), (3,)):
        for out in (f.empty(batch), f(*arguments(f, batch if isinstance(batch, tuple) else (batch,)))):
            *_, sample, row, entry = out.strides
            assert out.shape == (*np.atleast_1d(batch), 2, 2) and out.ctypes.data % LINE == 0
            assert sample == out.itemsize and entry % LINE == 0 and entry // LINE % 2 == 1 and row == 2 * entry


def test_rows_have_new_arrays_too():
    """Make row-major arrays for a function of rows."""
    out = SMALL.function("inertia_matrix").empty((2, 3))
    assert out.shape == (2, 3, 2, 2) and out.flags.c_contiguous


def test_long_results_bypass_the_caches():
    """Choose stores past the caches for an output of more than 128 entries, unless told otherwise."""
    f = load("puma560").function("inertia_matrix").jacobian()
    assert f.output.size > LONG
    assert f.samples_last() is f.samples_last(past=True) and f.samples_last().block == 64
    assert SMALL.function("inertia_matrix").samples_last() is SMALL.function("inertia_matrix").samples_last(past=False)


def test_threads_and_derivatives(monkeypatch):
    """Divide a batch among threads, for the Jacobian of a function that was made with samples last."""
    rows = SMALL.function("inverse_dynamics").jacobian(("q", "qdd"))
    f = SMALL.function("inverse_dynamics").samples_last().jacobian(("q", "qdd"))
    divide_all(monkeypatch, f)
    x = arguments(rows, (2**12 + 21,))
    assert_same_bits(f.unchecked(tuple(x), threads=2), rows(*x))
    found = f.checked(tuple(x), out=f.empty(len(x[0])), threads=3)
    assert_same_bits(found, rows(*x))


def test_functions_are_kept_and_pickled():
    """Return the same function again, and one with the same layout from a pickle."""
    f = SMALL.function("inertia_matrix").samples_last()
    assert SMALL.function("inertia_matrix").samples_last() is f and f.samples_last() is f
    assert f.block == 8 and SMALL.function("inertia_matrix", dtype="float32").samples_last().block == 16
    again = pickle.loads(pickle.dumps(f))
    assert again.empty(8).strides == f.empty(8).strides
    assert_same_bits(again(*arguments(f, (9,))), f(*arguments(f, (9,))))


def test_a_wrong_number_of_arguments():
    """Leave the count of arguments to NumPy, as functions of rows do."""
    with pytest.raises(TypeError, match="takes from 2 to 3 positional arguments but 1 was given"):
        SMALL.function("bias_torque").samples_last()(np.ones((9, 2)))


def test_bad_arguments_are_explained():
    """Refuse arrays of wrong shapes, numbers that are not finite, and rolled code, with the usual messages."""
    f = SMALL.function("gravity_torque").samples_last()
    with pytest.raises(InputError, match=r"q has shape \(16, 3\); expected \[\.\.\., 2\]"):
        f.checked((np.ones((16, 3)),))
    with pytest.raises(InputError, match=r"out has shape \(15, 2\); expected \(16, 2\)"):
        f.checked((np.ones((16, 2)),), out=f.empty(15))
    with pytest.raises(InputError, match="gravity_torque"):
        f.checked((np.ones((16, 2)),), out=[1.0])
    q = np.ones((16, 2))
    q[11, 1] = np.nan
    with pytest.raises(InputError, match=r"q\[11, 1\] is nan"):
        f.checked((q,))
    with pytest.raises(InputError, match=r"shape is -1; expected integers of zero or more"):
        f.empty(-1)
    rolled = load("chain_20").function("inverse_dynamics", lowering="rolled")
    with pytest.raises(InputError, match=r"loops over its bodies.*lowering='unrolled'"):
        rolled.samples_last()
