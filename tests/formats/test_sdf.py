"""The reader of SDF: poses relative to any frame, axes in any frame, nested models, loops, springs, and bad input."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinetree as kt
from kinetree import ModelError, System
from kinetree.algebra.rotations import about, from_axis_angle
from kinetree.formats.report import Report
from kinetree.formats.sdf import read_sdf, read_sdf_text
from kinetree.model import Mechanism
from public_robots import public_robots
from strategies import examples
from tolerance import assert_close
from xml_mutations import STEPS

INERTIAL = "<inertial><mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.2</iyy><izz>0.25</izz></inertia></inertial>"
PENDULUM = f"""<sdf version="1.10"><world name="w"><gravity>0 0 -9.5</gravity><model name="pendulum">
<link name="base"><pose>0 0 0.3 0 0 0</pose>{INERTIAL}</link>
<joint name="stand" type="fixed"><parent>world</parent><child>base</child></joint>
<link name="rod"><pose relative_to="hinge">0 0 -0.5 0 0 0</pose>{INERTIAL}
<visual name="v"><geometry><cylinder><radius>0.1</radius><length>1</length></cylinder></geometry>
<material><diffuse>1 0 0 1</diffuse></material></visual></link>
<joint name="hinge" type="revolute"><parent>base</parent><child>rod</child>
<pose relative_to="base">0 0 0.7 1.2 0 0</pose>
<axis><xyz expressed_in="base">1 0 0</xyz><limit><lower>-1</lower><upper>2</upper><effort>7</effort></limit>
<dynamics><damping>0.3</damping><spring_reference>0.2</spring_reference>
<spring_stiffness>5</spring_stiffness></dynamics>
</axis></joint><frame name="tip" attached_to="rod"><pose degrees="true">0 0 -0.5 90 0 0</pose></frame>
</model></world></sdf>"""
NESTED = f"""<sdf version="1.10"><model name="cart"><link name="rail">{INERTIAL}</link><model name="arm">
<pose relative_to="rail">1 0 0 0 0 0</pose><link name="upper">{INERTIAL}</link><link name="lower">
<pose relative_to="upper" rotation_format="quat_xyzw">0 1 0 0 0 0 1</pose>{INERTIAL}</link>
<joint name="elbow" type="universal"><parent>upper</parent><child>lower</child><axis><xyz>1 0 0</xyz></axis>
<axis2><xyz>0 1 0</xyz></axis2></joint></model><joint name="screw" type="screw"><parent>rail</parent>
<child>arm::upper</child><axis><xyz>1 0 0</xyz></axis><screw_thread_pitch>0.5</screw_thread_pitch></joint>
<joint name="ball" type="ball"><parent>arm::lower</parent><child>tool</child></joint><link name="tool">{INERTIAL}
</link></model></sdf>"""
RING = f"""<sdf version="1.10"><model name="ring"><link name="crank">{INERTIAL}</link><link name="rod">
<pose>1 0 0 0 0 0</pose>{INERTIAL}</link><link name="rocker"><pose>2 0 0 0 0 0</pose>{INERTIAL}</link>
<joint name="a" type="revolute"><parent>world</parent><child>crank</child><axis><xyz>0 1 0</xyz></axis></joint>
<joint name="b" type="revolute"><parent>crank</parent><child>rod</child><axis><xyz>0 1 0</xyz></axis></joint>
<joint name="c" type="revolute"><parent>world</parent><child>rocker</child><pose>0 0 1 0 0 0</pose>
<axis><xyz>0 1 0</xyz></axis></joint><joint name="d" type="revolute"><parent>rod</parent><child>rocker</child>
<axis><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>1</upper></limit></axis></joint></model></sdf>"""
SERIES = """<sdf version="1.6"><model name="series">
<link name="a"/><link name="b"><pose>0 0 1 0 0 0</pose></link>
<joint name="root" type="fixed"><parent>world</parent><child>a</child></joint>
<joint name="j" type="{type}"><pose>0.1 0 0 0.3 0 0</pose><parent>a</parent><child>b</child>
  <axis><xyz>1 0 0</xyz><limit><lower>{lower}</lower><upper>{upper}</upper><effort>inf</effort></limit>
    <use_parent_model_frame>{old}</use_parent_model_frame></axis>
  <axis2><xyz>{second}</xyz><limit><lower>-2</lower><upper>3</upper></limit>
    <dynamics><spring_stiffness>4</spring_stiffness></dynamics></axis2></joint>
