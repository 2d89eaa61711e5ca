"""Repeated calls with results in the same arrays: the bits of rows, zeros that are written once, and misuse."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from divided_batches import divide_all
from kinetree import InputError, System, load
from same_bits import arguments, assert_same_bits
from strategies import random_mechanism

BRANCHED = System(random_mechanism(["revolute", "helical", "revolute"], [-1, -1, 0], 23))
"""Two branches at the base: four entries of each 3 x 3 Jacobian are zero whatever the inputs."""


def jacobian(dtype: str = "float64"):
    """Return the Jacobians of inverse dynamics, in rows."""
    return BRANCHED.function("inverse_dynamics", dtype=dtype).jacobian(("q", "qdd"))


@pytest.mark.parametrize(
    ("past", "dtype"), [(None, "float64"), (False, "float32"), (False, "float64"), (True, "float64")]
)
def test_bits_are_those_of_rows(past, dtype):
    """Return the bits of rows in call after call, for whole blocks and remainders, in rows and with samples last."""
    rows = jacobian(dtype)
    f = rows if past is None else rows.samples_last(past=past)
    for batch in ((), (1,), (67,), (3, 64), (2, 0)):
        run = f.repeated(batch)
        first = arguments(rows, batch)
        for x in (first, [a * 1.25 for a in first]):
            found = run(*x, check=True)
            assert found is run.results
            assert_same_bits(found, rows(*x))


def test_zeros_are_written_once():
    """Leave entries that are always zero alone in whole blocks: what else is put there remains."""
    rows = jacobian()
    run = rows.samples_last().repeated(16)
    x = arguments(rows, (16,))
    wanted = rows(*x)
    for own in run._arrays:
        own[...] = 0.375
    for found, all_entries in zip(run(*x), wanted, strict=True):
        zero = (all_entries == 0.0).all(axis=0)
        assert zero.sum() == 4 and (found[:, zero] == 0.375).all()
        assert np.array_equal(found[:, ~zero], all_entries[:, ~zero])


def test_results_cannot_be_written():
    """Refuse writing to results, whose zeros would not be written again."""
    run = jacobian().samples_last().repeated(8)
    with pytest.raises(ValueError, match="read-only"):
        run.results[0][0, 0, 1] = 2.0
    one = BRANCHED.function("inertia_matrix").samples_last().repeated(8)
    with pytest.raises(ValueError, match="read-only"):
        one.results += 1.0


@pytest.mark.parametrize("past", [False, True])
def test_arguments_in_the_memory_of_results(past):
    """Take results as arguments of the next call, also where NumPy would replace the arrays by a copy."""
    rows = jacobian()
    run = rows.samples_last(past=past).repeated((2, 64))
    q, qd, qdd = arguments(rows, (2, 64))
    run(q, qd, qdd)
    for column in (run.results[0][..., 0], memoryview(run.results[0][..., 0])):
        wanted = rows(q, np.array(column), qdd)
        assert_same_bits(run(q, column, qdd), wanted)


def test_threads(monkeypatch):
    """Divide a batch among threads."""
    rows = jacobian()
    x = arguments(rows, (65, 64))
    run = rows.samples_last(past=True).repeated((65, 64))
    divide_all(monkeypatch, run._filling)
    for _ in range(2):
        assert_same_bits(run(*x, threads=2), rows(*x))


def test_arguments_are_broadcast():
    """Repeat one sample, or one row, for the whole batch."""
    rows = jacobian()
    q, qd, qdd = arguments(rows, (4, 8))
    run = rows.samples_last().repeated((4, 8))
    assert_same_bits(run(q, qd[:, :1], qdd[0, 0]), rows(q, qd[:, :1], qdd[0, 0]))


def test_objects_have_their_own_arrays():
    """Make new arrays for every object, also from a pickle."""
    f = BRANCHED.function("inertia_matrix").samples_last()
    (q,) = arguments(f, (16,))
    run, other = f.repeated(16), f.repeated((16,))
    again = pickle.loads(pickle.dumps(run))
    first = run(q)
    kept = first.copy()
    for x in (other, again):
        assert not np.may_share_memory(x(2.0 * q), first)
        assert_same_bits(x.results, f(2.0 * q))
    assert_same_bits(first, kept)
    assert repr(run) == "<repeated <inertia_matrix(q[3]) -> I[3, 3] of random>, batch (16,)>"


def test_bad_arguments_are_explained():
    """Refuse arrays of other shapes, batches of other sizes, numbers that are not finite, and negative shapes."""
    run = BRANCHED.function("inertia_matrix").samples_last().repeated(16)
    with pytest.raises(InputError, match=r"q has shape \(16, 2\); expected \[\.\.\., 3\]"):
        run(np.ones((16, 2)))
    with pytest.raises(InputError, match="q is not an array of real numbers"):
        run(["a", "b", "c"])
    with pytest.raises(InputError, match=r"inertia_matrix takes 1 arrays \(q\), not 2"):
        run(np.ones((16, 3)), 2.0)
    with pytest.raises(InputError, match=r"out has shape \(16, 3, 3\); expected \(17, 3, 3\)"):
        run(np.ones((17, 3)))
    q = np.ones((16, 3))
    q[11, 1] = np.nan
    assert np.isnan(run(q)[11]).any()
    with pytest.raises(InputError, match=r"q\[11, 1\] is nan"):
        run(q, check=True)
    with pytest.raises(InputError, match=r"shape is -1; expected integers of zero or more"):
        run.function.repeated(-1)


def test_rolled_code_is_repeated_in_rows():
    """Fill rows by code with loops over the bodies."""
    f = load("chain_20").function("inverse_dynamics", lowering="rolled")
    x = arguments(f, (5,))
    assert_same_bits(f.repeated(5)(*x), f(*x))
