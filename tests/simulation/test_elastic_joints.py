"""Elastic joints: exact frequencies and motions, Spong's equations by SciPy, the full model, backlash, files."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import kinetree as kt
from kinetree.dynamics.force_laws import SOFT, transmission
from kinetree.formats.toml import read_toml_text
from kinetree.formats.toml_writer import write_toml
from tolerance import assert_close

RATIO, ROTOR = 87.0, 3.1e-5
INERTIA = 0.213
"""The inertia of a wheel about its axle, which is vertical [kg m^2]."""


def wheel(**elastic) -> kt.System:
    """Return a wheel on a vertical axle, behind an elastic gear."""
    given = {"stiffness": 311.0, "damping": 0.17, "inertia": ROTOR, "ratio": RATIO} | elastic
    bodies = [kt.Body("wheel", 1.7, (0.0, 0.0, 0.05), (0.11, 0.13, INERTIA, 0.0, 0.0, 0.0))]
    axle = kt.Joint("axle", "revolute", "ground", "wheel", elastic=kt.Elastic(**given))
    return kt.System(kt.build_mechanism("wheel", bodies, [axle]))


def test_parts():
    """Find the motor before its joint, and the spring between them."""
    m = wheel(backlash=0.01, motor_damping=0.4, motor_friction=0.2).mechanism
    assert [(j.name, j.kind, j.child) for j in m.joints] == [
        ("axle.motor", "revolute", "axle.motor"),
        ("axle", "revolute", "wheel"),
    ]
    assert m.joints[0].armature == (RATIO**2 * ROTOR,)
    assert (m.joints[0].damping, m.joints[0].friction) == ((0.4,), (0.2,))
    (spring,) = m.forces
    assert (spring.name, spring.kind, spring.body_a, spring.body_b) == (
        "axle.spring", "transmission", "axle.motor", "wheel",
    )  # fmt: skip
    assert dict(spring.coefficients) == {"stiffness": 311.0, "damping": 0.17, "backlash": 0.01}
    assert kt.Elastic(3.0).model == "spong"


def test_two_masses():
    """Find the exact frequency of two masses, and their exact motion under a torque of the motor."""
    free = wheel(damping=0.0)
    J, k = RATIO**2 * ROTOR, 311.0
    frequency = np.sqrt(k / J + k / INERTIA) / (2 * np.pi)
    assert_close(np.max(free.modes([0.0, 0.0]).frequencies), frequency, 1e-12 * frequency, "frequency")
    c, T = 0.17, 2.3
    A = np.zeros((5, 5))  # of (theta, q, rates, 1)
    A[:2, 2:4] = np.eye(2)
    pull = np.array([k, -k, c, -c, 0.0])
    A[2], A[3] = -pull / J, pull / INERTIA
    A[2, 4] = T / J
    run = kt.simulate(
        wheel(), times=np.linspace(0, 0.4, 9), rtol=1e-12, atol=1e-13,
        control=kt.TorqueFunction(lambda t, q, qd: [T, 0.0]),
    )  # fmt: skip
    exact = np.stack([expm(A * t) @ [0, 0, 0, 0, 1.0] for t in run.t])
    assert_close(run.q, exact[:, :2], 1e-10, "positions")
    assert_close(run.qd, exact[:, 2:4], 1e-9, "velocities")


# --- Spong's equations of a planar arm by hand, integrated by SciPy ---

L1, C1, C2, M1, M2, I1, I2, G = 0.7, 0.31, 0.27, 2.1, 1.3, 0.09, 0.05, 9.81
STIFF, DAMP = np.array([900.0, 410.0]), np.array([0.8, 0.3])
ROTORS, RATIOS = np.array([4e-5, 2e-5]), np.array([100.0, 80.0])


def arm(model: str = "spong", **more) -> kt.System:
    """Return a planar arm with two elastic joints, whose angles are from the x axis, in the plane of x and z."""
    bodies = [
        kt.Body("upper", M1, (C1, 0.0, 0.0), (0.01, I1, 0.08, 0.0, 0.0, 0.0)),
        kt.Body("fore", M2, (C2, 0.0, 0.0), (0.01, I2, 0.04, 0.0, 0.0, 0.0)),
    ]
    given = [
        kt.Elastic(float(k), float(c), inertia=float(J), ratio=float(n), model=model, **more)
        for k, c, J, n in zip(STIFF, DAMP, ROTORS, RATIOS, strict=True)
    ]
    joints = [
        kt.Joint("shoulder", "revolute", "ground", "upper", axis="-y", elastic=given[0]),
        kt.Joint("elbow", "revolute", "upper", "fore", kt.Placement((L1, 0.0, 0.0)), axis="-y", elastic=given[1]),
    ]
    return kt.System(kt.build_mechanism("arm", bodies, joints))


def rigid_equations(q, qd):
    """Return inertia matrix and bias of the planar arm from its closed form."""
    a, b, d = I1 + M1 * C1**2 + M2 * L1**2, I2 + M2 * C2**2, M2 * L1 * C2
    c2, s2 = np.cos(q[1]), np.sin(q[1])
    M = np.array([[a + b + 2 * d * c2, b + d * c2], [b + d * c2, b]])
    h = np.array([-d * s2 * (2 * qd[0] * qd[1] + qd[1] ** 2), d * s2 * qd[0] ** 2])
    lower = M2 * C2 * np.cos(q.sum())
    return M, h + G * np.array([(M1 * C1 + M2 * L1) * np.cos(q[0]) + lower, lower])


def test_spong_equations():
    """Integrate M(q) q'' + h = K (theta - q) + D (theta' - q') = tau - B theta'' by SciPy, and simulate the same."""
    s, B = arm(), ROTORS * RATIOS**2
    link = [list(s.mechanism.joints).index(s.mechanism.joint(x)) for x in ("shoulder", "elbow")]
    motor = [list(s.mechanism.joints).index(s.mechanism.joint(f"{x}.motor")) for x in ("shoulder", "elbow")]
    start = np.array([0.3, -0.8, 0.33, -0.79, 0.4, 1.1, 0.2, 0.9])  # q, theta, their rates

    def f(t, y):
        q, theta, qd, rate = y.reshape(4, 2)
        pull = STIFF * (theta - q) + DAMP * (rate - qd)
        M, h = rigid_equations(q, qd)
        tau = np.array([18.0 - 2.0 * rate[0], 5.0 * np.sin(3 * t)])
        return np.concatenate([qd, rate, np.linalg.solve(M, pull - h), (tau - pull) / B])

    def torque(t, q, qd):
        out = [0.0] * 4
        out[motor[0]], out[motor[1]] = 18.0 - 2.0 * qd[motor[0]], 5.0 * kt.smooth.sin(3.0 * t)
        return out

    q0, qd0 = np.zeros(4), np.zeros(4)
    q0[link], q0[motor], qd0[link], qd0[motor] = start.reshape(4, 2)
    times = np.linspace(0, 1, 11)
    run = kt.simulate(s, q0, qd0, times=times, control=kt.TorqueFunction(torque), rtol=1e-11, atol=1e-12)
    expected = solve_ivp(f, (0, 1), start, "DOP853", times, rtol=1e-11, atol=1e-12).y.T.reshape(-1, 4, 2)
    assert_close(run.q[:, link], expected[:, 0], 1e-8, "joints")
    assert_close(run.q[:, motor], expected[:, 1], 1e-8, "motors")
    assert_close(run.qd[:, link], expected[:, 2], 1e-6, "velocities")


def test_full_model():
    """Find the rotors that their carriers turn in the inertia matrix, by hand, and agree with all formulations."""
    mass = 0.6
    s = arm("full", mass=mass)
    names = [j.name for j in s.mechanism.joints]
    at = [names.index(x) for x in ("shoulder", "elbow", "shoulder.motor", "elbow.motor")]
    q = np.array([0.2, 0.9, -0.4, 0.7])
    angles = np.zeros(4)
    angles[at] = q
    M, _ = rigid_equations(q[:2], np.zeros(2))
    J, n = ROTORS, RATIOS
    whole = np.zeros((4, 4))
    whole[:2, :2] = M
    whole[0, 0] += mass * L1**2 + J[1]  # the rotor of the elbow is at the end of the upper arm and turns with it
    whole[2, 2], whole[3, 3] = n**2 * J
    whole[0, 3] = whole[3, 0] = n[1] * J[1]
    assert_close(s.inertia_matrix(angles)[np.ix_(at, at)], whole, 1e-13, "inertia matrix")
    assert s.verify()
    spong = arm().inertia_matrix(angles)[np.ix_(at, at)]
    assert (spong[0, 3], spong[3, 3]) == (0.0, n[1] ** 2 * J[1])


def test_gyroscopic_torque():
    """Turn the carrier of a spinning rotor, and find the torque J w x W of a gyroscope at the carrier."""
    turn, spin, J, n = 1.7, 2.9, 4e-4, 60.0
    bodies = [kt.Body("a", 1.0, inertia=(0.1,) * 3 + (0.0,) * 3), kt.Body("b", 1.0, inertia=(0.1,) * 3 + (0.0,) * 3),
              kt.Body("c", 0.5, inertia=(0.01,) * 3 + (0.0,) * 3)]  # fmt: skip
    fast = kt.Elastic(50.0, inertia=J, ratio=n, model="full", carrier="b", axis="x", placement=kt.Placement())
    joints = [kt.Joint("yaw", "revolute", "ground", "a"), kt.Joint("pitch", "revolute", "a", "b", axis="y"),
              kt.Joint("roll", "revolute", "b", "c", axis="x", elastic=fast)]  # fmt: skip
    s = kt.System(kt.build_mechanism("gyro", bodies, joints))
    at = {j.name: k for k, j in enumerate(s.mechanism.joints)}
    qd = np.zeros(4)
    qd[at["yaw"]], qd[at["roll.motor"]] = turn, spin
    tau = s.bias_torque(np.zeros(4), qd, forces=False)
    assert_close(tau[at["pitch"]], J * n * spin * turn, 1e-14, "torque of the gyroscope")  # z cross x is y


def test_the_rigid_robot():
    """Move joints and motors together, and need the torques of the robot with rigid joints; make it rigid again."""
    rng, s = np.random.default_rng(3), arm()
    rigid = kt.with_rigid_joints(s)
    assert [j.name for j in rigid.joints] == ["shoulder", "elbow"]
    assert_close(rigid.joints[1].armature, [ROTORS[1] * RATIOS[1] ** 2], 1e-15, "armature")
    q, qd, qdd = rng.normal(size=(3, 20, 2))
    order = [j.name.removesuffix(".motor") for j in s.mechanism.joints]
    both = [x[:, [("shoulder", "elbow").index(n) for n in order]] for x in (q, qd, qdd)]
    tau = s.inverse_dynamics(*both)
    sums = np.stack([tau[:, [k for k, n in enumerate(order) if n == x]].sum(axis=1) for x in ("shoulder", "elbow")], 1)
    assert_close(sums, rigid.inverse_dynamics(q, qd, qdd), 1e-11, "torques")
    assert_close(s.forward_dynamics(*both[:2], tau), both[2], 1e-9, "FD(ID)")
    again = kt.with_elastic_joints(rigid, {"elbow": kt.Elastic(410.0)})
    assert again.mechanism.joint("elbow").elastic.inertia == pytest.approx(ROTORS[1] * RATIOS[1] ** 2, rel=1e-15)
    lumped = kt.with_rigid_joints(arm("full", mass=0.6))
    expected = rigid.inertia_matrix(q)
    expected[:, 0, 0] += 0.6 * L1**2 + ROTORS[1]
    assert_close(lumped.inertia_matrix(q), expected, 1e-13, "a rotor of the full model fixed to its carrier")


def test_hybrid_and_linearized():
    """Drive the joints with the motors free, and compare the linearization with differences."""
    rng, s = np.random.default_rng(5), arm()
    q, qd, qdd, tau = rng.normal(size=(4, 4))
    found, torque = s.hybrid_dynamics(q, qd, qdd, tau, driven=["shoulder", "elbow"])
    at = [k for k, j in enumerate(s.mechanism.joints) if not j.name.endswith("motor")]
    motors = [k for k in range(4) if k not in at]
    assert_close(found[at], qdd[at], 0.0, "driven joints")
    assert_close(torque[motors], tau[motors], 0.0, "free motors")
    assert_close(s.inverse_dynamics(q, qd, found), torque, 1e-11, "ID(FD)")
    slopes = s.forward_dynamics_derivatives(q, qd, tau)
    h = 1e-5
    central = np.stack(
        [(s.forward_dynamics(q + e, qd, tau) - s.forward_dynamics(q - e, qd, tau)) / (2 * h) for e in h * np.eye(4)], 1
    )
    assert_close(slopes[0], central, 1e-6 * np.abs(central).max(), "dqdd/dq")


# --- Backlash ---


def test_law_of_backlash():
    """Find no torque within the play, a smooth beginning, the stiffness beyond it, and the slope of the energy."""
    k, play = 250.0, 0.02
    soft = SOFT * play
    x = np.concatenate([np.linspace(-0.05, 0.05, 41), [0.0101, -0.0101, 0.0105, 0.011]])
    pull, energy = transmission(x, 0.0 * x, k, 0.7, play)
    inside = np.abs(x) <= play / 2
    assert not np.any(pull[inside]) and not np.any(energy[inside])
    far = np.abs(x) > play / 2 + soft
    assert_close(np.abs(pull[far]), k * (np.abs(x[far]) - play / 2 - soft / 2), 1e-12, "beyond the soft part")
    assert_close(pull, np.imag(transmission_energy(x, k, play)), 1e-9, "slope of the energy")
    assert float(transmission(0.004, 9.0, k, 0.7, play)[0]) == 0.0  # the damper is loose too
    assert_close(transmission(0.03, 2.0, k, 0.7, play)[0] - transmission(0.03, 0.0, k, 0.7, play)[0], 1.4, 1e-12, "c v")


def transmission_energy(x, k, play, h=1e-7):
    """Return central differences of the energy, as an imaginary part."""
    more, less = (transmission(x + e, 0.0, k, 0.0, play)[1] for e in (h, -h))
    return 1j * (more - less) / (2 * h)


def test_rattling_keeps_energy():
    """Throw a wheel to and fro within the play of its gear: energy and momentum stay."""
    s = wheel(damping=0.0, backlash=0.05)
    run = kt.simulate(s, [0.0, 0.0], [2.0, -0.7], duration=1.0, rtol=1e-11, atol=1e-12)
    spring = next(x for x in kt.forces_of(s) if hasattr(x, "energy"))
    _, stored = transmission(run.q[:, 0] - run.q[:, 1], 0.0, spring.stiffness, 0.0, spring.backlash)
    total = run["energy"] + stored
    assert stored.max() > 0.01 and (stored == 0.0).sum() > 100
    assert_close(total, np.full(len(run), total[0]), 1e-8 * total[0], "energy")
    momentum = RATIO**2 * ROTOR * run.qd[:, 0] + INERTIA * run.qd[:, 1]
    assert_close(momentum, np.full(len(run), momentum[0]), 1e-10, "momentum")


@pytest.mark.parametrize("play", [0.0, 0.013])
def test_start_at_rest(play):
    """Start with motors where their springs hold the weight, and find no torque in the joints."""
    s, q = arm(backlash=play), np.array([[0.3, -0.9], [1.2, 0.4]])
    full = kt.elastic_start(s, q)
    at = [k for k, j in enumerate(s.mechanism.joints) if not j.name.endswith("motor")]
    assert_close(full[:, at], q, 0.0, "joints")
    held = s.gravity_torque(full)
    assert_close(held[:, at], np.zeros((2, 2)), 1e-12, "torques of joints")
    motors = [k for k in range(4) if k not in at]
    order = [("shoulder.motor", "elbow.motor").index(s.mechanism.joints[k].name) for k in motors]
    expected = kt.with_rigid_joints(s).gravity_torque(q)[:, order]
    assert_close(held[:, motors], expected, 1e-12, "torques of motors")


def test_controllers_at_motors():
    """Hold an elastic arm by PD with gravity compensation at the motors: motors reach it, joints sag by gravity / k."""
    s, goal = arm(), np.array([0.4, -0.7])
    hold = kt.AtMotors(kt.PDGravity([400.0, 150.0], [40.0, 12.0], kt.Hold(goal)))
    run = kt.simulate(s, kt.elastic_start(s, goal + 0.1), duration=6.0, control=hold)
    q = {j.name: run.q[-1, k] for k, j in enumerate(s.mechanism.joints)}
    sag = np.array([q["shoulder.motor"] - q["shoulder"], q["elbow.motor"] - q["elbow"]])
    joints = np.array([q["shoulder"], q["elbow"]])
    _, g = rigid_equations(joints, np.zeros(2))
    assert_close(sag, g / STIFF, 1e-6, "sag")
    assert np.abs(np.array([q["shoulder.motor"], q["elbow.motor"]]) - goal).max() < 0.01
    stiff = kt.with_elastic_joints(
        kt.with_rigid_joints(s), {"shoulder": kt.Elastic(1e8, 1e3), "elbow": kt.Elastic(1e8, 1e3)}
    )
    one = kt.simulate(stiff, kt.elastic_start(stiff, goal + 0.1), control=hold, times=[0.0, 0.25, 0.5])
    rigid = kt.simulate(kt.with_rigid_joints(s), goal + 0.1, control=hold.controller, times=[0.0, 0.25, 0.5])
    at = [k for k, j in enumerate(stiff.mechanism.joints) if not j.name.endswith("motor")]
    assert_close(one.q[:, at], rigid.q, 1e-5, "stiff joints")


def test_actuators_act_on_motors():
    """Find the torque of an actuator of an elastic joint at its motor."""
    rigid = kt.with_rigid_joints(arm()).mechanism
    drive = kt.Actuator("servo", "elbow", gear=(3.0,), gain=20.0, bias=(0.0, -20.0, -1.5))
    m = kt.build_mechanism("arm", rigid.bodies, rigid.joints, actuators=[drive])
    s = kt.with_elastic_joints(kt.System(m), {"elbow": kt.Elastic(410.0)})
    run = kt.simulate(s, kt.elastic_start(s, [0.2, 0.3]), duration=0.2, control=kt.ActuatorControl(0.5))
    at = {j.name: k for k, j in enumerate(s.joints)}
    q, qd = run.q[:, at["elbow.motor"]], run.qd[:, at["elbow.motor"]]
    assert_close(run["control"][:, at["elbow.motor"]], 3 * (20 * 0.5 - 60 * q - 4.5 * qd), 1e-10, "torque")
    assert not run["control"][:, at["elbow"]].any()


# --- Files, parameters and errors ---


def test_files_and_parameters():
    """Write elastic joints as one table each, read the same mechanism, and vary the stiffness by name."""
    for s in (arm(), arm("full", mass=0.2, backlash=1e-3)):
        text = write_toml(s.mechanism)
        assert text.count("elastic = {") == 2 and "motor" not in text
        assert read_toml_text(text)[0].hash == s.mechanism.hash
    free = kt.with_free(arm(), "stiffness.*.spring")
    assert [p.name for p in free.mechanism.free_parameters] == ["stiffness.shoulder.spring", "stiffness.elbow.spring"]
    q = np.array([0.1, 0.15, 0.2, 0.22])
    soft = free.inverse_dynamics(q, 0 * q, 0 * q, parameters=[450.0, 205.0])
    hard = free.inverse_dynamics(q, 0 * q, 0 * q, parameters=[900.0, 410.0])
    g = free.inverse_dynamics(q, 0 * q, 0 * q, parameters=[0.0, 0.0])
    assert_close(2 * (soft - g), hard - g, 1e-12, "torques of springs")
    assert read_toml_text(write_toml(free.mechanism))[0].hash == free.mechanism.hash


def test_formulas():
    """Give the numbers of an elastic joint as formulas, and find those of plain numbers; a play may vanish."""
    joint = kt.Joint("j", "revolute", "ground", "b", axis="y", elastic=kt.Elastic("k", "0.01 * k", "J", 100, "play"))
    free = [kt.Parameter(name, x, free=True) for name, x in (("k", 100.0), ("J", 1e-5), ("play", 0.0))]
    body = kt.Body("b", 1.3, (0.2, 0.0, 0.0), (0.01, 0.02, 0.02, 0.0, 0.0, 0.0))
    m = kt.build_mechanism("m", [body], [joint], parameters=free)
    assert read_toml_text(write_toml(m))[0].hash == m.hash
    q, qd, qdd = np.random.default_rng(2).normal(size=(3, 2))
    for k, J, play in ((120.0, 2e-5, 0.0), (240.0, 1e-5, 0.03)):
        own = kt.Joint("j", "revolute", "ground", "b", axis="y", elastic=kt.Elastic(k, 0.01 * k, J, 100, play))
        plain = kt.System(kt.build_mechanism("m", [body], [own]))
        found = kt.System(m).inverse_dynamics(q, qd, qdd, parameters=[k, J, play])
        assert_close(found, plain.inverse_dynamics(q, qd, qdd), 1e-9, "torques")


BAD = [
    ({"stiffness": -1.0}, r"elastic, stiffness: stiffness is -1; give a number above zero"),
    ({"damping": -0.1}, r"elastic, damping: damping is -0.1; give zero or more"),
    ({"inertia": 0.0}, r"elastic, inertia: inertia is 0; give a number above zero"),
    ({"backlash": float("nan")}, r"elastic, backlash: backlash is nan; give zero or more"),
    ({"ratio": True}, r"elastic, ratio: True is not a number"),
    ({"model": "rigid"}, r"elastic, model: 'rigid'|the model is 'rigid'; give \"spong\" or \"full\""),
    ({"mass": 0.1}, r"Spong's model does not use; leave out mass, carrier, placement and axis"),
]


@pytest.mark.parametrize(("more", "message"), BAD)
def test_impossible_numbers(more, message):
    """Refuse impossible numbers of elastic joints."""
    with pytest.raises(kt.ModelError, match=message):
        kt.Elastic(**{"stiffness": 10.0} | more)


def test_impossible_joints():
    """Refuse elastic joints without a rotor, with two, of several axes, and full models that do not rotate."""
    body = [kt.Body("b", 1.0, inertia=(0.1, 0.1, 0.1, 0.0, 0.0, 0.0))]

    def build(kind="revolute", elastic=None, **more):
        return kt.build_mechanism("m", body, [kt.Joint("j", kind, "ground", "b", elastic=elastic, **more)])

    one = kt.Elastic(10.0, inertia=1e-3)
    with pytest.raises(kt.ModelError, match="joint 'j', elastic: its rotor has no inertia; give inertia"):
        build(elastic=kt.Elastic(10.0))
    with pytest.raises(kt.ModelError, match="its rotor has an inertia, and the joint an armature; leave out inertia"):
        build(elastic=one, armature=0.3)
    with pytest.raises(kt.ModelError, match="a spherical joint has no single coordinate; use revolute"):
        build("spherical", one)
    with pytest.raises(kt.ModelError, match='is for revolute joints; this one is prismatic; give model="s'):
        build("prismatic", kt.Elastic(10.0, inertia=1e-3, model="full"))
    with pytest.raises(kt.ModelError, match="joint 'j': elastic is 5.0; give a kt.Elastic"):
        build(elastic=5.0)
    with pytest.raises(kt.ModelError, match="a rotor has no ratio; give ratio"):
        build("rotor")
    with pytest.raises(kt.UnknownNameError, match="no joint 'wrist'"):
        kt.with_elastic_joints(arm(), {"wrist": one})
    with pytest.raises(kt.InputError, match="the joint 'elbow' is elastic already; make it rigid by with_rigid_joints"):
        kt.with_elastic_joints(arm(), {"elbow": one})
    with pytest.raises(kt.InputError, match=r"elastic_start: q has shape \(4,\); expected \[..., 2\]"):
        kt.elastic_start(arm(), np.zeros(4))
    with pytest.raises(kt.InputError, match="AtMotors takes a compiled controller, such as kt.PDGravity"):
        kt.AtMotors(3.0)
    text = write_toml(arm().mechanism)
    with pytest.raises(kt.ModelError, match=r"<text>:\d+: joint 'shoulder', elastic: stiffness is -900"):
        read_toml_text(text.replace("stiffness = 900", "stiffness = -900"))
    with pytest.raises(kt.UnknownNameError, match="no key 'stiff'; did you mean 'stiffness'"):
        read_toml_text(text.replace("stiffness = 900", "stiff = 900"))
