"""MJCF before MuJoCo sees it: files stay in the folder, what is not read is reported, and any text is answered."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import examples

pytest.importorskip("mujoco")

from kinetree.errors import ModelError
from kinetree.formats import mjcf_xml
from kinetree.formats.elements import Source
from kinetree.formats.mjcf import read_mjcf, read_mjcf_text
from kinetree.formats.mjcf_xml import prepare
from kinetree.formats.report import Report
from kinetree.formats.xml import parse_xml
from kinetree.model import Mechanism

TETRAHEDRON = "v 0 0 0\nv 0.3 0 0\nv 0 0.2 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"

SCENE = """<mujoco model="scene">
  <compiler meshdir="assets/mesh" angle="radian"/>
  <option timestep="0.01" density="1.2"/>
  <statistic extent="2"/>
  <include file="parts/arm.xml"/>
  <asset>
    <texture name="grid" type="2d" builtin="checker" width="100000" height="100000"/>
    <material name="wood" texture="grid" rgba="0.4 0.3 0.2 1"/>
    <mesh file="wedge.obj" scale="2 2 2"/>
  </asset>
  <worldbody>
    <light pos="0 0 3"/>
    <geom type="plane" size="1 1 1" material="wood"/>
    <geom type="hfield" hfield="hills"/>
    <body name="block" pos="0 0 1"><camera name="eye"/><freejoint/><geom type="mesh" mesh="wedge"/></body>
  </worldbody>
  <actuator><motor joint="hinge"/><motor joint="hinge"/></actuator>
  <sensor><jointpos joint="hinge"/></sensor>
