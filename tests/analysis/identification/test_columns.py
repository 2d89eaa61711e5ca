"""Regressors with columns of joints, of closed mechanisms, and beside those of Pinocchio."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
import numpy as np
import pytest
from hypothesis import given

import everyday
import kinetree as kt
from closed_mechanisms import closed_mechanisms, library_state, motion
from kinetree import InputError, System, UnknownNameError
from kinetree.model import ForceElement
from kinetree.model.axes import entries
from rounding_scales import torque_scale
from strategies import FLAT, State, examples, moving_mechanisms, random_mechanism
from tolerance import assert_close

EPS = np.finfo(float).eps
EVERY = ("viscous", "coulomb", "offset", "armature", "stiffness")


def resisting(mechanism, seed: int = 0) -> kt.Mechanism:
    """Return a mechanism with armature, damping, friction and springs in all joints."""
    rng = np.random.default_rng(seed)
    joints, springs = [], []
    for joint, own in zip(mechanism.joints, mechanism.v_slices, strict=True):
        n = own.stop - own.start
        numbers = {name: tuple(rng.uniform(0.1, 2.0, n)) for name in ("damping", "friction", "armature")}
        joints.append(replace(joint, **numbers))
        given_ = {f"{what}_{k + 1}": float(rng.uniform(0.1, 2.0)) for k in range(n) for what in ("stiffness", "rest")}
        if n:
            name = f"spring of {joint.name}"
            springs.append(ForceElement(name, "joint_spring", joint.parent, joint.child,
                                        coefficients=tuple(given_.items())))  # fmt: skip
    return replace(mechanism, joints=tuple(joints), forces=tuple(springs))


@given(moving_mechanisms(FLAT, most=4))
@examples(20)
def test_all_columns_are_inverse_dynamics_with_its_own_forces(mechanism):
    """Multiply all columns by all parameters and find the torques of drives, springs and friction included."""
    system = System(resisting(mechanism))
    s = State(system.mechanism)
    pi = system.dynamic_parameters(EVERY)
    Y = system.regressor(s.q, s.qd, s.qdd, columns=EVERY)
    assert Y.shape == (3, system.nv, len(pi)) == (3, system.nv, len(system.dynamic_parameter_names(EVERY)))
    size = np.abs(Y) @ np.abs(pi)
    tau = system.inverse_dynamics(s.q, s.qd, s.qdd)
    assert_close((Y @ pi - tau) / size.max(axis=-1, keepdims=True), 0.0 * tau, 20 * EPS, "Y pi")  # 2e-16


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "slider_crank", "gear_train", "three_rrr"])
def test_closed_mechanisms_by_their_actuated_joints(name):
    """Multiply the regressor of the actuated joints by the parameters and find their torques."""
    check_actuated(*library_state(name, 3))


@everyday.long
@given(closed_mechanisms(most=4))
@examples(20)
def test_random_closed_mechanisms(given_):
    """Multiply the regressor of joints that lead a random closed mechanism by its parameters."""
    mechanism, q = given_
    bare = replace(mechanism, joints=tuple(replace(j, armature=()) for j in mechanism.joints))
    # Joints that the loops lock have velocities of rounding errors alone, which open these loops.
    qd, qdd = (np.where(np.abs(x) > 1e-14, x, 0.0) for x in motion(bare, q))
    hypothesis.assume(qd.any())
    check_actuated(System(bare), q, qd, qdd)


def check_actuated(system: System, q, qd, qdd) -> None:
    """Compare the torques of leading joints with those of inverse dynamics, to the rounding of the open tree's."""
    actuated = _leading(system, q)
    Y, pi = system.regressor(q, qd, qdd, actuated=actuated), system.dynamic_parameters()
    tau = system.inverse_dynamics(q, qd, qdd, actuated=actuated, forces=False)
    driven = sorted(k for name in actuated for k in entries(system.mechanism, name, 1))
    size = max(np.abs(Y).max(initial=0.0) * np.abs(pi).max(), torque_scale(system.mechanism, q, qd, qdd))
    assert_close(Y @ pi - tau, 0.0 * tau, 20 * EPS * size, system.mechanism.name)
    assert not Y[[k for k in range(system.nv) if k not in driven]].any()


def _leading(system: System, q) -> list[str]:
    """Return joints, or axes of joints, that determine the motion."""
    return [str(name) for name in system.independent(q).names]


