"""Driven joints: closed-form kinematics, momentum, torques of actuation, energy, batches, and every method."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.model import GROUND
from planar_loops import at, chain, free_rod
from planar_loops import rod as rod_to_ground
from tolerance import assert_close

CRANK, ROD, OFFSET = 0.21, 0.53, 0.07
"""Lengths of a slider-crank [m]; the slider runs beside the axis of the crank."""

UPRIGHT = kt.Placement((0.0, OFFSET, 0.0), ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0)))
"""A frame of the ground whose z axis is the normal of the slider's path."""


def slider_crank(**limits) -> kt.System:
    """Return a crank and a rod whose tip stays on a line."""
    line = kt.Loop("line", "point_on_plane", GROUND, "b1", UPRIGHT, at(ROD))
    arm = chain(CRANK, ROD, loops=[line], guess=[("j0", 0.4), ("j1", -0.6)]).mechanism
    joints = [replace(j, limits=kt.Limits(**limits)) if j.name == "j0" else j for j in arm.joints]
    return kt.System(replace(arm, joints=tuple(joints), gravity=(0.3, -9.81, 0.0)))


def rod_motion(angle, speed, gain):
    """Return angle, velocity and acceleration of the rod relative to the crank, in closed form."""
    s, c = np.sin(angle), np.cos(angle)
    phi = np.arcsin((OFFSET - CRANK * s) / ROD)
    rate = -CRANK * c * speed / (ROD * np.cos(phi))
    curve = CRANK * s * speed**2 - CRANK * c * gain + ROD * np.sin(phi) * rate**2
    return phi - angle, rate - speed, curve / (ROD * np.cos(phi)) - gain


@pytest.mark.parametrize(
    "reference", everyday.some([kt.Hold(0.4, speed=9.3), kt.Cosine(0.8, 7.0, phase=0.3)]), ids=["speed", "cosine"]
)
@pytest.mark.parametrize("method", [{}, {"dt": 2e-3}], ids=["dop853", "rk4"])
def test_a_driven_slider_crank_moves_as_its_closed_form(reference, method):
    """Drive the crank, and find position, velocity and acceleration of the rod, over full revolutions."""
    arm = slider_crank()
    run = kt.simulate(arm, times=np.linspace(0.0, 1.3, 131), control=kt.Driven("j0", reference), **method)
    assert run.finished
    q, qd, qdd = (np.broadcast_to(x[0], run.t.shape) for x in reference(run.t))
    assert_close(run.q[:, 0], q, 4e-15 * np.abs(q).max(), "the driven coordinate")
    assert_close(run.qd[:, 0], qd, 4e-15 * np.abs(qd).max() * 9.0, "the driven velocity")
    for name, found, expected in zip(
        "q qd qdd".split(), (run.q, run.qd, run["qdd"]), rod_motion(q, qd, qdd), strict=True
    ):
        turns = 2 * np.pi * np.round((found[:, 1] - expected) / (2 * np.pi)) if name == "q" else 0.0
        assert_close(found[:, 1] - turns, expected, 2e-12 * np.abs(expected).max(), f"{name} of the rod")


def test_a_driven_four_bar_moves_as_its_closed_form():
    """Drive the crank of a crank-rocker, and find the coupler's angle and velocity by the law of cosines."""
    a, b, c, ground = 0.21, 0.5, 0.47, np.array([0.52, 0.11])
    arm = chain(a, b, loops=[rod_to_ground("rocker", c, *ground)], guess=[("j0", 0.3), ("j1", 0.6)])
    run = kt.simulate(arm, times=np.linspace(0.0, 1.0, 101), control=kt.Driven("j0", kt.Hold(0.3, speed=8.1)))
    angle, speed = 0.3 + 8.1 * run.t, 8.1
    A = a * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    way = ground - A
    L = np.linalg.norm(way, axis=-1)
    corner = np.arccos((b**2 + L**2 - c**2) / (2 * b * L))
    side = np.sign(np.sin(run.q[0, 0] + run.q[0, 1] - np.arctan2(way[0, 1], way[0, 0])))
    phi = np.arctan2(way[:, 1], way[:, 0]) + side * corner
    along = run.q.sum(axis=-1)
    assert_close(np.sin(along - phi), np.zeros(101), 1e-12, "angle of the coupler")
    arm_c = A + b * np.stack([np.cos(phi), np.sin(phi)], axis=-1) - ground
    normal, dA = (np.stack([-np.sin(x), np.cos(x)], axis=-1) for x in (phi, angle))
    rate = -(arm_c * dA).sum(axis=-1) * a * speed / (b * (arm_c * normal).sum(axis=-1))
    assert_close(run.qd.sum(axis=-1), rate, 1e-11 * np.abs(rate).max(), "rate of the coupler")
    assert np.abs(run["gap"]).max() < 2e-13


