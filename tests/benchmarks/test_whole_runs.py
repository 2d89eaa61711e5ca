"""Runs in one native call, as the benchmarks time them."""

from __future__ import annotations

import numpy as np

import kinetree as kt


def test_whole_runs_are_those_of_simulate():
    """Return the states of `simulate` with fixed steps to the bit, and with adaptive ones within the tolerance."""
    from whole_runs import adaptive_run, fixed_run

    arm = kt.load("planar_2r")
    q0, qd0, times = np.array([0.3, -1.1]), np.array([0.7, 0.2]), np.array([0.0, 0.37])
    expected = kt.simulate(arm, q0, qd0, times=times, method="rk4", dt=1e-3)
    assert np.array_equal(fixed_run(arm.mechanism, "rk4")(q0, qd0, times, 1e-3)[0][-1], expected.q[-1])
    q, *_, report = adaptive_run(arm.mechanism, "dop853")(q0, qd0, times, 1e-11)
    assert np.abs(q[-1] - expected.q[-1]).max() < 1e-9
    assert report[0] > 12  # evaluations, at least those of one step
