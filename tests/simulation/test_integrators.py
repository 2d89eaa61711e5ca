"""Methods of integration by name."""

import pytest

import kinetree as kt
from kinetree.simulation.integrators import choose


def test_methods_are_chosen_by_name():
    """Take rk4 for a given step, a pair for a tolerance, and name the methods there are."""
    assert choose("auto", 1e-3, 1e-8).name == "rk4"
    assert choose("auto", None, 1e-8).name == "dop853"
    assert choose("auto", None, 1e-5).name == "dopri5"
    with pytest.raises(kt.UnknownNameError, match="no method 'rk5'; did you mean 'rk4'"):
        choose("rk5", None, 1e-8)