def test_batches_broadcast():
    """Compute batches with broadcasting, parameters and options, and single states with the same numbers."""
    system, q, qd, qdd = library_state("four_bar", 3)
    lead = _leading(system, q)
    whole = system.regressor(np.stack([q, q]), qd, qdd, actuated=lead, columns="viscous")
    one = system.regressor(q, qd, qdd, actuated=lead, columns="viscous")
    assert whole.shape == (2, *one.shape) == (2, 3, 33)
    assert_close(whole, np.stack([one, one]), 20 * EPS * np.abs(one).max(), "batch")


def test_against_pinocchio():
    """Compare the columns of a random chain with Pinocchio's, parameter by parameter in the same order."""
    pin = pytest.importorskip("pinocchio")
    from pinocchio_peer import se3

    mechanism = random_mechanism(["revolute", "prismatic", "revolute", "revolute"], [-1, 0, 1, 2], 8)
    model = pin.Model()
    model.gravity = pin.Motion(np.array(mechanism.gravity), np.zeros(3))
    index = 0
    for joint, body in zip(mechanism.joints, mechanism.bodies, strict=True):
        axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
        made = {"revolute": pin.JointModelRevoluteUnaligned, "prismatic": pin.JointModelPrismaticUnaligned}
        index = model.addJoint(index, made[joint.kind](axis), se3(joint.placement), joint.name)
        xx, yy, zz, xy, yz, zx = body.inertia
        tensor = np.array([[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]])
        model.appendBodyToJoint(index, pin.Inertia(body.mass, np.array(body.com), tensor), pin.SE3.Identity())
    system, s = System(mechanism), State(mechanism)
    Y, pi = system.regressor(s.q, s.qd, s.qdd), system.dynamic_parameters()
    theirs = np.concatenate([model.inertias[k].toDynamicParameters() for k in range(1, 5)])
    assert_close(pi, theirs, 20 * EPS * np.abs(pi).max(), "parameters")
    for k in range(3):
        expected = pin.computeJointTorqueRegressor(model, model.createData(), s.q[k], s.qd[k], s.qdd[k])
        assert_close(Y[k], expected, 100 * EPS * np.abs(expected).max(), "regressor")


def test_names_and_units():
    """Read the names of columns: parameters by body, and sorts by joint."""
    system = kt.load("planar_2r")
    first, second = (b.name for b in system.bodies)
    names = system.dynamic_parameter_names(["coulomb", "armature"])
    moments = ["Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"]
    assert list(names[:10]) == [f"{first}.{x}" for x in ("m", "mx", "my", "mz", *moments)]
    a, b = (j.name for j in system.joints)
    assert list(names[20:]) == [f"{a}.coulomb", f"{b}.coulomb", f"{a}.armature", f"{b}.armature"]
    assert names[10] == f"{second}.m"


def test_mistakes():
    """Read what is wrong with options that do not exist or do not fit."""
    system = kt.load("planar_2r")
    q = np.array([0.3, -0.4])
    with pytest.raises(UnknownNameError, match="no column 'viscos'; did you mean 'viscous'\\?"):
        system.regressor(q, q, q, columns="viscos")
    with pytest.raises(InputError, match="columns has 'viscous' twice; name it once"):
        system.dynamic_parameters(["viscous", "viscous"])
    with pytest.raises(UnknownNameError, match="no joint 'elbw'"):
        system.regressor(q, q, q, actuated="elbw")
    with pytest.raises(InputError, match="drive 1 of 2 degrees of freedom of 'planar_2r'.*actuate more joints"):
        system.regressor(q, q, q, actuated=system.joints[0].name)
    with pytest.raises(InputError, match=r"columns= or actuated= returns a new array; leave out out="):
        system.regressor(q, q, q, columns="viscous", out=np.zeros((2, 22)))
    ball = System(random_mechanism(["spherical"], [-1], 1))
    s = State(ball.mechanism)
    with pytest.raises(InputError, match="columns has 'stiffness', and joint 'j0' rotates by a quaternion"):
        ball.regressor(s.q, s.qd, s.qdd, columns="stiffness")
    bar = kt.load("four_bar")
    with pytest.raises(InputError, match="q leaves the loops open"):
        bar.regressor(bar.assemble() + 0.1, np.zeros(3), np.zeros(3), actuated=bar.joints[0].name)
