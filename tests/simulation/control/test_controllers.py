"""Controllers against their formulas in NumPy, compiled and interpreted, and the errors they raise."""

from __future__ import annotations

import math

import numpy as np
import pytest

import everyday
from forces_by_numpy import rates_of, torques
from interpreted import compute, relative
from kinetree import InputError, Joint, Limits, ModelError, Parameter, Sampled, System, build_mechanism, load, simulate
from kinetree.model.mechanism import replace
from kinetree.model.parameters import parse
from kinetree.simulation.acting import smooth
from kinetree.simulation.acting.controllers import (
    PD,
    ComputedTorque,
    FeedForward,
    PDGravity,
    Saturated,
    Sum,
    TorqueFunction,
)
from kinetree.simulation.acting.rates import ForcedMechanism, rates
from kinetree.simulation.acting.references import Cosine, Cycloid, Hold, sampled
from native_program import gufunc
from strategies import State, body, random_mechanism
from tolerance import assert_close

ARM = random_mechanism(["revolute", "prismatic", "universal", "euler"], [-1, 0, 1, 1], 31, armature=True)
NV = ARM.nv
K, C = np.linspace(20.0, 90.0, NV), np.linspace(1.0, 9.0, NV)
REFERENCE = Cosine(np.linspace(0.2, 0.9, NV), np.linspace(0.5, 2.0, NV), phase=0.3)
S = State(ARM, 7, 5)
T = np.linspace(0.0, 2.0, 5)
WANT = sampled(REFERENCE, T)
E, DE = WANT[0] - S.q, WANT[1] - S.qd
FLOATING = random_mechanism(["free", "revolute", "spherical", "prismatic"], [-1, 0, 0, 1], 8)


def found(control, mechanism=ARM, s=S, t=T):
    """Return the torques of a controller."""
    return torques(mechanism, s.q, s.qd, control=control, t=t)


