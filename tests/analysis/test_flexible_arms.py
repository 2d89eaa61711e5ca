"""What users of flexible arms do with them: targets, paths, workspaces, control and load reports."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from flexible_mechanisms import two_link_arm
from kinetree.model.flexible import modal_entries
from tolerance import assert_close

JOINTS = ["shoulder", "elbow", "wrist"]


@pytest.fixture(scope="module")
def arm() -> kt.System:
    """Return an arm with two flexible links."""
    return two_link_arm()


def test_inverse_kinematics_leaves_the_shapes_as_they_are(arm):
    """Reach a target with straight links, and with the bent links of a start, by the joints alone."""
    bent = modal_entries(arm.mechanism, 0)
    q = arm.neutral()
    q[[0, 5, 8]] = 0.4, 0.9, -0.3
    target = arm.pose(q, "tool")
    found = arm.inverse_kinematics(target, "tool")
    assert not found.q[bent].any()
    assert found.nullspace.shape == (arm.nv, 0)
    assert len(arm.inverse_kinematics(target, "tool", all=True)) >= 1
    q[bent] = 0.02
    loaded = arm.pose(q, "tool")
    again = arm.inverse_kinematics(loaded, "tool", q0=q + np.where(q == 0.02, 0.0, 0.05))
    assert_close(again.q[bent], np.full(6, 0.02), 0.0, "shapes")
    assert_close(arm.pose(again.q, "tool"), loaded, 1e-11, "pose")


def test_paths_and_workspaces_are_those_of_the_joints(arm):
    """Follow a straight line, and reach points, with the links undeformed."""
    bent = modal_entries(arm.mechanism, 1)
    q = arm.neutral()
    q[[0, 5]] = 0.4, 0.9
    start = arm.pose(q, "tool")[:3, 3]
    path = arm.cartesian_motion(
        np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.2]]) + start, "tool", duration=1.0, samples=11, q0=q
    )
    assert np.abs(path.qd[:, bent]).max() < 1e-14
    assert np.abs(path.qd).max() > 0.05
    space = arm.workspace("tool", samples=40)
    assert not space.q[:, modal_entries(arm.mechanism, 0)].any()


def test_regressors_are_refused(arm):
    """Refuse regressors: torques of flexible bodies are not linear in ten numbers each."""
    still = np.zeros(arm.nv)
    with pytest.raises(kt.InputError, match=r"regressor does not know flexible bodies .*not linear in ten numbers"):
        arm.regressor(arm.neutral(), still, still)
    with pytest.raises(kt.InputError, match="energy_regressor does not know flexible bodies"):
        arm.energy_regressor(arm.neutral(), still)
    with pytest.raises(kt.InputError, match="regressor does not know flexible bodies"):
        arm.base_parameters()


def test_controllers_drive_the_joints_alone(arm):
    """Hold an arm by PD control of its three joints, and refuse torques that no drive of the joints can give."""
    hold, refused = kt.Hold([0.1, 0.2, 0.0]), r"no torque in the joints gives flexible bodies such as 'boom\.elastic'"
    run = kt.simulate(arm, arm.neutral(), duration=0.05, control=kt.PDGravity(900.0, 60.0, hold))
    bent = modal_entries(arm.mechanism, 1)
    assert not run.control[:, bent].any()
    assert np.abs(run.control[:, :1]).max() > 10.0
    for control in (kt.ComputedTorque(100.0, 20.0, hold), kt.FeedForward(hold)):
        with pytest.raises(kt.InputError, match=refused):
            kt.simulate(arm, arm.neutral(), duration=0.05, control=control)


def test_load_reports_list_joints_and_nodes(arm):
    """List drives of joints, and bearing loads of joints and nodes, but not the modes."""
    run = kt.simulate(arm, arm.neutral(), duration=0.05, control=kt.PD(900.0, 60.0, kt.Hold([0.1, 0.2, 0.0])))
    report = kt.load_report(run)
    assert [d.name for d in report.drives] == JOINTS
    names = [b.name for b in report.bearings]
    assert names == ["shoulder", "boom.middle", "boom.tip", "elbow", "fore.tip", "wrist"]
