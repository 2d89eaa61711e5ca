"""Batches of Python functions that replace gufuncs: leading shapes, and unsuitable arguments."""

from __future__ import annotations

import numpy as np
import pytest

from kinetree.compiler.ir.program import Array
from kinetree.runtime.rolled import spread

INPUTS = (Array("q", (3,)), Array("w", (2, 6)))
OUTPUT = Array("J", (4, 2))


def test_leading_shapes_are_those_of_numpy():
    """Broadcast arrays of different leading shapes, and get an array for the results."""
    q, w = np.arange(15.0).reshape(5, 1, 3), np.arange(24).reshape(2, 2, 6)
    (a, b), out = spread(INPUTS, OUTPUT, "float32", (q, w), None)
    assert a.shape == (5, 2, 3) and b.shape == (5, 2, 2, 6)
    assert (a[:, 1] == q[:, 0]).all() and (b[4] == w).all()
    assert out.shape == (5, 2, 4, 2) and out.dtype == np.float32
    room = np.empty((5, 2, 4, 2))
    assert spread(INPUTS, OUTPUT, "float32", (q, w), (room,))[1] is room


@pytest.mark.parametrize(
    ("arguments", "out", "message"),
    [
        ((np.zeros(3),), None, "2 arrays are expected"),
        ((0.0, np.zeros((2, 6))), None, r"q has shape \(\)"),
        ((np.zeros(3), np.zeros(6)), None, r"w has shape \(6,\)"),
        ((np.zeros(3, complex), np.zeros((2, 6))), None, r"q has shape \(3,\) and type complex128"),
        ((np.zeros((4, 3)), np.zeros((5, 2, 6))), None, "broadcast"),
        ((np.zeros(3), np.zeros((2, 6))), np.zeros((7, 4, 2)), r"out has shape \(7, 4, 2\)"),
        ((np.zeros(3), np.zeros((2, 6))), np.zeros((4, 2), int), r"out has shape \(4, 2\) and type int"),
    ],
)
def test_what_does_not_fit(arguments, out, message):
    """Give arguments that a gufunc would refuse, and read which they are."""
    with pytest.raises((ValueError, TypeError), match=message):
        spread(INPUTS, OUTPUT, "float64", arguments, out)