EXPECTED = {
    "pd": (PD(K, C, REFERENCE), lambda: K * E + C * DE),
    "pd with one gain": (PD(30.0, 2.0, REFERENCE), lambda: 30.0 * E + 2.0 * DE),
    "pd and gravity": (
        PDGravity(K, C, REFERENCE),
        lambda: K * E + C * DE + compute(ARM, "gravity_torque", S.q),
    ),
    "computed torque": (
        ComputedTorque(K, C, REFERENCE),
        lambda: compute(ARM, "inverse_dynamics", S.q, S.qd, WANT[2] + C * DE + K * E),
    ),
    "feed forward": (FeedForward(REFERENCE), lambda: compute(ARM, "inverse_dynamics", *WANT)),
    "sum": (
        Sum([FeedForward(REFERENCE), PD(K, C, REFERENCE)]),
        lambda: compute(ARM, "inverse_dynamics", *WANT) + K * E + C * DE,
    ),
    "saturated": (Saturated(PD(K, C, REFERENCE), 7.0), lambda: np.clip(K * E + C * DE, -7.0, 7.0)),
    "function": (
        TorqueFunction(
            lambda t, q, qd: [smooth.sin(t) * a - b * smooth.absolute(b) for a, b in zip(q, qd, strict=True)]
        ),
        lambda: np.sin(T)[:, None] * S.q - S.qd * np.abs(S.qd),
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_torques_follow_the_formula(name):
    """Recover the torques from the accelerations and compare with the formula in NumPy."""
    control, expected = EXPECTED[name]
    assert_close(relative(found(control), expected()), 0.0, 1e-13, name)  # 2.4e-15


@pytest.mark.parametrize("name", everyday.some(EXPECTED))
def test_native_code_agrees(name):
    """Compile the rates under each controller and compare with the interpreter."""
    program = rates(ForcedMechanism(ARM, control=EXPECTED[name][0]))
    arguments = (T[:, None], S.q, S.qd)
    for native, plain in zip(gufunc(program)(*arguments), program.interpret(*arguments), strict=True):
        assert_close(relative(native, plain), 0.0, 1e-12, name)


def test_computed_torque_makes_the_error_linear():
    """Find e'' + c e' + k e = 0 for the accelerations of the arm itself."""
    qdd = rates_of(ARM, S.q, S.qd, control=ComputedTorque(K, C, REFERENCE), t=T)[1]
    assert_close(relative(WANT[2] - qdd, -C * DE - K * E), 0.0, 1e-12)


def test_feed_forward_moves_along_the_reference():
    """Start on the reference and find its accelerations."""
    motion = Cycloid(0.1 * np.arange(NV), 1.0, 2.0)
    q, qd, qdd = sampled(motion, T)
    assert_close(rates_of(ARM, q, qd, control=FeedForward(motion), t=T)[1], qdd, 1e-12)


def test_gravity_compensation_holds_still():
    """Start at rest on the set point and stay, with gains as in [Wolinski2015] (33) and (34)."""
    arm = load("kuka_lwr4").mechanism
    k, c = [10, 1000, 200, 100, 10, 10, 10], [1000, 10000, 1000, 1000, 10, 10, 10]
    q = np.full((1, 7), 0.4)
    rest = rates_of(arm, q, np.zeros((1, 7)), control=PDGravity(k, c, Hold(q[0])))[1]
    assert_close(rest, np.zeros((1, 7)), 1e-10)
    fall = rates_of(arm, q, np.zeros((1, 7)), control=PD(k, c, Hold(q[0])))[1]
    assert np.abs(fall).max() > 0.1


def test_some_joints_of_a_floating_mechanism():
    """Drive two joints of a floating tree, named in another order, and find no torque in the others."""
    s = State(FLOATING, 2, 4)
    control = PD([5.0, 7.0], [1.0, 2.0], Hold([0.3, -0.2]), joints=("j3", "j1"))
    gravity = PDGravity([5.0, 7.0], [1.0, 2.0], Hold([0.3, -0.2]), joints=("j3", "j1"))
    expected = np.zeros((4, FLOATING.nv))
    expected[:, 7] = 5.0 * (0.3 - s.q[:, 8]) - 1.0 * s.qd[:, 7]  # the branch of j1 and j3 comes before j2
    expected[:, 6] = 7.0 * (-0.2 - s.q[:, 7]) - 2.0 * s.qd[:, 6]
    assert_close(relative(found(control, FLOATING, s, 0.0), expected), 0.0, 1e-12, "pd")
    expected[:, 6:8] += compute(FLOATING, "gravity_torque", s.q)[:, 6:8]
    assert_close(relative(found(gravity, FLOATING, s, 0.0), expected), 0.0, 1e-12, "pd and gravity")


def test_saturation_by_the_joints_efforts():
    """Clip torques to the effort limits of the joints that have them, and leave the other torques unchanged."""
    joints = [replace(j, limits=Limits(effort=(3.0,))) if j.name == "j0" else j for j in ARM.joints]
    arm = replace(ARM, joints=tuple(joints))
    tau = K * E + C * DE
    expected = np.concatenate([np.clip(tau[:, :1], -3.0, 3.0), tau[:, 1:]], axis=1)
    assert np.abs(tau[:, 0]).max() > 3.0
    assert_close(relative(found(Saturated(PD(K, C, REFERENCE)), arm), expected), 0.0, 1e-12)


def test_controllers_see_free_parameters():
    """Compute the torque with the given mass instead of the nominal one."""
    rng = np.random.default_rng(3)
    bob = replace(body("bob", rng), mass=parse("2 * m"))
    hinge = Joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.2))
    mechanism = build_mechanism("pendulum", [bob], [hinge], parameters=[Parameter("m", 1.0, free=True)])
    q, qd = np.array([[0.3]]), np.array([[0.7]])
    qdd = rates_of(mechanism, q, qd, control=ComputedTorque(4.0, 3.0, Hold([0.1])), parameters=[[2.7]])[1]
    assert_close(qdd, [[4.0 * (0.1 - 0.3) - 3.0 * 0.7]], 1e-12)


def by_math(t, q, qd):
    """Return torques by a function of math, which cannot be traced."""
    return [math.sin(x) for x in q]


