"""Derivatives of rates: against differences, and their structure."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.trace import Trace
from kinetree.runtime.native import native
from kinetree.simulation.acting.driven import combine_controls
from kinetree.simulation.acting.rates import ForcedMechanism, rates, slopes_of
from strategies import random_mechanism
from tolerance import assert_close


def differences(rate, t, q, qd) -> np.ndarray:
    """Return the derivatives of (dq, dqd) with respect to (t, q, qd) by central differences of fourth order."""
    point, h = np.concatenate([t, q, qd]), 1e-3
    columns = []
    for unit in np.eye(len(point)):

        def at(x, unit=unit):
            a, b, c = np.split(point + x * h * unit, [1, 1 + len(q)])
            return np.concatenate(rate(a, b, c))

        columns.append((8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * h))
    return np.array(columns).T


def test_slopes_equal_differences():
    """Compare the Jacobian and df/dt of an arm under control, and of a ball joint, whose rows of dq are included."""
    control = kt.PD([40.0, 20.0], [3.0, 1.0], kt.Cosine([0.2, 0.3], 1.7))
    ball = random_mechanism(["spherical", "revolute"], [-1, 0], 8)
    for arm, given, moves in ((kt.load("planar_2r"), control, (1.0, 1.0)), (kt.System(ball), None, None)):
        q, qd = arm.random_state(3)
        program, t = rates(ForcedMechanism(arm.mechanism, control=given)), np.array([0.37])
        found = slopes_of(program)
        dq, dqd, slope_t, slope = native(found.program)(t, q, qd)
        expected = differences(native(program), t, q, qd)
        first = len(expected) - len(slope)
        scale = np.abs(expected).max()
        assert_close(slope_t, expected[:, 0], 1e-8 * scale, "slope_t")
        assert_close(slope, expected[first:, 1:], 1e-8 * scale, "slope")
        for x, y in zip((dq, dqd), native(program)(t, q, qd), strict=True):
            assert_close(x, y, 1e-12 * scale, "rates")
        assert found.moves == moves


def test_driven_coordinates_do_not_follow_their_velocities():
    """Drive one joint: its rate is a function of time."""
    arm = kt.load("planar_2r")
    drive = combine_controls(arm.mechanism, (kt.Driven("joint1", kt.Hold(0.3, speed=0.8)),))
    assert slopes_of(rates(ForcedMechanism(arm.mechanism, control=drive))).moves == (0.0, 1.0)


def test_rates_that_are_too_long_are_refused():
    """Refuse rates whose Jacobian would take minutes to compile."""
    trace, inputs = Trace(), (Array("t", (1,)), Array("q", (1,)), Array("qd", (1,)))
    q, qd = trace.input(1, 0), trace.input(2, 0)
    total = q
    for k in range(3001):
        total = total + (0.1 + k) * q
    program = Program.of_trace("rates", inputs, (Array("dq", (1,)), Array("dqd", (1,))), trace, [[qd], [total]])
    with pytest.raises(kt.InputError, match='more than the 3000 whose Jacobian is compiled; use method="radau"'):
        slopes_of(program)
