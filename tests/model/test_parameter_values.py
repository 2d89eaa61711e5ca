"""Values of free parameters by name: for compiled functions, fixed systems and analyses of loops."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.model import parse
from kinetree.model.mechanism import in_order
from planar_loops import free_rod
from tolerance import assert_close


def pendulum() -> kt.System:
    """Return a pendulum whose mass and length are free."""
    bob = kt.Body("bob", parse("m"), (parse("l"), 0.0, 0.0))
    joint = kt.Joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0))
    free = [kt.Parameter("m", 1.3, free=True), kt.Parameter("l", 0.7, free=True)]
    return kt.System(kt.build_mechanism("pendulum", [bob], [joint], parameters=free))


def test_names_give_the_same_bits_as_the_order():
    """Give some parameters by name, for one call and for many, and find the bits of all of them in order."""
    made = pendulum()
    named = made.gravity_torque([0.37], parameters={"l": 0.41})
    np.testing.assert_array_equal(named, made.gravity_torque([0.37], parameters=[1.3, 0.41]))
    lengths = np.array([0.41, 0.53, 0.67])
    rows = np.column_stack([np.full(3, 1.3), lengths])
    many = made.inertia_matrix([0.37], parameters={"l": lengths})
    np.testing.assert_array_equal(many, made.inertia_matrix([0.37], parameters=rows))
    np.testing.assert_array_equal(
        made.fixed({"m": 2.9}).gravity_torque([0.37]), made.fixed([2.9, 0.7]).gravity_torque([0.37])
    )


def test_analyses_of_loops_take_names():
    """Assemble a closed mechanism and move it with a free length by name, as by order."""
    arm, results = free_rod(), []
    for given in ({"l": 0.45}, [0.45]):
        q = arm.assemble(hold={"j0": 0.4}, parameters=given)
        qd = arm.consistent_speeds(q, {"j0": 1.7}, parameters=given)
        qdd = arm.consistent_accelerations(q, qd, {"j0": -2.3}, parameters=given)
        results.append([*q, *qd, *qdd, *arm.actuation(q, qd, qdd, "j0", parameters=given).tau])
    np.testing.assert_array_equal(*results)


def test_unknown_names_are_listed():
    """Name a parameter that does not exist, and give a text for a number."""
    with pytest.raises(kt.KinetreeError, match="no free parameter 'k'; available: m, l"):
        pendulum().gravity_torque([0.37], parameters={"k": 1.0})
    with pytest.raises(kt.KinetreeError, match="parameter 'l' is not an array of real numbers: 'long'"):
        pendulum().fixed({"l": "long"})
    assert_close(in_order(pendulum().mechanism, {}), np.array([1.3, 0.7]), 1e-16, "own values")
