"""URDF that Kinetree writes: read back by Kinetree and by Pinocchio, it has the motion of the mechanism."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.algebra.rotations import from_rpy, rpy_of
from kinetree.formats.urdf_writer import urdf_template, write_urdf
from tolerance import assert_close

ROBOTS = ("stanford", "kuka_lwr4", "planar_3r")


@pytest.mark.parametrize("name", ROBOTS)
def test_a_written_robot_moves_as_before(tmp_path, name):
    """Save URDF, read it back, and compare torques, poses, limits and names; gravity is restored by hand."""
    arm = kt.load(name)
    again = kt.load(kt.save(arm, tmp_path / "arm.urdf"))
    again = kt.System(replace(again.mechanism, gravity=arm.mechanism.gravity))
    q, qd, qdd = np.linspace(0.4, -1.1, 3 * arm.nv).reshape(3, arm.nv)
    expected = arm.inverse_dynamics(q, qd, qdd)
    assert_close(again.inverse_dynamics(q, qd, qdd), expected, 1e-13 * np.abs(expected).max(), "torques")
    for body in arm.bodies:
        assert_close(again.pose(q, body.name), arm.pose(q, body.name), 1e-14, "pose")
    assert [j.name for j in again.joints] == [j.name for j in arm.joints]
    for one, other in zip(again.joints, arm.joints, strict=True):
        if other.limits.lower and np.isfinite(other.limits.lower[0]):
            assert one.limits.lower == other.limits.lower and one.limits.upper == other.limits.upper


@pytest.mark.peers
@pytest.mark.parametrize("name", ROBOTS)
def test_pinocchio_reads_what_is_written(name):
    """Compare inertia matrices of Pinocchio's model of the text."""
    pin = pytest.importorskip("pinocchio")
    arm = kt.load(name)
    model = pin.buildModelFromXML(write_urdf(arm.mechanism))
    q = np.linspace(0.4, -1.1, arm.nq)
    at = np.concatenate([[x] if model.joints[k + 1].nq == 1 else [np.cos(x), np.sin(x)] for k, x in enumerate(q)])
    found = pin.crba(model, model.createData(), at)
    found = np.triu(found) + np.triu(found, 1).T
    expected = arm.inertia_matrix(q)
    assert_close(found, expected, 1e-13 * np.abs(expected).max(), "inertia matrix")


def test_what_urdf_has_no_place_for_is_refused():
    """Write loops and springs, and read what URDF lacks and what to do; the page has no text of loops."""
    with pytest.raises(kt.ModelError, match=r"four_bar has loops, for which URDF has no place.*write it as \.toml"):
        write_urdf(kt.load("four_bar").mechanism)
    assert urdf_template(kt.load("four_bar").mechanism, {}) is None
    arm = kt.load("planar_2r").mechanism
    heavy = replace(arm, joints=(replace(arm.joints[0], armature=(0.1,)), *arm.joints[1:]))
    with pytest.raises(kt.ModelError, match=r"planar_2r has armatures, for which URDF has no place"):
        write_urdf(heavy)
    round_joint = replace(arm, joints=(replace(arm.joints[0], kind="spherical"), *arm.joints[1:]))
    with pytest.raises(kt.ModelError, match=r"planar_2r has joints of the kinds spherical, for which URDF has no"):
        write_urdf(round_joint)


def test_names_and_templates(tmp_path):
    """Write names with signs of XML, and find places instead of numbers in the text of the page."""
    arm = kt.load("planar_2r").mechanism
    names = {body.name: f'<{body.name} & "co">' for body in arm.bodies}
    odd = replace(
        arm,
        bodies=tuple(replace(b, name=names[b.name]) for b in arm.bodies),
        joints=tuple(replace(j, parent=names.get(j.parent, j.parent), child=names[j.child]) for j in arm.joints),
        frames=tuple(replace(f, body=names.get(f.body, f.body)) for f in arm.frames),
    )
    again = kt.load(kt.save(odd, tmp_path / "odd.urdf"))
    assert {body.name for body in again.bodies} >= set(names.values())
    text = urdf_template(arm, {})
    assert text is not None and '<mass value="@bodies.1.mass@"/>' in text and "@joints.1.placement.rpy@" in text


@pytest.mark.parametrize("angles", [(0.3, -1.2, 2.1), (-2.9, 1.4, -0.2), (0.4, np.pi / 2, 1.1), (0.4, -np.pi / 2, 1.1)])
def test_angles_make_their_rotation_again(angles):
    """Return angles of a rotation that make it again, also at a pitch of a right angle, where yaw is zero."""
    R = np.array(from_rpy(*angles), dtype=float)
    found = rpy_of(R)
    assert_close(np.array(from_rpy(*found), dtype=float), R, 2e-15, "rotation")
    assert abs(angles[1]) < 1.5 or found[2] == 0.0
