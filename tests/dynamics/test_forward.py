"""Forward dynamics: the inverse of inverse dynamics, with and without external wrenches."""

# ruff: noqa: E741 - I is the papers' letter

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import everyday
from interpreted import compute, relative
from kinetree import Body, Joint, ModelError, System, build_mechanism
from kinetree.runtime.singularity import weightless_joints
from rounding_scales import per_sample, torque_scale
from strategies import State, body, examples, moving_mechanisms, random_mechanism
from tolerance import assert_close

EPS = np.finfo(float).eps


def conditions(mechanism, q) -> float:
    """Return the largest condition number of the inertia matrices."""
    return float(np.linalg.cond(compute(mechanism, "inertia_matrix", q)).max())


@given(moving_mechanisms())
@examples(60)
def test_forward_dynamics_solves_the_inertia_matrix(mechanism):
    """Solve I qdd = tau - h and find the accelerations of the recursion."""
    s = State(mechanism)
    qdd = compute(mechanism, "forward_dynamics", s.q, s.qd, s.tau)
    I = compute(mechanism, "inertia_matrix", s.q)
    h = compute(mechanism, "bias_torque", s.q, s.qd)
    solved = np.linalg.solve(I, (s.tau - h)[..., None])[..., 0]
    bound = 4 * EPS * max(conditions(mechanism, s.q), 8)  # a thirtieth of it
    assert_close(relative(qdd, solved), 0.0, bound, "FD = solve(I, tau - h)")


@given(moving_mechanisms())
@examples(60)
def test_forward_undoes_inverse(mechanism):
    """Compute torques of accelerations and find these accelerations again, under external wrenches."""
    s = State(mechanism)
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd, wrenches=s.wrenches)
    qdd = compute(mechanism, "forward_dynamics", s.q, s.qd, tau, wrenches=s.wrenches)
    # The torques' own rounding passes through I^-1: relative to what the torques are, not to qdd.
    inverse = np.linalg.norm(compute(mechanism, "inverse_inertia_matrix", s.q), 2, axis=(1, 2))
    size = np.abs(s.qdd).max(axis=-1) + inverse * np.abs(tau).max(axis=-1)
    assert_close((qdd - s.qdd) / size[:, None], np.zeros_like(qdd), 200 * EPS, "FD(ID(qdd)) = qdd")  # 4e-16


@given(moving_mechanisms())
@examples(60)
def test_inverse_undoes_forward(mechanism):
    """Compute accelerations under torques and find these torques again, under external wrenches."""
    s = State(mechanism)
    qdd = compute(mechanism, "forward_dynamics", s.q, s.qd, s.tau, wrenches=s.wrenches)
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, qdd, wrenches=s.wrenches)
    # Relative to the terms that the torques are sums of, gravity among them: it may be far larger than tau.
    size = per_sample(torque_scale, mechanism, s.q, s.qd, qdd, s.wrenches)[:, None]
    bound = 8 * EPS * max(conditions(mechanism, s.q), 8)
    assert_close(tau / size, s.tau / size, bound, "ID(FD(tau)) = tau")  # a fortieth of it


def assert_torques_come_back(mechanism):
    """Compare ID(FD(tau)) with tau, relative to the terms of the torques."""
    s = State(mechanism)
    qdd = compute(mechanism, "forward_dynamics", s.q, s.qd, s.tau)
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, qdd)
    size = per_sample(torque_scale, mechanism, s.q, s.qd, qdd)[:, None]
    assert_close(tau / size, s.tau / size, 8 * EPS * conditions(mechanism, s.q), "ID(FD(tau)) = tau")


def pendulum(mass: float, inertia: float, armature: tuple = ()) -> System:
    """Return a heavy arm with a light tip on a second joint."""
    arm = Body("arm", 1.0, (0.5, 0.0, 0.0), (0.1, 0.1, 0.1, 0.0, 0.0, 0.0))
    tip = Body("tip", mass, (0.0, 0.0, 0.0), (inertia, inertia, inertia, 0.0, 0.0, 0.0))
    joints = [
        Joint("shoulder", "revolute", "ground", "arm", axis=(0.0, 1.0, 0.0)),
        Joint("wrist", "revolute", "arm", "tip", armature=armature),
    ]
    return System(build_mechanism("light", [arm, tip], joints))


@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_inertia_matrix"])
def test_a_tip_without_inertia_is_refused_by_name(name):
    """Request accelerations of a tip without inertia and read which joint is the cause, and the remedy."""
    expected = (
        f"mechanism 'light': {name} requires an invertible inertia matrix, but no inertia resists the motion of "
        "joint 'wrist'; give the bodies beyond it mass and inertia, or the joint an armature"
    )
    with pytest.raises(ModelError) as caught:
        pendulum(0.0, 0.0).function(name)
    assert str(caught.value) == expected


def test_a_point_mass_on_its_own_axis_is_refused():
    """Refuse a tip whose mass is on the joint's axis, where no inertia resists the rotation."""
    with pytest.raises(ModelError, match="joint 'wrist'"):
        pendulum(1.0, 0.0).forward_dynamics([0.1, 0.2], [0.0, 0.0], [0.0, 0.0])


def test_an_armature_makes_a_light_tip_possible():
    """Give the drive an inertia and find the acceleration of the drive alone."""
    qdd = pendulum(0.0, 0.0, (0.02,)).forward_dynamics([0.1, 0.2], [0.3, 0.4], [0.0, 0.5])
    assert_close(qdd[1], 0.5 / 0.02, 1e-13, "tau / armature")


def test_every_weightless_joint_is_named():
    """Find all weightless joints of a tree, in order."""
    made = random_mechanism(["revolute", "free", "prismatic", "spherical"], [-1, 0, 0, 2], 3)
    bodies = [replace(b, mass=0.0, inertia=(0.0,) * 6) if b.name in ("b1", "b3") else b for b in made.bodies]
    light = build_mechanism("light", bodies, made.joints)
    assert weightless_joints(light) == ("j1", "j3")
    assert weightless_joints(made) == ()


@pytest.mark.parametrize("place", [0, 1], ids=["root", "middle"])
def test_a_body_without_mass_below_others_works(place):
    """Solve a chain with a massless root or middle body, beyond which there are bodies with mass."""
    made = random_mechanism(["revolute", "universal", "revolute"], [-1, 0, 1], 8)
    bodies = list(made.bodies)
    bodies[place] = Body(bodies[place].name)
    chain = build_mechanism("light", bodies, made.joints)
    assert_torques_come_back(chain)


@everyday.long
def test_a_long_chain_keeps_its_digits():
    """Solve a chain of 40 bodies and find the torques again."""
    assert_torques_come_back(random_mechanism(["revolute"] * 40, range(-1, 39), 2))


def test_bodies_are_general():
    """Draw a body whose six moments all differ from zero."""
    assert min(map(abs, body("b", np.random.default_rng(0)).inertia)) > 0


def test_added_inertias_are_those_of_drives():
    """Find the accelerations of the inertia matrix plus a diagonal."""
    system = System(random_mechanism(["revolute", "spherical", "prismatic"], [-1, 0, 1], 12))
    s = State(system.mechanism, 4)
    added = np.abs(s.qdd) + 0.1
    found = system.implicit_dynamics(s.q, s.qd, s.tau, added)
    whole = system.inertia_matrix(s.q) + added[..., None] * np.eye(system.nv)
    expected = np.linalg.solve(whole, (s.tau - system.bias_torque(s.q, s.qd))[..., None])[..., 0]
    assert_close(found, expected, 20 * EPS * np.linalg.cond(whole).max() * np.abs(expected).max(), "qdd")
