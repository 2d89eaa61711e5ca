"""Cases of parametrized tests that run every day; the others are slow, or run before every change that lands."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from strategies import THOROUGH


def only(cases: Iterable[Any], every_day: Collection[Any]) -> list[Any]:
    """Return the cases; those that are not to run every day are marked slow."""
    return [x if x in every_day else pytest.param(x, marks=pytest.mark.slow) for x in cases]


def without(cases: Iterable[Any], slow: Collection[Any]) -> list[Any]:
    """Return the cases; those listed as slow are marked so."""
    return [pytest.param(x, marks=pytest.mark.slow) if x in slow else x for x in cases]


def some(cases: Iterable[Any]) -> list[Any]:
    """Return the cases, all of them with KINETREE_THOROUGH; otherwise two in three are marked slow.

    This is for tests that repeat one check for many mechanisms or functions. Tuples are cases of several arguments.
    """
    given = list(cases)
    plain = [i for i, x in enumerate(given) if not hasattr(x, "marks")]
    rare = set() if THOROUGH else set(plain) - set(plain[::3])
    return [
        pytest.param(*(x if isinstance(x, tuple) else (x,)), marks=pytest.mark.slow) if i in rare else x
        for i, x in enumerate(given)
    ]
