"""Monitors: balances close for correct runs, and do not close for manipulated ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InputError
from kinetree.model import parse
from kinetree.simulation.events import Event
from kinetree.simulation.monitors import EnergyBalance, energy_balance, limit_violations, momentum_balance
from tolerance import assert_close

TIGHT = {"rtol": 1e-12, "atol": 1e-13}


def driven(**options) -> kt.Trajectory:
    """Return a run of the Stanford arm with damping, a spring to the ground and a PD controller."""
    arm = kt.load("stanford")
    forces = [
        kt.JointDamper(arm.joints[0].name, damping=2.0),
        kt.SpringDamper("ground", arm.bodies[-1].name, (0.4, 0.2, 0.1), stiffness=30.0, damping=2.0),
    ]
    control = kt.PD([20.0] * 3 + [1.0] * 3, [4.0] * 3 + [0.05] * 3, kt.Hold([0.1, 1.0, 0.3, 0.2, 0.1, 0.0]))
    q0 = [0.0, np.pi / 2, 0.1, 0.2, 0.3, 0.4]
    return kt.simulate(arm, q0, forces=forces, control=control, **(TIGHT | {"duration": 1.0} | options))


def test_energy_is_the_work_that_was_done():
    """Close the balance of a damped, driven arm to 1e-8, and open it by a torque that did not act."""
    run = driven()
    balance = energy_balance(run)
    assert_close(balance.residual / balance.scale, np.zeros(len(run)), 1e-8, "energy")
    assert np.abs(balance.joint_work[-1]) > 0.1
    assert np.abs(balance.wrench_work[-1]) > 0.1
    assert "energy balance: largest residual" in str(balance)
    assert run.torque is not None
    wrong = energy_balance(replace(run, torque=run.torque + 0.1))
    assert wrong.error > 1e-4 > 1e3 * balance.error


def test_samples_are_too_coarse_for_a_small_vibration_that_does_the_work():
    """Damp a slider that vibrates beside a light one that is thousands of times as fast, and sample both."""
    bodies = [kt.Body("light", 1e-8), kt.Body("heavy", 1.0)]
    joints = [
        kt.Joint("x", "prismatic", "ground", "light", axis=(1.0, 0.0, 0.0)),
        kt.Joint("y", "prismatic", "ground", "heavy", axis=(0.0, 1.0, 0.0)),
    ]
    sliders = kt.System(kt.build_mechanism("sliders", bodies, joints, gravity=(0.0, 0.0, -9.81)))
    forces = [kt.JointSpring("y", 1e4, 0.0), kt.JointDamper("y", 4.0)]

    def balance(samples: int) -> EnergyBalance:
        times = np.linspace(0.0, 0.6, samples)
        return energy_balance(kt.simulate(sliders, [0.0, 0.01], [3000.0, 0.0], times=times, forces=forces))

    coarse, fine = balance(21), balance(601)
    assert np.abs(coarse.residual / coarse.scale).max() > 0.02 and coarse.too_coarse
    assert not fine.too_coarse and fine.error < 1e-7


def test_quadrature_has_sixth_order():
    """Halve the spacing of the samples and find the order of the residual."""
    counts = np.array([101, 201, 401])
    errors = [energy_balance(driven(times=np.linspace(0, 1, n), duration=None)).error for n in counts]
    slope = -np.polyfit(np.log(counts - 1), np.log(errors), 1)[0]
    assert slope > 5.0, f"slope {slope:.2f} of {errors}"


@pytest.mark.parametrize("times", [np.linspace(0.0, 10.0, 11), np.arange(12) * 2.0 * np.pi / np.sqrt(9.81)])
def test_samples_that_are_too_coarse_are_not_an_error(times):
    """Sample a damped pendulum once per swing, also in phase with it, and read that work cannot be integrated."""
    run = kt.simulate(pendulum(), [0.9], times=times, forces=[kt.JointDamper("pivot", 0.4)], rtol=1e-11)
    balance = energy_balance(run)
    assert np.abs(balance.residual / balance.scale).max() > 0.1
    assert balance.too_coarse
    assert np.isnan(balance.error)
    assert "the samples are too coarse to integrate work (accelerations at the samples" in str(balance)
    assert "simulate with more output times" in str(balance)
    fine = kt.simulate(pendulum(), [0.9], duration=10.0, forces=[kt.JointDamper("pivot", 0.4)], rtol=1e-11)
    assert not energy_balance(fine).too_coarse
    assert energy_balance(fine).error < 1e-8
    free = energy_balance(kt.simulate(pendulum(), [0.9], times=times, rtol=1e-12))
    assert not free.too_coarse
    assert free.error < 1e-9


def test_momentum_changes_by_impulse_alone():
    """Let a robot float under gravity and a wrench, its joints driven, and account for its momentum to 1e-9."""
    robot = kt.load("space_robot_3r")
    falling = kt.System(replace(robot.mechanism, gravity=(0.3, -0.2, -9.81)))
    q, qd = falling.random_state(1, (2,))
    wrench = kt.ExternalWrench(robot.bodies[1].name, (0, 0, 0.1), force=(0.4, 0.2, 0.3), moment=(0.1, 0, 0.2))
    damper = kt.JointDamper(robot.joints[2].name, damping=0.4)
    run = kt.simulate(falling, q, qd, duration=1.0, forces=[wrench, damper], **TIGHT)
    balance = momentum_balance(run)
    scale = np.abs(balance.momentum).max()
    assert_close(balance.residual / scale, np.zeros(balance.residual.shape), 1e-9, "momentum")
    assert np.abs(balance.impulse[:, -1]).max() > 1.0
    assert "N m s angular" in str(balance)
    silent = momentum_balance(replace(run, wrenches=None))
    assert np.abs(silent.residual).max() > 1e-2
    energy = energy_balance(run)
    assert energy.error < 1e-9
    assert " to " in str(energy)


def test_momentum_needs_a_floating_mechanism():
    """Read the name of the joint that holds a mechanism to the ground, or of a free joint with torques."""
    with pytest.raises(InputError, match="holds 'stanford.*' to the ground"):
        momentum_balance(driven())
    robot = kt.load("space_robot_3r")
    q, qd = robot.random_state(1)
    run = kt.simulate(robot, q, qd, duration=0.1, forces=[kt.JointDamper(robot.joints[0].name, damping=1.0)])
    with pytest.raises(InputError, match="has torques of its own; use an ExternalWrench"):
        momentum_balance(run)


def pendulum(*limits) -> kt.System:
    """Return a pendulum with limits."""
    body = kt.Body("bob", 1.0, (0.0, -1.0, 0.0))
    joint = kt.Joint("pivot", "revolute", "ground", "bob", limits=kt.Limits(*limits))
    return kt.System(kt.build_mechanism("pendulum", [body], [joint], gravity=(0, -9.81, 0)))


def test_limits_that_are_passed_are_named():
    """Find every limit that a swing exceeds, its time and its excess, and none in a small swing."""
    system = pendulum((-0.5,), (0.8,), (2.0,), (1.0,))
    control = kt.PD(0.0, 0.5, kt.Hold([0.0]))
    run = kt.simulate(system, [[1.0], [0.1]], duration=2.0, control=control)
    report = limit_violations(run)
    assert report
    assert {v.run for v in report.violations} == {(0,)}
    found = {v.what: v for v in report.violations}
    assert set(found) == {"lower", "upper", "velocity", "effort"}
    q, qd, tau = run.q[0, :, 0], run.qd[0, :, 0], run["tau"][0, :, 0]
    assert_close(found["upper"].excess, 0.2, 1e-12, "upper")
    assert_close(found["lower"].excess, -0.5 - q.min(), 1e-12, "lower")
    assert_close(found["velocity"].excess, np.abs(qd).max() - 2.0, 1e-12, "velocity")
    assert_close(found["effort"].excess, np.abs(tau).max() - 1.0, 1e-12, "effort")
    assert found["upper"].t_first == found["upper"].t_worst == 0.0
    assert found["lower"].t_first == run.t[np.argmax(q < -0.5)]
    assert "run 0: pivot: upper limit 0.8 exceeded by 0.2 at t = 0 s, first at t = 0 s, in" in str(report)
    calm = limit_violations(run.run(1))
    assert not calm
    assert str(calm) == "no limit is exceeded"


def test_limits_may_be_formulas(tmp_path):
    """Compare a run with limits of parameters at its own values of them, in the report and in a figure."""
    body = kt.Body("bob", 1.0, (0.0, -1.0, 0.0))
    limits = kt.Limits((parse("-a"),), (parse("2*a"),))
    joint = kt.Joint("pivot", "revolute", "ground", "bob", limits=limits)
    parameters = [kt.Parameter("a", 5.0, free=True)]
    system = kt.System(kt.build_mechanism("pendulum", [body], [joint], gravity=(0, -9.81, 0), parameters=parameters))
    run = kt.simulate(system, [1.0], duration=2.0)
    assert not limit_violations(run)
    run = kt.simulate(system, [1.0], duration=2.0, parameters={"a": 0.3})
    assert {v.what: v.limit for v in limit_violations(run).violations} == {"lower": -0.3, "upper": 0.6}
    run.plot(["q"], tmp_path / "q.png")


def test_efforts_are_those_of_control_alone():
    """Find an excess effort that friction hides, and none if stops push without control."""
    system = pendulum((-0.3,), (0.2,), (), (6.0,))
    push = kt.TorqueFunction(lambda t, q, qd: [10.0])
    weak = kt.TorqueFunction(lambda t, q, qd: [-5.0])
    hidden = kt.simulate(system, [0.0], [0.1], duration=0.01, control=push, forces=[kt.JointFriction("pivot", 5.0)])
    assert np.abs(hidden["tau"]).max() < 6.0
    assert_close(hidden["control"], np.full((len(hidden), 1), 10.0), 0.0, "control")
    report = limit_violations(hidden)
    assert [v.what for v in report.violations if v.what == "effort"] == ["effort"]
    assert_close(report.violations[0].excess, 4.0, 1e-12, "excess")
    assert report.summary().startswith(
        "1 limit is exceeded; the most by pivot: effort limit 6 exceeded by 4 at t = 0 s"
    )
    stopped = kt.simulate(system, [0.0], [3.0], duration=0.5, forces=[kt.JointStops("pivot", stiffness=1e5)])
    assert np.abs(stopped["tau"]).max() > 6.0
    assert not [v for v in limit_violations(stopped).violations if v.what == "effort"]
    kept = kt.simulate(system, [0.0], duration=0.01, control=weak)
    assert str(limit_violations(kept)) == "no limit is exceeded"
    assert limit_violations(kept).summary() == ""


def test_limits_are_kept_within_rounding():
    """Accept an effort that exceeds the limit by rounding, and report one that exceeds it by 1e-5."""
    for share, passed in ((1.0 + 1e-9, False), (1.0 + 1e-5, True)):
        run = kt.simulate(
            pendulum((), (), (), (0.7,)),
            [0.1],
            duration=0.01,
            control=kt.TorqueFunction(lambda t, q, qd, s=share: [0.7 * s]),
        )
        assert bool(limit_violations(run)) is passed


def test_a_run_that_knows_no_control_says_so():
    """Compare all torques with the limits for a run without recorded control, and read the note."""
    system = pendulum((), (), (), (1.0,))
    run = kt.Trajectory(system, [0.0, 0.1], [[0.1], [0.2]], [[0.0], [0.1]], torque=[[0.5], [1.5]])
    report = limit_violations(run)
    assert [v.what for v in report.violations] == ["effort"]
    assert str(report).endswith("friction and stops included: the run does not record control apart.")


def test_monitors_take_runs_that_stopped():
    """Balance the finite part of a run that ended early in a batch."""
    control = kt.PD(0.0, 0.5, kt.Hold([0.0]))
    stop = Event(lambda now: now.q[0], stop=True)
    run = kt.simulate(pendulum(), [[1.0], [0.0]], duration=2.0, control=control, events=[stop], rtol=1e-11)
    balance = energy_balance(run)
    assert np.isnan(balance.residual[0, -1])
    assert np.isfinite(balance.residual[1]).all()
    assert balance.error < 1e-8
