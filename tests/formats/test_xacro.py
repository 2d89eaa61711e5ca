"""Expansion of xacro: formulas without eval, macros, blocks, conditions, includes, and bad input."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinetree as kt
from kinetree import ModelError
from kinetree.formats.report import Report
from kinetree.formats.urdf import read_urdf
from kinetree.formats.xacro import expand_xacro
from kinetree.formats.xml import Source, find_file, parse_xml
from kinetree.model import Mechanism
from strategies import examples
from xml_mutations import STEPS

ARM = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="links" default="3"/><xacro:arg name="tool" default="false"/>
<xacro:property name="count" value="$(arg links)"/><xacro:property name="length" value="0.5"/>
<xacro:property name="mass" value="${2.0 * length}"/>
<xacro:macro name="inertial" params="m l *origin"><inertial><xacro:insert_block name="origin"/><mass value="${m}"/>
<inertia ixx="${m*l**2/12}" iyy="${m*l**2/12}" izz="${0.001 * m}" ixy="0" iyz="0" ixz="0"/></inertial></xacro:macro>
<xacro:macro name="link" params="k parent:=base prefix:='' l:=^|0.1 **more">
<link name="${prefix}link${k}"><xacro:inertial m="${mass}" l="${l}"><origin xyz="0 0 ${l/2}"/></xacro:inertial>
<xacro:insert_block name="more"/></link>
<joint name="joint${k}" type="${'revolute' if k % 2 else 'continuous'}"><parent link="${parent}"/>
<child link="${prefix}link${k}"/><origin xyz="0 0 ${0 if k == 1 else length}" rpy="0 ${radians(90) * (k > 1)} 0"/>
<axis xyz="0 1 0"/><xacro:if value="${k % 2}"><limit lower="${-pi/2}" upper="${pi}" effort="1" velocity="1"/></xacro:if>
</joint></xacro:macro>
<link name="base"/>
<xacro:link k="1" l="${length}"><more/></xacro:link>
<xacro:link k="2" parent="link1" l="${length}">
<more><visual><geometry><sphere radius="0.1"/></geometry></visual></more></xacro:link>
<xacro:unless value="${count &lt; 3}">
<xacro:link k="3" parent="link2" l="${length}"><more/></xacro:link>
</xacro:unless>
<xacro:if value="$(arg tool)"><link name="tool"/><joint name="tool" type="fixed">
<parent link="link2"/><child link="tool"/></joint></xacro:if></robot>"""
PLAIN = """<robot name="r" xmlns:xacro="x"><xacro:property name="a" value="1"/>{}<link name="l${{a}}"/></robot>"""


def expanded(text: str, **arguments):
    """Return the mechanism of a text of xacro."""
    source = Source("x.xacro", Report("x.xacro"))
    return expand_xacro(source, parse_xml(text, file="x.xacro"), None, [], arguments or None)


def test_an_arm_of_macros(tmp_path):
    """Read an arm whose numbers are formulas, with blocks, inherited and default parameters, and conditions."""
    file = tmp_path / "arm.urdf.xacro"
    file.write_text(ARM)
    arm = kt.load(file)
    assert [j.name for j in arm.joints] == ["joint1", "joint2", "joint3"]
    assert arm.bodies[1].mass == 1.0 and arm.bodies[1].com == (0.0, 0.0, 0.25) and len(arm.bodies[1].shapes) == 1
    assert arm.bodies[0].inertia[0] == 1.0 * 0.5**2 / 12 and arm.joints[0].limits.upper == (math.pi,)
    assert arm.joints[1].limits.upper == () and arm.joints[2].placement.translation == (0.0, 0.0, 0.5)
    assert kt.load(file, arguments={"links": 2}).nv == 2
    assert "tool" in kt.load(file, arguments={"tool": True}).mechanism.frame_names
    with pytest.raises(ModelError, match="no argument 'lenks'; did you mean 'links'"):
        kt.load(file, arguments={"lenks": 2})
    with pytest.raises(ModelError, match="arguments are those of xacro files; leave them out"):
        (tmp_path / "a.toml").write_text("")
        kt.load(tmp_path / "a.toml", arguments={})


@pytest.mark.parametrize(("formula", "text"), [
    ("1 + 1", "2"), ("2 ** 3", "8"), ("7 / 2", "3.5"), ("7 // 2", "3"), ("-a", "-1"), ("'x' + 'y'", "xy"),
    ("sin(pi/2)", "1.0"), ("math.sqrt(4)", "2.0"), ("1 if a == 1 and not False else 2", "1"), ("max(1, 2, a)", "2"),
    ("'b' in 'abc'", "True"), ("10 ** 30", "1e+30"), ("degrees(pi)", "180.0"),
])  # fmt: skip
def test_formulas(formula, text):
    """Evaluate arithmetic, comparisons, conditions and functions as Python does, with bounded integers."""
    robot = expanded(PLAIN.format(f'<xacro:property name="b" value="${{{formula}}}"/><material name="${{b}}"/>'))
    found = robot.children[0].attributes["name"]
    assert found == text or float(found) == float(text)


