"""Modes as motions: small ones are those of a simulation, large ones keep loops closed."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InputError
from tolerance import assert_close


def double_pendulum() -> kt.System:
    """Return two points on rods, with angles from the x axis, downward."""
    bodies = [kt.Body(f"b{k}", 1.3, (0.7, 0.0, 0.0)) for k in range(2)]
    joints = [
        kt.Joint("j0", "revolute", "ground", "b0", axis=(0.0, 0.0, 1.0)),
        kt.Joint("j1", "revolute", "b0", "b1", axis=(0.0, 0.0, 1.0), placement=kt.Placement((0.7, 0.0, 0.0))),
    ]
    return kt.System(kt.build_mechanism("double", bodies, joints, gravity=(9.81, 0.0, 0.0)))


def test_a_small_mode_is_a_run():
    """Move in a mode of small amplitude, at its own frequency, as a simulation from its start does."""
    system = double_pendulum()
    found = system.modes(np.zeros(2))
    run = found.run(2, amplitude=1e-4, period=None, periods=1, samples=16)
    assert_close(run.t[-1], 1.0 / found.frequencies[1], 1e-12, "the period")
    free = kt.simulate(system, run.q[0], run.qd[0], times=run.t, rtol=1e-10, atol=1e-14)
    assert_close(run.q, free.q, 1e-10, "a small vibration")
    assert_close(np.abs(run.q).max(), 1e-4, 1e-18, "the amplitude")


def test_times_and_default_amplitude():
    """Show a period in a second with a quarter of a radian by default, several times."""
    run = double_pendulum().modes(np.zeros(2)).run(1)
    assert len(run.t) == 123 and run.t[-1] == 2.0
    assert_close(np.abs(run.q).max(), 0.25, 1e-12, "the amplitude")
    assert_close(run.qd, np.gradient(run.q, run.t, axis=0), 0.2, "velocities")


@pytest.mark.slow
def test_loops_stay_closed():
    """Close the loops of a four-bar at every position of a mode, with velocities that keep them closed."""
    system = kt.load("four_bar")
    found = system.modes(kt.equilibrium(system))
    run = found.run(1)
    assert_close(system.closure_residual(run.q), np.zeros((123, len(system.closures))), 1e-9, "loops")
    J = np.asarray(system.function("closure_jacobian")(run.q))
    assert_close(np.einsum("tij,tj->ti", J, run.qd), np.zeros(J.shape[:2]), 1e-9, "rates of loops")
    with pytest.raises(InputError, match="the loops do not close along mode 1 with an amplitude of 9; give a smaller"):
        found.run(1, amplitude=9.0)


def test_bad_numbers_are_refused():
    """Refuse modes that do not exist, and sizes that are no positive numbers."""
    found = double_pendulum().modes(np.zeros(2))
    with pytest.raises(InputError, match="there is no mode 3; there are 2, counted from 1"):
        found.run(3)
    with pytest.raises(InputError, match="the number of the mode is 0; give 1 or more"):
        found.run(0)
    with pytest.raises(InputError, match="the period is -1"):
        found.run(1, period=-1.0)
