"""Meshes from files: their triangles, colors and places, their simplification, and files that are none."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.view.mesh_files import read_mesh, read_shape, simplified
from tolerance import assert_close

trimesh = pytest.importorskip("trimesh")


def test_a_box_is_read_and_placed(tmp_path):
    """Write a box as a file, and find its corners mirrored, stretched and shifted, facing outwards."""
    trimesh.creation.box((0.2, 0.4, 0.6)).export(tmp_path / "box.stl")
    placement = kt.Placement((1.0, -2.0, 0.5))
    shape = kt.Shape("mesh", (-1.0, 2.0, 0.5), placement, file=str(tmp_path / "box.stl"), color=(0.1, 0.7, 0.3, 1.0))
    mesh = read_shape(shape, (0.0, 0.0, 0.0))
    assert len(mesh.faces) == 12
    assert_close(mesh.vertices.min(axis=0), [0.9, -2.4, 0.35], 1e-7, "low corner")
    assert_close(mesh.vertices.max(axis=0), [1.1, -1.6, 0.65], 1e-7, "high corner")
    corners = mesh.vertices[mesh.faces]
    outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    middle = corners.mean(axis=1) - np.array([1.0, -2.0, 0.5])
    assert ((outward * middle).sum(axis=1) > 0).all()
    assert ((mesh.normals[mesh.faces].mean(axis=1) * outward).sum(axis=1) > 0).all()
    assert_close(mesh.colors, np.tile([0.1, 0.7, 0.3], (len(mesh.vertices), 1)), 1e-15, "colors")


def test_fine_meshes_are_simplified():
    """Simplify a fine sphere to a few hundred triangles that are still a sphere."""
    ball = trimesh.creation.icosphere(subdivisions=5, radius=0.3)
    mesh = simplified(np.array(ball.vertices), np.array(ball.faces), 800)
    assert 200 < len(mesh.faces) <= 800
    assert_close(np.linalg.norm(mesh.vertices, axis=1), np.full(len(mesh.vertices), 0.3), 0.02, "radius")
    assert ((mesh.normals * mesh.vertices).sum(axis=1) > 0).all()
    area = 4.0 * np.pi * 0.3**2
    assert_close(trimesh.Trimesh(mesh.vertices, mesh.faces).area, area, 0.05 * area, "area")


def test_missing_and_broken_files_are_refused(tmp_path):
    """Read a mesh of a package that was not found, and a file that is no mesh."""
    with pytest.raises(kt.InputError, match=r"no file 'package://arm/link.stl' for a mesh; give roots= to load\(\)"):
        read_mesh("package://arm/link.stl")
    (tmp_path / "bad.obj").write_text("nothing")
    with pytest.raises(kt.InputError, match=r"the mesh .*bad.obj' (cannot be read|has no triangles)"):
        read_mesh(tmp_path / "bad.obj")


def test_a_page_draws_meshes(tmp_path):
    """Write a model with a mesh, and find its triangles in the drawing of the page only where they are asked for."""
    from kinetree.view.page_writer import _data, _first_position

    trimesh.creation.box((0.2, 0.4, 0.6)).export(tmp_path / "box.stl")
    shape = kt.Shape("mesh", (1.0, 1.0, 1.0), file=str(tmp_path / "box.stl"))
    body = kt.Body("link", 1.3, (0.1, 0.0, 0.2), (0.02, 0.03, 0.04, 0.0, 0.0, 0.0), (shape,))
    system = kt.System(kt.assemble("m", [body], [kt.Joint("hinge", "revolute", kt.GROUND, "link", axis="y")]))
    start = _first_position(system, None)
    drawn, plain = (_data(start, start["poses"], kernel=False, meshes=x)["scene"] for x in (True, False))
    assert drawn["ranges"][0][1] == 36 != plain["ranges"][0][1]
