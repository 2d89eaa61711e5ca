"""Meshes of solids: closed, of the right volume, with outward normals."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np
import pytest

from kinetree.plots import meshes
from tolerance import assert_close

SIDES = 24
ROUND = sin(2 * pi / SIDES) * SIDES / (2 * pi)
"""The area of a regular polygon over that of its circle."""


def volume(mesh: meshes.Mesh) -> float:
    """Return the volume inside the faces, by their signed cones from the origin."""
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    return float(np.einsum("ni,ni->", a, np.cross(b, c)) / 6.0)


@pytest.mark.parametrize(
    ("mesh", "expected", "bound"),
    [
        (meshes.box((1.0, 2.0, 3.0)), 6.0, 1e-14),
        (meshes.cylinder(0.5, 2.0), pi * 0.25 * 2.0 * ROUND, 1e-14),
        (meshes.sphere(0.7), 4.0 / 3.0 * pi * 0.343, 0.05),
        (meshes.capsule(0.5, 2.0), pi * 0.25 * (2.0 + 2.0 / 3.0), 0.08),
    ],
)
def test_volumes_are_those_of_the_solids(mesh, expected, bound):
    """Find the volume of each solid, outward faces, and every edge in two faces."""
    assert_close(volume(mesh), expected, bound, "volume")
    places = np.unique(np.round(mesh.vertices, 9), axis=0, return_inverse=True)[1].ravel()[mesh.faces]
    edges = [(int(f[k]), int(f[(k + 1) % 3])) for f in places for k in range(3)]
    assert len(set(edges)) == len(edges)
    assert {(b, a) for a, b in edges} == set(edges)


@pytest.mark.parametrize("mesh", [meshes.box((1, 2, 3)), meshes.cylinder(1, 2), meshes.sphere(1), meshes.capsule(1, 2)])
def test_normals_are_unit_and_outside(mesh):
    """Find outward normals of length one on each face."""
    assert_close(np.linalg.norm(mesh.normals, axis=1), np.ones(len(mesh.normals)), 1e-14, "length")
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    flat = np.cross(b - a, c - a)
    assert (np.einsum("ni,nki->nk", flat, mesh.normals[mesh.faces]) > 0).all()


def test_a_capsules_ends_are_beyond_its_length():
    """Find the poles of a capsule a radius beyond half its length."""
    assert_close(np.abs(meshes.capsule(0.5, 2.0).vertices[:, 2]).max(), 1.5, 1e-15)


def test_meshes_are_placed_and_joined():
    """Rotate, translate, paint and join meshes, and find positions, normals and colors."""
    turn = [[cos(1.0), -sin(1.0), 0.0], [sin(1.0), cos(1.0), 0.0], [0.0, 0.0, 1.0]]
    one = meshes.box((1.0, 1.0, 1.0)).painted((1.0, 0.0, 0.0, 0.5))
    two = one.placed(turn, (5.0, 0.0, 0.0)).painted((0.0, 1.0, 0.0))
    both = meshes.join_meshes([one, meshes.EMPTY, two])
    assert_close(volume(both), 2.0, 1e-13, "volume")
    assert_close(both.vertices[24:].mean(axis=0), [5.0, 0.0, 0.0], 1e-14, "place")
    assert both.colors[0].tolist() == [1.0, 0.0, 0.0]
    assert both.colors[-1].tolist() == [0.0, 1.0, 0.0]
    assert len(meshes.join_meshes([]).faces) == 0
