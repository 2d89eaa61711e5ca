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
from kinetree.formats.sdf import read_sdf_text
from kinetree.model import Mechanism
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
GOOD = {"pendulum": PENDULUM, "nested": NESTED, "ring": RING}


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