@everyday.long
def test_the_torque_of_a_drive_is_that_of_actuated_inverse_dynamics():
    """Compare run["control"] with the torques of the same motion, and close the energy balance with a damper."""
    arm = slider_crank()
    drive, damper = kt.Driven("j0", kt.Cycloid(0.4, 5.0, 0.9)), kt.JointDamper("j0", 0.03)
    run = kt.simulate(arm, duration=0.9, control=drive, forces=damper)
    assert kt.energy_balance(run).error < 1e-9  # 3e-12
    assert run["reactions"].shape == (1001, 2, 6)  # also at rest, where velocities are rounding errors
    tau = arm.inverse_dynamics(run.q, run.qd, run["qdd"], actuated="j0")
    scale = np.abs(tau).max()
    assert_close(run["tau"], tau, 1e-11 * scale, "all torques")
    assert_close(run["control"][:, 0], tau[:, 0] + 0.03 * run.qd[:, 0], 1e-11 * scale, "the drive against the damper")
    assert_close(run["control"][:, 1], np.zeros(len(run)), 0.0, "no drive in the rod")
    assert_close(run["tracking_error"][:, 0], np.zeros(len(run)), 1e-14, "tracking error")
    assert np.isnan(run["reference"][:, 1]).all()


@everyday.long
def test_limits_of_effort_are_checked_against_the_drive():
    """Drive faster than the effort limit of the joint allows, and read the violation."""
    run = kt.simulate(slider_crank(effort=(0.5,)), duration=0.5, control=kt.Driven("j0", kt.Hold(speed=20.0)))
    (found,) = kt.limit_violations(run).violations
    assert (found.joint, found.what, found.limit) == ("j0", "effort", 0.5)
    assert_close(found.worst, run["control"][np.argmax(np.abs(run["control"][:, 0])), 0], 0.0, "the largest torque")


@everyday.long
def test_a_floating_arm_keeps_its_momentum():
    """Prescribe all joints of a free-floating robot, and find linear and angular momentum constant to 1e-10."""
    arm = kt.load("space_robot_dual_arm")
    joints = {j.name: kt.Cycloid(0.1 * k, 1.3 - 0.4 * k, 2.0) for k, j in enumerate(arm.joints[1:])}
    run = kt.simulate(arm, times=np.linspace(0.0, 2.0, 201), control=kt.Driven(joints), dt=1e-3)
    still = run.qd.copy()
    still[:, :6] = 0.0
    assert np.abs(arm.momentum(run.q, still)).max() > 100.0  # without the motion of the base
    assert_close(run["momentum"], np.zeros((201, 6)), 1e-10, "momentum")  # 5e-11 N m s and N s
    assert np.abs(run.q[-1, :3]).max() > 1e-2  # the base moves
    assert_close(run["control"][:, :6], np.zeros((201, 6)), 0.0, "no drive in the base")
    again = arm.hybrid_dynamics(run.q, run.qd, run["qdd"], np.zeros(12), driven=list(joints))
    assert_close(again[1], run["tau"], 1e-10 * np.abs(again[1]).max(), "torques of hybrid dynamics")
    assert kt.energy_balance(run).error < 1e-8


