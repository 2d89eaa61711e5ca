"""Reading of URDF."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kinetree.algebra.rotations import from_rpy
from kinetree.algebra.vectors import from_moments
from kinetree.errors import InputError, ModelError
from kinetree.formats import urdf
from kinetree.formats.urdf import read_urdf, read_urdf_text
from kinetree.model import GROUND, Coupling

ARM = """<?xml version="1.0"?>
<robot name="arm" xmlns:xacro="http://ros.org/wiki/xacro">
  <material name="red"><color rgba="0.9 0.1 0.1 1"/></material>
  <link name="world"/>
  <joint name="stand" type="fixed"><parent link="world"/><child link="base"/><origin xyz="0 0 0.5"/></joint>
  <link name="base">
    <inertial><mass value="4"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><box size="0.2 0.3 0.4"/></geometry></visual>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/>
    <origin xyz="0.1 0 0.2" rpy="0.3 -0.4 0.5"/><axis xyz="0 0 2"/>
    <limit lower="-1.5" upper="2" effort="30" velocity="3"/><dynamics damping="0.7" friction="0.2"/>
  </joint>
  <link name="upper">
    <inertial>
      <origin xyz="0.01 0.02 0.3" rpy="0.1 0.2 0.3"/><mass value="2.5"/>
      <inertia ixx="0.03" iyy="0.04" izz="0.05" ixy="0.001" ixz="0.002" iyz="-0.003"/>
    </inertial>
    <visual name="skin">
      <origin xyz="0 0 0.1"/><geometry><cylinder radius="0.05" length="0.6"/></geometry><material name="red"/>
    </visual>
    <collision><geometry><sphere radius="0.07"/></geometry></collision>
  </link>
  <joint name="wrist" type="continuous">
    <parent link="upper"/><child link="hand"/><origin xyz="0 0 0.6"/><axis xyz="0 1 0"/>
    <mimic joint="shoulder" multiplier="-2" offset="0.1"/>
  </joint>
  <link name="hand"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial></link>
  <joint name="tool_mount" type="fixed">
    <parent link="hand"/><child link="tool"/><origin xyz="0.1 0.2 0.3" rpy="0 0 1.5707963267948966"/>
  </joint>
  <link name="tool">
    <inertial><origin xyz="1 0 0"/><mass value="0.5"/><inertia ixx="0.002" iyy="0.003" izz="0.004"/></inertial>
    <visual><origin xyz="1 0 0"/><geometry><capsule radius="0.01" length="0.1"/></geometry></visual>
  </link>
