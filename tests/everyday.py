"""Cases of parametrized tests that run every day; the others are slow, or run before every change that lands."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from strategies import THOROUGH

OF_EACH = 10
"""Of so many cases that `some` gets, one runs every day."""

PARAM = type(pytest.param(0))


def only(cases: Iterable[Any], every_day: Collection[Any]) -> list[Any]:
    """Return the cases; those that are not to run every day are marked slow."""
    return [x if x in every_day else pytest.param(x, marks=pytest.mark.slow) for x in cases]


def without(cases: Iterable[Any], slow: Collection[Any]) -> list[Any]:
    """Return the cases; those listed as slow are marked so."""
    return [pytest.param(x, marks=pytest.mark.slow) if x in slow else x for x in cases]


def seldom(cases: Iterable[Any], listed: Collection[Any]) -> list[Any]:
    """Return the cases; those listed are marked slow except with KINETREE_THOROUGH."""
    return [_slow(x) if not THOROUGH and x in listed else x for x in cases]


def some(cases: Iterable[Any]) -> list[Any]:
    """Return the cases, all of them with KINETREE_THOROUGH; otherwise one in OF_EACH, and the others are marked slow.

    This is for tests that repeat one check for many mechanisms or functions. Tuples are cases of several arguments.
    """
    given = list(cases)
    plain = [i for i, x in enumerate(given) if not getattr(x, "marks", ())]
    rare = set() if THOROUGH else set(plain) - set(plain[::OF_EACH])
    return [_slow(x) if i in rare else x for i, x in enumerate(given)]


def _slow(case: Any) -> Any:
    if isinstance(case, PARAM):
        return pytest.param(*case.values, id=case.id, marks=pytest.mark.slow)
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)


def long(test: Any) -> Any:
    """Mark a test as slow except with KINETREE_THOROUGH: one of the longest, of a feature that has other tests."""
    return test if THOROUGH else pytest.mark.slow(test)