def test_texts_and_escapes():
    """Keep dollar signs that are doubled, and texts around formulas."""
    robot = expanded(PLAIN.format('<material name="x$${a}-${a}${a+1}"/>'))
    assert robot.children[0].attributes["name"] == "x${a}-12"


@pytest.mark.parametrize(("inside", "message"), [
    ('<link name="${nothing}"/>', r"x\.xacro:1: no property 'nothing'"),
    ('<link name="${__import__(1)}"/>', "has a part that is not supported; write arithmetic"),
    ('<link name="${().__class__}"/>', "has a part that is not supported"),
    ('<link name="${[1 for x in y]}"/>', "has a part that is not supported"),
    ('<link name="${1/0}"/>', "the formula '1/0' has no value"),
    ('<link name="${9**9**9**9}"/>', "has no value"),
    ('<link name="${\'x\' * 9999999}"/>', "has no value"),
    ('<link name="${round(1, -9999999999)}"/>', "has no value"),
    ('<link name="${1 +}"/>', "cannot be read"),
    ('<link name="$(eval 1)"/>', r"\$\(eval 1\) is not supported"),
    ('<link name="$(arg none)"/>', "no argument 'none'"),
    ('<link name="$(find nowhere)"/>', "the package 'nowhere' is not found"),
    ('<xacro:nothing/>', "no macro 'nothing'"),
    ('<xacro:include filename="/etc/passwd"/>', "is not in the model's folder or package"),
    ('<xacro:include filename="x" ns="y"/>', "includes with a namespace are not supported"),
    ('<xacro:macro name="m" params="p"><xacro:m p="1"/></xacro:macro><xacro:m p="1"/>', "nested more than 50 deep"),
    ('<xacro:macro name="m" params="p"/><xacro:m/>', "the parameter 'p' is missing"),
    ('<xacro:macro name="m" params="p"/><xacro:m q="1"/>', "no parameter 'q'"),
    ('<xacro:macro name="m" params="*p"/><xacro:m/>', r"has 0 children for the blocks \*p"),
    ('<xacro:property name="p" value="${q}"/><xacro:property name="q" value="${p}"/><b n="${p}"/>', "refers to its"),
    ('<xacro:if value="perhaps"/>', "the condition is 'perhaps'; give true or false"),
    ('<xacro:insert_block name="b"/>', "no block 'b'"),
    ('<xacro:property name="p" value="1" scope="x"/>', "its scope is 'x'"),
])  # fmt: skip
def test_what_is_wrong_or_not_supported_is_named(inside, message):
    """Read file, line and remedy; nothing is run."""
    with pytest.raises(ModelError, match=message) as error:
        expanded(PLAIN.format(inside.replace("{", "{").replace("}", "}")))
    assert error.value.remedy


@pytest.mark.parametrize("root", [
    '<xacro:property name="a" value="1"/>',
    '<xacro:if value="1"><robot name="r"/><robot name="s"/></xacro:if>',
])  # fmt: skip
def test_a_directive_is_no_robot(root):
    """Refuse a file whose outermost element is one of xacro."""
    with pytest.raises(ModelError, match="the root element is a directive of xacro; put it into a <robot>"):
        expanded(root)


def test_doubling_is_bounded():
    """Refuse properties, blocks and macros that double twenty times and more, without delay."""
    texts = "".join(f'<xacro:property name="p{k + 1}" value="${{p{k}}}${{p{k}}}"/>' for k in range(40))
    with pytest.raises(ModelError, match="parts; expand less|characters; use at most"):
        expanded(PLAIN.format(f'<xacro:property name="p0" value="ab"/>{texts}<link name="${{p40}}"/>'))
    macros = "".join(f'<xacro:macro name="m{k + 1}"><xacro:m{k}/><xacro:m{k}/></xacro:macro>' for k in range(40))
    with pytest.raises(ModelError, match="makes more than 50000 elements"):
        expanded(PLAIN.format(f'<xacro:macro name="m0"><link name="x"/></xacro:macro>{macros}<xacro:m40/>'))
    insert = '<xacro:insert_block name="b{0}"/><xacro:insert_block name="b{0}"/>'
    blocks = "".join(f'<xacro:property name="b{k + 1}">{insert.format(k)}</xacro:property>' for k in range(40))
    with pytest.raises(ModelError, match="makes more than 50000 elements"):
        expanded(PLAIN.format(f'<xacro:property name="b0"><a/></xacro:property>{blocks}{insert.format(40)}'))


