"""What users of flexible arms do with them: targets, paths, workspaces, control and load reports."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
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
    with pytest.raises(kt.InputError, match="regressor does not know flexible bodies .*differentiate inverse_dynamics"):
        arm.base_parameters()


def test_derivatives_are_the_columns_of_a_regressor(arm):
    """Find the torques of more mass in the column of the mass of a rigid body, in which they are linear."""
    free = kt.with_free(arm, "mass.load")
    q, qd = arm.random_state(np.random.default_rng(0))
    motion = q, qd, np.ones(arm.nv)
    column = free.function("inverse_dynamics").jacobian(wrt="parameters")(*motion, [1.5])[:, 0]
    more = free.inverse_dynamics(*motion, parameters=[2.0]) - free.inverse_dynamics(*motion, parameters=[1.5])
    assert_close(0.5 * column, more, 1e-12 * np.abs(more).max(), "torques")  # 1e-14


def test_controllers_drive_the_joints_alone(arm):
    """Hold an arm by PD control of its three joints."""
    hold = kt.Hold([0.1, 0.2, 0.0])
    run = kt.simulate(arm, arm.neutral(), duration=0.05, control=kt.PDGravity(900.0, 60.0, hold))
    bent = modal_entries(arm.mechanism, 1)
    assert not run.control[:, bent].any()
    assert np.abs(run.control[:, :1]).max() > 10.0


def test_computed_torque_moves_the_joints_while_the_modes_are_free(arm):
    """Find errors of joints that decay as e'' + c e' + k e = 0 has it, under torques in the joints alone."""
    start = np.array([0.0, 0.15, 0.05])
    want, joints = np.array([0.1, 0.2, 0.0]), [0, 5, 8]
    q = arm.neutral()
    q[joints] = start
    run = kt.simulate(
        arm, q, times=np.linspace(0.0, 0.4, 9), control=kt.ComputedTorque(100.0, 20.0, kt.Hold(want)), rtol=1e-10
    )
    bent = modal_entries(arm.mechanism, 1)
    assert not run.control[:, bent].any()
    assert np.abs(run.q[:, bent]).max() > 1e-3
    expected = want + (start - want) * (1 + 10 * run.t[:, None]) * np.exp(-10 * run.t[:, None])
    assert_close(run.q[:, joints], expected, 1e-8, "joints")  # 2e-11


def test_feed_forward_follows_the_reference_while_the_modes_are_free(arm):
    """Start on a reference and stay on it by the torques of hybrid dynamics at the present modal coordinates."""
    move = kt.Cycloid([0.0, 0.0, 0.0], [0.3, -0.2, 0.4], 0.4)
    run = kt.simulate(arm, arm.neutral(), times=np.linspace(0.0, 0.4, 9), control=kt.FeedForward(move), rtol=1e-10)
    joints = [0, 5, 8]
    q, qdd = (np.array([move(t)[k] for t in run.t]) for k in (0, 2))
    assert_close(run.q[:, joints], q, 1e-7, "joints")
    wanted = np.zeros_like(run.qd)
    wanted[:, joints] = qdd
    tau = arm.hybrid_dynamics(run.q, run.qd, wanted, np.zeros_like(run.qd), driven=JOINTS, forces=True)[1]
    assert_close(run.control[:, joints], tau[:, joints], 1e-6 * np.abs(tau).max(), "torques")


def test_computed_torque_of_a_flexible_four_bar():
    """Drive the crank of a four-bar with a flexible coupler as if nothing bent."""
    bar = kt.load("flexible_four_bar")
    drive = bar.mechanism.joints[0].name
    q = bar.assemble()
    k = 0
    run = kt.simulate(
        bar, q, times=np.linspace(0.0, 0.1, 5), rtol=1e-10,
        control=kt.ComputedTorque(100.0, 20.0, kt.Hold([q[k] + 0.1]), actuated=[drive], forces=True),
    )  # fmt: skip
    expected = q[k] + 0.1 - 0.1 * (1 + 10 * run.t) * np.exp(-10 * run.t)
    assert_close(run.q[:, k], expected, 1e-6, "crank")
    with pytest.raises(kt.InputError, match="whose loops pass through flexible bodies, does not follow"):
        kt.simulate(bar, q, duration=0.1, control=kt.FeedForward(kt.Hold([q[k]]), actuated=[drive]))


@everyday.long
def test_load_reports_list_joints_and_nodes(arm):
    """List drives of joints, and bearing loads of joints and nodes, but not the modes."""
    run = kt.simulate(arm, arm.neutral(), duration=0.05, control=kt.PD(900.0, 60.0, kt.Hold([0.1, 0.2, 0.0])))
    report = kt.load_report(run)
    assert [d.name for d in report.drives] == JOINTS
    names = [b.name for b in report.bearings]
    assert names == ["shoulder", "boom.middle", "boom.tip", "elbow", "fore.tip", "wrist"]