</robot>
"""


def robot(inside: str, name: str = "r") -> str:
    """Return a robot with these elements."""
    return f'<robot name="{name}">{inside}</robot>'


def two_links(joint: str, type_: str = "revolute") -> str:
    """Return two links with a joint that has these children."""
    return robot(
        '<link name="a"/><link name="b"/>\n'
        f'<joint name="j" type="{type_}"><parent link="a"/><child link="b"/>{joint}</joint>'
    )


def texts(report, sort: str) -> str:
    """Return all entries of one sort as one text."""
    return "\n".join(map(str, report.of(sort)))


def test_arm_on_the_ground():
    """Merge the welded links, keep their names as frames, and read every number."""
    mechanism, report = read_urdf_text(ARM, file="arm.urdf")
    assert (mechanism.name, mechanism.source) == ("arm", "arm.urdf")
    assert [b.name for b in mechanism.bodies] == ["upper", "hand"]
    shoulder, wrist = mechanism.joints
    assert (shoulder.kind, shoulder.parent, shoulder.child) == ("revolute", GROUND, "upper")
    assert shoulder.axis == (0.0, 0.0, 1.0)
    assert shoulder.placement.translation == (0.1, 0.0, 0.7)
    assert shoulder.placement.rotation == from_rpy(0.3, -0.4, 0.5)
    assert shoulder.limits == type(shoulder.limits)((-1.5,), (2.0,), (3.0,), (30.0,))
    assert (shoulder.damping, shoulder.friction) == ((0.7,), (0.2,))
    assert (wrist.kind, wrist.parent, wrist.limits) == ("revolute", "upper", type(wrist.limits)())
    assert mechanism.couplings == (Coupling("wrist", "wrist", (("shoulder", -2.0),), 0.1),)
    assert "<axis>: scaled from length 2 to 1" in texts(report, "changed")
    assert "6 links" not in texts(report, "read")
    assert "5 links and 4 joints: 2 bodies, 2 degrees of freedom, 5 frames, 1 coupling" in texts(report, "read")


def test_frames_of_merged_links():
    """Find every merged link and fixed joint as a frame of the body that contains it."""
    mechanism, report = read_urdf_text(ARM)
    assert {f.name: f.body for f in mechanism.frames} == {
        "world": GROUND,
        "base": GROUND,
        "stand": GROUND,
        "tool": "hand",
        "tool_mount": "hand",
    }
    tool = mechanism.frame("tool")
    assert tool.placement.translation == (0.1, 0.2, 0.3)
    assert tool.placement.rotation == ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    changed = texts(report, "changed")
    assert "<text>:33: link 'tool' is merged into 'hand' (fixed joint 'tool_mount') and remains a frame" in changed
    assert (
        "link 'base' is fixed to the ground (fixed joint 'stand') as a frame; its mass of 4 kg does not move" in changed
    )
    assert [shape.kind for shape in mechanism.scenery] == ["box"]


def test_a_heavy_root_may_float():
    """Report how a root link with mass is made to float."""
    text = '<robot name="r"><link name="a"><inertial><mass value="1.5"/></inertial></link></robot>'
    _, report = read_urdf_text(text)
    assert texts(report, "changed").endswith(
        "link 'a' is fixed to the ground as a frame; its mass of 1.5 kg does not move; base=\"free\" lets it float"
    )


def test_inertia_in_a_turned_frame():
    """Rotate the inertia from the inertial frame into the link's, about the center of mass."""
    upper = read_urdf_text(ARM)[0].body("upper")
    R = np.array(from_rpy(0.1, 0.2, 0.3))
    given = np.array([[0.03, 0.001, 0.002], [0.001, 0.04, -0.003], [0.002, -0.003, 0.05]])
    np.testing.assert_allclose(from_moments(upper.inertia), R @ given @ R.T, rtol=1e-14)
    assert (upper.mass, upper.com) == (2.5, (0.01, 0.02, 0.3))


def test_merged_masses():
    """Combine the hand and its tool: mass, center of mass and inertia as calculated by hand."""
    hand = read_urdf_text(ARM)[0].body("hand")
    c = np.array([0.1, 1.2, 0.3])  # the tool's center of mass: (1, 0, 0) rotated by 90 degrees about z
    assert hand.mass == 1.5
    np.testing.assert_allclose(hand.com, c / 3, rtol=1e-15)
    reduced = 1.0 * 0.5 / 1.5
    expected = 0.01 * np.eye(3) + np.diag([0.003, 0.002, 0.004]) + reduced * (c @ c * np.eye(3) - np.outer(c, c))
    np.testing.assert_allclose(from_moments(hand.inertia), expected, rtol=1e-14)
    assert hand.shapes[0].placement.translation == (0.1, 1.2, 0.3)


def test_shapes_and_colours():
    """Read geometry, roles, names and a color that the robot defines."""
    skin, ball = read_urdf_text(ARM)[0].body("upper").shapes
    assert (skin.kind, skin.size, skin.role, skin.name) == ("cylinder", (0.05, 0.6), "visual", "skin")
    assert skin.color == (0.9, 0.1, 0.1, 1.0)
    assert (ball.kind, ball.size, ball.role, ball.color) == ("sphere", (0.07,), "collision", None)