</model></sdf>"""
GEARS = """<sdf version="1.6"><model name="gears">
<link name="frame"/><link name="motor"/><link name="wheel"><pose>0 0 1 0 0 0</pose></link>
<joint name="root" type="fixed"><parent>world</parent><child>frame</child></joint>
<joint name="fast" type="revolute"><parent>frame</parent><child>motor</child><axis><xyz>1 0 0</xyz></axis></joint>
<joint name="slow" type="revolute"><parent>frame</parent><child>wheel</child><axis><xyz>-1 0 0</xyz></axis></joint>
<joint name="box" type="gearbox"><parent>motor</parent><child>wheel</child>
  <gearbox_reference_body>frame</gearbox_reference_body><gearbox_ratio>0.04</gearbox_ratio>
  <axis><xyz>1 0 0</xyz></axis><axis2><xyz>1 0 0</xyz></axis2></joint>
</model></sdf>"""
AXES = {"type": "universal", "lower": -1, "upper": 1, "old": 0, "second": "0 1 0"}
GOOD = {"pendulum": PENDULUM, "nested": NESTED, "ring": RING, "series": SERIES.format(**AXES), "gears": GEARS}


def test_a_pendulum_is_read():
    """Find gravity, placements, the axis in the joint's frame, limits, spring, damping, frame and shape."""
    mechanism, report = read_sdf_text(PENDULUM)
    (joint,), (body,) = mechanism.joints, mechanism.bodies
    assert mechanism.gravity == (0.0, 0.0, -9.5) and joint.limits == kt.Limits((-1.0,), (2.0,), effort=(7.0,))
    assert_close(joint.placement.translation, (0.0, 0.0, 1.0), 1e-15, "joint")
    assert joint.axis == (1.0, 0.0, 0.0) and joint.damping == (0.3,)
    assert_close(body.com, (0.0, 0.0, -0.5), 1e-15, "center of mass")  # the link's data in the frame of its joint
    assert dict(mechanism.forces[0].coefficients) == {"stiffness_1": 5.0, "rest_1": 0.2}
    assert body.shapes[0].color == (1.0, 0.0, 0.0, 1.0) and "link 'base' is merged into 'ground'" in str(report)
    arm = System(mechanism)
    tip = np.array(arm.pose([0.4], "tip"))
    turn = 1.2 + 0.4
    assert_close(tip[:3, 3], (0.0, math.sin(turn), 1.0 - math.cos(turn)), 1e-15, "tip")
    angle = math.atan2(tip[2, 1], tip[1, 1])
    assert abs(angle - (turn + math.pi / 2 - 2 * math.pi)) < 1e-14 or abs(angle - (turn + math.pi / 2)) < 1e-14


def test_nested_models_screws_and_balls():
    """Read a model within a model, whose names get its prefix, and links that float on request."""
    mechanism, report = read_sdf_text(NESTED)
    kinds = {j.name: j.kind for j in mechanism.joints}
    assert kinds == {"screw": "helical", "arm::elbow": "universal", "ball": "spherical"}
    assert "link 'rail' floats in SDF, and is fixed to the ground here; base=\"free\" lets it float" in str(report)
    assert abs(float(mechanism.joint("screw").pitch) - 0.5 / (2 * math.pi)) < 1e-16
    floating, _ = read_sdf_text(NESTED, base="free")
    assert floating.joints[0].kind == "free" and floating.nv == mechanism.nv + 6
    text = NESTED.replace("<screw_thread_pitch>0.5</screw_thread_pitch>", "<thread_pitch>-4</thread_pitch>")
    old, _ = read_sdf_text(text)
    assert old.joint("screw").pitch == 0.25


