"""Triangle meshes of boxes and of bodies of revolution, with a normal per vertex."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import pi

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..algebra.scalars import Numbers


@dataclass(frozen=True)
class Mesh:
    """Vertices [n, 3] with normals [n, 3] and colors [n, 3] in 0 to 1; faces [m, 3], counterclockwise from outside."""

    vertices: Numbers
    normals: Numbers
    faces: NDArray[np.integer]
    colors: Numbers

    def placed(self, rotation: ArrayLike, translation: ArrayLike) -> Mesh:
        """Return the mesh rotated, then translated."""
        turn = np.asarray(rotation, dtype=float).T
        return Mesh(self.vertices @ turn + np.asarray(translation), self.normals @ turn, self.faces, self.colors)

    def painted(self, color: ArrayLike) -> Mesh:
        """Return the mesh in one color."""
        colors = np.broadcast_to(np.asarray(color, dtype=float)[:3], self.vertices.shape)
        return Mesh(self.vertices, self.normals, self.faces, colors)


EMPTY = Mesh(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3), dtype=int), np.zeros((0, 3)))


def join_meshes(meshes: Iterable[Mesh]) -> Mesh:
    """Return several meshes as one."""
    parts = [m for m in meshes if len(m.faces)]
    if not parts:
        return EMPTY
    starts = np.cumsum([0] + [len(m.vertices) for m in parts])
    return Mesh(
        np.concatenate([m.vertices for m in parts]),
        np.concatenate([m.normals for m in parts]),
        np.concatenate([m.faces + start for m, start in zip(parts, starts, strict=False)]),
        np.concatenate([m.colors for m in parts]),
    )


def box(size: ArrayLike) -> Mesh:
    """Return a centered box with edges x, y, z."""
    vertices, normals, faces = [], [], []
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    for axis in range(3):
        for side in (1, -1):
            normal = np.roll([side, 0, 0], axis)
            for a, b in corners[::side]:
                vertices.append(np.roll([side, a, b], axis))
                normals.append(normal)
            k = len(vertices) - 4
            faces += [(k, k + 1, k + 2), (k, k + 2, k + 3)]
    return _mesh(np.array(vertices) * np.asarray(size, dtype=float) / 2.0, normals, faces)


def cylinder(radius: float, length: float, *, sides: int = 24) -> Mesh:
    """Return a centered cylinder along z."""
    h = length / 2.0
    return _revolve(
        [
            [(0.0, -h, 0.0, -1.0), (radius, -h, 0.0, -1.0)],
            [(radius, -h, 1.0, 0.0), (radius, h, 1.0, 0.0)],
            [(radius, h, 0.0, 1.0), (0.0, h, 0.0, 1.0)],
        ],
        sides,
    )


def cone(radius: float, length: float, *, sides: int = 24) -> Mesh:
    """Return a cone along z with its tip up, centered between base and tip."""
    h, slant = length / 2.0, float(np.hypot(radius, length))
    r, z = length / slant, radius / slant
    return _revolve(
        [[(0.0, -h, 0.0, -1.0), (radius, -h, 0.0, -1.0)], [(radius, -h, r, z), (1e-9 * radius, h, r, z)]], sides
    )


def sphere(radius: float, *, sides: int = 24) -> Mesh:
    """Return a sphere."""
    return capsule(radius, 0.0, sides=sides)


def capsule(radius: float, length: float, *, sides: int = 24) -> Mesh:
    """Return a centered cylinder along z with a hemisphere at either end, not counted in its length."""
    angles = np.linspace(-pi / 2, pi / 2, 2 * (sides // 4) + 1)
    rings = [(angle, -length / 2.0 if angle <= 0 else length / 2.0) for angle in angles]
    if length > 0:
        rings.insert(len(rings) // 2 + 1, (0.0, length / 2.0))
    c, s = np.cos, np.sin
    return _revolve([[(abs(radius * c(a)), radius * s(a) + z, c(a), s(a)) for a, z in rings]], sides)


def tube(path: ArrayLike, radius: ArrayLike, *, sides: int = 6) -> Mesh:
    """Return a tube along a path of points [n, 3], open at its ends; its radius may differ along x, y and z."""
    points, reach = np.asarray(path, dtype=float), np.asarray(radius, dtype=float)
    along = np.gradient(points / reach, axis=0)  # the section is round where lengths are measured by the radius
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    first = np.cross(along, np.eye(3)[int(np.argmin(np.abs(along[0])))])
    for k in range(len(points)):  # carried along the path, without twist
        before = first[max(k - 1, 0)]
        first[k] = before - (before @ along[k]) * along[k]
        first[k] /= np.linalg.norm(first[k])
    angles = np.arange(sides) * (2.0 * pi / sides)
    ring = np.cos(angles)[:, None] * first[:, None] + np.sin(angles)[:, None] * np.cross(along, first)[:, None]
    low = sides * np.arange(len(points) - 1)[:, None]
    k, after = np.arange(sides), (np.arange(sides) + 1) % sides
    faces = [(low + k, low + after, low + sides + after), (low + k, low + sides + after, low + sides + k)]
    normals = ring / reach
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    return _mesh(
        (points[:, None] + ring * reach).reshape(-1, 3),
        normals.reshape(-1, 3),
        np.concatenate([np.stack(three, axis=-1).reshape(-1, 3) for three in faces]),
    )


def _revolve(strips: list[list[tuple[float, float, float, float]]], sides: int) -> Mesh:
    """Return the surface of revolution about z of profiles (r, z, normal's r, normal's z), upward on the outside."""
    angles = np.arange(sides) * (2.0 * pi / sides)
    cos, sin = np.cos(angles), np.sin(angles)
    vertices, normals, faces = [], [], []
    for strip in strips:
        start = len(vertices) * sides
        for r, z, nr, nz in strip:
            vertices.append(np.stack([r * cos, r * sin, np.full(sides, z)], axis=1))
            normals.append(np.stack([nr * cos, nr * sin, np.full(sides, nz)], axis=1))
        k, after = np.arange(sides), (np.arange(sides) + 1) % sides
        for ring in range(len(strip) - 1):
            low, high = start + ring * sides, start + (ring + 1) * sides
            if strip[ring + 1][0] > 1e-12 * abs(strip[ring][0]):
                faces.append(np.stack([low + k, high + after, high + k], axis=1))
            if strip[ring][0] > 1e-12 * abs(strip[ring + 1][0]):
                faces.append(np.stack([low + k, low + after, high + after], axis=1))
    return _mesh(np.concatenate(vertices), np.concatenate(normals), np.concatenate(faces))


def _mesh(vertices, normals, faces) -> Mesh:
    points = np.asarray(vertices, dtype=float)
    return Mesh(points, np.asarray(normals, dtype=float), np.asarray(faces, dtype=int), np.full(points.shape, 0.6))


# --- Solids of unit size, which pictures and pages stretch between two points: rods, springs, dampers, actuators.

TURNS, END, WIRE = 9, 0.1, (0.16, 0.012)
"""Turns of a coil, the part of its length that is straight at either end, and half the thickness of its wire: relative
to the radius of the coil, and along it to its length. The wire is round where the coil is 13 radii long."""
GRAIN = 1024
"""Places of wires are multiples of 1/GRAIN of the radius and length, so that they take little room in a page."""


@cache
def solid(name: str) -> Mesh:
    """Return a solid of radius 1 and length 1 along z, about its middle, by its name in `SOLIDS`."""
    return SOLIDS[name]()


def _link() -> Mesh:
    """Return a tapered tube with rounded ends, wide at its start."""
    return _fine(_chamfered([(0.86, -0.5), (1.0, -0.46), (0.72, 0.47), (0.6, 0.5)], 14))


def _drum() -> Mesh:
    """Return a cylinder with chamfered edges."""
    return _fine(_chamfered([(0.88, -0.5), (1.0, -0.44), (1.0, 0.44), (0.88, 0.5)], 18))


def _chamfered(profile: list[tuple[float, float]], sides: int) -> Mesh:
    """Return the solid of revolution of a profile (r, z), with edges between its parts, closed at both ends."""
    ends = [(0.0, profile[0][1]), *profile, (0.0, profile[-1][1])]
    strips = []
    for (r, z), (s, y) in pairwise(ends):
        length = float(np.hypot(s - r, y - z))
        n = ((y - z) / length, (r - s) / length)
        strips.append([(r, z, *n), (s, y, *n)])
    return _revolve(strips, sides)


def _coil() -> Mesh:
    """Return a helix of wire, whose ends are on the axis."""
    angle = np.linspace(0.0, 2.0 * pi * TURNS, 10 * TURNS + 1)
    out = np.minimum(1.0, np.minimum(angle, angle[::-1]) / (0.5 * pi))  # from the axis to the radius in a quarter turn
    z = np.linspace(END - 0.5, 0.5 - END, len(angle))
    turns = np.stack([out * np.cos(angle), out * np.sin(angle), z], axis=1)
    return _fine(tube(np.concatenate([[[0.0, 0.0, -0.5]], turns, [[0.0, 0.0, 0.5]]]), (WIRE[0], WIRE[0], WIRE[1])))


def _damper() -> Mesh:
    """Return a pot about the first half of the length, and a thin rod that enters it."""
    pot = cylinder(1.0, 0.5, sides=16).placed(np.eye(3), (0.0, 0.0, -0.1))
    return join_meshes([pot, cylinder(0.3, 1.0, sides=10)])


def _actuator() -> Mesh:
    """Return a cylinder over a little more than half of the length, and a piston rod."""
    barrel = cylinder(1.0, 0.55, sides=16).placed(np.eye(3), (0.0, 0.0, -0.225))
    return join_meshes([barrel, cylinder(0.5, 0.45, sides=10).placed(np.eye(3), (0.0, 0.0, 0.275))])


def _fine(mesh: Mesh) -> Mesh:
    vertices: Numbers = np.round(GRAIN * mesh.vertices) / GRAIN
    return Mesh(vertices, np.round(64 * mesh.normals) / 64, mesh.faces, mesh.colors)


SOLIDS = {
    "rod": lambda: cylinder(1.0, 1.0, sides=20),
    "cone": lambda: cone(1.0, 1.0, sides=20),
    "ball": lambda: sphere(1.0, sides=20),
    "link": _link,
    "drum": _drum,
    "block": lambda: box((2.0, 2.0, 1.0)),
    "spring": _coil,
    "damper": _damper,
    "actuator": _actuator,
}
"""The solids by name; pages need the first three for arrows and marks, the others for force elements alone."""
MARKS = ("rod", "cone", "ball")
