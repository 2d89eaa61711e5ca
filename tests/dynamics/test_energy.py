"""Energies, momentum and center of mass, and conserved quantities."""

# ruff: noqa: E741 - I is the papers' letter

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from interpreted import compute, derivative, program, relative
from kinetree import Body, Joint, KinetreeError, System, build_mechanism
from kinetree.joints import kind
from rigid_body import mass_matrix
from strategies import State, examples, mechanisms, moving_mechanisms
from tolerance import assert_close

EPS = np.finfo(float).eps


@given(moving_mechanisms())
@examples(30)
def test_kinetic_energy_three_ways(mechanism):
    """Compare the kinetic energy with qd^T I qd / 2 and with the sum over the bodies' twists."""
    s = State(mechanism)
    T = compute(mechanism, "kinetic_energy", s.q, s.qd)
    I = compute(mechanism, "inertia_matrix", s.q)
    by_matrix = 0.5 * np.einsum("ni,nij,nj->n", s.qd, I, s.qd)
    t = compute(mechanism, "twists", s.q, s.qd)
    masses = np.stack([mass_matrix(b) for b in mechanism.bodies])
    by_bodies = 0.5 * np.einsum("nki,kij,nkj->n", t, masses, t)
    armature = [x for j in mechanism.joints for x in j.armature or (0.0,) * kind(j.kind).NV]
    by_bodies = by_bodies + 0.5 * s.qd**2 @ np.array(armature)
    assert_close(relative(T, by_matrix), 0.0, 100 * EPS, "qd^T I qd / 2")  # 2e-15
    assert_close(relative(T, by_bodies), 0.0, 100 * EPS, "sum over bodies")  # 9e-16


@given(mechanisms())
@examples(30)
def test_potential_energy_and_mass_centre_are_sums_over_bodies(mechanism):
    """Sum mass times position over the bodies."""
    q = State(mechanism).q
    T = compute(mechanism, "poses", q)
    m = np.array([b.mass for b in mechanism.bodies])
    places = np.stack([T[:, k, :3, :3] @ np.array(b.com) + T[:, k, :3, 3] for k, b in enumerate(mechanism.bodies)])
    moment = np.einsum("k,knj->nj", m, places)
    U, c = compute(mechanism, "potential_energy", q), compute(mechanism, "center_of_mass", q)
    assert_close(c, moment / m.sum(), 50 * EPS * np.abs(places).max(), "mass centre")  # 4e-16
    size = m.sum() * np.abs(places).max() * np.abs(mechanism.gravity).max()
    assert_close(U / size, -(moment @ np.array(mechanism.gravity)) / size, 50 * EPS, "potential energy")  # 2e-16


@given(mechanisms())
@examples(30)
def test_momentum_is_the_sum_over_bodies(mechanism):
    """Transform each body's momentum to the ground's origin and axes."""
    s = State(mechanism)
    T, t = compute(mechanism, "poses", s.q), compute(mechanism, "twists", s.q, s.qd)
    total = np.zeros((len(s.q), 6))
    for k, body in enumerate(mechanism.bodies):
        h = t[:, k] @ mass_matrix(body).T
        n, p = (np.einsum("nij,nj->ni", T[:, k, :3, :3], x) for x in (h[:, :3], h[:, 3:]))
        total += np.concatenate([n + np.cross(T[:, k, :3, 3], p), p], axis=-1)
    size = np.abs(total).max() + 1.0
    assert_close(compute(mechanism, "momentum", s.q, s.qd) / size, total / size, 100 * EPS, "momentum")  # 1e-15


@given(moving_mechanisms())
@examples(30)
def test_power_is_balanced(mechanism):
    """Apply torques and wrenches and find that the rate of energy is their power."""
    s = State(mechanism)
    qdd = compute(mechanism, "forward_dynamics", s.q, s.qd, s.tau, wrenches=s.wrenches)
    rate = compute(mechanism, "coordinate_rate", s.q, s.qd)
    growth = derivative(program(mechanism, "kinetic_energy"), [s.q, s.qd], [rate, qdd])
    growth = growth + derivative(program(mechanism, "potential_energy"), [s.q], [rate])
    t = compute(mechanism, "twists", s.q, s.qd)
    terms = np.concatenate([s.tau * s.qd, (s.wrenches * t).sum(axis=-1)], axis=-1)
    scale = np.abs(growth) + np.abs(terms).sum(axis=-1)
    I = compute(mechanism, "inertia_matrix", s.q)
    size = scale + np.einsum("ni,nij,nj->n", np.abs(s.qd), np.abs(I), np.abs(qdd))
    assert_close((growth - terms.sum(axis=-1)) / size, np.zeros(len(size)), 1e-13, "dE/dt = power")  # 4e-16


@given(moving_mechanisms(root=("free", "free_euler"), armature=False))
@examples(30)
def test_momentum_of_a_floating_mechanism_is_kept(mechanism):
    """Apply joint torques without gravity and find that momentum is conserved."""
    floating = replace(mechanism, gravity=(0.0, 0.0, 0.0))
    s = State(floating)
    tau = s.tau.copy()
    tau[:, :6] = 0.0
    qdd = compute(floating, "forward_dynamics", s.q, s.qd, tau)
    rate = compute(floating, "coordinate_rate", s.q, s.qd)
    growth = derivative(program(floating, "momentum"), [s.q, s.qd], [rate, qdd])
    size = np.abs(compute(floating, "momentum", s.q, qdd)).max(axis=-1) + np.abs(tau).max(initial=0.0)
    I = compute(floating, "inertia_matrix", s.q)
    size = size + np.abs(np.einsum("nij,nj->ni", np.abs(I), np.abs(qdd))).max(axis=-1)
    assert_close(growth / size[:, None], np.zeros_like(growth), 1e-10, "dh/dt")  # 5e-16


@pytest.mark.parametrize("bodies", [0, 1])
def test_a_mass_centre_needs_mass(bodies):
    """Request the center of mass of a mechanism without mass and get an error of Kinetree, not of Python."""
    light = build_mechanism("light", [Body("a")][:bodies], [Joint("j", "revolute", "ground", "a")][:bodies])
    with pytest.raises(KinetreeError, match="mass"):
        System(light).center_of_mass(np.zeros(light.nq))
