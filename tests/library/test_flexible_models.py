"""The flexible mechanisms of the library: their equations by a second route, closed loops, and first frequencies."""

from __future__ import annotations

import math

import numpy as np
import pytest

import everyday
import kinetree as kt
from flexible_mechanisms import LIBRARY
from kinetree.model.beam_shapes import bending_roots
from tolerance import assert_close


@pytest.mark.parametrize("name", everyday.some(LIBRARY))
def test_lagrange_agrees(name):
    """Find the equations of each mechanism by differentiating its energies."""
    pytest.importorskip("casadi")
    found = kt.load(name).verify(states=2, routes=["lagrange"])
    assert found.row("lagrange").verdict == "agrees", str(found)


@pytest.mark.parametrize(("name", "modes"), [("flexible_four_bar", 2), ("flexible_slider_crank", 3)])
def test_loops_are_closed_at_the_guess(name, modes):
    """Find both loops closed to rounding with a straight link, and one way to move apart from the modes."""
    system = kt.load(name)
    assert np.abs(system.closure_residual(system.mechanism.neutral)).max() < 1e-15
    assert system.doctor().mobility == 1 + modes


def test_first_frequency_of_the_spinning_beam_at_rest():
    """Find the frequency of a cantilever of 10 m with its hub held: 3.80 rad/s."""
    beam = kt.load("spinning_beam")
    still = np.zeros(beam.nv)
    K = beam.inverse_dynamics_derivatives(still, still, still)[0][1:, 1:]
    squares = np.linalg.eigvals(np.linalg.solve(beam.inertia_matrix(still)[1:, 1:], K)).real
    exact = bending_roots(1, "clamped-free")[0] ** 2 * math.sqrt(1.4e4 / (1.2 * 10.0**4))
    assert_close(math.sqrt(squares.min()), exact, 1e-5 * exact, "frequency by four polynomials")


def test_thickness_of_the_flexible_arm():
    """Load the tool of the straight arm by its payload, and find the tip deflected less with thicker links."""
    arm = kt.load("flexible_arm")
    q = np.zeros(arm.nv)
    sag = []
    for height in (0.012, 0.024):
        more = {"parameters": {"height_1": height, "height_2": 0.66667 * height}}
        at = kt.equilibrium(arm, q, hold=["shoulder", "elbow"], **more)
        sag.append(-arm.pose(at, "tool", **more)[1, 3])
    assert sag[0] > 0.01
    assert 3.0 < sag[0] / sag[1] < 8.0
