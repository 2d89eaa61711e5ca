"""The wheeled bases of the library against the closed forms of their kinematics and dynamics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import everyday
import kinetree as kt
from tolerance import assert_close


def placed(system: kt.System, **held):
    """Return an assembled position with the chassis somewhere on the floor, at an arbitrary heading."""
    q = system.assemble(hold=held)
    q[:2], q[3:7] = (1.3, -0.7), Rotation.from_euler("z", 0.8).as_quat()
    return q


@everyday.long
def test_a_differential_drive_moves_as_its_wheels_roll():
    """Find forward speed and rotation from the rates of the wheels, and drive a circle at constant rates."""
    base, radius, track = kt.load("differential_drive"), 0.08, 0.34
    q = placed(base)
    qd = base.consistent_speeds(q, {"left": 3.1, "right": 4.7})
    v, w = radius * (3.1 + 4.7) / 2, radius * (4.7 - 3.1) / track
    assert_close(qd, [0.0, 0.0, w, v, 0.0, 0.0, 3.1, 4.7], 1e-14, "velocities")
    drives = kt.Driven({"left": kt.Hold(speed=3.1), "right": kt.Hold(speed=4.7)})
    run = kt.simulate(base, q, qd, duration=3.0, control=drives, method="dop853", rtol=1e-11, atol=1e-12)
    heading = 0.8 + w * run.t
    path = np.stack([1.3 + v / w * (np.sin(heading) - math.sin(0.8)), -0.7 - v / w * (np.cos(heading) - math.cos(0.8))])
    assert_close(run.q[:, :2], path.T, 1e-9, "circle")


@pytest.mark.slow
def test_torques_of_wheels_accelerate_the_base():
    """Accelerate a differential drive straight ahead by 2 tau / radius over its mass and that of its rolling wheels."""
    base, radius = kt.load("differential_drive"), 0.08
    q, torque = placed(base), 0.9
    qdd = base.forward_dynamics(q, np.zeros(8), [0.0] * 6 + [torque, torque])
    mass = 9 + 2 * 0.6 + 2 * (0.6 * radius**2 / 2) / radius**2
    assert_close(
        qdd, [0.0, 0.0, 0.0, 2 * torque / radius / mass] + [0.0] * 2 + [qdd[3] / radius] * 2, 1e-11, "straight"
    )
    tau = base.inverse_dynamics(q, np.zeros(8), qdd, actuated=["left", "right"])
    assert_close(tau, [0.0] * 6 + [torque] * 2, 1e-12, "torques of the wheels")
    loads = base.loads(q, np.zeros(8), tau=np.zeros(8))
    weight = sum(base.loads(q, np.zeros(8), tau=np.zeros(8)).cuts[:, 5])
    assert_close(weight, 9.81 * (9 + 2 * 0.6), 1e-10, "weight on the floor")
    assert loads.cuts.shape == (3, 6)


@pytest.mark.slow
def test_a_car_turns_about_the_axis_of_its_rear_wheels():
    """Find the rotation v tan(d) / wheelbase at a steering angle d, and the rates of all wheels."""
    car, angle, rate = kt.load("car"), 0.43, 7.0
    q = placed(car, steering=angle)
    v = 0.31 * rate
    turn = v * math.tan(angle) / 2.6
    qd = car.consistent_speeds(q, {"base.vx": v, "steering": 0.0})
    rates = [(v - turn * 0.75) / 0.31, (v + turn * 0.75) / 0.31, 0.0, v / math.cos(angle) / 0.31]
    assert_close(qd, [0.0, 0.0, turn, v, 0.0, 0.0, *rates], 1e-13, "velocities")
    found = car.doctor(q)
    assert (found.mobility, found.positions) == (2, 7)


@everyday.long
def test_a_mecanum_base_moves_in_all_directions():
    """Find the rates of the wheels for any motion of the chassis, and keep the energy of a free motion."""
    base, r, s = kt.load("mecanum_base"), 0.076, (0.47 + 0.44) / 2
    q = placed(base)
    x, y, w = 0.71, -0.43, 0.9
    qd = base.consistent_speeds(q, {"base.vx": x, "base.vy": y, "base.wz": w})
    rates = np.array([x - y - s * w, x + y + s * w, x + y - s * w, x - y + s * w]) / r
    assert_close(qd, np.concatenate([[0.0, 0.0, w, x, y, 0.0], rates]), 1e-12, "velocities")
    run = kt.simulate(base, q, qd, duration=1.0, method="dop853", rtol=1e-11, atol=1e-12)
    slip = np.einsum("kij,kj->ki", base.closure_jacobian(run.q), run.qd)
    assert_close(slip, np.zeros((len(run.t), 8)), 1e-12, "J qd")
    assert_close(run.energy_error, 0.0, 1e-9, "energy")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("speed", "expected"),
    [
        (0.0, (-5.53094371765393, -3.13164324790656, 3.13164324790656, 5.53094371765393)),
        (
            5.0,
            (
                -14.07838969279822, -0.32286642900409,
                -0.77534188219585 - 4.46486771378823j, -0.77534188219585 + 4.46486771378823j,
            ),
        ),
    ],
)  # fmt: skip
def test_a_bicycle_has_the_eigenvalues_of_the_benchmark(speed, expected):
    """Linearize the straight motion of a bicycle, and find the published eigenvalues and zeros besides."""
    bicycle = kt.load("bicycle")
    q = bicycle.assemble()
    qd = bicycle.consistent_speeds(q, {"rear": speed / 0.3, "base.wx": 0.0, "steering": 0.0})
    found = bicycle.linearize(q, qd, np.zeros(bicycle.nv))
    assert (len(found.names), len(found.rates), found.A.shape, found.B.shape) == (7, 3, (10, 10), (10, 9))
    values = np.linalg.eigvals(found.A)
    for x in expected:
        assert_close(np.abs(values - x).min(), 0.0, 1e-8, "published eigenvalues")
    rest = sorted(np.abs(values))[:6]
    assert_close(rest, np.zeros(6), 1e-5, "positions, heading and speed")


@pytest.mark.slow
def test_a_bicycle_balances_itself():
    """Let a bicycle at 5 m/s recover from a push to its side, with its energy."""
    bicycle = kt.load("bicycle")
    q = bicycle.assemble()
    qd = bicycle.consistent_speeds(q, {"base.vx": 5.0, "base.wx": 0.4, "steering": 0.0})
    run = kt.simulate(bicycle, q, qd, duration=12.0, method="dop853", rtol=1e-10, atol=1e-12)
    lean = bicycle.pose(run.q, "frame")[:, 2, 1]
    assert abs(lean).max() > 0.02 and abs(lean[-1]) < 0.2 * abs(lean).max()
    assert_close(run.energy_error, 0.0, 1e-8, "energy")