LATER = [pytest.param(method, marks=pytest.mark.slow) for method in ("gauss", "midpoint", "scipy")]


@pytest.mark.parametrize("method", everyday.some(["rk4", "euler", "dopri5", "bdf", *LATER]))
def test_every_method_follows_the_drive_to_rounding(method):
    """Run a tree with a driven and a free joint by every method, and find the drive exact and the rest near."""
    arm = kt.load("planar_3r")
    control = [kt.Driven("joint2", kt.Cosine(0.7, 3.0, offset=0.2)), kt.PD(4.0, 0.7, kt.Hold(0.1), joints=["joint3"])]
    fixed = {"dt": 1e-3} if method in ("rk4", "euler", "gauss", "midpoint") else {"rtol": 1e-8}
    times = np.linspace(0.0, 1.0, 21)
    run = kt.simulate(arm, times=times, control=control, method=method, **fixed)
    best = kt.simulate(arm, times=times, control=control, rtol=1e-11, atol=1e-13)
    assert_close(run.q[:, 1], 0.7 * np.cos(3.0 * times) + 0.2, 4e-15, "the driven joint")
    order = {"euler": 5e-3, "midpoint": 1e-5}.get(method, 1e-6)  # 3e-3 by euler
    assert_close(run.q, best.q, order, f"free joints by {method}")
    wanted = 4.0 * (0.1 - run.q[:, 2]) - 0.7 * run.qd[:, 2]
    assert_close(run["control"][:, 2], wanted, 1e-13, "the torque of PD control")
    assert_close(run["control"][:, 0], np.zeros(21), 0.0, "no torque in the free joint")
    known = np.zeros((21, 3))
    known[:, 1] = -6.3 * np.cos(3.0 * times)
    expected = arm.hybrid_dynamics(run.q, run.qd, known, run["tau"], driven="joint2")
    assert_close(run["qdd"], expected[0], 1e-12 * np.abs(expected[0]).max(), "accelerations")
    assert_close(run["tau"], expected[1], 1e-12 * np.abs(expected[1]).max(), "torques")


def test_batches_of_starts_are_those_of_single_runs():
    """Let a free-floating robot start from several states of its base, and find the bits of each run alone."""
    arm = kt.load("space_robot_3r")
    joints = {j.name: kt.Cycloid(0.2, 1.0, 1.0) for j in arm.joints[1:]}
    rng, n = np.random.default_rng(3), 4
    q0, qd0 = np.tile(arm.neutral(), (n, 1)), np.zeros((n, arm.nv))
    q0[:, :3], q0[:, 7:], qd0[:, :6] = rng.normal(size=(n, 3)), 0.2, rng.normal(size=(n, 6))
    options = {"times": np.linspace(0.0, 1.0, 11), "control": kt.Driven(joints)}
    whole = kt.simulate(arm, q0, qd0, **options)
    for k in range(n):
        one = kt.simulate(arm, q0[k], qd0[k], **options)
        assert np.array_equal(whole.q[k], one.q)
        assert np.array_equal(whole["control"][k], one["control"])


def test_batches_of_parameters_are_those_of_single_runs():
    """Drive mechanisms of several rod lengths in one batch, from starts that are assembled for each."""
    arm = free_rod()
    lengths, drive = np.array([[0.58], [0.6], [0.63]]), kt.Driven("j0", kt.Cosine(0.2, 5.0, offset=0.4))
    whole = kt.simulate(arm, duration=0.5, control=drive, parameters=lengths, dt=2e-3)
    assert whole.finished
    for k, own in enumerate(lengths):
        one = kt.simulate(arm, duration=0.5, control=drive, parameters=own, dt=2e-3)
        assert np.array_equal(whole.q[k], one.q)
        assert np.array_equal(whole["control"][k], one["control"])
    assert np.abs(whole.q[0, :, 1] - whole.q[2, :, 1]).min() > 1e-3


