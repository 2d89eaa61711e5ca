"""Shapes, materials and mesh paths of URDF."""

from __future__ import annotations

import os

import pytest

from kinetree.errors import ModelError
from kinetree.formats.urdf import read_urdf, read_urdf_text
from kinetree.formats.xml import find_file


def link(inside: str, before: str = "") -> str:
    """Return a robot of one link with these children."""
    return f'<robot name="r">{before}<link name="a">{inside}</link></robot>'


def visual(geometry: str, material: str = "") -> str:
    """Return a visual."""
    return f"<visual><geometry>{geometry}</geometry>{material}</visual>"


def shapes(text: str):
    """Return the shapes of the link, and all remarks as one text."""
    mechanism, report = read_urdf_text(text, base="free")
    return mechanism.body("a").shapes, str(report)


@pytest.mark.parametrize(
    ("geometry", "kind", "size"),
    [
        ('<box size="1 2 3"/>', "box", (1.0, 2.0, 3.0)),
        ('<sphere radius="0.5"/>', "sphere", (0.5,)),
        ('<cylinder length="2" radius="0.5"/>', "cylinder", (0.5, 2.0)),
        ('<capsule length="2" radius="0.5"/>', "capsule", (0.5, 2.0)),
        ('<mesh filename="m.stl"/>', "mesh", (1.0, 1.0, 1.0)),
        ('<mesh filename="m.stl" scale="0.001 0.001 0.002"/>', "mesh", (0.001, 0.001, 0.002)),
    ],
)
def test_geometry(geometry, kind, size):
    """Read each shape with its sizes in the order of Shape."""
    (shape,), _ = shapes(link(visual(geometry)))
    assert (shape.kind, shape.size, shape.role) == (kind, size, "visual")


def test_unusable_shapes_are_reported():
    """Drop visuals without a known geometry, with a remark for each, and read the others."""
    inside = (
        "<visual/>" + visual("") + visual('<cone radius="1"/>') + visual('<sphere radius="-1"/><box size="1 1 1"/>')
    )
    found, report = shapes(link(inside))
    assert [s.kind for s in found] == ["sphere"]
    assert report.count("<visual>: it has no geometry") == 2
    assert "<cone> of <visual>: known shapes are box, sphere, cylinder, capsule, mesh" in report
    assert "<box> in <geometry>" in report
    assert "<sphere> has a negative size" in report


def test_materials():
    """Use a material's own color first, then the robot's of that name, then one defined in another link."""
    glob = '<material name="g"><color rgba="0 1 0 1"/></material>'
    ball = '<sphere radius="1"/>'
    own = visual(ball, '<material name="own"><color rgba="1 0 0 1"/></material>')
    text = link(
        own
        + visual(ball, '<material name="g"/>')
        + visual(ball, '<material name="own"/>')
        + visual(ball, '<material name="nowhere"/>')
        + visual(ball, '<material name="t"><texture filename="t.png"/></material>'),
        before=glob,
    )
    found, report = shapes(text)
    red, green = (1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 1.0)
    assert [s.color for s in found] == [red, green, red, None, None]
    assert "<material name='nowhere'> has no color and is not defined elsewhere" in report
    assert "<texture> in <material name='t'>" in report
    with pytest.raises(ModelError, match="<color> attribute 'rgba': 3 numbers in '1 2 3'; give 4"):
        shapes(link("", before='<material name="g"><color rgba="1 2 3"/></material>'))


@pytest.fixture
def folders(tmp_path):
    """Return a folder with a package inside it, and a secret file outside."""
    meshes = tmp_path / "ros" / "arm" / "meshes"
    meshes.mkdir(parents=True)
    (meshes / "a.stl").write_text("not a mesh")
    (tmp_path / "secret.stl").write_text("secret")
    return tmp_path


@pytest.mark.parametrize("root", ["ros", "ros/arm"])
@pytest.mark.parametrize("scheme", ["package", "model"])
def test_packages_are_found(folders, root, scheme):
    """Find a package in a root, and a root that is the package."""
    found = find_file(f"{scheme}://arm/meshes/a.stl", [folders / root])
    assert found == (folders / "ros/arm/meshes/a.stl").resolve()


def test_relative_and_file_paths(folders):
    """Find paths relative to a root, and file:// paths inside one; leave plain absolute paths alone."""
    mesh = (folders / "ros/arm/meshes/a.stl").resolve()
    assert find_file("meshes/a.stl", [folders, folders / "ros/arm"]) == mesh
    assert find_file("../arm/meshes/a.stl", [folders / "ros/arm"]) == mesh
    assert find_file(f"file://{mesh}", [folders / "ros"]) == mesh
    assert find_file("file://meshes/a.stl", [folders / "ros/arm"]) == mesh
    assert find_file(str(mesh), [folders / "ros"]) is None


@pytest.mark.parametrize(
    "text",
    [
        "package://../secret.stl",
        "package://arm/../../secret.stl",
        "package://../../../../../../../../etc/passwd",
        "package:///etc/passwd",
        "package://ros//etc/passwd",
        "model://..",
        "file:///etc/passwd",
        "file://../secret.stl",
        "../secret.stl",
        "/etc/passwd",
        "http://host/a.stl",
        "package://arm/link.stl",
        "package://arm/circle",
        "package://arm/meshes",
        "a\x00b",
        "x" * 5000,
        "x/" * 2000,
        "",
        "package://",
    ],
)
def test_nothing_outside_the_roots_is_found(folders, text):
    """Find no file outside the roots, whether by dots, links, absolute paths or other schemes."""
    os.symlink(folders / "secret.stl", folders / "ros/arm/link.stl")
    os.symlink(folders / "ros/arm/circle", folders / "ros/arm/circle")
    assert find_file(text, [folders / "ros", folders / "ros/arm"]) is None


def test_meshes_of_a_file(folders):
    """Search the folder of the file and the roots; keep the path of a missing mesh, with a remark."""
    path = folders / "ros/arm/arm.urdf"
    inside = visual('<mesh filename="meshes/a.stl"/>') + visual('<mesh filename="package://arm/none.stl"/>')
    path.write_text(link(inside + visual('<mesh filename="package://arm/meshes/a.stl"/>')))
    mechanism, report = read_urdf(path, base="free")
    beside, none, package = mechanism.body("a").shapes
    assert beside.file == package.file == str((folders / "ros/arm/meshes/a.stl").resolve())
    assert none.file == "package://arm/none.stl"
    suspect = report.of("suspect")
    assert [e.text for e in suspect] == [
        "mesh 'package://arm/none.stl' is not found and not drawn; give the folder that contains 'arm' as one of "
        "roots= (command line: --root), or in ROS_PACKAGE_PATH"
    ]
    assert suspect[0].line == 1
