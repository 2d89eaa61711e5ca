"""Columns: names of columns and of their entries, units and shapes."""

from __future__ import annotations

import pytest

import kinetree as kt
from kinetree.joints import KINDS
from kinetree.model.axes import axis_names
from kinetree.results.columns import columns, find


def of(name: str):
    """Return the columns of a library mechanism."""
    return columns(kt.load(name).mechanism)


def test_units_follow_the_joints():
    """Read radians and newton meters for revolute joints, meters and newtons for the prismatic one."""
    known = of("stanford")
    assert known["q"].units == ("rad", "rad", "m", "rad", "rad", "rad")
    assert known["qd"].units[2] == "m/s"
    assert known["qdd"].units[:3] == ("rad/s^2", "rad/s^2", "m/s^2")
    assert known["tau"].units[1:3] == ("N m", "N")
    assert known["q"].unit == "rad, m"
    assert str(known["energy"]) == "energy [J] ()"
    assert (known["reactions"].shape, known["poses"].shape) == ((6, 6), (6, 4, 4))


def test_a_free_body_has_position_quaternion_and_twist():
    """Name the seven coordinates and six velocities of a free joint, angular part first in the velocities."""
    known = of("biped")
    assert known["q"].labels[:8] == (
        "q.base.x", "q.base.y", "q.base.z", "q.base.qx", "q.base.qy", "q.base.qz", "q.base.qw", "q.thigh_a",
    )  # fmt: skip
    assert known["q"].units[:7] == ("m", "m", "m", "1", "1", "1", "1")
    assert known["qd"].labels[:6] == tuple(f"qd.base.{x}" for x in ("wx", "wy", "wz", "vx", "vy", "vz"))
    assert known["qd"].units[:6] == ("rad/s",) * 3 + ("m/s",) * 3
    assert known["tau"].units[:6] == ("N m",) * 3 + ("N",) * 3


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_joint_is_named(kind):
    """Find a unique name and a unit for every coordinate, velocity and torque of every kind of joint."""
    body = kt.Body("b", mass=1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    ratio = 2.0 if kind == "rotor" else None
    mechanism = kt.build_mechanism("m", [body], [kt.Joint("j", kind, kt.GROUND, "b", axis2=None, ratio=ratio)])
    for which, count in enumerate((KINDS[kind].NQ, KINDS[kind].NV, KINDS[kind].NV)):
        axes = list(axis_names(mechanism, which))
        assert len({name for _, name, _ in axes}) == len(axes) == count
        assert {unit for _, _, unit in axes} <= {"rad", "m", "1", "C"}


def test_dots_in_names_do_not_confuse():
    """Find a joint whose name has a dot and could be that of a coordinate of another joint."""
    bodies = [kt.Body(n, mass=1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)) for n in ("one", "two")]
    joints = [kt.Joint("a", "planar", kt.GROUND, "one"), kt.Joint("a.x", "revolute", "one", "two")]
    known = columns(kt.build_mechanism("m", bodies, joints))
    assert find(known, "q.a.x") == ("q", (3,))
    assert find(known, "q.a.y") == ("q", (1,))
    assert find(known, "q.a") == ("q", (slice(0, 3),))


def test_unknown_names_list_the_known():
    """Mistype a column, a joint and a body and read the valid names."""
    known = of("stanford")
    with pytest.raises(kt.UnknownNameError, match=r"no column 'torque'; .*available: t, q, qd, qdd, tau, energy"):
        find(known, "torque")
    with pytest.raises(kt.UnknownNameError, match=r"no part of column 'q' 'jiont2'; did you mean 'joint2'\?"):
        find(known, "q.jiont2")
    with pytest.raises(kt.UnknownNameError, match=r"no part of column 'reactions' 'arm'; .*link1, link2"):
        find(known, "reactions.arm")
    with pytest.raises(kt.UnknownNameError, match=r"no part of column 'energy' 'joint1'; available: none"):
        find(known, "energy.joint1")
