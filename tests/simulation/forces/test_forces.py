"""Forces: derivatives of energies, dissipation of dampers, action and reaction, messages for faults."""

from __future__ import annotations

import math

import numpy as np
import pytest

import everyday
from forces_by_numpy import energy, rates_of, slope, torques
from interpreted import compute, derivative, program, relative
from kinetree import GROUND, ForceElement, InputError, Joint, Limits, ModelError, Parameter, build_mechanism
from kinetree.dynamics.force_laws import TINY
from kinetree.model.mechanism import replace
from kinetree.model.parameters import parse
from kinetree.simulation.acting import smooth
from kinetree.simulation.acting.joint_forces import JointDamper, JointFriction, JointSpring, JointStops, passive
from kinetree.simulation.acting.point_forces import ExternalWrench, LinearActuator, SpringDamper, forces_of
from kinetree.simulation.acting.rates import ForcedMechanism, rates
from native_program import gufunc
from strategies import State, body, one_of_each, random_mechanism
from tolerance import assert_close

TREE = random_mechanism(["revolute", "spherical", "universal", "free", "prismatic"], [-1, 0, 0, -1, 3], 12)
S = State(TREE, 5, 6)
REST = np.zeros_like(S.qd)
LIMITED = replace(
    TREE,
    joints=tuple(
        replace(j, limits=Limits((-0.2, -math.inf), (0.1, 0.15))) if j.name == "j2" else j for j in TREE.joints
    ),
)
A, B = (0.3, -0.2, 0.5), (-0.4, 0.1, 0.2)
SPRING = SpringDamper("b2", "b4", A, B, stiffness=70.0, free_length=0.6, preload=-12.0)
DAMPER = SpringDamper("b2", "b4", A, B, damping=4.0)

STORING = {
    "joint spring": JointSpring("j2", (30.0, 50.0), (0.2, -0.1)),
    "one number": JointSpring("j0", 30.0),
    "spring between bodies": SPRING,
    "spring to the ground": SpringDamper("b1", GROUND, A, (1.0, 2.0, 0.5), stiffness=40.0, free_length=0.3),
    "stops": JointStops("j2", stiffness=500.0, softness=0.05),
    "all stops": JointStops(stiffness=(500.0, 200.0), softness=0.05),
}
TAKING = {
    "joint damper": JointDamper("j1", (1.0, 2.0, 3.0)),
    "friction": JointFriction("j3", 2.5, slip_speed=0.1),
    "damper between bodies": DAMPER,
    "damped stops": JointStops(stiffness=0.0, damping=5.0, softness=0.05),
}


def alone(force, qd=S.qd, mechanism=LIMITED, t=0.0):
    """Return the generalized forces of one force from the accelerations and inverse dynamics."""
    return torques(mechanism, S.q, qd, forces=[force], t=t)


@pytest.mark.parametrize("name", everyday.some(STORING))
def test_force_is_minus_the_slope_of_the_energy(name):
    """Differentiate the energy along every degree of freedom, quaternions included."""
    force = STORING[name]
    expected = -slope(LIMITED, lambda q: energy(LIMITED, force, q), S.q)
    assert np.abs(expected).max() > 1.0
    assert_close(relative(alone(force, REST), expected), 0.0, 2e-9, name)  # 1.2e-10


def test_spring_is_that_of_the_paper():
    """Compare with (35) and (20) of [Goncalves2023] by poses and Jacobians."""
    poses = compute(TREE, "poses", S.q)
    a, b = (poses[:, k, :3, :3] @ p + poses[:, k, :3, 3] for k, p in ((2, A), (4, B)))
    length = np.linalg.norm(b - a, axis=-1)
    F = 70.0 * (0.6 - length) - 12.0
    expected = 70.0 * (length - 0.6) ** 2 / 2 + 12.0 * length
    assert_close(relative(energy(TREE, SPRING, S.q), expected), 0.0, 1e-14, "energy")
    moved = np.stack([_pushed(poses, k, p, s * (F / length)[:, None] * (b - a)) for k, p, s in ((2, A, -1), (4, B, 1))])
    wrenches = np.zeros((6, 5, 6))
    wrenches[:, 2], wrenches[:, 4] = moved
    qdd = compute(TREE, "forward_dynamics", S.q, S.qd, REST, wrenches=wrenches)
    assert_close(relative(rates_of(TREE, S.q, S.qd, forces=[SPRING])[1], qdd), 0.0, 1e-12, "accelerations")


