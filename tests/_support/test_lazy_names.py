"""Tests of src/kinetree/_support/lazy_names.py: functions of higher layers by name."""

from __future__ import annotations

import pytest

from kinetree._support.lazy_names import PICTURES, picture


@pytest.mark.parametrize("name", PICTURES)
def test_functions_are_where_the_table_says(name):
    """Import each function of the table."""
    assert callable(picture(name))
    assert picture(name).__module__ == f"kinetree.{PICTURES[name]}"
