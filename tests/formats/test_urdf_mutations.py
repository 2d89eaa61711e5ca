"""Mutations of good URDF files, which give a Mechanism or a ModelError only."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import everyday
from kinetree.errors import ModelError
from kinetree.formats.urdf import read_urdf_text
from kinetree.model import Mechanism
from strategies import examples
from xml_mutations import AWKWARD, STEPS

GOOD = {
    "pendulum": """<robot name="pendulum"><link name="base"/>
<joint name="swing" type="continuous"><parent link="base"/><child link="bob"/><axis xyz="0 1 0"/></joint>
<link name="bob"><inertial><origin xyz="0 0 -1"/><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link></robot>""",
    "gripper": """<?xml version="1.0" encoding="utf-8"?><robot name="gripper"><link name="palm"><inertial>
<mass value="2"/><origin xyz="0 0 0.1" rpy="0.1 0.2 0.3"/><inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001"/>
</inertial></link>
<joint name="left" type="prismatic"><parent link="palm"/><child link="finger_l"/><origin xyz="0 0.1 0" rpy="0 0 1"/>
<axis xyz="0 0.6 0.8"/><limit lower="0" upper="0.05" effort="10" velocity="0.1"/></joint>
<joint name="right" type="prismatic"><parent link="palm"/><child link="finger_r"/><mimic joint="left" multiplier="-1"/>
<limit lower="-0.05" upper="0" effort="10" velocity="0.1"/><dynamics damping="3" friction="0.5"/></joint>
<link name="finger_l"/><link name="finger_r"/></robot>""",
    "rover": """<robot name="rover" version="1.0"><link name="world"/><joint name="f" type="floating">
<parent link="world"/><child link="hull"/></joint><link name="hull"><inertial><mass value="9"/>
<inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="p" type="planar"><parent link="hull"/><child link="plate"/><axis xyz="0 0 1"/></joint>
<link name="plate"/><gazebo reference="hull"><kp>1e6</kp></gazebo><transmission name="t"/></robot>""",
    "welded": """<robot name="welded"><link name="a"/><joint name="ab" type="fixed"><parent link="a"/><child link="b"/>
<origin xyz="1 2 3" rpy="0.4 0.5 0.6"/></joint><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="bc" type="revolute"><parent link="b"/><child link="c"/><limit lower="-1" upper="1"/></joint>
<link name="c"/><joint name="cd" type="fixed"><parent link="c"/><child link="d"/></joint><link name="d"><inertial>
<mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link></robot>""",
    "closed": """<robot name="closed"><link name="a"/><link name="b"/><link name="c"/>
<joint name="ab" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>
<joint name="ac" type="continuous"><parent link="a"/><child link="c"/><axis xyz="0 1 0"/></joint>
<constraint name="k" type="universal"><parent link="b"/><parent_origin xyz="1 0 0" rpy="0 0 0.3"/>
<parent_axis xyz="0 1 0"/><child link="c"/><child_origin xyz="0 0 1"/><child_axis xyz="1 0 0"/></constraint>
<loop name="l" type="spherical"><predecessor link="b"><origin xyz="0 1 0"/></predecessor><successor link="c"/></loop>
</robot>""",
    "drawn": """<robot name="drawn" xmlns:xacro="http://x"><material name="red"><color rgba="1 0 0 1"/></material>
<link name="a"><visual name="v"><origin xyz="0 0 1"/><geometry><mesh filename="package://p/m.stl" scale="1 1 1"/>
</geometry><material name="red"/></visual><collision><geometry><box size="1 2 3"/></geometry></collision><visual>
<geometry><cylinder radius="1" length="2"/></geometry><material name=""><color rgba="0 0 1 1"/></material></visual>
</link></robot>""",
}


def assert_mechanism_or_model_error(text: str | bytes, **options) -> None:
    """Assert that a text gives a mechanism or a ModelError with file, remedy and a short message."""
    try:
        mechanism, report = read_urdf_text(text, file="m.urdf", **options)
        assert isinstance(mechanism, Mechanism)
        assert mechanism.hash
        assert str(report)
    except ModelError as error:
        assert error.remedy
        assert error.file == "m.urdf"
        assert len(str(error)) < 5000


@pytest.mark.parametrize("name", GOOD)
def test_the_good_ones_are_good(name):
    """Read the files that the mutations start from."""
    for base in ("fixed", "free"):
        for fixed in ("merge", "keep"):
            assert read_urdf_text(GOOD[name], base=base, fixed=fixed)[0].name == name


@pytest.mark.parametrize("name", everyday.some(GOOD))
@examples(400)
@given(steps=STEPS, base=st.sampled_from(["fixed", "free"]), fixed=st.sampled_from(["merge", "keep"]))
def test_mutations_give_a_mechanism_or_a_model_error(name, steps, base, fixed):
    """Get a Mechanism or a ModelError only from each mutation."""
    text = GOOD[name]
    for mutation, a, b in steps:
        text = mutation(text, a, b)
    assert_mechanism_or_model_error(text.encode("utf-8", "surrogatepass"), base=base, fixed=fixed, roots=("/tmp",))


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("value", everyday.some(AWKWARD))
def test_every_attribute_with_every_awkward_value(name, value):
    """Get a Mechanism or a ModelError only from an awkward value in each attribute of each file."""
    text = GOOD[name]
    for match in re.finditer(r'="([^"]*)"', text):
        assert_mechanism_or_model_error(text[: match.start(1)] + value + text[match.end(1) :])


@pytest.mark.parametrize("name", GOOD)
def test_enormous_names(name):
    """Refuse names of ten megabytes quickly, with a short message."""
    for match in list(re.finditer(r'="([^"]*)"', GOOD[name]))[:4]:
        text = GOOD[name][: match.start(1)] + "x" * 10_000_000 + GOOD[name][match.end(1) :]
        with pytest.raises(ModelError, match="a tag or comment is longer than"):
            read_urdf_text(text)
        assert_mechanism_or_model_error(GOOD[name].replace(match.group(), f'="{"x" * 900_000}"'))


@given(st.binary(max_size=200))
def test_any_bytes_in_a_robot(data):
    """Get a Mechanism or a ModelError only from any bytes inside a robot."""
    assert_mechanism_or_model_error(b'<robot name="r"><link name="a"/>' + data + b"</robot>")