def _pushed(poses, k, point, force):
    """Return the wrench in the frame of a body for a force in the axes of the ground."""
    f = np.einsum("sij,si->sj", poses[:, k, :3, :3], force)
    return np.concatenate([np.cross(point, f), f], axis=-1)


@pytest.mark.parametrize("name", TAKING)
def test_dampers_take_energy(name):
    """Find a power that is never positive, and negative for some states."""
    power = (alone(TAKING[name]) * S.qd).sum(axis=-1)
    assert power.max() < 1e-11 and power.min() < -1e-3


def test_damper_takes_the_square_of_the_rate():
    """Find the power -c (dL/dt)^2, with the rate of the length by differences."""

    def length(q):
        return energy(TREE, SpringDamper("b2", "b4", A, B, preload=-1.0), q)

    step = 1e-5
    ahead, behind = (length(compute(TREE, "integrate", S.q, h * S.qd)) for h in (step, -step))
    rate = (ahead - behind) / (2 * step)
    power = (alone(DAMPER, mechanism=TREE) * S.qd).sum(axis=-1)
    assert_close(relative(power, -4.0 * rate**2), 0.0, 5e-8)  # 6e-9


@pytest.mark.parametrize("name", ["joint damper", "friction"])
def test_joint_losses_follow_their_law(name):
    """Compare with the formulas in NumPy."""
    expected = np.zeros_like(S.qd)
    if name == "friction":
        v = S.qd[:, 6:12]
        expected[:, 6:12] = -2.5 * v / np.sqrt(v**2 + 0.01)
    else:
        expected[:, 1:4] = -np.array([1.0, 2.0, 3.0]) * S.qd[:, 1:4]
    assert_close(relative(alone(TAKING[name]), expected), 0.0, 1e-12, name)


def test_stops_follow_their_law():
    """Find no torque within the limits, and stiffness and damping beyond them."""
    k, c, w = 500.0, 5.0, 0.05
    q = np.tile(S.q[:1], (5, 1))
    q[:, 5] = [0.0, 0.12, 0.9, -0.21, -0.7]  # the limits are -0.2 and 0.1
    q[:, 6] = [0.1, 0.1, -9.0, 0.1, 0.1]  # there is no lower limit
    qd = np.tile(S.qd[:1], (5, 1))
    qd[:, 4] = 0.3
    tau = torques(LIMITED, q, qd, forces=[JointStops("j2", k, c, softness=w)])
    x = np.array([0.0, 0.02, 0.8, 0.01, 0.5])
    h = np.where(x < w, x**2 / (2 * w), x - w / 2)
    expected = -np.array([1, 1, 1, -1, -1]) * k * h - c * np.minimum(x / w, 1.0) * 0.3
    assert_close(tau[:, 4], expected, 1e-10, "the first coordinate")
    assert_close(np.delete(tau, 4, axis=1), np.zeros((5, TREE.nv - 1)), 1e-10, "the others")


def test_action_is_reaction():
    """Find no change of the momentum of two free bodies, angular and linear, under all forces between them."""
    mechanism = replace(random_mechanism(["free", "free"], [-1, -1], 9), gravity=(0.0, 0.0, 0.0))
    spring = SpringDamper("b0", "b1", A, B, stiffness=60.0, damping=7.0, free_length=0.4, preload=3.0)
    forces = [spring, LinearActuator("b1", "b0", B, A, force=lambda t: smooth.sin(t) * 9.0)]
    s = State(mechanism, 3, 6)
    dq, dqd = rates_of(mechanism, s.q, s.qd, forces=forces, t=0.8)
    assert np.abs(dqd).max() > 1.0
    change = derivative(program(mechanism, "momentum"), [s.q, s.qd], [dq, dqd])
    assert_close(change, np.zeros((6, 6)), 2e-12)  # 2.5e-13


