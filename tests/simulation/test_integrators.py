"""Integration methods by name."""

import pytest

import kinetree as kt
from kinetree.simulation.integrators import choose


def test_methods_are_chosen_by_name():
    """Choose rk4 for a given step, a pair for a tolerance, and read the known names for another."""
    assert choose("auto", 1e-3, 1e-8).name == "rk4"
    assert choose("auto", None, 1e-8).name == "dop853"
    assert choose("auto", None, 1e-5).name == "dopri5"
    with pytest.raises(kt.UnknownNameError, match="no method 'rk5'; did you mean 'rk4'"):
        choose("rk5", None, 1e-8)