@everyday.long
def test_partly_driven_loops_leave_the_others_free():
    """Drive one crank of a five-bar, let the other swing, and find the energy balance closed."""
    arm = kt.load("five_bar")
    q = arm.assemble()
    k = [j.name for j in arm.joints].index("left_crank")
    drive = kt.Driven("left_crank", kt.Cosine(0.3, 4.0, phase=np.pi / 2, offset=float(q[k])))
    run = kt.simulate(arm, duration=0.6, control=drive)
    assert run.finished
    assert kt.energy_balance(run).error < 1e-8
    assert np.abs(run["gap"]).max() < 2e-13
    assert_close(run.q[:, k], q[k] + 0.3 * np.cos(4.0 * run.t + np.pi / 2), 1e-15, "the driven crank")
    assert np.ptp(run.q[:, [j.name for j in arm.joints].index("right_crank")]) > 0.05


def test_functions_and_tables_are_references():
    """Drive by a user's function and by a table, with all joints driven and nothing left to integrate."""
    arm = kt.load("planar_2r")
    t = np.linspace(0.0, 1.0, 7)
    table = kt.Table(t, 0.3 * t**2, ends="natural")
    names = [j.name for j in arm.joints]
    run = kt.simulate(
        arm,
        duration=1.0,
        control=[kt.Driven(names[0], lambda t: ([t * t], [2.0 * t], [2.0])), kt.Driven(names[1], table)],
    )
    assert_close(run.q, np.stack([run.t**2, table(run.t)[0][0]], axis=-1), 1e-15, "both motions")
    tau = arm.inverse_dynamics(run.q, run.qd, run["qdd"])
    assert_close(run["control"], tau, 1e-13 * np.abs(tau).max(), "inverse dynamics")


def test_events_and_axes_of_joints():
    """Drive one axis of a planar joint, and stop at an event on it."""
    body = kt.Body("plate", 1.7, (0.1, 0.2, 0.0), (0.3, 0.2, 0.4, 0.0, 0.0, 0.0))
    arm = kt.System(
        kt.build_mechanism("sledge", [body], [kt.Joint("base", "planar", GROUND, "plate")], gravity=(0.0, 0.0, 0.0))
    )
    axis = arm.mechanism.joints[0].name + ".x"
    event = kt.Event(lambda now: now.q[0] - 0.05, stop=True)
    run = kt.simulate(arm, duration=1.0, control=kt.Driven(axis, kt.Hold(speed=0.37)), events=event)
    assert_close(run.t[-1], 0.05 / 0.37, 1e-9, "time of the event")
    assert_close(run.q[:, 0], 0.37 * run.t, 1e-15, "the driven axis")


def test_refuses_what_cannot_be_driven():
    """Read errors for joints and references that do not fit, and for control that Driven cannot join."""
    arm, floating = kt.load("planar_3r"), kt.load("space_robot_3r")
    hold = kt.Hold(0.1)
    for what, message, system in (
        (lambda: kt.Driven("joint1"), "the reference of the driven joint 'joint1' is None", arm),
        (lambda: kt.Driven(3, hold), "the joint of Driven is 3", arm),
        (lambda: kt.Driven({}), "Driven has no joints", arm),
        (lambda: kt.Driven({"joint1": hold}, hold), "leave the second one out", arm),
        (lambda: kt.Driven("joint9", hold), "no joint 'joint9'", arm),
        (lambda: [kt.Driven("joint1", hold), kt.Driven("joint1", hold)], "'joint1' is driven twice", arm),
        (lambda: kt.Driven("joint1", kt.Hold([0.1, 0.2])), "returns 2 coordinates; expected 1", arm),
        (lambda: kt.Saturated(kt.Driven("joint1", hold), 1.0), "Driven cannot be inside another controller", arm),
        (lambda: [kt.Driven("joint1", hold), kt.Sampled(kt.PD(1.0, 1.0, hold), 50.0)], "Sampled computes torques", arm),
        (lambda: kt.Driven("base", hold), "a free joint has 7 coordinates for 6 velocities", floating),
    ):
        with pytest.raises(kt.KinetreeError, match=message):
            kt.simulate(system, duration=0.1, control=what())
    with pytest.raises(kt.InputError, match=r"q0 has joint1 = 0, but its drive has 0.1 at t = 0 s; leave q0 out"):
        kt.simulate(arm, np.zeros(3), duration=0.1, control=kt.Driven("joint1", hold))
    with pytest.raises(kt.InputError, match=r"qd0 has joint1 = 1, but its drive has 0 at t = 0 s; leave qd0 out"):
        kt.simulate(arm, None, np.ones(3), duration=0.1, control=kt.Driven("joint1", hold))
    rope = kt.rope(8.0, n=80, mass_per_metre=0.3, radius=0.01)
    with pytest.raises(kt.InputError, match="80 bodies are too many for driven joints"):
        kt.simulate(rope, duration=0.1, dt=1e-3, control=kt.Driven(rope.joints[0].name, kt.Hold([0.0, 0.0])))