def test_includes_stay_in_the_package(tmp_path):
    """Include files of the folder, of the package and of roots; links and paths that lead out are refused."""
    package = tmp_path / "arm_description"
    (package / "urdf").mkdir(parents=True)
    (package / "package.xml").write_text("<package/>")
    (package / "common.xacro").write_text('<robot><xacro:property name="m" value="3"/></robot>')
    (tmp_path / "secret.xacro").write_text("<robot/>")
    (package / "urdf" / "link.xacro").symlink_to(tmp_path / "secret.xacro")
    file = package / "urdf" / "arm.xacro"
    body = '<link name="l"><inertial><mass value="${m}"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
    for include in (
        "$(find arm_description)/common.xacro",
        "../common.xacro",
        "package://arm_description/common.xacro",
    ):
        file.write_text(f'<robot name="r"><xacro:include filename="{include}"/>{body}</robot>')
        assert kt.load(file, base="free").bodies[0].mass == 3.0
    for include in ("../../secret.xacro", "link.xacro", "$(find arm_description)/../secret.xacro"):
        file.write_text(f'<robot name="r"><xacro:include filename="{include}"/>{body}</robot>')
        with pytest.raises(ModelError, match="is not in the model's folder or package"):
            kt.load(file)
    file.write_text('<robot name="r"><xacro:include filename="arm.xacro"/></robot>')
    with pytest.raises(ModelError, match="macros are nested more than 50 deep"):
        kt.load(file)


@examples(400)
@given(steps=STEPS, base=st.sampled_from(["fixed", "free"]))
def test_mutations_give_a_mechanism_or_a_model_error(tmp_path_factory, steps, base):
    """Get a Mechanism or a ModelError only from each mutation."""
    text = ARM
    for mutation, a, b in steps:
        text = mutation(text, a, b)
    file = tmp_path_factory.getbasetemp() / "mutated.xacro"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        assert isinstance(read_urdf(file, base=base)[0], Mechanism)
    except ModelError as error:
        assert "mutated.xacro" in str(error) and len(str(error)) < 6000


def test_the_package_may_be_a_folder_above(tmp_path):
    """Find includes and meshes of a package by its name where the file is in it, and nothing elsewhere."""
    urdf = tmp_path / "share" / "arm_description" / "urdf"
    meshes = urdf.parent / "meshes"
    urdf.mkdir(parents=True)
    meshes.mkdir()
    (meshes / "a.stl").write_text("solid")
    visual = '<visual><geometry><mesh filename="package://arm_description/meshes/a.stl"/></geometry></visual>'
    (meshes / "link.xacro").write_text(f'<robot><link name="a">{visual}</link></robot>')
    assert find_file("package://arm_description/meshes/a.stl", [urdf]) is None  # its name alone makes no package
    (urdf.parent / "package.xml").write_text("<package/>")
    for name in ("$(find arm_description)/meshes/link.xacro", "package://arm_description/meshes/link.xacro"):
        (urdf / "arm.xacro").write_text(f'<robot name="x"><xacro:include filename="{name}"/></robot>')
        mechanism, report = read_urdf(urdf / "arm.xacro", base="free")
        assert mechanism.bodies[0].shapes[0].file == str(meshes / "a.stl") and "not found" not in str(report)
    (urdf.parent / "package.xml").write_text("<package><name>other_name</name></package>")
    (urdf / "arm.xacro").write_text(
        '<robot name="x"><xacro:include filename="$(find other_name)/meshes/link.xacro"/></robot>'
    )
    assert len(read_urdf(urdf / "arm.xacro", base="free")[0].bodies) == 1
    assert find_file("package://other_name/meshes/a.stl", [urdf]) == meshes / "a.stl"
    (urdf.parent / "package.xml").write_text("<package>")  # cannot be read: the folder has its own name alone
    assert find_file("package://other_name/meshes/a.stl", [urdf]) is None
    for name in ("$(find arm_description)/../secret.xacro", "package://arm_description/../secret.xacro"):
        (urdf / "arm.xacro").write_text(f'<robot name="x"><xacro:include filename="{name}"/></robot>')
        (urdf.parents[1] / "secret.xacro").write_text("<robot/>")
        with pytest.raises(ModelError, match="is not in the model's folder or package"):
            read_urdf(urdf / "arm.xacro")


def test_files_of_macros_alone_say_so(tmp_path):
    """Load a file that defines macros only: the message says which file to give."""
    (tmp_path / "macro.xacro").write_text('<robot><xacro:macro name="one"><link name="a"/></xacro:macro></robot>')
    with pytest.raises(ModelError, match="has no <link>; add one, or give the file that includes this one and calls"):
        read_urdf(tmp_path / "macro.xacro")