def test_a_link_of_two_joints_closes_a_loop():
    """Read a ring: the later joint of the link is cut, with its limits in the report, and the loop closes at zero."""
    mechanism, report = read_sdf_text(RING)
    assert [x.name for x in mechanism.loops] == ["d"] and [j.name for j in mechanism.joints] == ["a", "b", "c"]
    assert "limits of pair 'd', which is cut" in str(report)
    arm = System(mechanism)
    assert_close(arm.assemble(arm.neutral()), np.zeros(3), 1e-15, "closed position")


def test_coupled_axes_follow(tmp_path):
    """Read <mimic> with its reference as a coupling."""
    text = RING.replace(
        "<child>rod</child><axis><xyz>0 1 0</xyz>",
        '<child>rod</child><axis><xyz>0 1 0</xyz><mimic joint="a"><multiplier>-2</multiplier><offset>0.5</offset>'
        "<reference>0.1</reference></mimic>",
    )
    (coupling,) = read_sdf_text(text)[0].couplings
    assert (coupling.joint, coupling.terms, coupling.offset) == ("b", (("a", -2.0),), 0.7)


@pytest.mark.parametrize(("old", "new", "message"), [
    ('relative_to="hinge"', 'relative_to="nothing"', r":4: .*no frame 'nothing'; .*available: __model__"),
    ('relative_to="base"', 'relative_to="rod"', "its pose is relative to itself"),
    ("<parent>base<", "<parent>bas<", "no link or frame 'bas'; did you mean 'base'"),
    ("<parent>base<", "<parent>rod<", "its parent and its child are 'rod'"),
    ('type="revolute"', 'type="revolute3"', "no joint type 'revolute3'; did you mean 'revolute'"),
    ("<mass>2<", "<mass>-2<", "the mass is -2 kg; give a mass of zero or more"),
    ("<mass>2<", "<mass>nan<", "'nan' is not a number"),
    ('<link name="base">', '<link name="rod">', "has another 'rod'; rename one of them"),
    ("1 0 0</xyz>", "0 0 0</xyz>", "has no direction"),
    ("<inertial>", '<inertial auto="true">', 'auto="true" is not supported'),
    ('<model name="pendulum">', '<model name="pendulum" placement_frame="x">', "placement_frame is not supported"),
    ("<sdf", "<!DOCTYPE a [<!ENTITY b 'c'>]><sdf", "declares a document type"),
    ('attached_to="rod"', 'attached_to="tip"', "'tip' is attached to itself"),
])  # fmt: skip
def test_bad_files_name_line_and_remedy(old, new, message):
    """Read what is wrong, where, and what to do."""
    assert old in PENDULUM
    with pytest.raises(ModelError, match=message):
        read_sdf_text(PENDULUM.replace(old, new, 1), file="x.sdf")


def test_what_is_not_read_is_reported():
    """Find sensors, plugins, further models and worlds without gravity in the report."""
    text = PENDULUM.replace("</link>", '<sensor name="s"/></link>', 1).replace("<gravity>0 0 -9.5</gravity>", "")
    text = text.replace("</world>", '<model name="second"><link name="x"/></model></world>')
    mechanism, report = read_sdf_text(text)
    assert mechanism.gravity == (0.0, 0.0, -9.8) and "gravity is 9.8 m/s^2, SDF's own" in str(report)
    assert "<sensor name='s'> in <link name='base'>" in str(report)
    assert "<model name='second'>: the first model of the file is read" in str(report)
    floating = PENDULUM.replace('<link name="rod">', '<link name="rod"><gravity>{}</gravity>')
    assert "no weight" not in str(read_sdf_text(floating.format("true"))[1])
    assert "link 'rod' has no weight in the file, and has one here" in str(read_sdf_text(floating.format("0"))[1])
    bare, report = read_sdf_text('<sdf><model name="m"><link name="x"/></model></sdf>', base="free")
    assert bare.bodies[0].mass == 1.0 and "it has SDF's 1 kg and 1 kg m^2" in str(report)


