"""Loads of drives, against a pendulum that rotates at constant speed."""

from __future__ import annotations

import numpy as np

import everyday
import kinetree as kt
from kinetree.reports.loads import drive_loads
from loaded_runs import ARM, GRAVITY, MASS, SPEED, reaction, spinner, spinning
from tolerance import assert_close

AMPLITUDE = MASS * ARM * float(np.hypot(*GRAVITY[:2]))
"""The amplitude of the drive's torque, a sinusoid of the angle [N m]."""


def test_a_pendulum_at_constant_speed():
    """Find peak, RMS, power, energies and duty of a sinusoidal torque."""
    (d,) = drive_loads(spinning(4001))
    assert (d.name, d.unit, d.speed_unit, d.driven, d.quantity) == ("hinge", "N m", "rad/s", True, "torque")
    assert_close(abs(d.peak.value), AMPLITUDE, 1e-6 * AMPLITUDE, "peak")
    assert_close(d.continuous, AMPLITUDE / np.sqrt(2.0), 1e-10, "continuous")
    assert_close([d.peak_power.value, d.peak_braking.value], [AMPLITUDE * SPEED] * 2, 1e-5, "powers")
    assert_close([d.delivered, d.regenerated], [2.0 * AMPLITUDE] * 2, 1e-9, "energies")
    assert_close(d.mean_power, 0.0, 1e-10, "mean power")
    assert_close([d.motoring, d.braking], [0.5, 0.5], 1e-6, "shares")
    assert_close(d.duty, 1.0 - 2.0 * np.arcsin(0.05) / np.pi, 1e-5, "duty")
    assert_close(d.rms_speed, SPEED, 1e-12, "RMS speed")
    assert (d.peak_speed.value, d.thermal) == (SPEED, None)


def test_the_drive_of_a_simulation_has_the_same_loads():
    """Drive the pendulum in a simulation and find the torque in closed form."""
    t = np.linspace(0.0, 1.3, 27)
    run = kt.simulate(spinner(), times=t, control=kt.Driven("hinge", kt.Hold(0.0, speed=SPEED)))
    (d,) = drive_loads(run)
    assert_close(d.effort, reaction(t)[0][:, 2], 1e-12 * AMPLITUDE, "torque")


@everyday.long
def test_the_time_constant_of_a_motor_raises_the_continuous_load():
    """Heat a motor that follows the torque quickly."""
    (slow,), (quick,) = (drive_loads(spinning(), thermal_time=x) for x in (1e4, 0.2))
    assert slow.thermal is not None and quick.thermal is not None
    assert_close(slow.thermal, slow.continuous, 1e-3, "slow motor")
    assert slow.continuous < quick.thermal < AMPLITUDE


def test_joints_without_torque_have_no_drive():
    """Drive the crank of a four-bar alone."""
    loads = drive_loads(kt.load("four_bar").cycle("crank", speed=4.0, samples=37))
    assert [d.driven for d in loads] == [True, False, False]
    assert loads[1].continuous == loads[1].delivered == loads[1].duty == 0.0
    assert loads[1].peak_speed.value != 0.0
