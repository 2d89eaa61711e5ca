"""Excitation: limits that are kept, conditions that fall, rest at the ends, and parameters found along the motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree import InputError, System, UnreachableError
from kinetree.analysis.identification import excitation as module
from kinetree.model import Limits
from tolerance import assert_close


def limited(name: str = "planar_2r", **limits) -> System:
    """Return an arm with limits of all joints."""
    arm = kt.load(name).mechanism
    return System(replace(arm, joints=tuple(replace(j, limits=Limits(**limits)) for j in arm.joints)))


ARM = limited(lower=-0.7, upper=1.9, velocity=1.3)
FOUND = kt.excitation(ARM, period=6.0, acceleration=7.0, starts=8, seed=3)


def test_limits_hold_and_ends_rest():
    """Check positions, velocities and accelerations at many times, rest at both ends, and the period."""
    t = np.linspace(0.0, 6.0, 4001)
    q, qd, qdd = FOUND.motion(t)
    assert q.min() >= -0.7 and q.max() <= 1.9
    assert np.abs(qd).max() <= 1.3
    assert np.abs(qdd).max() <= 7.0
    for x in (qd[[0, -1]], qdd[[0, -1]], FOUND.motion(t + 6.0)[0] - q):
        assert_close(x, np.zeros_like(x), 1e-12, "rest, and the next period")
    h = t[1]
    assert_close((q[2:] - q[:-2]) / (2.0 * h), qd[1:-1], 1e-4, "velocities")
    assert_close((qd[2:] - qd[:-2]) / (2.0 * h), qdd[1:-1], 1e-4, "accelerations")
    used = [np.abs(qd).max(axis=0) / 1.3, np.abs(qdd).max(axis=0) / 7.0, np.ptp(q, axis=0) / 2.6]
    assert (np.max(used, axis=0) > 0.95).all()


def test_the_condition_falls_and_is_that_of_the_estimate():
    """Compare with random motions, and with the condition of an identification along the motion."""
    assert FOUND.condition < 0.7 * FOUND.random_condition
    recording = FOUND.recording(rate=50.0)
    found = kt.identify(ARM, recording, delays=False, validation=0.0, consistent="log-cholesky")
    assert found.condition == pytest.approx(FOUND.condition, rel=0.05)
    size = np.abs(found.base.values).max()
    assert_close(found.estimate, found.base.values, 1e-11 * size, "base parameters")
    assert str(FOUND).startswith("planar_2r: 5 harmonics in 6 s for 13 base parameters; condition")


@everyday.long
def test_torques_stay_within_limits():
    """Give drives that are weak, and find a motion that they can make."""
    weak = limited(lower=-3.0, upper=3.0, velocity=6.0, effort=2.6)
    found = kt.excitation(weak, period=5.0, starts=2, columns=())
    q, qd, qdd = found.motion(np.linspace(0.0, 5.0, 301))
    assert np.abs(weak.inverse_dynamics(q, qd, qdd)).max() <= 2.6
    feeble = limited(lower=-3.0, upper=-0.2, effort=0.01)
    with pytest.raises(UnreachableError, match=r"none of 3 random motions .* keeps its limits; give narrower ranges"):
        kt.excitation(feeble, starts=3, columns=())


@everyday.long
def test_loops_follow_within_their_limits(monkeypatch):
    """Excite a four-bar by its crank, whose other joints stay within limits of their own."""
    monkeypatch.setattr(module, "STEPS", 4)
    bar = kt.load("four_bar").mechanism
    plain = System(bar).driven_motion({"crank": np.linspace(0.3, 1.5, 50)}).q
    k = [j.name for j in bar.joints].index("output")
    low, high = plain[:, k].min(), plain[:, k].max()
    joints = tuple(replace(j, limits=Limits(low, high)) if j.name == "output" else j for j in bar.joints)
    tight = System(replace(bar, joints=joints))
    found = kt.excitation(
        tight, actuated="crank", columns=(), starts=2, harmonics=3, position={"crank": (0.3, 1.5)}, seed=1
    )
    q = found.recording(rate=20.0).q
    assert low - 1e-9 <= q[:, k].min() and q[:, k].max() <= high + 1e-9
    assert found.joints == ("crank",)
    assert len(found.base) == 8


def test_mistakes():
    """Read what is wrong with options, and the remedy."""
    with pytest.raises(InputError, match=r"velocity has 'elbow'; the driven joints are joint1, joint2"):
        kt.excitation(ARM, velocity={"elbow": 1.0})
    with pytest.raises(InputError, match=r"position of 'joint1' is \(-2, 1\); give \(lower, upper\) within its limits"):
        kt.excitation(ARM, position={"joint1": (-2.0, 1.0)})
    with pytest.raises(InputError, match="has loops: base parameters depend on the joints whose torques are measured"):
        kt.excitation(kt.load("four_bar"))
    with pytest.raises(InputError, match="has joints with quaternions, which follow no Fourier series"):
        kt.excitation(kt.load("space_robot_3r"))
