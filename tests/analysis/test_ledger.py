"""The ledger: parts that add up to the torque, each with the right cause."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import flexible_mechanisms
import kinetree as kt
import strategies
from interpreted import compute
from kinetree import library
from kinetree.analysis.ledger import CAUSES, Ledger, ledger
from kinetree.errors import InputError, UnknownNameError
from tolerance import assert_close


def example(seed: int = 3) -> tuple[kt.System, tuple, Ledger]:
    """Return a system with every kind of joint, a state with wrenches, and its ledger."""
    system = kt.System(strategies.one_of_each())
    s = strategies.State(system.mechanism, seed, ())
    state = (s.q, s.qd, s.qdd, s.wrenches)
    return system, state, ledger(system, *state)


@pytest.mark.parametrize("name", everyday.some(everyday.without(library.names(), flexible_mechanisms.LIBRARY)))
def test_parts_add_up(name):
    """Sum the parts of a random motion under wrenches and find the torque, to rounding."""
    system = kt.load(name)
    s = strategies.State(system.mechanism, 1, 2)
    assert_close(system.ledger(s.q, s.qd, s.qdd, s.wrenches).rounding, 0.0, 5e-15, "rounding")


def test_causes_are_what_they_say():
    """Compare each cause with the compiled function of this cause alone."""
    system, (q, qd, qdd, w), found = example()
    whole = system.mechanism
    bare = replace(whole, joints=tuple(replace(j, armature=()) for j in system.joints))
    weightless = replace(bare, gravity=(0.0, 0.0, 0.0))
    expected = {
        "inertia": compute(bare, "inertia_matrix", q) @ qdd,
        "convective": compute(weightless, "bias_torque", q, qd),
        "gravity": compute(whole, "gravity_torque", q),
        "external": compute(weightless, "gravity_torque", q, wrenches=w),
        "armature": compute(whole, "inverse_dynamics", q, qd, qdd) - compute(bare, "inverse_dynamics", q, qd, qdd),
    }
    assert list(found.by_cause) == [*CAUSES, "armature"] == list(expected)
    for name, torque in expected.items():
        assert_close(found.by_cause[name], torque, 1e-12 * max(1.0, np.abs(torque).max()), name)


@everyday.long
@pytest.mark.parametrize("seed", range(3))
def test_parts_of_flexible_bodies_add_up(seed):
    """Sum the parts of a tree with flexible bodies, and find inertia and gravity in those of the compiled functions."""
    system = kt.System(flexible_mechanisms.random_tree(seed, base="free", count=4))
    q, qd, qdd = flexible_mechanisms.state(system, seed)
    w = np.random.default_rng(seed).normal(size=(len(system.bodies), 6))
    found = system.ledger(q, qd, qdd, w)
    assert_close(found.rounding, 0.0, 5e-15, "rounding")
    expected = {
        "inertia": system.inertia_matrix(q) @ qdd,
        "convective": system.convective_matrix(q, qd) @ qd,
        "gravity": system.gravity_torque(q, forces=False),
    }
    for name, torque in expected.items():
        assert_close(found.by_cause[name], torque, 1e-12 * max(1.0, np.abs(torque).max()), name)


@everyday.long
def test_a_body_has_what_is_lost_without_it():
    """Remove the mass of one body after another and find exactly its share missing."""
    system, (q, qd, qdd, _), _ = example()
    found = system.ledger(q, qd, qdd)
    tau = system.inverse_dynamics(q, qd, qdd)
    for k, body in enumerate(system.bodies):
        bodies = list(system.bodies)
        bodies[k] = kt.Body(body.name)
        without = replace(system.mechanism, bodies=tuple(bodies))
        share = tau - compute(without, "inverse_dynamics", q, qd, qdd)
        assert_close(found.by_body[body.name], share, 1e-11, body.name)


def test_friction_is_beside_the_torque():
    """Give joints damping and friction: the torque is the same, and that required of the drive grows."""
    arm = kt.load("planar_2r")
    joints = tuple(replace(j, damping=(0.5,), friction=(0.2,)) for j in arm.joints)
    rough = kt.System(replace(arm.mechanism, joints=joints))
    q, qd, qdd = [0.1, 0.2], [2.0, -3.0], [0.0, 0.0]
    found = rough.ledger(q, qd, qdd)
    assert_close(found.torque, arm.inverse_dynamics(q, qd, qdd), 0.0)
    assert_close(found.friction, [1.2, -1.7], 1e-15)
    assert_close(found.with_friction - found.torque, [1.2, -1.7], 1e-14)
    assert_close(rough.ledger(q, [0.0, 0.0], qdd).friction, [0.0, 0.0], 0.0)


def test_leading_shapes_broadcast():
    """Split several states at once, and find the results of single states."""
    arm = kt.load("puma560")
    s = strategies.State(arm.mechanism, 2, (2, 3))
    found = arm.ledger(s.q, s.qd, np.zeros(arm.nv), s.wrenches)
    assert found.parts.shape == (2, 3, 4, 6, 6) and found.with_friction.shape == (2, 3, 6)
    one = arm.ledger(s.q[1, 2], s.qd[1, 2], np.zeros(arm.nv), s.wrenches[1, 2])
    assert_close(found.parts[1, 2], one.parts, 0.0)
    with pytest.raises(InputError, match="holds states of shape \\(2, 3\\); a table shows one of them"):
        found.table()


def test_table_has_every_share():
    """Read axes with units, causes, bodies and the rounding in the table."""
    arm = kt.load("stanford")
    text = str(arm.ledger(np.full(6, 0.3), np.ones(6), np.ones(6)))
    lines = text.splitlines()
    assert lines[0].split() == [
        *"by cause inertia convective gravity external armature torque friction".split(),
        *"with friction".split(),
    ]
    assert lines[3].startswith("joint3 [N] ")
    assert "by body" in text and "link6" in text
    assert "e-17" not in text.split("The parts")[0], "what is left of a zero is printed as one"
    assert lines[-1].startswith("The parts add up to the torque within ")


def test_axes_by_name_and_number():
    """Find an axis by name or number, and read the valid ones for a wrong one."""
    found = kt.load("spatial_pendulum").ledger([0.1, 0.5, 0.2], np.ones(3), np.ones(3))
    assert found.axes == ("pivot 1", "pivot 2", "pivot 3") and found.units == ("N m",) * 3
    assert found.index("pivot 2") == found.index(1) == 1
    with pytest.raises(UnknownNameError, match="no axis 'pivot'; did you mean 'pivot [123]'"):
        found.index("pivot")
    with pytest.raises(InputError, match="axis 3; expected 0 to 2"):
        found.index(3)
