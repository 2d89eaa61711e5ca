"""Margins of motors and gearboxes, by hand for a pendulum and for a sinusoidal motion."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.reports import load_report
from kinetree.reports.candidates import available, candidates
from kinetree.reports.catalogue import Catalogue, Part
from kinetree.reports.loads import drive_loads
from loaded_runs import SPEED, spinner, spinning
from tolerance import assert_close

MOTOR = Part("motor", "A", peak=2.0, continuous=0.9, max_speed=40.0, base_speed=25.0, inertia=3e-4, mass=1.0)
GEAR = Part("gearbox", "G", peak=30.0, continuous=11.0, max_speed=90.0, base_speed=90.0, inertia=1e-4, ratio=7.0,
            efficiency=0.8, mass=0.5)  # fmt: skip
W, SWING = 2.9, 0.8


def oscillating(**joint) -> kt.Trajectory:
    """Return the spinner in a sinusoidal motion q = SWING sin(W t), one period."""
    system = spinner(**joint)
    t = np.linspace(0.0, 2.0 * np.pi / W, 801)
    q, qd, qdd = (
        x[:, None] for x in (SWING * np.sin(W * t), SWING * W * np.cos(W * t), -SWING * W * W * np.sin(W * t))
    )
    tau = system.inverse_dynamics(q, qd, qdd)
    return kt.Trajectory(system, t, q, qd, torque=tau, accelerations=qdd)


def test_margins_of_a_constant_speed():
    """Find the margins of a motor with a gearbox at constant speed, where no rotor is accelerated."""
    (drive,) = drive_loads(spinning(2001))
    only = next(c for c in candidates(drive, Catalogue((MOTOR, GEAR))) if c.gear is not None)
    motor = np.where(drive.effort >= 0, drive.effort / 0.8, drive.effort * 0.8) / 7.0
    speed = 7.0 * SPEED
    assert_close(only.margin("motor speed").value, 40.0 / speed, 1e-12, "speed")
    assert_close(only.margin("motor peak").value, 2.0 / np.abs(motor).max(), 1e-12, "peak")
    assert_close(only.margin("motor continuous").value, 0.9 / np.sqrt((motor**2).mean()), 1e-2, "continuous")
    assert_close(only.margin("gearbox peak").value, 30.0 / np.abs(drive.effort).max(), 1e-12, "gearbox peak")
    assert_close(only.margin("gearbox continuous").value, 11.0 / drive.continuous, 1e-9, "gearbox continuous")
    assert_close(only.margin("gearbox speed").value, 90.0 / speed, 1e-12, "gearbox speed")
    assert (only.name, only.mass, only.acceleration) == ("A + G", 1.5, 0.0)
    assert_close(only.reflected, 49.0 * 4e-4, 1e-15, "reflected inertia")
    assert only.binding.value == min(m.value for m in only.margins)
    assert only.margin("motor peak").t == drive.t[int(np.argmax(np.abs(motor)))]
    assert only.margin("motor continuous").t is None


@pytest.mark.parametrize("armature", [0.0, 0.21])
def test_the_rotor_is_accelerated_once(armature):
    """Add the rotor's acceleration to the load, in place of the rotor that the model has."""
    run = oscillating(armature=(armature,)) if armature else oscillating()
    report = load_report(run, catalogue=Catalogue((MOTOR, GEAR)))
    bare = drive_loads(oscillating())[0]
    geared = next(c for c in report.candidates if c.gear is not None)
    through = np.where(bare.effort * bare.speed >= 0, bare.effort / 0.8, bare.effort * 0.8) / 7.0
    torque = through + 7.0 * 4e-4 * bare.acceleration
    shares = available(MOTOR, 7.0 * np.abs(bare.speed)) / np.abs(torque)
    assert_close(geared.margin("motor peak").value, shares.min(), 1e-9, "peak margin")
    assert geared.margin("motor peak").t == bare.t[int(np.argmin(shares))]
    assert_close(geared.acceleration, 49.0 * 4e-4 * SWING * W * W, 1e-12, "acceleration load")


def test_peak_torque_falls_beyond_the_base_speed():
    """Find full torque up to the base speed, half of it midway to the largest speed, and none beyond."""
    assert_close(available(MOTOR, np.array([0.0, 25.0, 32.5, 40.0, 50.0])), [2.0, 2.0, 1.0, 0.0, 0.0], 1e-15, "torque")


def test_ranking_prefers_light_parts_that_fit():
    """Rank motors: the lightest that fits first, then those that do not fit by their margin."""

    def motor(name: str, peak: float, mass: float | None) -> Part:
        return Part("motor", name, peak, peak / 2.0, 50.0, 50.0, 0.0, mass=mass)

    (drive,) = drive_loads(spinning())
    parts = (motor("strong", 90.0, 5.0), motor("light", 30.0, 2.0), motor("weak", 1.0, 0.1), motor("weaker", 0.5, 0.1))
    ranked = candidates(drive, Catalogue(parts))
    assert [(c.name, c.fits) for c in ranked] == [("light", True), ("strong", True), ("weak", False), ("weaker", False)]
    assert [c.fits for c in candidates(drive, Catalogue(parts), safety=30.0)] == [False] * 4
    unweighed = (motor("strong", 90.0, None), motor("light", 30.0, 2.0))
    assert [c.name for c in candidates(drive, Catalogue(unweighed))] == ["light", "strong"]


def test_a_motor_that_is_too_slow_fails_by_its_speed():
    """Drive a joint faster than a motor can turn: the speed binds, not the torque that is left there."""
    (drive,) = drive_loads(spinning())
    slow = Part("motor", "slow", 50.0, 50.0, 0.5 * SPEED, 0.4 * SPEED, 0.0)
    (found,) = candidates(drive, Catalogue((slow,)))
    assert (found.binding.limit, found.fits) == ("motor speed", False)
    assert_close(found.binding.value, 0.5, 1e-12, "margin")


def test_translations_take_screws():
    """Offer screws alone for a slide."""
    body = kt.Body("b", 2.0, inertia=(0.1, 0.1, 0.1, 0.0, 0.0, 0.0))
    system = kt.System(kt.build_mechanism("slide", [body], [kt.Joint("s", "prismatic", kt.GROUND, "b")]))
    t = np.linspace(0.0, 1.0, 21)
    run = kt.Trajectory(system, t, 0.01 * t[:, None], np.full((21, 1), 0.01), torque=np.full((21, 1), 19.62))
    screw = Part("screw", "S", 900.0, 300.0, 300.0, 300.0, ratio=2.0 * np.pi / 0.005, efficiency=0.9)
    report = load_report(run, catalogue=Catalogue((MOTOR, GEAR, screw)))
    (found,) = report.ranking("s")
    assert found.name == "A + S"
    assert_close(found.margin("motor peak").needed, 19.62 / 0.9 * 0.005 / (2.0 * np.pi), 1e-12, "motor torque")
    assert "no screw for this translation" in load_report(run, catalogue=Catalogue((MOTOR, GEAR))).words[0]