</mujoco>"""

ARM = """<mujocoinclude>
<worldbody><body name="arm"><joint name="hinge"/><geom size="0.1"/></body></worldbody></mujocoinclude>"""


@pytest.fixture
def folder(tmp_path):
    """Write a model with an include and a mesh, and a file outside its folder."""
    inside = tmp_path / "model"
    (inside / "assets" / "mesh").mkdir(parents=True)
    (inside / "parts").mkdir()
    (inside / "scene.xml").write_text(SCENE)
    (inside / "parts" / "arm.xml").write_text(ARM)
    (inside / "assets" / "mesh" / "wedge.obj").write_text(TETRAHEDRON)
    (tmp_path / "secret.obj").write_text(TETRAHEDRON)
    (tmp_path / "secret.xml").write_text(ARM)
    return inside


def test_includes_meshes_and_leftovers(folder):
    """Put an include in, read a mesh from its folder, and report every section that is left out with its line."""
    mechanism, report = read_mjcf(folder / "scene.xml")
    assert [b.name for b in mechanism.bodies] == ["arm", "block"]
    assert mechanism.body("block").shapes[0].file == str(folder / "assets" / "mesh" / "wedge.obj")
    text = str(report)
    for entry in (
        ":5: included 'arm.xml'",
        ":3: attribute 'timestep' = '0.01' of <option>",
        ":3: attribute 'density' = '1.2' of <option>",
        ":4: <statistic> with 0 elements",
        ":7: <texture name='grid'> in <asset>",
        ":12: <light> in <worldbody>",
        ":14: <geom> in <worldbody>",
        ":15: <camera name='eye'> in <body name='block'>",
        ":17: <actuator> with 2 elements",
        ":18: <sensor> with 1 elements",
        "a geom of body 'ground': no shape is of the type plane",
        "contacts: friction, margins and solver numbers of geoms are not read",
    ):
        assert f"scene.xml{entry}" in text or entry in text, entry


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "wedge.obj",
            "../../../secret.obj",
            ":9: <mesh>: the file '../../../secret.obj' is not found in the model's f",
        ),
        ("wedge.obj", "/etc/hostname", ":9: <mesh>: the file '/etc/hostname' is not found in the model's folder; copy"),
        ("wedge.obj", "none.obj", ":9: <mesh>: the file 'none.obj' is not found in the model's folder; copy it there"),
        ("assets/mesh", "..", ":9: <mesh>: the file 'wedge.obj' is not found in the model's folder"),
        (
            "parts/arm.xml",
            "../secret.xml",
            ":5: <include>: the file '../secret.xml' is not found in the model's folder",
        ),
        ("parts/arm.xml", "/etc/passwd", ":5: <include>: the file '/etc/passwd' is not found"),
        ("parts/arm.xml", "scene.xml", ":5: <include>: 'scene.xml' is included already; MuJoCo includes a file once"),
        ('<mesh file="wedge.obj"', '<mesh builtin="sphere"', ":9: <mesh>: is made by MuJoCo or a plugin; give it a f"),
        ("<camera", '<flexcomp name="eye" file="/etc/passwd"/><light', ":15: <flexcomp name='eye'>: is not rigid, or"),
        ("<camera", '<attach model="m"/><light', ":15: <attach>: is not rigid, or comes from another model; remove it"),
        ('pos="0 0 1"', 'pos="0 0 -inf"', ":15: <body name='block'>: the attribute 'pos' is '0 0 -inf'; give finite n"),
        (
            'pos="0 0 1"',
            'pos=" "',
            ":15: <body name='block'>: the attribute 'pos' is empty; give it a value, or leave it",
        ),
        ("<mujoco model", '<!DOCTYPE m [<!ENTITY a "b">]><mujoco model', ":1: declares a document type or an entity"),
    ],
)
def test_faults_name_file_and_line(folder, old, new, message):
    """Refuse files outside the folder, circles of includes, and what is not rigid, with line and remedy."""
    (folder / "scene.xml").write_text(SCENE.replace(old, new))
    with pytest.raises(ModelError) as caught:
        read_mjcf(folder / "scene.xml")
    assert str(caught.value).startswith(f"{folder / 'scene.xml'}{message}")
    assert caught.value.remedy


def test_links_may_not_lead_out(folder):
    """Refuse a mesh that is a link to a file outside the folder."""
    mesh = folder / "assets" / "mesh" / "wedge.obj"
    mesh.unlink()
    mesh.symlink_to(folder.parent / "secret.obj")
    with pytest.raises(ModelError, match="'wedge.obj' is not found in the model's folder"):
        read_mjcf(folder / "scene.xml")


def test_paths_are_stripped_where_the_file_asks(folder):
    """Look for meshes by their bare names where strippath is set, with either sort of slash."""
    text = SCENE.replace("angle=", 'strippath="true" angle=').replace('"wedge.obj"', '"C:\\\\work\\\\wedge.obj"')
    (folder / "scene.xml").write_text(text.replace("\\\\", "\\"))
    assert read_mjcf(folder / "scene.xml")[0].body("block").shapes[0].kind == "mesh"


def test_text_has_no_files():
    """Refuse a text that names files, since it has no folder."""
    with pytest.raises(ModelError, match="<text>:5: <include>: needs the file 'parts/arm.xml'; load the model from a"):
        read_mjcf_text(SCENE)


def test_mujoco_opens_no_file(folder):
    """Hand MuJoCo the bytes of meshes under names of ours, and no folder to look in."""
    root = parse_xml(SCENE)
    prepared = prepare(Source("scene.xml", Report()), root, folder)
    assert prepared.assets == {"mesh0.obj": TETRAHEDRON.encode()}
    assert re.findall(r'file="([^"]*)"', prepared.text) == ["mesh0.obj"]
    assert "meshdir" not in prepared.text and "texture" not in prepared.text
    assert prepared.text.splitlines()[14].startswith('<body name="block"'), "lines are kept"


def test_large_models_are_refused_at_once(monkeypatch, folder):
    """Refuse billions of copies, too many meshes and too many bodies before anything is made."""
    nested = '<replicate count="1000">' * 3 + "<body/>" + "</replicate>" * 3
    start = time.perf_counter()
    for inside in (
        nested,
        '<replicate count="99999999999"><body/></replicate>',
        '<replicate count="x"><body/></replicate>',
    ):
        with pytest.raises(ModelError, match="makes more than 50000 elements; replicate less|does not compile"):
            read_mjcf_text(f"<mujoco><worldbody>{inside}</worldbody></mujoco>")
    assert time.perf_counter() - start < 5
    with pytest.raises(ModelError, match="has 6001 bodies; at most 5000 are read"):
        read_mjcf_text('<mujoco><worldbody><replicate count="6000"><body/></replicate></worldbody></mujoco>')
    monkeypatch.setattr(mjcf_xml, "MAX_MESHES", 10)
    with pytest.raises(ModelError, match="is larger than 10 bytes"):
        read_mjcf(folder / "scene.xml")


def test_copies_that_are_few_are_made():
    """Let <replicate> make bodies where they are few."""
    text = '<replicate count="3" offset="1 0 0"><body name="b"><joint name="j"/><geom size="1"/></body></replicate>'
    mechanism, _ = read_mjcf_text(f"<mujoco><worldbody>{text}</worldbody></mujoco>")
    assert [b.name for b in mechanism.bodies] == ["b0", "b1", "b2"]


def test_includes_are_bounded_together(monkeypatch, folder):
    """Refuse includes that are larger together than a file may be, and files that nest without end."""
    monkeypatch.setattr(mjcf_xml, "MAX_BYTES", 100)
    with pytest.raises(ModelError, match="arm.xml: is larger than 100 bytes"):
        read_mjcf(folder / "scene.xml")
    monkeypatch.undo()
    for k in range(50):
        inside = "<body>" * 100 + f'<include file="parts/{k + 1}.xml"/>' + "</body>" * 100
        (folder / "parts" / f"{k}.xml").write_text(f"<mujocoinclude>{inside}</mujocoinclude>")
    (folder / "parts" / "50.xml").write_text("<mujocoinclude/>")
    (folder / "deep.xml").write_text('<mujoco><worldbody><include file="parts/0.xml"/></worldbody></mujoco>')
    with pytest.raises(ModelError, match="deep.xml: the nesting is too deep; include flat files"):
        read_mjcf(folder / "deep.xml")


GOOD = [
    SCENE.replace('<include file="parts/arm.xml"/>', "").replace('<mesh file="wedge.obj" scale="2 2 2"/>', "")
    .replace('type="mesh" mesh="wedge"', 'size="0.1"').replace('joint="hinge"', ""),
    """<mujoco><default><joint damping="1"/><geom rgba="1 0 0 1"/></default><worldbody><body name="a" pos="0 0 1">
