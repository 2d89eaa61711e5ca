"""Inverse dynamics, bias and gravity torques, and joint reactions of random mechanisms."""

# ruff: noqa: E741 - I is the papers' letter

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from interpreted import along, compute, relative
from kinetree import Body, Joint, build_mechanism
from kinetree.joints import kind
from rigid_body import tensor
from rounding_scales import per_sample, torque_scale
from strategies import FLAT, SINGLE, State, examples, mechanisms, moving_mechanisms, one_of_each
from tolerance import assert_close

EPS = np.finfo(float).eps


@given(moving_mechanisms())
@examples(40)
def test_inverse_dynamics_is_linear_in_the_accelerations(mechanism):
    """Compose the torques of the inertia matrix, the convective matrix and gravity."""
    s = State(mechanism)
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd)
    I = compute(mechanism, "inertia_matrix", s.q)
    h = compute(mechanism, "bias_torque", s.q, s.qd)
    assert_close(relative(np.einsum("nij,nj->ni", I, s.qdd) + h, tau), 0.0, 100 * EPS, "I qdd + h")  # 2e-15


@given(moving_mechanisms())
@examples(40)
def test_bias_torque_is_convective_plus_gravity(mechanism):
    """Compose the bias torque of C qd and g."""
    s = State(mechanism)
    C = compute(mechanism, "convective_matrix", s.q, s.qd)
    g = compute(mechanism, "gravity_torque", s.q)
    h = compute(mechanism, "bias_torque", s.q, s.qd)
    size = per_sample(torque_scale, mechanism, s.q, s.qd)[:, None]
    assert_close((np.einsum("nij,nj->ni", C, s.qd) + g) / size, h / size, 20 * EPS, "C qd + g")  # 3e-16


@given(moving_mechanisms())
@examples(40)
def test_gravity_torque_is_the_slope_of_the_potential(mechanism):
    """Move along each degree of freedom and find the gravity torque as the rate of the potential energy."""
    s = State(mechanism)
    g = compute(mechanism, "gravity_torque", s.q)
    slope = [along(mechanism, "potential_energy", s.q, np.eye(mechanism.nv)[k]) for k in range(mechanism.nv)]
    assert_close(relative(g, np.stack(slope, axis=-1)), 0.0, 1e-12, "g = dU/dq")  # 2e-15


@given(moving_mechanisms())
@examples(30)
def test_external_wrenches_act_through_the_jacobians(mechanism):
    """Subtract J^T w of each body's external wrench from the torques."""
    s = State(mechanism)
    without = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd)
    expected = without.copy()
    for k, body in enumerate(mechanism.bodies):
        J = compute(mechanism, "jacobian", s.q, frame=body.name, axes="body")
        expected -= np.einsum("nij,ni->nj", J, s.wrenches[:, k])
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd, wrenches=s.wrenches)
    assert_close(relative(tau, expected), 0.0, 100 * EPS, "J^T w")  # 7e-16


@given(moving_mechanisms(SINGLE))
@examples(30)
def test_reactions_projected_on_the_axis_are_the_torques(mechanism):
    """Project each joint's wrench on its axis and find its torque without that of its armature."""
    s = State(mechanism)
    w = compute(mechanism, "reactions", s.q, s.qd, s.qdd, wrenches=s.wrenches)
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd, wrenches=s.wrenches)
    for k, joint in enumerate(mechanism.joints):
        axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
        turn = {"revolute": 1.0, "prismatic": 0.0, "helical": 1.0}[joint.kind]
        slide = {"revolute": 0.0, "prismatic": 1.0, "helical": joint.pitch}[joint.kind]
        along_axis = turn * w[:, k, :3] @ axis + slide * w[:, k, 3:] @ axis
        own = (joint.armature or (0.0,))[0] * s.qdd[:, k]
        size = np.abs(w[:, k]).max() + np.abs(own).max()
        assert_close((along_axis + own - tau[:, k]) / size, np.zeros(3), 50 * EPS, "p . w")  # 4e-16


