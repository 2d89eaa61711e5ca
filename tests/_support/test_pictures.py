"""Tests of src/kinetree/_support/pictures.py: functions of higher layers by name."""

from __future__ import annotations

import pytest

from kinetree._support.pictures import PLACES, picture


@pytest.mark.parametrize("name", PLACES)
def test_functions_are_where_the_table_says(name):
    """Import each function of the table."""
    assert callable(picture(name))
    assert picture(name).__module__ == f"kinetree.{PLACES[name]}"