def belted() -> kt.System:
    """Return a planar arm whose last two joints are coupled."""
    arm = kt.load("planar_3r").mechanism
    return kt.System(replace(arm, couplings=(kt.Coupling("belt", "joint3", (("joint2", -0.5),), 0.2),)))


@pytest.mark.parametrize("method", everyday.some([{"rtol": 1e-10}, {"dt": 1e-3}]), ids=["dop853", "rk4"])
@pytest.mark.parametrize("also", [{}, {"joint1": kt.Hold(0.1, speed=1.3)}], ids=["alone", "with a joint"])
def test_the_offset_of_a_coupling_is_driven(also, method):
    """Move the offset of a coupling: its drive acts in both joints, in the ratio of the coupling, and does the work."""
    belt = kt.Cosine(0.3, 4.0, offset=0.1)
    run = kt.simulate(belted(), duration=1.0, control=kt.Driven({"belt": belt, **also}), **method)
    assert run.finished
    x, v, a = (np.broadcast_to(entries[0], run.t.shape) for entries in belt(run.t))
    for found, expected, name in ((run.q, x, "offset"), (run.qd, v, "rate"), (run["qdd"], a, "acceleration")):
        assert_close(found[:, 2] + 0.5 * found[:, 1], expected, 1e-11, f"{name} of the coupling")
    open_arm = kt.load("planar_3r")
    assert run.system.mechanism == open_arm.mechanism
    qdd = open_arm.forward_dynamics(run.q, run.qd, run["tau"])
    assert_close(run["qdd"], qdd, 1e-10 * np.abs(qdd).max(), "motion of the open arm under the torques")
    assert_close(run["control"][:, 1], 0.5 * run["control"][:, 2], 1e-14, "torques in the ratio of the coupling")
    assert np.abs(run["control"][:, 2]).max() > 0.1
    assert kt.energy_balance(run).error < 1e-8
    assert run["reactions"].shape == (1001, 3, 6)


def test_refuses_a_coupling_that_other_drives_move():
    """Drive a coupling and both of its joints, the coupling twice, and start beside its offset."""
    arm, hold = belted(), kt.Hold(0.2)
    three = {"belt": hold, "joint2": kt.Hold(0.1), "joint3": kt.Hold(0.15)}
    with pytest.raises(
        kt.InputError, match=r"the driven coupling 'belt' when joint 'joint2', joint 'joint3' moves, at t = 0"
    ):
        kt.simulate(arm, duration=1.0, control=kt.Driven(three))
    with pytest.raises(kt.InputError, match="the coupling 'belt' is driven twice; give it one reference"):
        kt.simulate(arm, duration=1.0, control=[kt.Driven("belt", hold), kt.Driven("belt", hold)])
    with pytest.raises(kt.InputError, match="q0 does not close coupling 'belt': off by -0.2 rad"):
        kt.simulate(arm, np.zeros(3), duration=1.0, control=kt.Driven("belt", hold))