def test_coinciding_points_have_no_force():
    """Let two points coincide and find no force; find the full force at a small distance."""
    rng = np.random.default_rng(2)
    names = ("b0", "b1")
    joints = [Joint(f"to {name}", "free", GROUND, name) for name in names]
    mechanism = build_mechanism("pair", [body(name, rng) for name in names], joints)
    spring = SpringDamper("b0", "b1", stiffness=60.0, damping=7.0, free_length=0.4, preload=3.0)
    q = np.tile([0.0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1], (3, 1))
    q[:, 7] = [0.0, 1e-3, 100 * TINY]
    rest = np.zeros((3, 12))
    tau = torques(mechanism, q, rest, forces=[spring])
    assert_close(tau[0], np.zeros(12), 1e-12, "at one point")
    assert_close(tau[1:, 9], [60.0 * (0.4 - 1e-3) + 3.0, 27.0], 2e-3, "near by")
    assert np.isfinite(rates_of(mechanism, q, rng.normal(size=(3, 12)), forces=[spring])[1]).all()


@pytest.mark.parametrize("force", [9.0, lambda t: 4.5 + 4.5 * t])
def test_actuator_pushes_apart(force):
    """Find the power F dL/dt of a constant force, and of one that depends on time."""
    spring = SpringDamper("b2", "b4", A, B, preload=9.0)
    actuator = LinearActuator("b2", "b4", A, B, force=force)
    assert_close(alone(actuator, t=1.0), alone(spring), 1e-12)


def test_external_wrench_acts_in_the_grounds_axes():
    """Compare with the transposed Jacobian of the point, for constants and for functions of time and state."""
    tool = TREE.frame("tool")
    J = compute(TREE, "jacobian", S.q, frame="tool", axes="world")
    n, f = np.array([0.3, -0.7, 1.1]), np.array([2.0, -1.0, 0.4])
    expected = np.einsum("sij,i->sj", J, np.concatenate([n, f]))
    constant = ExternalWrench(tool.body, tool.placement.translation, force=f, moment=list(n))
    assert_close(relative(alone(constant), expected), 0.0, 1e-12, "constants")

    def drag(t, now):
        _, v = now.point(tool.body, tool.placement.translation)
        return [-t * x for x in v]

    v = np.einsum("sij,sj->si", J, S.qd)[:, 3:]
    expected = np.einsum("sij,si->sj", J[:, 3:], -2.0 * v)
    varying = ExternalWrench(tool.body, tool.placement.translation, force=drag)
    assert_close(relative(alone(varying, t=2.0), expected), 0.0, 1e-12, "drag")


def test_native_code_agrees():
    """Compile the rates under all forces together and compare with the interpreter."""
    compiled = rates(ForcedMechanism(LIMITED, [*STORING.values(), *TAKING.values()]))
    arguments = (np.zeros((6, 1)), S.q, S.qd)
    for native, plain in zip(gufunc(compiled)(*arguments), compiled.interpret(*arguments), strict=True):
        assert_close(relative(native, plain), 0.0, 1e-12)


def test_parameters_reach_the_forces():
    """Change a spring rate, a rest angle and a damping that are free parameters."""
    rng = np.random.default_rng(3)
    names = ("k", "rest", "c")
    hinge = Joint("hinge", "revolute", GROUND, "bob", axis=(0.0, 1.0, 0.2), damping=(parse("2 * c"),))
    element = ForceElement("s", "spring_damper", "bob", GROUND, A, B, (("stiffness", parse("k")),))
    free = [Parameter(n, 1.0, free=True) for n in names]
    mechanism = build_mechanism("pendulum", [body("bob", rng)], [hinge], forces=[element], parameters=free)
    plain = replace(mechanism, parameters=tuple(Parameter(n, v) for n, v in zip(names, (30.0, 0.3, 1.5), strict=True)))
    push = LinearActuator("bob", GROUND, A, B, force=parse("k - c"))
    forces = [*forces_of(mechanism), JointSpring("hinge", parse("k"), parse("rest")), push]
    q, qd = np.array([[0.4]]), np.array([[0.7]])
    qdd = rates_of(mechanism, q, qd, forces=forces, parameters=[[30.0, 0.3, 1.5]])[1]
    assert_close(qdd, rates_of(plain, q, qd, forces=forces)[1], 1e-12, "given")
    spring = SpringDamper("bob", GROUND, A, B, stiffness=30.0, preload=28.5)
    numbers = [JointDamper("hinge", 3.0), spring, JointSpring("hinge", 30.0, 0.3)]
    assert_close(qdd, rates_of(plain, q, qd, forces=numbers)[1], 1e-12, "numbers")