def test_free_base():
    """Attach the root link to a free joint named root, and merge the links welded to it."""
    mechanism, _ = read_urdf_text(ARM, base="free")
    root = mechanism.joints[0]
    assert (root.name, root.kind, root.parent, root.child) == ("root", "free", GROUND, "world")
    world = mechanism.body("world")
    assert (world.mass, world.com) == (4.0, (0.0, 0.0, 0.5))
    assert mechanism.frame("base").body == "world"
    taken, _ = read_urdf_text(ARM.replace("wrist", "root"), base="free")
    assert [j.name for j in taken.joints] == ["root_joint", "shoulder", "root"]


def test_fixed_joints_kept():
    """Keep fixed joints and their links as they are, with a fixed joint under the root."""
    mechanism, report = read_urdf_text(ARM, fixed="keep")
    assert [b.name for b in mechanism.bodies] == ["world", "base", "upper", "hand", "tool"]
    assert [j.kind for j in mechanism.joints] == ["fixed", "fixed", "revolute", "revolute", "fixed"]
    assert (mechanism.joints[0].name, mechanism.frames, mechanism.nv) == ("root", (), 2)
    assert not report.of("dropped")


@pytest.mark.parametrize(
    ("type_", "kind", "nv"),
    [("prismatic", "prismatic", 1), ("floating", "free", 6), ("planar", "planar", 3), ("fixed", "fixed", 0)],
)
def test_joint_types(type_, kind, nv):
    """Map the joint types of URDF, with the axis x by default."""
    mechanism, _ = read_urdf_text(two_links("", type_), fixed="keep")
    joint = mechanism.joint("j")
    assert (joint.kind, joint.axis, mechanism.nv) == (kind, (1.0, 0.0, 0.0), nv)


def test_what_a_joint_cannot_use_is_reported():
    """Drop and report limits, dynamics and mimics of joints that do not have exactly one coordinate."""
    inside = '<limit lower="0" upper="1"/><dynamics damping="1"/><mimic joint="j"/><axis xyz="0 0 1"/>'
    dropped = texts(read_urdf_text(two_links(inside, "floating"))[1], "dropped")
    for tag in ("limit", "dynamics", "mimic", "axis"):
        assert f"<text>:2: <{tag}> of the floating joint 'j'" in dropped
    limits = '<limit lower="-1" upper="1" effort="4"/>'
    mechanism, report = read_urdf_text(two_links(limits, "continuous"))
    assert (mechanism.joint("j").limits.lower, mechanism.joint("j").limits.effort) == ((), (4.0,))
    assert "lower and upper limit of the continuous joint 'j'" in texts(report, "dropped")


def test_inertias_without_mass_are_suspect():
    """Keep the inertia of a link without mass on a slide, and report it with its line; massless links are silent."""
    inertia = '<inertial><mass value="0"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" iyz="0" ixz="0"/></inertial>'
    text = two_links('<limit lower="-1" upper="1" effort="4" velocity="2"/>', "prismatic")
    mechanism, report = read_urdf_text(text.replace('<link name="b"/>', f'<link name="b">{inertia}</link>'))
    assert mechanism.body("b").inertia[:3] == (0.1, 0.1, 0.1)
    assert texts(report, "suspect") == (
        "<text>:1: link 'b': it has an inertia, up to 0.1 kg m^2, but no mass; the numbers are kept"
    )
    assert texts(read_urdf_text(text)[1], "suspect") == ""


def test_suspect_joints():
    """Report missing, empty and negative limits, and negative damping, and keep the numbers."""
    assert "has no <limit>: taken as unlimited" in texts(read_urdf_text(two_links(""))[1], "suspect")
    mechanism, report = read_urdf_text(
        two_links('<limit effort="-1" velocity="1"/><dynamics damping="-1"/>'), file="x.urdf"
    )
    suspect = texts(report, "suspect")
    assert "x.urdf:2: joint 'j' cannot move: its limits are 0 and 0" in suspect
    assert "negative velocity or effort limit" in suspect
    assert "negative damping or friction" in suspect
    assert mechanism.joint("j").damping == (-1.0,)


