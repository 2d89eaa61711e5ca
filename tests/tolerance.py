"""Comparison of numbers with a bound, with a report of the residuals.

`KINETREE_TOL_SCALE` scales every bound. With 0, a test runs to its end, then fails and lists the largest residual of
each of its comparisons with its bound (see conftest.py).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

SCALE = float(os.environ.get("KINETREE_TOL_SCALE", "1"))

residuals: dict[str, tuple[float, float]] = {}
"""The largest residual of each label in the test that runs, with its bound."""


def assert_close(actual: Any, expected: Any, bound: float, label: str = "values") -> None:
    """Fail unless shapes agree and no entry differs by more than the bound, times the scale."""
    a, e = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert a.shape == e.shape, f"{label}: shape {a.shape}, expected {e.shape}"
    if a.size == 0:
        return
    difference = np.abs(a - e)
    assert np.isfinite(difference).all(), f"{label}: {_place(~np.isfinite(difference), a, e)} is not finite"
    residual = float(difference.max())
    known = residuals.get(label)
    if known is None or residual > known[0]:
        residuals[label] = residual, float(bound)
    if SCALE > 0:
        place = _place(difference == residual, a, e)
        assert residual <= bound * SCALE, f"{line(label, residual, bound)}; {place}"


def line(label: str, residual: float, bound: float) -> str:
    """Return a residual and its bound as text."""
    share = f", {residual / bound:.2g} of it" if bound > 0 else ""
    return f"{label}: residual {residual:.3g}, bound {bound:.3g}{share}"


def _place(where: np.ndarray, actual: np.ndarray, expected: np.ndarray) -> str:
    index = tuple(int(k) for k in np.argwhere(where)[0])
    return f"entry {list(index)} is {actual[index]!r}, expected {expected[index]!r}"
