"""Samplings of one quantity."""

import numpy as np
import pytest

import kinetree as kt


def test_grids_are_even_in_difference_or_ratio():
    """Space values of grids evenly, or by equal ratios, or take those given."""
    assert kt.grid(1.0, 3.0, 5).values == (1.0, 1.5, 2.0, 2.5, 3.0)
    assert np.allclose(kt.grid(1.0, 100.0, 3, log=True).values, (1.0, 10.0, 100.0), rtol=1e-15, atol=0)
    assert kt.grid([3.0, 1.0, 2.5]).values == (3.0, 1.0, 2.5)


def test_latin_samples_fill_every_part_once():
    """Put one of n samples into each n-th part of the interval."""
    values = kt.latin(-3.0, 5.0).at(11, "k", 0, 40, 40)
    assert sorted(np.floor((values + 3.0) / 8.0 * 40).astype(int).tolist()) == list(range(40))


def test_normal_samples_have_mean_and_deviation():
    """Draw normal numbers with the given mean and deviation."""
    values = kt.normal(3.0, 0.2).at(5, "k", 0, 20_000, 20_000)
    assert abs(values.mean() - 3.0) < 0.006
    assert abs(values.std() - 0.2) < 0.005


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kt.grid([]), "grid has values of shape (0,); give a list of one or more numbers"),
        (lambda: kt.grid(0.0, 1.0, 0), "the n of grid is 0; give 1 or more values"),
        (lambda: kt.grid(0.0, 1.0, 10**12), "the n of grid is 1,000,000,000,000; give no more than 1,000,000 values"),
        (lambda: kt.grid(2.0, 2.0, 3), "grid has 3 values from 2 to 2; give two different ends, or n = 1"),
        (lambda: kt.grid(0.0, 1.0), "grid needs lo, hi and the number of values"),
        (lambda: kt.grid([1.0, float("nan")]), "grid has values that are not finite"),
        (lambda: kt.grid(0.0, 10.0, 3, log=True), "the lo of grid with log is 0; give more than zero"),
        (lambda: kt.latin(3.0, 1.0), "latin goes from 3 to 1; give lo below hi"),
        (lambda: kt.normal(0.0, 0.0), "the deviation of normal is 0; give more than zero"),
        (lambda: kt.table(), "table has no columns"),
        (lambda: kt.table(k=[1.0, 2.0], l=[3.0]), "the columns of table have different lengths: {'k': 2, 'l': 1}"),
    ],
)
def test_impossible_samplings_are_refused(make, message):
    """Refuse empty grids, reversed intervals and tables of unequal columns."""
    with pytest.raises(kt.InputError) as caught:
        make()
    assert str(caught.value).startswith(message)
