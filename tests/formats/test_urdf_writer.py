"""URDF that Kinetree writes: read back by Kinetree and by Pinocchio, it has the motion of the mechanism."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.algebra.rotations import about, from_rpy, rpy_of
from kinetree.algebra.vectors import matmul
from kinetree.formats.urdf import read_urdf_text
from kinetree.formats.urdf_writer import urdf_template, write_urdf
from kinetree.loading import write
from kinetree.model import Shape
from tolerance import assert_close

ROBOTS = ("stanford", "kuka_lwr4", "planar_3r")


@pytest.mark.parametrize("name", ROBOTS)
def test_a_written_robot_moves_as_before(tmp_path, name):
    """Save URDF, read it back, and compare torques, poses, limits and names; gravity is restored by hand."""
    arm = kt.load(name)
    again = kt.load(write(arm, tmp_path / "arm.urdf"))
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
    model = pin.buildModelFromXML(write_urdf(arm.mechanism)[0])
    q = np.linspace(0.4, -1.1, arm.nq)
    at = np.concatenate([[x] if model.joints[k + 1].nq == 1 else [np.cos(x), np.sin(x)] for k, x in enumerate(q)])
    found = pin.crba(model, model.createData(), at)
    found = np.triu(found) + np.triu(found, 1).T
    expected = arm.inertia_matrix(q)
    assert_close(found, expected, 1e-13 * np.abs(expected).max(), "inertia matrix")


def test_the_page_has_no_text_of_loops():
    """Find no template for closed mechanisms, and none with shapes."""
    assert urdf_template(kt.load("four_bar").mechanism, {}) is None
    arm = kt.load("planar_2r").mechanism
    drawn = replace(arm, bodies=tuple(replace(b, shapes=(Shape("box", (1.0, 1.0, 1.0)),)) for b in arm.bodies))
    assert urdf_template(drawn, {}) == urdf_template(arm, {})


def test_loops_of_urdf_are_read():
    """Read a <loop_joint> between two links, also where they are merged; read what is wrong with others."""
    bars = kt.load("four_bar").mechanism
    text, _ = write_urdf(bars)
    merged, _ = read_urdf_text(text)
    assert [(x.kind, x.body_a, x.body_b) for x in merged.loops] == [(x.kind, x.body_a, x.body_b) for x in bars.loops]
    for old, new, message in (
        ('type="continuous">\n    <link1', 'type="cam">\n    <link1', "no type of loop_joint 'cam'"),
        ('link1 link="', 'link1 link="no', "no link 'no"),
        ("<link2 ", "<link3 ", "has no <link2>"),
    ):
        assert old in text
        with pytest.raises(kt.ModelError, match=message):
            read_urdf_text(text.replace(old, new))
    within = re.sub(r'<link2 link="[^"]*"', '<link2 link="' + merged.loops[0].body_a + '"', text)
    with pytest.raises(kt.ModelError, match="both its ends are on"):
        read_urdf_text(within)


INERTIAL = (
    '<inertial><mass value="1.3"/><inertia ixx="0.1" iyy="0.2" izz="0.25" ixy="0" iyz="0" ixz="0"/></inertial></link>'
)
LOOP = f"""<robot name="r"><link name="base"/><link name="a">{INERTIAL}<link name="b">{INERTIAL}
<joint name="ja" type="floating"><parent link="base"/><child link="a"/></joint>
<joint name="jb" type="floating"><parent link="base"/><child link="b"/></joint>
{{}}</robot>"""
PLACES = (
    kt.Placement((0.3, -0.2, 0.5), from_rpy(0.1, 0.2, 0.3)),
    kt.Placement((0.7, 0.1, -0.4), from_rpy(0.2, 0.0, 1.1)),
)
AXIS, ACROSS = (0.6, 0.0, 0.8), (0.0, 1.0, 0.0)


FREE = ["revolute", "cylindrical", "universal", "spherical"]
"""The kinds of loops that leave the angle about the axis of the child's frame open."""


