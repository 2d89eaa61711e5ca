"""Cases of parametrized tests that run every day; the others are slow."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def only(cases: Iterable[Any], every_day: Collection[Any]) -> list[Any]:
    """Return the cases; those that are not to run every day are marked slow."""
    return [x if x in every_day else pytest.param(x, marks=pytest.mark.slow) for x in cases]


def without(cases: Iterable[Any], slow: Collection[Any]) -> list[Any]:
    """Return the cases; those listed as slow are marked so."""
    return [pytest.param(x, marks=pytest.mark.slow) if x in slow else x for x in cases]