@pytest.mark.parametrize(
    ("mimic", "what"),
    [
        ('joint="nobody"', "mimics 'nobody', which is not a joint; left uncoupled"),
        ('joint="k"', "mimics 'k', which is a fixed joint without a single coordinate"),
    ],
)
def test_mimics_of_nothing_are_suspect(mimic, what):
    """Leave a joint uncoupled if the joint that it mimics does not have exactly one coordinate."""
    text = two_links(f"<mimic {mimic}/>").replace(
        "</robot>", '<link name="c"/><joint name="k" type="fixed"><parent link="b"/><child link="c"/></joint></robot>'
    )
    mechanism, report = read_urdf_text(text)
    assert mechanism.couplings == ()
    assert what in texts(report, "suspect")


def test_impossible_inertia_is_kept_and_reported():
    """Keep the numbers of an inertia that no body can have, and report its principal moments."""
    text = robot(
        '\n<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="5"/></inertial></link>', name="bad"
    )
    mechanism, report = read_urdf_text(text, base="free")
    assert mechanism.body("a").inertia == (1.0, 1.0, 5.0, 0.0, 0.0, 0.0)
    assert "<text>:2: link 'a': no body can have this inertia: its principal moments are 1, 1, 5" in texts(
        report, "suspect"
    )


def test_point_mass():
    """Read a mass without <inertia> as a point mass, with a remark."""
    mechanism, report = read_urdf_text(
        robot('<link name="a"><inertial><mass value="2"/></inertial></link>'), base="free"
    )
    assert (mechanism.body("a").mass, mechanism.body("a").inertia) == (2.0, (0.0,) * 6)
    assert "has no <inertia>: taken as a point mass" in texts(report, "suspect")


def test_nothing_is_lost_silently():
    """Report every element, attribute and text that is not read, with its line."""
    text = """<robot name="r" version="1.0">
<link name="a" type="x"><sensor name="s"/>words</link>
<transmission name="t"><type>x</type></transmission>
<gazebo reference="a"/>
<link name="b"><inertial foo="1"><mass value="1" unit="kg"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
<inertial/></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><calibration rising="0"/>
<safety_controller k_velocity="1"/><origin xyz="0 0 1"/><origin xyz="0 0 2"/></joint>
<xacro:include filename="f"/>
</robot>"""
    mechanism, report = read_urdf_text(text, file="r.urdf")
    dropped = texts(report, "dropped")
    for line, what in [
        (1, "attribute 'version' = '1.0' of <robot name='r'>"),
        (2, "attribute 'type' = 'x' of <link name='a'>"),
        (2, "<sensor name='s'> in <link name='a'>"),
        (2, "text 'words' in <link name='a'>"),
        (3, "<transmission name='t'> in <robot name='r'>"),
        (4, "<gazebo> in <robot name='r'>"),
        (5, "attribute 'foo' = '1' of <inertial>"),
        (5, "attribute 'unit' = 'kg' of <mass>"),
        (6, "<inertial>: <link name='b'> has one already"),
        (7, "<calibration> in <joint name='j'>"),
        (8, "<safety_controller> in <joint name='j'>"),
        (8, "<origin>: <joint name='j'> has one already"),
    ]:
        assert f"r.urdf:{line}: {what}" in dropped
    assert "r.urdf:9: <xacro:include> in <robot name='r'> is left over from xacro" in texts(report, "suspect")
    assert mechanism.joint("j").placement.translation == (0.0, 0.0, 1.0)


def test_names():
    """Rename a link named ground, name the robot, and report every joint without a frame."""
    text = '<robot><link name="ground"/><link name="b"/><link name="c"/>'
    text += '<joint name="b" type="fixed"><parent link="ground"/><child link="b"/></joint>'
    text += '<joint name="j" type="planar"><parent link="b"/><child link="c"/></joint></robot>'
    mechanism, report = read_urdf_text(text)
    assert [f.name for f in mechanism.frames] == ["ground_link", "b"]
    assert mechanism.name == "robot"
    assert "link 'ground' is renamed to 'ground_link'" in texts(report, "changed")
    assert "no frame 'b' for the fixed joint: a link has its name" in texts(report, "dropped")
    assert "the robot has no name" in texts(report, "suspect")


