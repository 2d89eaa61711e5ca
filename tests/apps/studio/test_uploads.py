"""Uploaded files: bounded, contained, and read by the same readers as files on disk."""

from __future__ import annotations

import base64
from importlib.resources import files

import pytest

import kinetree as kt
from kinetree.apps.studio import tabs
from kinetree.apps.studio.actions.files import open_file
from kinetree.apps.studio.tabs import Folder, Studio, model_among, upload_folder
from kinetree.formats import SUFFIXES
from kinetree.page.writer import served_page
from uploaded_models import URDF


def file(name: str, content: str | bytes) -> dict:
    """Return an uploaded file as a page sends it."""
    plain = content.encode() if isinstance(content, str) else content
    return {"name": name, "content": base64.b64encode(plain).decode()}


@pytest.fixture
def studio(tmp_path):
    """Return a studio with an empty folder."""
    return Studio(Folder.of(tmp_path))


def test_an_uploaded_urdf_is_opened(studio):
    """Open an uploaded URDF with a free, massless base: its name is text, and it cannot fall."""
    evil = "&lt;img src=x onerror=alert(1)&gt;"
    found = open_file(studio, uploads=[file("robot/a.urdf", URDF.format(name=evil, visual=""))], base="free")
    assert found["data"]["title"] == "<img src=x onerror=alert(1)>" and found["name"] == "robot/a.urdf"
    assert studio.tab.shown().nv == 7 and found["data"]["kernel"]["live"] == {}
    assert (
        b"inverse_dynamics" in found["data"]["kernel"]["wasm"] and b"time_step" not in found["data"]["kernel"]["wasm"]
    )
    assert "forward dynamics is impossible" in " ".join(entry["text"] for entry in found["report"])
    assert all(set(entry) == {"sort", "text", "line"} for entry in found["report"])


def test_faults_of_uploaded_files_are_located(studio):
    """Upload a URDF with a fault: the message has its name and line, and no path of this machine."""
    broken = URDF.format(name="x", visual="").replace('value="1.3"', 'value="many"')
    with pytest.raises(kt.InputError, match=r"^a.urdf:2: ") as error:
        open_file(studio, uploads=[file("a.urdf", broken)])
    assert "kinetree-" not in str(error.value)


STL = b"""solid a
facet normal 0 0 1
outer loop
vertex 0 0 0
vertex 1 0 0
vertex 0 1 0
endloop
endfacet
endsolid a
"""
MESHES = [
    ("meshes/box.stl", True), ("package://meshes/box.stl", True), ("/etc/hostname", False), ("meshes/none.stl", False),
    ("file:///etc/hostname", False), ("../../etc/hostname", False), ("package://../etc/passwd", False),
]  # fmt: skip


@pytest.mark.parametrize(("mesh", "drawn"), MESHES)
def test_meshes_are_those_of_the_upload(studio, mesh, drawn, monkeypatch):
    """Refer to a mesh among the uploaded files, which is drawn, and to files of this machine, which are not read."""
    pytest.importorskip("trimesh")
    seen: list[set[str]] = []
    monkeypatch.setattr(
        "kinetree.apps.studio.tabs.system_data",
        lambda system, **options: seen.append(options["meshes"]) or {"title": "x"},
    )
    visual = f'<visual><geometry><mesh filename="{mesh}"/></geometry></visual>'
    model = file("a.urdf", URDF.format(name="x", visual=visual))
    found = open_file(studio, uploads=[model, file("meshes/box.stl", STL)])
    assert [bool(files) for files in seen] == [drawn]
    assert drawn or found["report"][0]["text"].endswith("is not drawn: its file is not here")


def test_a_missing_mesh_drops_only_itself(studio):
    """Refer to a mesh that is there, one that is not, and a broken one: the first is drawn, the others are named."""
    pytest.importorskip("trimesh")
    visual = "".join(
        f'<visual><geometry><mesh filename="meshes/{name}.stl"/></geometry></visual>' for name in ("box", "none", "bad")
    )
    model = file("a.urdf", URDF.format(name="x", visual=visual))
    found = open_file(studio, uploads=[model, file("meshes/box.stl", STL), file("meshes/bad.stl", "nothing")])
    assert found["report"][0]["text"] == "2 meshes: none.stl, bad.stl are not drawn: its file is not here"
    without = open_file(studio, uploads=[file("a.urdf", URDF.format(name="x", visual=""))])
    counts = [x["data"]["scene"]["ranges"][0][1] for x in (found, without)]
    assert counts[0] > 0 and counts[0] != counts[1]


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><robot name="&b;"/>'
INCLUDE = '<mujoco><include file="/etc/hostname"/></mujoco>'


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.urdf", BOMB, "document type|DOCTYPE|entit"),
        ("a.xml", INCLUDE, "hostname"),
        ("a.xml", "<mujoco><include file='../a.xml'/></mujoco>", "a.xml"),
        ("a.urdf", "<a>" * 5000, "nest|deep|element"),
        ("a.toml", "[[body]]\n" * 3, "a.toml"),
        ("a.csv", "\x00\xff", "a.csv"),
    ],
)
def test_harmful_files_give_one_sentence(studio, name, text, message):
    """Upload bombs of entities, includes of other files, deep nesting and wrong bytes."""
    with pytest.raises(kt.KinetreeError, match=message):
        open_file(studio, uploads=[file(name, text.encode("latin-1"))])
    assert studio.tab.system is None


