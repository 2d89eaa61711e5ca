"""Spaces of studies: order and values of runs."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.studies.space import space_of

OVER = {"a": kt.grid(1.0, 2.0, 3), "u": kt.uniform(0.0, 1.0), "b": kt.grid([5.0, 7.0]), "l": kt.latin(2.0, 4.0),
        "s": kt.sobol(0.0, 9.0), "n": kt.normal(1.0, 0.1)}  # fmt: skip


def test_runs_are_all_combinations_of_grids_and_samples():
    """Vary the samples fastest, and repeat them at every point of the grids."""
    space = space_of(OVER, 7, 3)
    assert space.dims == {"a": 3, "b": 2, "sample": 7}
    whole = space.values(0, space.runs)
    assert list(whole) == list(OVER)
    assert np.array_equal(whole["a"].reshape(3, 14), np.repeat([[1.0], [1.5], [2.0]], 14, axis=1))
    assert np.array_equal(whole["b"][:14], np.repeat([5.0, 7.0], 7))
    assert np.array_equal(whole["u"].reshape(6, 7), np.tile(whole["u"][:7], (6, 1)))


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (5, 9), (13, 40), (41, 42)])
def test_parts_of_a_space_are_those_of_the_whole(start, stop):
    """Return the values of some runs with the bits that they have among all runs."""
    space = space_of(OVER, 7, 3)
    whole = space.values(0, 42)
    for name, values in space.values(start, stop).items():
        assert np.array_equal(values, whole[name][start:stop]), name


def test_tables_are_rows_of_samples():
    """Take the rows of a table as samples."""
    space = space_of(kt.table({"k": [1.0, 2.0, 4.0]}, l=[7.0, 8.0, 9.0]), None, 0)
    assert space.dims == {"run": 3}
    assert {name: x.tolist() for name, x in space.values(1, 3).items()} == {"k": [2.0, 4.0], "l": [8.0, 9.0]}


@pytest.mark.parametrize(
    ("over", "samples", "message"),
    [
        ({}, None, "over is {}; give samplings by name"),
        ({"k": 3.0}, None, "'k' varies over 3.0; give a sampling such as grid(lo, hi, n)"),
        ({"k": kt.latin(0, 1)}, None, "samples is missing: 'k' is sampled"),
        ({"k": kt.grid(0, 1, 3)}, 9, "samples is given, but all quantities are on grids"),
        (kt.table(k=[1.0, 2.0]), 9, "samples is 9, but the table has 2 rows"),
        ({"k": kt.latin(0, 1)}, 0, "samples is 0; give 1 or more"),
        ({"k": kt.latin(0, 1)}, 10**15, "the study has more runs than this machine can keep the results of, "),
    ],
)
def test_impossible_spaces_are_refused(over, samples, message):
    """Refuse spaces without samplings, and counts that do not fit."""
    with pytest.raises(kt.InputError) as caught:
        space_of(over, samples, 0)
    assert str(caught.value).startswith(message)