@pytest.mark.parametrize(
    ("form", "kind"),
    [("constraint", kind) for kind in (*FREE, "prismatic", "fixed")]
    + [("turned", kind) for kind in FREE]
    + [("loop", kind) for kind in ("revolute", "spherical", "prismatic", "fixed")],
)
def test_proposed_loops_of_urdf_are_read(form, kind):
    """Read <constraint> with an axis at each end, also in a turned frame, and <loop>, as the loops that they mean."""
    a, b = PLACES
    at, angles = "0.7 0.1 -0.4", b.rotation
    last = ACROSS if kind == "universal" else AXIS
    if form == "turned":  # by a quarter about z, and the axis is given in that frame
        angles, last = matmul(b.rotation, about(2, np.pi / 2).matrix()), (last[1], -last[0], last[2])
    ends = [
        'xyz="0.3 -0.2 0.5" rpy="0.1 0.2 0.3"',
        f'xyz="{at}" rpy="{" ".join(map(repr, map(float, rpy_of(angles))))}"',
    ]
    axes = f'<parent_axis xyz="0.6 0 0.8"/><child_axis xyz="{" ".join(map(str, last))}"/>'
    origins = f"<parent_origin {ends[0]}/><child_origin {ends[1]}/>"
    text = f'<constraint name="c" type="{kind}"><parent link="a"/><child link="b"/>{origins}{axes}</constraint>'
    if form == "loop":
        one, two = (f'link="{link}"><origin {end}/>' for link, end in zip("ab", ends, strict=True))
        links = f"<predecessor {one}</predecessor><successor {two}</successor>"
        text = f'<loop name="c" type="{kind}">{links}<axis xyz="0.6 0 0.8"/></loop>'
    found = kt.System(read_urdf_text(LOOP.format(text))[0])
    given = {} if kind in ("spherical", "fixed") else {"axis": AXIS}
    given |= {"axis2": ACROSS} if kind == "universal" else {}
    expected = kt.System(replace(found.mechanism, loops=(kt.Loop("c", kind, "a", "b", a, b, **given),)))
    q, _ = expected.random_state(3)
    for closed in (expected, found):
        assert_close(closed.closure_residual(q), np.zeros(len(closed.closure_residual(q))), 1e-9, "closed")
    J, theirs = expected.closure_jacobian(q), found.closure_jacobian(q)
    assert_close(np.linalg.pinv(J) @ J, np.linalg.pinv(theirs) @ theirs, 1e-8, "the same directions")
    with pytest.raises(kt.ModelError, match=f"no type of {'loop' if form == 'loop' else 'constraint'} 'cam'"):
        read_urdf_text(LOOP.format(text.replace(f'type="{kind}"', 'type="cam"')))


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
    again = kt.load(write(odd, tmp_path / "odd.urdf"))
    assert {body.name for body in again.bodies} >= set(names.values())
    text = urdf_template(arm, {})
    assert text is not None and '<mass value="@bodies.1.mass@"/>' in text and "@joints.1.placement.rpy@" in text


@pytest.mark.parametrize("angles", [(0.3, -1.2, 2.1), (-2.9, 1.4, -0.2), (0.4, np.pi / 2, 1.1), (0.4, -np.pi / 2, 1.1),
                                    (0.3, np.pi / 2 - 1e-7, 1.1), (0.3, 4.9e-12 - np.pi / 2, -2.0)])  # fmt: skip
def test_angles_make_their_rotation_again(angles):
    """Return angles of a rotation that make it again, also at a pitch of a right angle, where yaw is zero."""
    R = np.array(from_rpy(*angles), dtype=float)
    found = rpy_of(R)
    assert_close(np.array(from_rpy(*found), dtype=float), R, 2e-15, "rotation")
    assert abs(np.cos(angles[1])) > 1e-15 or found[2] == 0.0