@pytest.mark.parametrize("name", ["../a.urdf", "/tmp/a.urdf", "a/../../b.urdf", ".a.urdf", "a\\b.urdf", "", None])
def test_names_of_uploads_are_contained(name):
    """Upload files under names that lead out of their folder."""
    with (
        pytest.raises(kt.InputError, match="is not the name of a file"),
        upload_folder([{"name": name, "content": ""}]),
    ):
        pytest.fail("it was written")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (None, "expected a list"),
        ([], "expected a list"),
        ([7], "is not a file"),
        ([{"name": "a.urdf", "content": "?"}], "is not base64"),
        ([file("a.urdf", "x"), file("a.urdf", "y")], "two of the files have the name 'a.urdf'"),
        ([file("a.urdf", "x"), file("a.urdf/b.stl", "y")], "two of the files"),
        ([file("a.urdf/b.stl", "x"), file("a.urdf", "y")], "two of the files"),
        ([file(f"{k}.stl", "x") for k in range(201)], "201 files; at most 200"),
    ],
)
def test_uploads_are_checked(files, message):
    """Upload what is not a list of files with contents in base64, or too many."""
    with pytest.raises(kt.InputError, match=message), upload_folder(files):
        pytest.fail("it was written")


def test_uploads_are_bounded(monkeypatch):
    """Upload files that are too large together."""
    monkeypatch.setattr(tabs, "MOST_BYTES", 1000)
    files = [file("a.stl", bytes(600)), file("b.stl", bytes(600))]
    with pytest.raises(kt.InputError, match="more than 1,000 bytes"), upload_folder(files):
        pytest.fail("it was written")


def test_the_model_is_found_among_uploads():
    """Choose the only model file, the named one, or report several."""
    assert model_among(["meshes/a.stl", "robot.urdf"]) == "robot.urdf"
    assert model_among(["a.xml", "b.xml"], "b.xml") == "b.xml"
    with pytest.raises(kt.InputError, match="several models: a.xml, b.xml"):
        model_among(["a.xml", "b.xml"])
    with pytest.raises(kt.InputError, match="no model among the files"):
        model_among(["a.stl"])
    with pytest.raises(kt.InputError, match="'c.xml' is not among the uploaded model files"):
        model_among(["a.xml"], "c.xml")


XACRO = '<robot name="r" xmlns:xacro="x"><xacro:include filename="{}"/><xacro:one n="a"/></robot>'
MACRO = '<robot><xacro:macro name="one" params="n"><link name="${n}"/></xacro:macro></robot>'
SDF = '<sdf version="1.9"><model name="m"><link name="a"/></model></sdf>'


def test_every_format_that_python_reads_is_opened(studio):
    """Upload SDF and xacro, and list all suffixes that are read, which the page gets from Python."""
    assert open_file(studio, uploads=[file("m.sdf", SDF)], base="free")["data"]["title"] == "m"
    assert studio.tab.shown().nv == 6
    xacro = [file("r.xacro", XACRO.format("parts/one.xacro")), file("parts/one.xacro", MACRO)]
    assert open_file(studio, uploads=xacro, name="r.xacro")["data"]["title"] == "r"
    for name in ("/etc/hostname", "../one.xacro", "package://tmp/one.xacro", "$(find tmp)/one.xacro"):
        with pytest.raises(kt.InputError, match="is not in the model's folder or package|package 'tmp' is not found"):
            open_file(studio, uploads=[file("r.xacro", XACRO.format(name))])
    for k, suffix in enumerate(SUFFIXES):
        (studio.folder.root / f"m{k}{suffix}").write_text("")
    assert studio.folder.models() == [f"m{k}{suffix}" for k, suffix in enumerate(SUFFIXES)]
    page, _ = served_page({"title": "m", "model": {"loops": []}, "table": None}, "/socket", ["ws://localhost"])
    assert f'data-models="{" ".join(SUFFIXES)}"' in page
    chooser = (files("kinetree.page") / "js/chooser.js").read_text()
    assert ".urdf" not in chooser and "modelSuffixes" in chooser, "the page has no list of its own"
