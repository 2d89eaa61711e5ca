"""Meshes from files: their triangles, colors and places, their simplification, and files that are none."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.page import mesh_files
from kinetree.page.mesh_files import read_mesh, read_shape, simplify_mesh
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
    mesh = simplify_mesh(np.array(ball.vertices), np.array(ball.faces), 800)
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


def test_large_and_far_meshes_are_refused(tmp_path, monkeypatch):
    """Name size and limit of a large file, and a coordinate at which triangles would vanish."""
    triangle = "v {0} 0 0\nv 1 0.3 0\nv 0 1 0\nf 1 2 3\n"
    (tmp_path / "far.obj").write_text(triangle.format("1e300"))
    with pytest.raises(kt.InputError, match=r"far.obj' has the coordinate 1e\+300; give 1e\+12 at most"):
        read_mesh(tmp_path / "far.obj")
    (tmp_path / "big.obj").write_text(triangle.format("0.2"))
    assert len(read_mesh(tmp_path / "big.obj").faces) == 1
    read_mesh.cache_clear()
    monkeypatch.setitem(mesh_files.KINDS, ".obj", 20)
    with pytest.raises(
        kt.InputError, match=r"big.obj' has 36 bytes; at most 20 are read: simplify it, or save it as b"
    ):
        read_mesh(tmp_path / "big.obj")


def test_archives_and_entities_are_refused(tmp_path):
    """Read an archive, which may unpack to any size, and XML with entities."""
    (tmp_path / "bomb.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    with pytest.raises(kt.InputError, match=r"bomb.zip' has the suffix '.zip'; meshes are read from .stl, .obj, .dae"):
        read_mesh(tmp_path / "bomb.zip")
    text = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><COLLADA>&b;</COLLADA>'
    for name, encoding in (("bomb.dae", "utf-8"), ("wide.dae", "utf-16")):
        (tmp_path / name).write_bytes(text.replace("1.0", f'1.0" encoding="{encoding}').encode(encoding))
        with pytest.raises(kt.InputError, match="has a document type; remove it"):
            read_mesh(tmp_path / name)
    (tmp_path / "open.dae").write_text("<COLLADA>")
    with pytest.raises(kt.InputError, match="open.dae' cannot be read: no element found"):
        read_mesh(tmp_path / "open.dae")


def test_materials_are_not_opened(tmp_path, monkeypatch):
    """Read a mesh that names materials beside it and outside of its folder: nothing but the mesh is opened."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "secret.mtl").write_text("newmtl a\nmap_Kd ../secret.png\n")
    (inner / "secret_too.mtl").write_text("newmtl a\nKd 1 0 0\n")
    (inner / "a.obj").write_text(
        "mtllib secret_too.mtl\nmtllib ../secret.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl a\nf 1 2 3\n"
    )
    seen: list[str] = []
    opened = open

    def recorded(file, *more, **options):
        seen.append(str(file))
        return opened(file, *more, **options)

    monkeypatch.setattr("builtins.open", recorded)
    assert len(read_mesh(inner / "a.obj").faces) == 1
    assert [name for name in seen if "secret" in name] == []


def test_a_page_draws_meshes(tmp_path):
    """Write a model with a mesh, and find its triangles in the drawing of the page only where they are asked for."""
    from kinetree.page.data import _data, _first_position

    trimesh.creation.box((0.2, 0.4, 0.6)).export(tmp_path / "box.stl")
    shape = kt.Shape("mesh", (1.0, 1.0, 1.0), file=str(tmp_path / "box.stl"))
    body = kt.Body("link", 1.3, (0.1, 0.0, 0.2), (0.02, 0.03, 0.04, 0.0, 0.0, 0.0), (shape,))
    system = kt.System(kt.build_mechanism("m", [body], [kt.Joint("hinge", "revolute", kt.GROUND, "link", axis="y")]))
    start = _first_position(system, None)
    drawn, plain = (_data(start, start["poses"], kernel=False, meshes=x)["scene"] for x in (True, False))
    assert drawn["ranges"][0][1] == 36 != plain["ranges"][0][1]
