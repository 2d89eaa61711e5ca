"""Causes of the drives' torques against the ledger of single states, and the balance of energy."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.reports import load_report
from kinetree.simulation.monitors import spline
from sprung_mechanisms import SPRUNG
from tolerance import assert_close

SWINGER = """
[mechanism]
name = "swinger"
gravity = [0.4, -0.3, -9.7]
[parameters]
rate = { value = 41.0, free = true }
[[body]]
name = "upper"
mass = 2.1
com = [0.2, 0.03, -0.01]
inertia = [0.01, 0.02, 0.03, 0.001, 0, 0]
[[body]]
name = "lower"
mass = 1.3
com = [0.15, 0.0, 0.02]
inertia = [0.01, 0.02, 0.02, 0, 0, 0]
[[joint]]
name = "shoulder"
kind = "revolute"
parent = "ground"
child = "upper"
axis = [0, 1, 0]
damping = 0.31
armature = 0.05
[[joint]]
name = "elbow"
kind = "revolute"
parent = "upper"
child = "lower"
axis = [0.1, 1, 0]
translation = [0.4, 0, 0]
damping = 0.12
[[force]]
name = "coil"
kind = "spring_damper"
body_a = "ground"
body_b = "lower"
point_a = [0.1, 0.02, 0.5]
point_b = [0.2, 0, 0]
coefficients = { stiffness = "rate", damping = 0.7, free_length = 0.3, preload = -1.2 }
"""


@pytest.fixture(scope="module")
def swinging(tmp_path_factory) -> kt.Trajectory:
    """Return a run under PD control, damping, a spring and an external force."""
    path = tmp_path_factory.mktemp("swinger") / "swinger.toml"
    path.write_text(SWINGER)
    return kt.simulate(
        kt.load(path), [0.3, -0.6], [0.5, 1.2], times=np.linspace(0.0, 1.5, 1501), parameters={"rate": 57.0},
        control=kt.PD([11.0, 7.0], [1.3, 0.4], kt.Cycloid([0.3, -0.6], [1.0, 0.4], 1.5)),
        forces=kt.ExternalWrench("lower", (0.3, 0.0, 0.0), force=(1.1, -0.4, 0.7)), rtol=1e-12, atol=1e-13,
    )  # fmt: skip


def test_energy_balance(swinging):
    """Find that delivered less regenerated energy is the change of energy and what all other forces took."""
    report = load_report(swinging)
    e = report.energy
    spent = e.mechanical + e.friction + e.springs + e.external + e.loops
    assert_close(e.delivered - e.regenerated, spent, 1e-9 * max(e.delivered, e.regenerated), "energy balance")
    assert min(e.delivered, e.regenerated, e.friction) > 0.05
    assert abs(e.springs) > 0.05 and abs(e.external) > 0.05
    assert e.error < 1e-9
    friction = (np.array([0.31, 0.12]) * swinging.qd**2).sum(axis=-1)
    assert_close(e.friction, np.trapezoid(friction, swinging.t), 1e-5 * e.friction, "loss in dampers")


def test_causes_add_up_and_agree_with_the_ledger(swinging):
    """Find inertia, convective terms, gravity and armature of every sample in the ledger of that state."""
    report = load_report(swinging)
    assert report.causes.rounding < 1e-14
    whole = sum(report.causes.shares.values())
    assert_close(whole, swinging.control, 1e-12 * np.abs(swinging.control).max(), "sum of causes")
    some = swinging[::300]
    ledger = swinging.system.fixed({"rate": 57.0}).ledger(some.q, some.qd, some["qdd"])
    for cause in ("inertia", "convective", "gravity", "armature"):
        expected = ledger.by_cause[cause]
        assert_close(report.causes.shares[cause][::300], expected, 1e-12 * np.abs(ledger.torque).max(), cause)
    assert_close(report.causes.shares["friction"][::300], ledger.friction, 1e-12, "damping")


def test_springs_are_listed_with_their_forces(swinging):
    """Find force and length of the spring, by the parameter of the run."""
    report = load_report(swinging)
    coil = report.element("coil")
    poses = swinging["poses"]
    end = (poses[:, 1, :3, :3] @ [0.2, 0.0, 0.0]) + poses[:, 1, :3, 3]
    length = np.linalg.norm(end - [0.1, 0.02, 0.5], axis=-1)
    assert_close(coil.length, length, 1e-12, "length")
    rate = np.gradient(length, swinging.t)
    force = 57.0 * (0.3 - length) - 1.2 - 0.7 * rate
    assert_close(coil.force[2:-2], force[2:-2], 1e-4 * np.abs(force).max(), "force")
    assert coil.shortest.value == coil.length.min() and coil.longest.value == coil.length.max()


@everyday.long
def test_forces_of_loops_are_traced_to_their_causes():
    """Trace the torque of a crank to the whole mechanism: gravity's share is the slope of the potential energy."""
    run = kt.load("four_bar").cycle("crank", speed=9.0)
    report = load_report(run)
    assert report.causes.traced
    shares = report.shares("crank")
    assert set(shares) == {"inertia", "convective", "gravity"}
    slope = spline(run.t, run["potential_energy"]).derivative()(run.t) / 9.0
    assert_close(shares["gravity"][5:-5], slope[5:-5], 1e-6, "gravity at the crank")
    assert report.energy.error < 1e-9


@pytest.mark.slow
def test_passive_forces_are_added_to_inverse_dynamics(tmp_path):
    """Add springs and friction to a run of inverse dynamics of a closed mechanism, and find the torque with them."""
    path = tmp_path / "sprung.toml"
    path.write_text(SPRUNG.replace("LOOP", "revolute"))
    system = kt.load(path)
    turn = system.cycle("crank", speed=3.0, samples=25, passive=False)
    tau = system.inverse_dynamics(turn.q, turn.qd, turn["qdd"], actuated="crank")
    bare = kt.Trajectory(system, turn.t, turn.q, turn.qd, torque=tau, accelerations=turn["qdd"])
    assert "did not act" in " ".join(load_report(bare).notes)
    report = load_report(bare, passive=True)
    expected = system.inverse_dynamics(turn.q, turn.qd, turn["qdd"], actuated="crank", forces=True)
    assert_close(report.drive("crank").effort, expected[:, 0], 1e-12, "torque of the crank")
    assert not report.notes
    assert report.causes.rounding < 1e-12
    driven = system.cycle("crank", speed=3.0, samples=25)
    assert_close(report.drive("crank").effort, driven.control[:, 0], 1e-7, "torque of a simulation")
    with pytest.raises(kt.InputError, match="this run has the torques of its drives already"):
        load_report(driven, passive=True)