def jump(t, q, qd):
    """Return torques by an `if`, which cannot be traced."""
    return [1.0 if x > 0 else -1.0 for x in q]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PD([1.0, 2.0], 1.0, REFERENCE), f"k of PD has 2 numbers; give one, or {NV}"),
        (lambda: ComputedTorque(1.0, [1.0] * 2, REFERENCE), f"c of ComputedTorque has 2 numbers; give one, or {NV}"),
        (lambda: PD(math.nan, 1.0, REFERENCE), "k of PD is nan; give a finite number"),
        (lambda: PDGravity(1.0, "c +", REFERENCE), "c of PDGravity: something is missing at the end in the expression"),
        (
            lambda: PD(1.0, 1.0, [0.0] * NV),
            "the reference of PD is not a function of time; give one, or Hold(q) for a set",
        ),
        (lambda: PD(1.0, 1.0, Hold(0.0)), f"the reference returns 1 coordinates; expected {NV}"),
        (lambda: FeedForward(lambda t: ([0.0] * NV, [0.0], [0.0])), "the reference returns 1 velocities; expected"),
        (lambda: FeedForward(lambda t: None), "the reference does not return lists (q, qd, qdd) at a traced time"),
        (
            lambda: FeedForward(lambda t: ([math.sin(t)],) * 3),
            "does not return lists (q, qd, qdd) at a traced time (must",
        ),
        (lambda: PD(1.0, 1.0, Hold([0.0, 0.0]), joints=("j0", "j0")), "PD drives the joint 'j0' twice; name it once"),
        (lambda: Saturated(PD(1.0, 1.0, REFERENCE), -1.0), "the limit of Saturated is -1; give 0 or more"),
        (
            lambda: Saturated(PD(1.0, 1.0, REFERENCE), [1.0, 2.0]),
            f"limit of Saturated has 2 numbers; give one, or {NV}",
        ),
        (
            lambda: Saturated(PD(1.0, 1.0, REFERENCE)),
            "no joint of 'random' has an effort limit; give Saturated a limit",
        ),
        (
            lambda: TorqueFunction(lambda t, q, qd: q[:2]),
            f"the controller '<lambda>' returned 2 torques; expected {NV}",
        ),
        (
            lambda: TorqueFunction(lambda now: [0.0]),
            "the controller '<lambda>' is no function of (t, q, qd): too many positional arguments",
        ),
        (
            lambda: TorqueFunction(by_math),
            "the controller 'by_math' cannot be compiled (must be real number, not Value); write",
        ),
        (
            lambda: TorqueFunction(jump),
            "the controller 'jump' cannot be compiled (a traced condition is neither true nor false",
        ),
    ],
)
def test_faults_are_named(make, message):
    """Give a controller a wrong argument, and read its name and the remedy."""
    with pytest.raises(InputError) as caught:
        rates(ForcedMechanism(ARM, control=make()))
    assert message in str(caught.value)


def test_unknown_joint_is_named():
    """Drive a joint that does not exist, and read the list of joints."""
    with pytest.raises(ModelError, match="PD: no joint 'j9'; available: j0, j1, j2, j3"):
        rates(ForcedMechanism(ARM, control=PD(1.0, 1.0, Hold([0.0]), joints=("j9",))))


@pytest.mark.parametrize(
    ("control", "remedy"),
    [
        (PD(1.0, 1.0, Hold([0.0])), "name the joints to drive by joints="),
        (FeedForward(Hold([0.0])), "use joints with as many of both, such as euler or free_euler"),
    ],
)
def test_joints_that_are_not_flat_are_refused(control, remedy):
    """Read the name of the joint whose coordinates cannot be subtracted, and the remedy."""
    who = type(control).__name__
    message = f"{who} cannot act on the joint 'j0': a free joint has 7 coordinates for 6 velocities; "
    with pytest.raises(InputError, match=message + remedy):
        rates(ForcedMechanism(FLOATING, control=control))


class Remembering:
    """A control law that stores the damping torques of its last call."""

    def __init__(self) -> None:
        """Start without torques."""
        self.last = [0.3] * NV

    def __call__(self, t, q, qd):
        """Return the stored torques."""
        now, self.last = self.last, [-2.0 * v for v in qd]
        return now


@pytest.mark.parametrize("wrapped", [lambda c: c, lambda c: Sampled(c, rate=100.0), lambda c: Saturated(c, 5.0)])
def test_a_compiled_control_cannot_remember(wrapped):
    """Refuse a function that stores traced values from one call to the next, also if it is sampled."""
    control = wrapped(TorqueFunction(Remembering()))
    with pytest.raises(InputError, match=r"a traced value of an earlier compilation was used again.*kt\.PythonControl"):
        simulate(System(ARM), S.q[0], S.qd[0], duration=0.05, control=control, progress=False)
