"""The scale of torques: never below the torque, and not far above it either."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
import numpy as np
import pytest

import kinetree as kt
import strategies
from interpreted import compute
from kinetree.analysis.ledger import body_motions
from kinetree.analysis.verify.referee import torque_scale
from tolerance import assert_close


@hypothesis.given(strategies.moving_mechanisms(), strategies.st.integers(0, 1000))
@strategies.examples(30)
def test_no_torque_exceeds_its_scale(mechanism, seed):
    """Bound the torques of random motions, of gravity and of wrenches, on random trees."""
    s = strategies.State(mechanism, seed, 1)
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd, wrenches=s.wrenches)[0]
    assert (np.abs(tau) <= torque_scale(mechanism, s.q[0], s.qd[0], s.qdd[0], s.wrenches[0]) * (1 + 1e-9)).all()
    gravity = compute(mechanism, "gravity_torque", s.q)[0]
    assert (np.abs(gravity) <= torque_scale(mechanism, s.q[0]) * (1 + 1e-9)).all()


def test_a_point_on_a_string_reaches_its_scale():
    """Rotate a point mass about an axis perpendicular to gravity: for a single mass point the bound is reached."""
    body = kt.Body("bob", 2.0, (0.0, 0.0, -0.5))
    pendulum = kt.build_mechanism("p", [body], [kt.Joint("j", "revolute", kt.GROUND, "bob", axis=(0.0, 1.0, 0.0))])
    assert_close(torque_scale(pendulum, np.array([np.pi / 2])), [2.0 * 9.81 * 0.5], 1e-14)


def test_cancelled_gravity_keeps_its_scale():
    """Make all axes of an arm vertical: gravity has no torque, and its scale remains."""
    arm = kt.load("planar_3r").mechanism
    level = replace(arm, gravity=(0.0, 0.0, -9.81))
    q = np.array([0.3, -0.2, 0.9])
    assert_close(torque_scale(level, q), torque_scale(arm, q), 1e-13)


@pytest.mark.parametrize("seed", [0, 1])
def test_body_motions_are_the_twist_rates(seed):
    """Compare accelerations of centers of mass, and N qd, with the compiled twists, on every kind of joint."""
    mechanism = strategies.one_of_each(5 + seed)
    s = strategies.State(mechanism, seed, 1)
    t = compute(mechanism, "twists", s.q, s.qd)[0]
    dt = compute(mechanism, "twist_rates", s.q, s.qd, s.qdd)[0]
    for b, twist, rate in zip(body_motions(mechanism, s.q[0], s.qd[0], s.qdd[0]), t, dt, strict=True):
        R, d = b.body.R, b.body.d
        w, dw = R @ twist[:3], R @ rate[:3]
        assert_close(b.N @ s.qd[0], np.concatenate([w, R @ twist[3:] + np.cross(w, d)]), 1e-12, "twist")
        assert_close(b.dw, dw, 1e-12, "angular acceleration")
        assert_close(b.dc, R @ rate[3:] + np.cross(dw, d) + np.cross(w, np.cross(w, d)), 1e-12, "acceleration")
