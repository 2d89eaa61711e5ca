"""Linearized equations of motion against differences of motions, on trees with quaternions and on loops."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_mechanisms import library_state
from kinetree.errors import InputError
from strategies import random_mechanism
from tolerance import assert_close


def rate_along(system, q, qd, tau, dq, dqd, h=1e-5):
    """Return the change of the accelerations along a displacement and a change of the velocities."""
    ends = [system.forward_dynamics(system.integrate(q, s * h * dq), qd + s * h * dqd, tau) for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * h)


@everyday.long
def test_states_with_quaternions():
    """Compare A with differences of accelerations, and of displacements after a short time of two motions."""
    system = kt.System(random_mechanism(["free", "revolute", "spherical"], [-1, 0, 1], 4))
    q, qd = system.random_state(1)
    tau, n = np.random.default_rng(2).normal(size=system.nv), system.nv
    found = system.linearize(q, qd, tau)
    rng = np.random.default_rng(3)
    dq, dqd = rng.normal(size=(2, n))
    moved = found.A @ np.concatenate([dq, dqd])
    assert_close(moved[n:], rate_along(system, q, qd, tau, dq, dqd), 1e-7 * np.abs(moved).max(), "accelerations")
    h, e = 1e-4, 1e-4  # the second motion starts at integrate(q, e dq); both keep their velocities for h
    one = system.integrate(q, h * qd)
    two = system.integrate(system.integrate(q, e * dq), h * (qd + e * dqd))
    back = system.integrate(q, -h * qd)
    before = system.integrate(system.integrate(q, e * dq), -h * (qd + e * dqd))
    growth = (system.difference(one, two) - system.difference(back, before)) / (2 * h * e)
    assert_close(moved[:n], growth, 1e-3 * np.abs(moved[:n]).max(), "displacements")


def test_time_steps_and_batches():
    """Compose two time steps to one of twice the length, for a batch, and find the inputs of forward dynamics."""
    system = kt.load("planar_3r")
    q, qd = system.random_state(1, (2, 3))
    tau = np.random.default_rng(2).normal(size=system.nv)
    exact, once, twice = (system.linearize(q, qd, tau, dt=dt) for dt in (None, 0.01, 0.02))
    assert_close(exact.B[..., 3:, :], system.inverse_inertia_matrix(q), 1e-9 * np.abs(exact.B).max(), "inputs")
    assert_close(once.A @ once.A, twice.A, 1e-12 * np.abs(twice.A).max(), "two steps")
    assert_close(once.A @ once.B + once.B, twice.B, 1e-12 * np.abs(twice.B).max(), "two steps, inputs")
    assert once.names == exact.inputs == tuple(j.name for j in system.joints)


def test_default_torques_hold_the_state():
    """Leave out the torques, and find those that keep the velocities of a tree and of a closed mechanism constant."""
    pendulum = kt.load("planar_2r")
    q, qd = np.array([0.7, -1.1]), np.array([0.4, 1.3])
    rest = pendulum.linearize(q)
    held = pendulum.linearize(q, np.zeros(2), pendulum.gravity_torque(q))
    assert_close(rest.A, held.A, 1e-13 * np.abs(held.A).max(), "at rest")
    assert np.abs(rest.A - pendulum.linearize(q, tau=np.zeros(2)).A).max() > 1.0
    moving, tau = pendulum.linearize(q, qd, dt=1e-3), pendulum.bias_torque(q, qd)
    assert_close(moving.A, pendulum.linearize(q, qd, tau, dt=1e-3).A, 1e-13, "moving")
    system, q, _, _ = library_state("four_bar")
    found = system.linearize(q)
    tau = system.inverse_dynamics(q, np.zeros(3), np.zeros(3), actuated=found.names)
    assert_close(system.forward_dynamics(q, np.zeros(3), tau), np.zeros(3), 1e-9, "it stays at rest")
    expected = system.linearize(q, np.zeros(3), tau)
    assert_close(found.A, expected.A, 1e-9 * np.abs(expected.A).max(), "with loops")


def test_loops():
    """Compare A of a five-bar with differences of motions that keep its loops closed."""
    system, q, qd, _ = library_state("five_bar")
    tau = np.random.default_rng(2).normal(size=system.nv)
    found = system.linearize(q, qd, tau)
    n = len(found.names)
    at = [list(found.inputs).index(name) for name in found.names]
    rng, h = np.random.default_rng(3), 1e-5
    x = rng.normal(size=2 * n)
    ends = []
    for side in (h, -h):
        lead = {name: q[k] + side * x[j] for j, (name, k) in enumerate(zip(found.names, at, strict=True))}
        speeds = {name: qd[k] + side * x[n + j] for j, (name, k) in enumerate(zip(found.names, at, strict=True))}
        moved = system.assemble(q, lead)
        ends.append(system.forward_dynamics(moved, system.consistent_speeds(moved, speeds), tau)[at])
    rate = (ends[0] - ends[1]) / (2 * h)
    assert_close((found.A @ x)[n:], rate, 1e-6 * np.abs(rate).max(), "accelerations")
    assert_close((found.A @ x)[:n], x[n:], 1e-12, "velocities")


def test_wrong_input_is_refused():
    """Refuse wrong shapes and time steps, shapes that do not fit, velocities that open loops, and dead centers."""
    arm = kt.load("planar_3r")
    with pytest.raises(InputError, match=r"linearize: qd has shape \(2,\); expected \[..., 3\]"):
        arm.linearize(np.zeros(3), np.zeros(2), np.zeros(3))
    with pytest.raises(InputError, match="linearize: dt is 0; expected more than 0"):
        arm.linearize(np.zeros(3), np.zeros(3), np.zeros(3), dt=0)
    system, q, qd, _ = library_state("four_bar")
    told = r"linearize: the leading shapes do not fit together: q \(2,\), qd \(\), tau \(3,\)"
    with pytest.raises(InputError, match=told):
        system.linearize(np.stack([q, q]), qd, np.zeros((3, 3)))
    with pytest.raises(InputError, match=r"qd opens the loops: 'pin' \(position [xy]\) would part at .* m/s; give"):
        system.linearize(q, qd + 1.0, np.zeros(3))
    folded = kt.load("slider_crank")
    told = "'slider_crank' is at a singular position of its loops: 2 degrees of freedom at this instant, 1 nearby"
    with pytest.raises(InputError, match=told):
        folded.linearize(np.array([np.pi, -np.pi, 0.0]), np.zeros(3), np.zeros(3))
    near = folded.assemble([np.pi - 1e-5, -np.pi + 2e-5, 0.0], hold="crank")
    told = r"^linearize: .* have rank 1 there and 2 nearby; no linear equations describe it there, so move it away from"
    with pytest.raises(InputError, match=told):
        folded.linearize(near, np.zeros(3), np.zeros(3))