def test_forces_of_a_mechanism():
    """List damping, friction and force elements as the mechanism has them."""
    elements = (
        ForceElement("s", "spring_damper", "b0", "b1", A, B, (("stiffness", 5.0), ("preload", -1.0))),
        ForceElement("a", "linear_actuator", "b0", GROUND, A, B, (("force", 3.0),)),
    )
    joints = (replace(TREE.joints[0], damping=(0.3,), friction=(0.2,)), *TREE.joints[1:])
    mechanism = replace(TREE, joints=joints, forces=elements)
    assert passive(mechanism, slip_speed=0.02) == [JointDamper("j0", 0.3), JointFriction("j0", 0.2, slip_speed=0.02)]
    assert forces_of(mechanism)[2:] == [
        SpringDamper("b0", "b1", A, B, stiffness=5.0, preload=-1.0),
        LinearActuator("b0", GROUND, A, B, force=3.0),
    ]
    assert forces_of(one_of_each()) == []


@pytest.mark.parametrize(
    ("kind", "coefficients", "message"),
    [
        ("spring", (), r"force 'f': no kind of force 'spring'; .*available: spring_damper, linear_actuator"),
        (
            "spring_damper",
            (("k", 1.0),),
            "force 'f': no coefficient 'k'; available: stiffness, damping, free_length, pre",
        ),
        (
            "spring_damper",
            (("damping", -1.0),),
            "force 'f': the damping of SpringDamper between 'b0' and 'b1' is -1; give",
        ),
    ],
)
def test_unknown_elements_are_named(kind, coefficients, message):
    """Give a force element of an unknown kind, and read the known ones."""
    element = ForceElement("f", kind, "b0", "b1", coefficients=coefficients)
    with pytest.raises(ModelError, match=message):
        forces_of(replace(TREE, forces=(element,)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: JointSpring("j1", 1.0),
            "JointSpring cannot act on the joint 'j1': a spherical joint has 4 coordinates",
        ),
        (lambda: JointSpring("j2", (1.0,) * 3), "the stiffness of 'j2' has 3 numbers; give one, or 2"),
        (lambda: JointSpring("j2", 1.0, math.nan), "the rest of JointSpring of 'j2' is nan; give a finite number"),
        (lambda: JointDamper("j0", -1.0), "the damping of JointDamper of 'j0' is -1; give 0 or more"),
        (lambda: JointDamper("j0", (1.0, 2.0)), "the damping of 'j0' has 2 numbers; give one"),
        (
            lambda: JointFriction("j0", 1.0, slip_speed=0.0),
            "the slip_speed of JointFriction of 'j0' is 0; give more than zero",
        ),
        (lambda: JointStops("j0", softness=-1.0), "the softness of JointStops of 'j0' is -1; give more than zero"),
        (lambda: JointStops("j0"), "JointStops of 'j0': the joint has no limits; give it a lower or upper limit"),
        (lambda: JointDamper("j7", 1.0), "JointDamper: no joint 'j7'; available: j0, j1, j2, j3, j4"),
        (lambda: SpringDamper("b0", "b9"), "SpringDamper: no body 'b9'; available: b0, b1, b2, b3, b4, ground"),
        (
            lambda: SpringDamper("b0", "b1", (1.0, 2.0)),
            "point_a of SpringDamper between 'b0' and 'b1' has 2 numbers; give 3",
        ),
        (lambda: SpringDamper("b0", "b1", free_length=-1.0), "free_length of SpringDamper between 'b0' and 'b1' is -1"),
        (
            lambda: LinearActuator("b0", "b1", force="very much"),
            "force of LinearActuator between 'b0' and 'b1': unexpected 'much' in the expression",
        ),
        (lambda: ExternalWrench("grond"), "ExternalWrench: no body 'grond'; did you mean 'ground'? available: b0, b1"),
        (lambda: ExternalWrench(GROUND), "ExternalWrench acts on the ground, which cannot move; name a body"),
        (lambda: ExternalWrench("b0", force=3.0), "the force of ExternalWrench on 'b0' has 1 numbers; give 3"),
        (
            lambda: ExternalWrench("b0", moment=lambda t, now: t),
            "the moment of ExternalWrench on 'b0' is a function that",
        ),
    ],
)
def test_faults_are_named(make, message):
    """Give a force a wrong argument, and read its name and the remedy."""
    with pytest.raises((InputError, ModelError)) as caught:
        rates(ForcedMechanism(TREE, [make()]))
    assert message in str(caught.value)
