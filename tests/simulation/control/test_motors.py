"""Electric motors: exact step responses, limits, losses in both directions of power, energy, files and errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import everyday
import kinetree as kt
from kinetree.formats.toml import read_toml_text
from kinetree.formats.toml_writer import write_toml
from kinetree.simulation.acting.motors import joint_torque, motor_current
from strategies import random_mechanism
from tolerance import assert_close

J, K, R, L, GEAR = 0.0123, 0.071, 0.63, 0.0042, 3.0
"""Inertia of the joint [kg m^2], torque constant [N m/A], resistance [Ohm], inductance [H], ratio of the gear."""


def drive(inductance: float = L, **more) -> kt.System:
    """Return a wheel on a vertical axle with a motor."""
    wheel = kt.Body("wheel", 0.4, inertia=(J, J, J, 0.0, 0.0, 0.0))
    motor = kt.Motor("m", "axle", K, R, inductance, **{"gear": GEAR} | more)
    return kt.System(
        kt.build_mechanism("drive", [wheel], [kt.Joint("axle", "revolute", "ground", "wheel")], motors=[motor])
    )


def test_parts():
    """Find a circuit for a motor with an inductance, and none without."""
    m = drive().mechanism
    assert [(j.name, j.kind, j.armature, j.damping) for j in m.joints[1:]] == [("m.circuit", "circuit", (L,), (R,))]
    assert m.nv == 2 and drive(0.0).nv == 1
    units = {c.name: c.units for c in kt.simulate(drive(), duration=0.01).columns}
    assert (units["q"], units["qd"], units["tau"]) == (("rad", "C"), ("rad/s", "A"), ("N m", "V"))
    assert drive().verify()


def test_step_of_voltage():
    """Find the exact current and speed of a motor with an inductance after a step of voltage."""
    u, n = 9.7, GEAR
    A = np.array([[0.0, K * n / J, 0.0], [-K * n / L, -R / L, u / L], [0.0, 0.0, 0.0]])  # of (speed, current, 1)
    control = kt.MotorControl(u, command="voltage")
    run = kt.simulate(drive(), times=np.linspace(0, 0.3, 13), control=control, rtol=1e-12, atol=1e-13)
    exact = np.stack([(expm(A * t) @ [0.0, 0.0, 1.0])[:2] for t in run.t])
    assert_close(run.qd, exact, 1e-9 * np.abs(exact).max(), "speed and current")
    assert_close(run["control"][:, 0], K * n * exact[:, 1], 1e-8, "torque")


def test_step_without_inductance():
    """Find the exact exponential of a motor whose current follows at once, and approach it with small inductances."""
    u, T = 9.7, J * R / (K * GEAR) ** 2
    control = kt.MotorControl({"m": u}, command="voltage")
    run = kt.simulate(drive(0.0), times=np.linspace(0, 0.3, 13), control=control, rtol=1e-12, atol=1e-13)
    exact = u / (K * GEAR) * -np.expm1(-run.t / T)
    assert_close(run.qd[:, 0], exact, 1e-10 * exact.max(), "speed")
    errors = []
    for small in (2e-4, 1e-4):
        less = kt.simulate(drive(small), times=run.t, control=control, rtol=1e-10, atol=1e-11)
        errors.append(np.abs(less.qd[1:, 0] - exact[1:]).max())
    assert 1.9 < errors[0] / errors[1] < 2.1  # of the first order in the inductance


def test_all_terms_by_scipy():
    """Integrate a motor with friction, a lossy gear and a load by SciPy, and simulate the same, through zero speed."""
    eta, f, b, n, slip = 0.83, 0.021, 1.3e-4, GEAR, 1e-3
    s = drive(efficiency=eta, friction=f, viscous=b)

    def rates(t, y):
        speed, i = y
        sign = speed / np.hypot(speed, slip)
        shaft = K * i - f * sign - b * n * speed
        loss = 1 - eta if shaft * speed >= 0 else 1 / eta - 1
        torque = n * (shaft - abs(shaft) * loss * sign)
        return [torque / J, (6.0 * np.cos(9 * t) - R * i - K * n * speed) / L]

    control = kt.MotorControl(kt.Cosine([6.0], 9.0), command="voltage")
    times = np.linspace(0, 1, 21)
    run = kt.simulate(s, times=times, control=control, rtol=1e-10, atol=1e-11)
    exact = solve_ivp(rates, (0, 1), [0.0, 0.0], "Radau", times, rtol=1e-10, atol=1e-12).y.T
    assert exact[:, 0].min() < -1 and exact[:, 0].max() > 1
    assert_close(run.qd, exact, 1e-6, "speed and current")


def test_energy_of_the_supply():
    """Find the energy of the supply in copper, friction, gear, inductance and motion."""
    s = drive(efficiency=0.83, friction=0.021, viscous=1.3e-4)
    control = kt.MotorControl(kt.Cosine([6.0], 9.0), command="voltage")
    run = kt.simulate(s, duration=1.0, dt=2e-4, control=control)
    speed, i = run.qd.T
    u = run["control"][:, 1] + K * GEAR * speed
    sign = speed / np.hypot(speed, 1e-3)
    shaft = K * i - 0.021 * sign - 1.3e-4 * GEAR * speed
    gear = GEAR * shaft * speed - run["control"][:, 0] * speed
    rubbed = (0.021 * sign + 1.3e-4 * GEAR * speed) * GEAR * speed
    assert gear.min() > -1e-12 and rubbed.min() >= 0.0
    parts = [np.trapezoid(x, run.t) for x in (u * i, R * i * i, gear, rubbed)]
    stored = J * speed**2 / 2 + L * i**2 / 2
    assert_close(run["energy"], stored, 1e-14, "energy of wheel and inductance")
    assert_close(parts[0] - sum(parts[1:]), stored[-1] - stored[0], 2e-4 * parts[0], "balance")


@pytest.mark.parametrize("inductance", [0.0, L])
@pytest.mark.parametrize(("command", "value"), [("voltage", 40.0), ("current", 60.0), ("torque", 9.0)])
def test_limits(inductance, command, value):
    """Keep current and voltage within their limits while a motor runs up, and reach both."""
    most, top = 11.0, 24.0
    s = drive(inductance, current=most, voltage=top)
    given = kt.TorqueFunction(lambda t, q, qd: [value] + [0.0] * (len(qd) - 1)) if command == "torque" else value
    run = kt.simulate(s, duration=1.0, control=kt.MotorControl(given, command=command), rtol=1e-9, atol=1e-10)
    load = kt.load_report(run).motor("m")
    i, u = np.abs(load.current), np.abs(load.voltage)
    assert i.max() <= most * (1 + 1e-6) and u.max() <= top * (1 + 1e-9)
    assert i.max() > 0.99 * most and u.max() > 0.99 * top
    assert load.over == ()


def test_current_loop():
    """Follow a step of current with the time constant of the loop, and hold its torque."""
    T = 0.003
    run = kt.simulate(
        drive(), times=np.linspace(0, 0.02, 9), rtol=1e-11, atol=1e-12,
        control=kt.MotorControl(4.0, command="current", response=T),
    )  # fmt: skip
    assert_close(run.qd[:, 1], 4.0 * -np.expm1(-run.t / T), 1e-9, "current")


def test_law_and_its_inverse():
    """Return from currents to torques and back in all four quadrants, and lose power in each."""
    motor = kt.Motor("m", "j", 0.09, 1.1, gear=50.0, efficiency=0.7, friction=0.03, viscous=2e-5)
    i, speed = np.meshgrid([-7.0, -0.2, 0.0, 0.1, 5.0], [-3.0, -1e-3, 0.0, 2e-4, 2.0])
    torque = joint_torque(motor, i, speed)
    assert_close(motor_current(motor, torque, speed), i, 1e-13, "current")
    assert np.all(torque * speed <= 0.09 * i * 50.0 * speed + 1e-15)
    fast = speed == 2.0
    shaft = 0.09 * i - 0.03 - 2e-5 * 50 * speed
    wanted = 50 * np.where(shaft >= 0, 0.7 * shaft, shaft / 0.7)
    assert_close(torque[fast], wanted[fast], 1e-5, "full losses above the slip speed")
    plain = kt.Motor("m", "j", 0.09, 1.1, gear=50.0)
    assert_close(joint_torque(plain, 2.0, 3.0), 9.0, 1e-14, "without losses")


def test_torques_of_an_arm():
    """Follow a reference by computed torque through motors without losses as without motors, and saturate with them."""
    arm = kt.load("planar_2r")
    law = kt.ComputedTorque(100.0, 20.0, kt.Cycloid([0.1, 0.2], [0.9, -0.4], 1.0))
    motors = [kt.Motor(f"m{k}", j.name, 0.05, 0.8, gear=40.0) for k, j in enumerate(arm.joints)]
    options = {"times": [0.0, 0.5, 1.2], "rtol": 1e-10, "atol": 1e-11}
    free = kt.simulate(arm, [0.0, 0.0], control=law, **options)
    driven = kt.simulate(kt.with_motors(arm, *motors), [0.0, 0.0], control=kt.MotorControl(law), **options)
    assert_close(driven.q, free.q, 1e-8, "positions")
    one = kt.simulate(kt.with_motors(arm, motors[1]), [0.0, 0.0], control=kt.MotorControl(law), **options)
    assert_close(one.q, free.q, 1e-8, "a joint without a motor gets its torque")
    quick = kt.with_motors(arm, *(replace(m, inductance=1e-5) for m in motors))
    stored = kt.simulate(quick, np.zeros(4), control=kt.MotorControl(law, response=1e-4), times=[0.0, 0.5, 1.2])
    assert_close(stored.q[:, :2], free.q, 2e-3, "with circuits, which the controller does not see")
    batch = kt.simulate(kt.with_motors(arm, *motors), np.zeros((3, 2)), control=kt.MotorControl(law), **options)
    assert_close(batch.q[1], driven.q, 1e-8, "batch")


@everyday.long
def test_circuits_beside_all_joints():
    """Agree with all formulations on a tree with rotors and circuits."""
    for seed in (2, 5):
        kinds = ["revolute", "rotor", "spherical", "circuit", "prismatic", "rotor"]
        m = random_mechanism(kinds, [-1, 0, 1, 0, 2, 4], seed, armature=True)
        joints = [kt.Joint(**vars(j) | {"armature": (0.3,)}) if j.kind == "circuit" else j for j in m.joints]
        assert kt.System(kt.build_mechanism("tree", m.bodies, joints)).verify()


def test_braking():
    """Close the winding of a motor that turns, and find how it brakes."""
    s = drive()
    control = kt.MotorControl(0.0, command="voltage")
    run = kt.simulate(s, [0.0, 0.0], [4.0, -3.0], times=[0.0, 0.01, 0.05], control=control, rtol=1e-12, atol=1e-13)
    A = np.array([[0.0, K * GEAR / J], [-K * GEAR / L, -R / L]])
    exact = np.stack([expm(A * t) @ [4.0, -3.0] for t in run.t])
    assert_close(run.qd, exact, 1e-9, "a motor whose winding is closed brakes")


def test_elastic_joint():
    """Act on the motor before an elastic joint, and refuse two ratios that differ."""
    s = kt.with_elastic_joints(drive(), {"axle": kt.Elastic(300.0, inertia=2e-4, ratio=GEAR)})
    assert [j.name for j in s.joints] == ["axle.motor", "axle", "m.circuit"]
    run = kt.simulate(s, duration=0.1, control=kt.MotorControl(5.0, command="current"))
    assert run["control"][-1, 0] > 1.0 and not run["control"][:, 1].any()
    assert [j.name for j in kt.with_rigid_joints(s).joints] == ["axle"]
    with pytest.raises(kt.ModelError, match=r"motor 'm', gear: its gear is 3, and the ratio .* 'axle' 20.0; make them"):
        kt.with_elastic_joints(drive(), {"axle": kt.Elastic(300.0, inertia=2e-4, ratio=20.0)})


def test_a_closed_mechanism():
    """Turn the crank of a four-bar by computed torque through a motor with an inductance."""
    bars = kt.load("four_bar")
    start = bars.assemble()
    turn = kt.Cycloid(start[:1], start[:1] + 0.8, 1.0)
    geared = kt.with_motors(bars, kt.Motor("m", "crank", 0.1, 0.5, 1e-5, gear=10.0))
    law = kt.ComputedTorque(400.0, 40.0, turn, actuated="crank")
    run = kt.simulate(geared, [*start, 0.0], duration=1.0, control=kt.MotorControl(law, response=1e-4))
    at = [j.name for j in geared.joints].index("crank")
    assert run.finished
    assert_close(run.q[-1, at], start[0] + 0.8, 1e-3, "crank")
    with pytest.raises(kt.InputError, match="returned 4 torques; expected 3"):
        kt.simulate(geared, duration=0.1, control=kt.MotorControl(kt.TorqueFunction(lambda t, q, qd: [0.0] * 4)))


def test_files():
    """Write motors, read the same mechanism, and find the line of an impossible number."""
    m = drive(current=9.0, thermal_resistances=(1.2, 3.4), thermal_times=(23.0, 800.0)).mechanism
    text = write_toml(m)
    assert read_toml_text(text)[0].hash == m.hash
    plain = "\n".join(x for x in text.split("\n\n") if "circuit" not in x)
    assert read_toml_text(plain)[0].hash == m.hash  # the circuit is made again
    with pytest.raises(
        kt.ModelError, match=r"<text>:\d+: motor 'm', resistance: resistance is -1; give a number above"
    ):
        read_toml_text(text.replace("resistance = 0.63", "resistance = -1"))


BAD = [
    ({"torque_constant": 0.0}, "motor 'm', torque_constant: torque_constant is 0; give a number above zero"),
    ({"inductance": -1e-3}, "motor 'm', inductance: inductance is -0.001; give zero or more"),
    ({"efficiency": 85.0}, "motor 'm', efficiency: efficiency is 85; give at most 1, such as 0.85 for 85 %"),
    ({"current": "much"}, "motor 'm', current: 'much' is not a finite number; give a number"),
    ({"thermal_times": (3.0, 4.0)}, "thermal resistances and times belong together; give both"),
    ({"thermal_times": (3.0,), "thermal_resistances": (1.0,)}, "thermal_resistances: 1 numbers; give 2"),
    ({"thermal_times": (3.0, 0.0), "thermal_resistances": (1.0, 2.0)}, "thermal_times are .*; give numbers above zero"),
    ({"max_temperature": 20.0}, "max_temperature is 20 C, and ambient 25 C; give a largest temperature above"),
]


@pytest.mark.parametrize(("more", "message"), BAD)
def test_impossible_numbers(more, message):
    """Refuse impossible numbers of motors."""
    with pytest.raises(kt.ModelError, match=message):
        kt.Motor(**{"name": "m", "joint": "j", "torque_constant": 0.1, "resistance": 1.0} | more)


def test_impossible_drives():
    """Refuse motors on joints of several axes, two on one joint, and control that does not fit."""
    s = drive()
    again = kt.Motor("m2", "axle", K, R)
    with pytest.raises(kt.ModelError, match="motor 'm2', joint: the motor 'm' drives 'axle' already; give a joint one"):
        kt.with_motors(s, again)
    with pytest.raises(kt.UnknownNameError, match="no joint 'axel'; did you mean 'axle'"):
        kt.with_motors(s, kt.Motor("m2", "axel", K, R))
    ball = random_mechanism(["spherical"], [-1], 1)
    with pytest.raises(kt.ModelError, match="a motor drives a joint with one coordinate; 'j0' is spherical"):
        kt.with_motors(ball, kt.Motor("m", "j0", K, R))
    with pytest.raises(kt.InputError, match=r"with_motors takes a kt.Motor for each motor, not 3"):
        kt.with_motors(s, 3)
    with pytest.raises(kt.InputError, match="command of MotorControl is 'power'; give one of torque, current, voltage"):
        kt.MotorControl(1.0, command="power")
    with pytest.raises(kt.InputError, match='give a controller of torques, such as kt.PD, or command="current"'):
        kt.MotorControl(1.0)
    with pytest.raises(kt.InputError, match="MotorControl cannot contain Sampled"):
        kt.MotorControl(kt.Sampled(kt.PD(1.0, 1.0, kt.Hold([0.0])), 100.0))
    with pytest.raises(kt.InputError, match="'planar_2r' has no motors; add them by kt.with_motors"):
        kt.simulate(kt.load("planar_2r"), duration=0.1, control=kt.MotorControl(1.0, command="voltage"))
    with pytest.raises(kt.InputError, match=r"has shape \(2,\); give a number, or one per motor: m"):
        kt.simulate(s, duration=0.1, control=kt.MotorControl([1.0, 2.0], command="voltage"))
    with pytest.raises(kt.UnknownNameError, match="no motor 'n'"):
        kt.simulate(s, duration=0.1, control=kt.MotorControl({"n": 1.0}, command="voltage"))


def test_studies_and_derivatives():
    """Vary a spring and a resistance in a study, and differentiate a run with respect to both."""
    s = kt.with_elastic_joints(drive(friction=0.01), {"axle": kt.Elastic(300.0, 0.5, inertia=2e-4, ratio=GEAR)})
    free = kt.with_free(s, "stiffness.axle.spring", "damping.m.circuit")
    units = {p.name: p.unit for p in free.mechanism.free_parameters}
    assert units["damping.m.circuit"] == "Ohm"
    control = kt.MotorControl(kt.Cosine([6.0], 9.0), command="voltage")
    study = kt.study(
        free, over={"damping.m.circuit": kt.grid(0.5, 0.7, 3)}, measures={"current": "peak qd.m.circuit"},
        simulate={"duration": 0.3, "control": control},
    )  # fmt: skip
    assert np.all(np.diff(study["current"]) < 0)
    options = {"duration": 0.1, "control": control, "method": "rk4", "dt": 1e-4}
    slopes = kt.simulation_derivatives(free, np.zeros(3), **options)
    for name, value in (("stiffness.axle.spring", 300.0), ("damping.m.circuit", R)):
        h = 1e-4 * value
        ends = [kt.simulate(free, np.zeros(3), parameters={name: value + e}, **options).qd[-1] for e in (h, -h)]
        central = (ends[0] - ends[1]) / (2 * h)
        found = slopes.dqd[-1, :, list(slopes.labels).index(name)]
        assert_close(found, central, 1e-5 * np.abs(central).max(), name)
