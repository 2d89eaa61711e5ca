"""Regressors of random mechanisms: products with parameters are inverse dynamics and energies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from interpreted import compute, program
from kinetree import InputError, System, rope
from kinetree.analysis.identification.columns import dynamic_parameters
from kinetree.dynamics.regressor import COUNT
from kinetree.model import Body, Mechanism
from rounding_scales import per_sample, torque_scale
from strategies import State, examples, mechanisms, moving_mechanisms, one_of_each
from tolerance import assert_close

EPS = np.finfo(float).eps


def without_drives(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism without inertia of drives."""
    return replace(mechanism, joints=tuple(replace(j, armature=()) for j in mechanism.joints))


@given(moving_mechanisms())
@examples(60)
def test_inverse_dynamics_is_linear_in_the_parameters(mechanism):
    """Multiply the regressor by the parameters and find the torques."""
    mechanism = without_drives(mechanism)
    s = State(mechanism)
    Y = compute(mechanism, "regressor", s.q, s.qd, s.qdd)
    pi = dynamic_parameters(System(mechanism))
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd)
    size = per_sample(torque_scale, mechanism, s.q, s.qd, s.qdd)[:, None]
    assert_close((Y @ pi - tau) / size, 0.0 * tau, 20 * EPS, "Y pi")  # 2e-16


@given(moving_mechanisms(most=4))
@examples(20)
def test_columns_are_torques_of_unit_parameters(mechanism):
    """Change one parameter of one body and find its column as the change of the torques."""
    mechanism = without_drives(mechanism)
    s = State(mechanism)
    Y = compute(mechanism, "regressor", s.q, s.qd, s.qdd)
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd)
    size = per_sample(torque_scale, mechanism, s.q, s.qd, s.qdd)[:, None]
    rng = np.random.default_rng(len(mechanism.bodies))
    for k, body in enumerate(mechanism.bodies):
        part = Body(body.name, 1.37, tuple(rng.normal(size=3)), tuple(rng.normal(size=6)))
        bodies = tuple(_welded(b, part) if n == k else b for n, b in enumerate(mechanism.bodies))
        heavier = System(replace(mechanism, bodies=bodies))
        change = dynamic_parameters(heavier) - dynamic_parameters(System(mechanism))
        assert np.flatnonzero(change).min() >= COUNT * k
        assert np.flatnonzero(change).max() < COUNT * (k + 1)
        found = compute(heavier.mechanism, "inverse_dynamics", s.q, s.qd, s.qdd) - tau
        size = size + per_sample(torque_scale, heavier.mechanism, s.q, s.qd, s.qdd)[:, None]
        assert_close((Y @ change - found) / size, 0.0 * tau, 40 * EPS, f"part of {body.name}")  # 3e-16


def _welded(body: Body, part: Body) -> Body:
    """Return a body with a part welded on, by the parallel axes theorem."""
    mass = body.mass + part.mass
    com = (body.mass * np.array(body.com) + part.mass * np.array(part.com)) / mass
    total = np.zeros(6)
    for x in (body, part):
        r = np.array(x.com) - com
        square = x.mass * (r @ r * np.eye(3) - np.outer(r, r))
        total += np.array(x.inertia) + square[[0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0]]
    return replace(body, mass=mass, com=tuple(map(float, com)), inertia=tuple(map(float, total)))


@given(mechanisms())
@examples(40)
def test_energies_are_linear_in_the_parameters(mechanism):
    """Multiply the energy regressors by the parameters and find the kinetic and potential energies."""
    mechanism = without_drives(mechanism)
    s = State(mechanism)
    K, V = program(mechanism, "energy_regressor").interpret(s.q, s.qd)
    pi = dynamic_parameters(System(mechanism))
    for regressor, name, arguments in ((K, "kinetic_energy", (s.q, s.qd)), (V, "potential_energy", (s.q,))):
        size = np.maximum((np.abs(regressor) * np.abs(pi)).sum(axis=-1), 1e-300)
        expected = compute(mechanism, name, *arguments)
        assert_close((regressor @ pi - expected) / size, np.zeros(3), 20 * EPS, name)  # 2e-16


def test_upper_blocks_are_zero():
    """Find that a body has no part in the torques of joints that do not move it."""
    mechanism = one_of_each()
    s = State(mechanism)
    Y = compute(mechanism, "regressor", s.q, s.qd, s.qdd).reshape(3, mechanism.nv, len(mechanism.bodies), COUNT)
    for body, joint in ((0, 3), (2, 3), (10, 0)):  # b2 and b3 are branches of b1, b10 is on another tree
        own = mechanism.v_slices[joint]
        assert not Y[:, own, body].any()


def test_long_chains_are_refused():
    """Refuse a regressor of many bodies, with the remedy."""
    system = rope(7.0, 70, mass_per_metre=0.3, radius=0.01, bending=2.0)
    q, qd = system.random_state(1)
    with pytest.raises(InputError, match=r"regressor of '.*': regressors are straight-line code, and a function of 70"):
        system.regressor(q, qd, qd)