def test_quaternion_origin():
    """Read an origin by quaternion, as later versions of URDF allow."""
    joint = read_urdf_text(two_links('<origin quat_xyzw="0 0 2 2"/>'))[0].joint("j")
    np.testing.assert_allclose(joint.placement.rotation, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)
    with pytest.raises(ModelError, match="has both rpy and quat_xyzw; keep one"):
        read_urdf_text(two_links('<origin quat_xyzw="0 0 0 1" rpy="0 0 0"/>'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<sdf/>", r"u:1: <sdf>: the root element is not <robot>; give a URDF file"),
        (robot(""), r"u:1: <robot name='r'>: has no <link>; add one"),
        (robot("<link/>"), r"u:1: <link>: the attribute 'name' is missing; add name="),
        (robot('<link name=""/>'), r"the attribute 'name' is empty; give a name of 1 to 1000"),
        (robot('<link name="a"/>\n<link name="a"/>'), r"u:2: <link name='a'>: line 1 has another one with this name"),
        (
            robot('<link name="a"/>\n<link name="b"/>'),
            r"u:2: .* 2 links are children of no joint: 'a', 'b'; a URDF has",
        ),
        (two_links("").replace('type="revolute"', ""), r"u:2: <joint name='j'>: the attribute 'type' is missing"),
        (two_links("", "hinge"), r"u:2: joint 'j': no joint type 'hinge'; .*revolute, continuous, prismatic, fixed"),
        (two_links("").replace('<parent link="a"/>', ""), r"u:2: <joint name='j'>: has no <parent>; add a <parent>"),
        (two_links("").replace('<child link="b"/>', ""), r"has no <child>"),
        (two_links("").replace('<parent link="a"/>', '<parent link="x"/>'), r"u:2: joint 'j', parent: no link 'x'; av"),
        (two_links("").replace('<child link="b"/>', '<child link="ground"/>'), r"joint 'j', child: no link 'ground'"),
        (two_links('<axis xyz="0 0 0"/>'), r"u:2: <axis>: \(0.0, 0.0, 0.0\) has no direction; give numbers such as"),
        (two_links('<axis xyz="1 0"/>'), r"u:2: <axis> attribute 'xyz': 2 numbers in '1 0'; give 3 decimals"),
        (two_links('<origin xyz="0 nan 0"/>'), r"u:2: <origin> attribute 'xyz': 'nan' is not a number"),
        (two_links('<origin xyz="0 ${h} 0"/>'), r"which is not expanded; name it .xacro, or expand the file"),
        (two_links('<limit lower="1e400"/>'), r"u:2: <limit> attribute 'lower': '1e400' is too large for a double"),
        (two_links('<mimic joint="j"/>'), r"u:2: <mimic> of joint 'j': .*circle|itself"),
        (robot('<link name="a"><inertial/></link>'), r"<inertial>: has no <mass>; add a <mass> to it"),
        (
            robot('<link name="a"><inertial><mass value="-1"/></inertial></link>'),
            r"the mass is -1 kg; give a mass of zero or",
        ),
        (
            robot('<link name="a"><visual><geometry><box/></geometry></visual></link>'),
            r"the attribute 'size' is missing",
        ),
        ("<robot name='" + "x" * 2000 + "'><link name='a'/></robot>", r"its name has 2000 characters; give at most"),
    ],
)
def test_errors_name_place_and_remedy(text, message):
    """Refuse a file that does not define a mechanism, with file, line, element, cause and remedy."""
    with pytest.raises(ModelError, match=message) as caught:
        read_urdf_text(text, file="u")
    assert caught.value.file == "u"
    assert caught.value.line is not None


