"""The import report: what asks for attention first, and many entries of one group on one line."""

from __future__ import annotations

from pathlib import Path

import kinetree as kt
from kinetree.formats.report import Group, Report
from kinetree.formats.urdf import read_urdf, read_urdf_text


def test_problems_come_first_and_groups_are_short():
    """Add entries of all sorts: the report lists the suspect ones first, and many of a group on one line at the end."""
    report = Report("r.urdf")
    report.read("2 links", 1)
    for k in range(5):
        report.suspect(f"mesh m{k} is not found", 10 + k, Group("meshes are not found", f"m{k % 4}"))
    report.suspect("link 'a': no body can have this inertia", 99)
    for k in range(3):
        report.dropped(f"<gazebo> {k}", 20 + k, Group("<gazebo> are not read, in", "<robot>"))
    assert str(report).splitlines() == [
        "suspect (6)",
        "  r.urdf:99: link 'a': no body can have this inertia",
        "  5 meshes are not found: m0, m1, m2, and 1 more",
        "dropped (3)",
        "  r.urdf:20: <gazebo> 0",
        "  r.urdf:21: <gazebo> 1",
        "  r.urdf:22: <gazebo> 2",
        "read (1)",
        "  r.urdf:1: 2 links",
    ]
    assert len(report.entries) == 10
    assert "5 meshes are not found" in report._repr_html_()
    assert repr(report) == str(report)


MESH = '<visual><geometry><mesh filename="{}"/></geometry></visual>'


def robot(*paths: str) -> str:
    """Return a URDF of one link with meshes."""
    return f'<robot name="r"><link name="a">{"".join(map(MESH.format, paths))}</link></robot>'


def meshes(system) -> list[str]:
    """Return the files of all meshes."""
    return [shape.file for shape in system.scenery]


def test_packages_of_ros_are_searched(tmp_path, monkeypatch):
    """Find meshes of packages in the folders of both variables of ROS, behind those of `roots`."""
    for name in ("one/arm/m.stl", "two/share/hand/m.stl", "mine/arm/m.stl"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(b"")
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere:{tmp_path / 'one'}")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "two"))
    text = robot("package://arm/m.stl", "package://hand/m.stl")
    made, report = read_urdf_text(text)
    assert meshes(made) == [str(tmp_path / "one/arm/m.stl"), str(tmp_path / "two/share/hand/m.stl")]
    assert not report.of("suspect")
    assert meshes(read_urdf_text(text, roots=[tmp_path / "mine"])[0])[0] == str(tmp_path / "mine/arm/m.stl")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "one/arm"))  # a package itself
    assert meshes(read_urdf_text(text)[0])[0] == str(tmp_path / "one/arm/m.stl")


def test_meshes_do_not_lead_out_of_the_packages_of_ros(tmp_path, monkeypatch):
    """Refuse paths with .., links that lead out, and plain paths and files, in the folders of ROS."""
    secret, packages = tmp_path / "secret.stl", tmp_path / "packages"
    (packages / "arm").mkdir(parents=True)
    secret.write_bytes(b"")
    (packages / "arm/inside.stl").write_bytes(b"")
    (packages / "arm/link.stl").symlink_to(secret)
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(packages))
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    paths = ["package://arm/../../secret.stl", "package://arm/link.stl", "package://../secret.stl", "arm/inside.stl"]
    paths += [f"package:///{secret}", f"file://{packages}/arm/inside.stl"]
    made, report = read_urdf_text(robot(*paths))
    assert meshes(made) == paths
    assert len(report.of("suspect")) == len(paths)
    assert "as one of roots= (command line: --root), or in ROS_PACKAGE_PATH" in report.entries[0].text


def test_the_report_of_many_missing_meshes_is_short(tmp_path):
    """Read a robot with 76 missing meshes and an impossible inertia: two lines, the inertia first."""
    inertia = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.9" ixy="0" iyz="0" ixz="0"/></inertial>'
    text = robot(*(f"package://arm/m{k}.stl" for k in range(76))).replace("</link>", f"{inertia}</link>")
    (tmp_path / "r.urdf").write_text(text)
    lines = read_urdf(tmp_path / "r.urdf")[1].lines("suspect")
    assert len(lines) == 2
    assert "no body can have this inertia" in lines[0]
    assert lines[1].startswith("76 meshes are not found and not drawn; give the folder that contains 'arm'")
    assert isinstance(kt.load(Path(tmp_path / "r.urdf")).report._repr_html_(), str)
