"""The motion of points against that of bodies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import everyday
import kinetree as kt
from interpreted import compute, derivative, program
from kinetree.formulations.points import SYSTEMS, equations, point_matrices
from rounding_scales import EPS, convective_scale, inertia_scale, torque_scale
from strategies import FLAT, State, examples, mechanisms, moving_mechanisms, one_of_each, random_mechanism
from tolerance import assert_close


@given(mechanisms(), st.sampled_from(SYSTEMS))
@examples(60)
def test_points_move_as_bodies(mechanism, system):
    """Find I, C, g and the torques of random trees, with all joint kinds and external wrenches, by each system."""
    s = State(mechanism, shape=())
    e = equations(mechanism, s.q, s.qd, s.wrenches, system=system)
    matrices = point_matrices(mechanism, s.q, s.qd, system=system)
    m, V = np.repeat(np.abs(matrices.masses), 3), np.abs(matrices.N)
    more = float((V.T @ (m[:, None] * V)).max(initial=0.0))  # negative masses: the terms exceed their sum
    size = max(inertia_scale(mechanism, s.q), more)
    spread = size / max(inertia_scale(mechanism, s.q), 1e-300)
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd, wrenches=s.wrenches)
    scale = torque_scale(mechanism, s.q, s.qd, s.qdd, s.wrenches) * spread
    assert_close(e.I, compute(mechanism, "inertia_matrix", s.q), 20 * EPS * size, "I")
    assert_close(e.g, compute(mechanism, "gravity_torque", s.q), 20 * EPS * scale, "g")
    assert_close(e.torque(s.qdd), tau, 20 * EPS * scale, "tau")
    C = compute(mechanism, "convective_matrix", s.q, s.qd)
    assert_close(e.C, C, 20 * EPS * convective_scale(mechanism, s.q, s.qd) * spread, "C")


@given(moving_mechanisms(FLAT, most=4))
@example(random_mechanism(["fixed", "revolute"], [-1, 0], 211, geometry="neat"))  # C is zero
@examples(15)
def test_convective_matrix_is_that_of_christoffel(mechanism):
    """Compute C from the derivatives of I alone, where qd are the rates of the coordinates."""
    s = State(mechanism, shape=())
    page = program(mechanism, "inertia_matrix")
    dI = np.array([derivative(page, [s.q], [e]) for e in np.eye(mechanism.nv)])  # [k, i, j]
    first, second, third = (np.einsum(f"{letters},k->ij", dI, s.qd) for letters in ("kij", "jik", "ijk"))
    C = equations(mechanism, s.q, s.qd).C
    assert_close(C, (first + second - third) / 2, 20 * EPS * convective_scale(mechanism, s.q, s.qd), "C")


def test_rates_are_derivatives():
    """Move a tree slightly along its velocities and find the points' velocities change by their rates."""
    mechanism = one_of_each()
    system, s, step = kt.System(mechanism), State(mechanism, shape=()), 1e-5
    ahead, behind = (point_matrices(mechanism, system.integrate(s.q, k * step * s.qd)) for k in (1, -1))
    here = point_matrices(mechanism, s.q, s.qd)
    for name in ("D", "N_l", "N_d", "N"):
        change = (getattr(ahead, name) - getattr(behind, name)) / (2 * step)
        assert_close(getattr(here, "d" + name), change, 1e-7, "d" + name)


def test_the_pendulum_of_the_paper():
    """Take the pendulum at the start of figure 5: I = N~^T M~ N~ and C = N~^T M~ dN~, with L_1 of (38b) in N_d."""
    arm = kt.load("spatial_pendulum")
    (phi, theta, psi), qd = np.radians([90.0, 45.0, 45.0]), np.ones(3)
    p = point_matrices(arm.mechanism, (phi, theta, psi), qd)
    L = [
        [0, -np.sin(phi), np.sin(theta) * np.cos(phi)],
        [0, np.cos(phi), np.sin(theta) * np.sin(phi)],
        [1, 0, np.cos(theta)],
    ]
    assert p.D.shape == (21, 6)
    assert_close(p.N_d, np.vstack([L, np.zeros((3, 3))]), 1e-15, "N_d")
    assert_close(p.N.T @ p.M @ p.N, arm.inertia_matrix((phi, theta, psi)), 1e-14, "I")
    assert_close(p.N.T @ p.M @ p.dN @ qd + equations(arm.mechanism, (phi, theta, psi), qd).g,
                 arm.bias_torque((phi, theta, psi), qd), 1e-14, "bias")  # fmt: skip


@pytest.mark.parametrize("name", ["puma560", "biped", "stanford", "quadruped"])
@pytest.mark.parametrize("system", everyday.some(SYSTEMS))
def test_robots_of_the_library(name, system):
    """Find the torques of robots by each system; one has inertia without mass."""
    mechanism = kt.load(name).mechanism
    s = State(mechanism, 2, ())
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd, wrenches=s.wrenches)
    scale = torque_scale(mechanism, s.q, s.qd, s.qdd, s.wrenches) + np.abs(tau).max()
    e = equations(mechanism, s.q, s.qd, s.wrenches, system=system)
    assert_close(e.torque(s.qdd), tau, 50 * EPS * scale, "tau")


def test_an_empty_mechanism_has_no_points():
    """Take a mechanism without bodies and find no points and no equations."""
    empty = kt.build_mechanism("empty", [], [])
    assert point_matrices(empty, []).N.shape == (0, 0)
    assert equations(empty, [], []).torque([]).shape == (0,)