<joint name="h" axis="0 1 0" range="-90 90"/><joint name="s" type="slide"/><geom type="capsule" size="0.1 0.2"/>
<body name="b" euler="10 20 30"><joint name="k" type="ball" pos="0 0 0.1"/><inertial mass="1" pos="0 0 0"
diaginertia="1 1 1"/><site name="tip"/></body></body></worldbody><equality><connect body1="b" anchor="0 0 0"/>
<joint joint1="h" joint2="s" polycoef="0 1 0 0 0"/><weld site1="tip" site2="tip"/></equality></mujoco>""",
]  # fmt: skip
AWKWARD = ["", "nan", "1e400", "-1", "0 0 0", "1e308 1e308 1e308", "1e-320", "0x10", "ground", "a", "ball", "free"]
AWKWARD += ["true", "mesh", "../../etc/passwd", "\u0661", "&lt;", "a" * 2000, "99999999999", "1 2", "box", "plane"]


@pytest.mark.parametrize("good", GOOD, ids=["scene", "arm"])
@examples(300)
@given(data=st.data())
def test_mutations_give_a_mechanism_or_an_error(good, data, tmp_path_factory):
    """Replace values, cut and repeat pieces of a good file: nothing but a Mechanism or a ModelError comes out."""
    text = good
    for _ in range(data.draw(st.integers(1, 3))):
        found = list(re.finditer(r'="([^"]*)"', text))
        if found and data.draw(st.booleans()):
            at = data.draw(st.sampled_from(found))
            others = [other.group(1) for other in found]
            text = text[: at.start(1)] + data.draw(st.sampled_from(AWKWARD + others)) + text[at.end(1) :]
        else:
            i = data.draw(st.integers(0, len(text)))
            j = data.draw(st.integers(i, min(len(text), i + 60)))
            text = text[:i] + text[i:j] * data.draw(st.sampled_from([0, 2])) + text[j:]
    try:
        mechanism, _ = read_mjcf_text(text, file="m.xml")
    except ModelError as error:
        assert error.file == "m.xml"
        assert error.remedy
    else:
        assert isinstance(mechanism, Mechanism)