@pytest.mark.parametrize("name", GOOD)
@examples(400)
@given(steps=STEPS, base=st.sampled_from(["fixed", "free"]), fixed=st.sampled_from(["merge", "keep"]))
def test_mutations_give_a_mechanism_or_a_model_error(name, steps, base, fixed):
    """Get a Mechanism or a ModelError only from each mutation."""
    text = GOOD[name]
    for mutation, a, b in steps:
        text = mutation(text, a, b)
    try:
        mechanism, _ = read_sdf_text(text.encode("utf-8", "surrogatepass"), file="x.sdf", base=base, fixed=fixed)
        assert isinstance(mechanism, Mechanism)
    except ModelError as error:
        assert "x.sdf" in str(error) and len(str(error)) < 5000


WRONG = [
    "",
    "nan",
    "1e400",
    "world",
    "__model__",
    "rod",
    "arm::upper",
    "0 0",
    "1e308 1e308 1e308",
    "a" * 900,
    "::",
    "tip",
]


@pytest.mark.parametrize("name", GOOD)
def test_every_text_and_attribute_with_awkward_values(name):
    """Get a Mechanism or a ModelError only from an awkward value in each text and attribute."""
    for match in re.finditer(r'(?<==")[^"]*|(?<=>)[^<>\s][^<>]*(?=<)', GOOD[name]):
        for value in WRONG:
            text = GOOD[name][: match.start()] + value + GOOD[name][match.end() :]
            try:
                assert isinstance(read_sdf_text(text, file="x.sdf")[0], Mechanism)
            except ModelError as error:
                assert "x.sdf" in str(error)


def series(**given) -> tuple[Mechanism, Report]:
    """Return a model with one joint of two axes."""
    return read_sdf_text(SERIES.format(**AXES | {"type": "revolute2"} | given))


@pytest.mark.parametrize(("lower", "upper", "limits", "remark"), [
    ("-1e16", "1e16", ((), ()), ""),
    ("-inf", "inf", ((), ()), ""),
    ("-Infinity", "1e300", ((), ()), ""),
    ("-1.5", "1e16", ((-1.5,), (math.inf,)), ""),
    ("inf", "2", ((-math.inf,), (2.0,)), "<lower> of <limit> is inf: taken as no limit"),
    ("1e16", "-1e16", ((), ()), "<upper> of <limit> is -1e16: taken as no limit"),
])  # fmt: skip
def test_no_limit_has_several_spellings(lower, upper, limits, remark):
    """Read infinities and 1e16 as no limit, with a remark where the sign is that of the other end."""
    text = PENDULUM.replace("<lower>-1</lower><upper>2</upper>", f"<lower>{lower}</lower><upper>{upper}</upper>")
    assert text != PENDULUM
    mechanism, report = read_sdf_text(text.replace("<effort>7</effort>", "<effort>inf</effort><velocity>-1</velocity>"))
    found = mechanism.joints[0].limits
    assert (found.lower, found.upper, found.effort, found.velocity) == (*limits, (), ())
    assert (remark in str(report)) if remark else "no limit" not in str(report)