JOINT = '<joint name="{0}{1}" type="continuous"><parent link="{0}"/><child link="{1}"/></joint>\n'


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (("ab", "bc", "cb"), r"<joint name='cb'>: its child 'b' is already the child of joint 'ab'; a link has one"),
        (("bc", "cb"), r"<joint name='cb'>: the links form a circle: b -> c -> b; remove"),
        (("ab", "bc", "ca"), r"the links form a circle: a -> b -> c -> a"),
        (("aa", "bc"), r"<joint name='aa'>: the links form a circle: a -> a; remove one joint of the circle"),
    ],
)
def test_joints_that_make_no_tree(pairs, message):
    """Refuse links with two parents and links in a circle, and name them."""
    links = "".join(f'<link name="{n}"/>' for n in "abc")
    with pytest.raises(ModelError, match=message):
        read_urdf_text(robot(links + "".join(JOINT.format(*pair) for pair in pairs)))


def test_joints_that_mimic_in_a_circle():
    """Refuse two joints that mimic each other."""
    text = robot('<link name="a"/><link name="b"/><link name="c"/>' + JOINT.format("a", "b") + JOINT.format("b", "c"))
    text = text.replace('<child link="b"/>', '<child link="b"/><mimic joint="bc"/>')
    assert len(read_urdf_text(text)[0].couplings) == 1
    with pytest.raises(ModelError, match="joints mimic each other in a circle; remove one <mimic> of the circle"):
        read_urdf_text(text.replace('<child link="c"/>', '<child link="c"/><mimic joint="ab"/>'))


def test_huge_numbers_are_model_errors():
    """Refuse numbers that overflow when links are merged."""
    text = ARM.replace('<origin xyz="1 0 0"/><mass value="0.5"/>', '<origin xyz="1e200 0 0"/><mass value="1e200"/>')
    with pytest.raises(ModelError, match="arm: body 'hand': .* is (inf|nan); give a finite number"):
        read_urdf_text(text, file="arm")
    big = '<inertia ixx="1e308" iyy="1e308" izz="1e308" ixy="1e308" ixz="1e308" iyz="1e308"/>'
    inside = f'<link name="a"><inertial><origin rpy="0 0 0.785"/><mass value="1"/>{big}</inertial></link>'
    with pytest.raises(ModelError, match="the inertia is too large for doubles; check its units"):
        read_urdf_text(robot(inside))


def test_bounds(monkeypatch):
    """Refuse more links than the bound, so that reading takes a bounded time."""
    monkeypatch.setattr(urdf, "MAX_LINKS", 1)
    with pytest.raises(ModelError, match="has 2 links; use at most 1; split the model"):
        read_urdf_text(two_links(""))


def test_options_are_checked():
    """Refuse unknown options and list the known ones."""
    with pytest.raises(InputError, match="base must be one of fixed, free, not 'floating'"):
        read_urdf_text(ARM, base="floating")
    with pytest.raises(InputError, match="fixed must be one of merge, keep, not True"):
        read_urdf_text(ARM, fixed=True)  # type: ignore[arg-type]


def test_files(tmp_path):
    """Read the same from a file as from its text, with the file name in errors."""
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    mechanism, report = read_urdf(path)
    assert mechanism.hash == read_urdf_text(ARM)[0].hash
    assert report.file == str(path)
    path.write_text(ARM[:300])
    with pytest.raises(ModelError, match=r"arm\.urdf:\d+: is not well-formed XML"):
        read_urdf(path)
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        read_urdf(tmp_path / "none.urdf")


def test_reading_twice_is_the_same():
    """Get the same mechanism from the same bytes."""
    assert read_urdf_text(ARM)[0] == read_urdf_text(ARM.encode())[0]


def test_axes_keep_their_direction():
    """Scale an oblique axis to unit length without rotating it; accept a rounded unit axis without a remark."""
    mechanism, report = read_urdf_text(two_links('<axis xyz="0.5773 0.5773 0.5773"/>', "continuous"))
    assert math.hypot(*mechanism.joint("j").axis) == pytest.approx(1.0, abs=1e-15)
    assert "scaled from length" in texts(report, "changed")  # four digits are off by 9e-5
    _, report = read_urdf_text(two_links('<axis xyz="0.57735 0.57735 0.57735"/>', "continuous"))
    assert "scaled from length" not in texts(report, "changed")
