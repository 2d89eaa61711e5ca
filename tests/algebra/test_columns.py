"""Columns: arrays that behave as one scalar."""

from __future__ import annotations

import numpy as np

from kinetree.algebra import scalars
from kinetree.algebra.columns import Column, plain
from tolerance import assert_close

X, Y = np.array([0.3, -1.7, 2.2]), np.array([1.1, 0.4, -0.9])


def test_columns_are_scalars_of_the_algebra():
    """Apply functions of scalars to columns, and find NumPy's results entry by entry."""
    x, y = Column(X), Column(Y)
    for found, expected in [
        (2.0 - x * y / 3.0 + -x, 2.0 - X * Y / 3.0 - X), (scalars.sin(x), np.sin(X)), (scalars.cos(x), np.cos(X)),
        (scalars.sqrt(x * x), np.sqrt(X * X)), (scalars.atan2(x, y), np.arctan2(X, Y)),
        (scalars.atan2(0.7, y), np.arctan2(0.7, Y)), (scalars.where(x < y, x, 4.0), np.where(X < Y, X, 4.0)),
    ]:  # fmt: skip
        assert_close(plain(found), expected, 1e-15, "entry")  # 0
    assert plain(1.5) == 1.5