def test_two_axes_are_a_universal_joint_or_two_revolute_ones():
    """Read perpendicular axes as a universal joint, others as two revolute joints with a massless body between them."""
    (joint,) = series()[0].joints
    assert joint.kind == "universal" and joint.limits.lower == (-1.0, -2.0) and joint.limits.effort == ()
    mechanism, report = series(second="0.6 0.8 0", type="universal")
    one, two = mechanism.joints
    assert (one.name, one.kind, two.name, two.kind) == ("j_axis", "revolute", "j_axis2", "revolute")
    assert (one.limits.upper, two.limits.upper) == ((1.0,), (3.0,)) and mechanism.bodies[0].mass == 0.0
    assert dict(mechanism.forces[0].coefficients) == {"stiffness_1": 4.0, "rest_1": 0.0}
    assert "the universal joint 'j' becomes two revolute joints in series" in str(report)
    turn = np.array(System(mechanism).pose([0.4, -0.7], "b"))[:3, :3]
    given = about(0, 0.3).matrix()
    second = np.array(from_axis_angle((0.6, 0.8, 0.0), -0.7))
    expected = np.array(given) @ np.array(about(0, 0.4).matrix()) @ second  # in the frame of the joint
    assert_close(turn, expected, 1e-15, "rotation about one axis, then the other")


def test_axes_in_the_frame_of_the_model():
    """Read axes of old files in the model's frame, as Gazebo does, and not in that of the joint."""
    own, _ = series(second="0 0 1")
    model, report = series(second="0 0 1", old=1)
    turned = np.array(about(0, 0.3).matrix()).T @ [1.0, 0.0, 0.0]
    assert_close(model.joints[0].axis, turned, 1e-15, "axis in the joint's frame")
    assert own.joints[0].axis == (1.0, 0.0, 0.0) and "use_parent_model_frame" not in str(report)


def test_a_gearbox_couples_two_joints():
    """Read a gearbox by the angles of its links about its axes; one without such joints is left out with the reason."""
    (coupling,) = read_sdf_text(GEARS)[0].couplings
    assert (coupling.joint, coupling.terms, coupling.offset) == ("slow", (("fast", 0.04),), 0.0)  # axes are opposite
    back = GEARS.replace("<parent>frame</parent><child>wheel", "<parent>wheel</parent><child>frame")
    back = back.replace("<parent>world</parent><child>frame", "<parent>world</parent><child>wheel")
    assert read_sdf_text(back)[0].couplings[0].terms == (("fast", -0.04),)
    askew = GEARS.replace("<axis2><xyz>1 0 0", "<axis2><xyz>0 1 0")
    mechanism, report = read_sdf_text(askew)
    assert not mechanism.couplings and "'box' is left out: its <axis2> is not parallel to that of joint 'slow'" in str(
        report
    )
    loose = GEARS.replace('"slow" type="revolute"', '"slow" type="prismatic"')
    assert "'box' is left out: no revolute joint connects 'wheel' and 'frame'" in str(read_sdf_text(loose)[1])


HAND = (
    '<sdf version="1.9"><model name="hand"><pose>9 9 9 0 0 0</pose><link name="palm"><pose>0 0 0.5 0 0 0</pose>{}'
    "</link></model></sdf>"
)
ARM = """<sdf version="1.9"><model name="arm"><link name="base"/>
<joint name="root" type="fixed"><parent>world</parent><child>base</child></joint>
<include><uri>{uri}</uri><name>left</name><pose>0 0 1 0 0 0</pose></include>
<joint name="wrist" type="revolute"><parent>base</parent><child>left::palm</child><axis><xyz>0 1 0</xyz></axis></joint>
</model></sdf>"""


@pytest.fixture
def models(tmp_path):
    """Return a folder with an arm and, in another folder, a model of a hand that it includes."""
    hand = tmp_path / "store" / "hand"
    (hand / "meshes").mkdir(parents=True)
    (hand / "meshes/a.stl").write_text("solid")
    visual = '<visual name="v"><geometry><mesh><uri>meshes/a.stl</uri></mesh></geometry></visual>'
    (hand / "old.sdf").write_text("<sdf/>")
    (hand / "new.sdf").write_text(HAND.format(visual))
    (hand / "model.config").write_text(
        '<model><sdf version="1.10">new.sdf</sdf><sdf version="1.9">old.sdf</sdf></model>'
    )
    (tmp_path / "own").mkdir()
    (tmp_path / "secret.sdf").write_text(HAND.format(""))
    return tmp_path


