"""Digests of descriptions."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.studies.canonical import digest

FACTOR = 2.0


def scaled(x, by=FACTOR):
    return x * by


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (0.1 + 0.2, 0.3), (1, 1.0), ("1", 1), ([1, 2], [2, 1]), (np.zeros(3), np.zeros((3, 1))),
        (kt.grid(0, 1, 3), kt.grid(0, 1, 4)), (kt.Hold(0.3), kt.Hold(0.4)), (lambda x: x + 1, lambda x: x + 2),
        (kt.Cycloid(0, 1, 2), kt.Polynomial(0, 1, 2)), ({"a": 1}, {"a": 2}),
    ],
)  # fmt: skip
def test_different_values_have_different_digests(a, b):
    """Tell values, types, shapes and functions apart."""
    assert digest(a) != digest(b)
    assert digest(a) == digest(a)


def test_closures_count():
    """Tell functions apart by the values that they enclose."""
    assert digest(*[(lambda x, y=n: x + y) for n in (1,)]) != digest(*[(lambda x, y=n: x + y) for n in (2,)])
    assert digest(scaled) == digest(scaled)