@given(mechanisms())
@examples(30)
def test_reactions_balance_every_body(mechanism):
    """Sum the wrenches on each body about its own origin and find Newton's and Euler's equations."""
    s = State(mechanism)
    w = compute(mechanism, "reactions", s.q, s.qd, s.qdd, wrenches=s.wrenches)
    T = compute(mechanism, "poses", s.q)
    t = compute(mechanism, "twists", s.q, s.qd)
    dt = compute(mechanism, "twist_rates", s.q, s.qd, s.qdd)
    total = w + s.wrenches
    for k, parent in enumerate(mechanism.parents):
        if parent >= 0:  # the child pushes back on its parent
            inverse = np.linalg.inv(T[:, parent]) @ T[:, k]
            f = np.einsum("nij,nj->ni", inverse[:, :3, :3], w[:, k, 3:])
            n = np.einsum("nij,nj->ni", inverse[:, :3, :3], w[:, k, :3]) + np.cross(inverse[:, :3, 3], f)
            total[:, parent] -= np.concatenate([n, f], axis=-1)
    for k, body in enumerate(mechanism.bodies):
        I, c = tensor(body), np.array(body.com)
        omega, alpha = t[:, k, :3], dt[:, k, :3]
        gravity = np.einsum("nji,j->ni", T[:, k, :3, :3], np.array(mechanism.gravity))
        a = dt[:, k, 3:] - gravity + np.cross(alpha, c) + np.cross(omega, np.cross(omega, c))
        f = body.mass * a
        n = alpha @ I.T + np.cross(omega, omega @ I.T) + np.cross(c, f)
        size = np.abs(total[:, k]).max() + np.abs(w).max()
        assert_close(total[:, k] / size, np.concatenate([n, f], axis=-1) / size, 100 * EPS, "balance")  # 5e-16


@given(mechanisms())
@examples(30)
def test_reactions_of_the_ground_carry_the_weight(mechanism):
    """Add the reactions of all joints to the ground at rest and find the total weight upward."""
    q = State(mechanism).q
    zero = np.zeros(mechanism.nv)
    w = compute(mechanism, "reactions", q, zero, zero)
    T = compute(mechanism, "poses", q)
    total = np.zeros((len(q), 3))
    for k, parent in enumerate(mechanism.parents):
        if parent < 0:
            total += np.einsum("nij,nj->ni", T[:, k, :3, :3], w[:, k, 3:])
    weight = -sum(b.mass for b in mechanism.bodies) * np.array(mechanism.gravity)
    assert_close(relative(total, np.broadcast_to(weight, total.shape)), 0.0, 50 * EPS, "weight")  # 2e-15


def test_a_pendulum_by_hand():
    """Compare a point pendulum on a horizontal axis with its textbook torque."""
    rod = Body("rod", 2.0, (0.0, 0.0, -0.7))
    arm = build_mechanism("pendulum", [rod], [Joint("pivot", "revolute", "ground", "rod", axis=(0.0, 1.0, 0.0))])
    tau = compute(arm, "inverse_dynamics", [0.3], [1.1], [0.5])
    assert_close(tau, [2.0 * 0.7**2 * 0.5 + 2.0 * 9.81 * 0.7 * np.sin(0.3)], 1e-14, "m l^2 qdd + m g l sin q")


def test_a_free_body_by_hand():
    """Apply its weight and gyroscopic moment to a free body, and find zero acceleration of its own frame."""
    brick = Body("brick", 3.0, (0.0, 0.0, 0.0), (0.4, 0.5, 0.6, 0.0, 0.0, 0.0))
    world = build_mechanism("brick", [brick], [Joint("float", "free", "ground", "brick")])
    q = np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0])
    omega, v = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.1, -0.2])
    tau = compute(world, "inverse_dynamics", q, np.concatenate([omega, v]), np.zeros(6))
    n = np.cross(omega, np.array([0.4, 0.5, 0.6]) * omega)
    f = 3.0 * (np.cross(omega, v) + np.array([0.0, 0.0, 9.81]))
    assert_close(tau, [*n, *f], 1e-14, "Newton and Euler")


@pytest.mark.parametrize("kinds", [FLAT, ("spherical", "free")], ids=["flat", "quaternions"])
def test_strategies_reach_every_kind(kinds):
    """Find every kind of joint in the mechanism that has one of each."""
    assert {kind(k) for k in kinds} <= {kind(j.kind) for j in one_of_each().joints}