def test_included_models_are_read_from_the_folders_alone(models, monkeypatch):
    """Include a model by its folder, with the name and pose of the include, its meshes, and its newest file."""
    file = models / "own" / "arm.sdf"
    file.write_text(ARM.format(uri="model://hand"))
    mechanism, report = read_sdf(file, roots=[models / "store"])
    (palm,) = mechanism.bodies
    assert palm.name == "left::palm" and palm.shapes[0].file == str(models / "store/hand/meshes/a.stl")
    assert_close(mechanism.joints[0].placement.translation, (0.0, 0.0, 1.5), 1e-15, "pose of the include")
    assert "arm.sdf:3: included 'new.sdf' of model://hand; its lines are that of the <include>" in str(report)
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(models / "store"))
    assert read_sdf(file)[0].bodies == mechanism.bodies
    for uri in ("hand", "hand/new.sdf", "model://hand/new.sdf", f"file://{models}/store/hand/new.sdf"):
        file.write_text(ARM.format(uri=uri))
        assert read_sdf(file)[0].bodies[0].name == "left::palm"
    for uri in (
        "model://fist",
        "model://../secret.sdf",
        "../secret.sdf",
        f"{models}/secret.sdf",
        "https://x/hand",
        ".",
    ):
        file.write_text(ARM.format(uri=uri))
        with pytest.raises(ModelError, match=r"arm\.sdf:3: <include>: the model .* is not in the folders that are sea"):
            read_sdf(file)
    world = '<sdf><world name="w"><include><uri>model://hand</uri></include><model name="m"/></world></sdf>'
    file.write_text(world)
    mechanism, report = read_sdf(file, base="free")
    assert mechanism.name == "hand" and mechanism.nv == 6
    assert "<model name='m'>: the first model of the file is read" in str(report)


def test_includes_are_bounded(models):
    """Include a model that includes itself, one without a model, and one with merge."""
    file = models / "own" / "arm.sdf"
    (models / "own/ring.sdf").write_text(ARM.format(uri="ring.sdf"))
    file.write_text(ARM.format(uri="ring.sdf"))
    with pytest.raises(ModelError, match="models are nested more than 10 deep"):
        read_sdf(file)
    (models / "own/ring.sdf").write_text("<sdf><include><uri>ring.sdf</uri></include></sdf>")
    with pytest.raises(ModelError, match="is one of more than 100 included models; include fewer"):
        read_sdf(file)
    (models / "own/ring.sdf").write_text("<robot/>")
    with pytest.raises(ModelError, match=r"ring\.sdf' has no <model> in an <sdf>; include another file"):
        read_sdf(file)
    file.write_text(ARM.format(uri="ring.sdf").replace("<include>", '<include merge="true">'))
    with pytest.raises(ModelError, match='merge="true" is not supported; copy the parts of the model'):
        read_sdf(file)


def test_cassie_has_its_gearboxes():
    """Read the robot Cassie with ten gearboxes, six loops, and axes in the model's frame."""
    files = [f for f in public_robots(".sdf") if f.name == "cassie.sdf"]
    if not files:
        pytest.skip("the file is not installed")
    arm = kt.load(files[0])
    ratios = {c.joint: c.terms for c in arm.mechanism.couplings}
    assert len(ratios) == 10 and ratios["left-roll-op"] == (("left-roll-ip", -0.04),)
    assert len(arm.mechanism.loops) == 6 and arm.nv == 38
    # the roll axis of the right leg is x of the model in the file; its link is rotated
    joint = arm.mechanism.joint("right-roll-op")
    world = np.array(arm.tree.pose(arm.tree.neutral(), "right-hip-roll"))[:3, :3] @ np.array(joint.axis)
    assert_close(world, (1.0, 0.0, 0.0), 1e-12, "axis in the model's frame")
