"""Solids of unit size, which pictures and pages stretch between two points: rods, springs, dampers, actuators."""

from __future__ import annotations

from functools import cache
from math import pi

import numpy as np

from ..algebra.arrays import Numbers
from .meshes import Mesh, cone, cylinder, joined, sphere, tube

TURNS, END, WIRE = 9, 0.1, (0.16, 0.012)
"""Turns of a coil, the part of its length that is straight at either end, and half the thickness of its wire: relative
to the radius of the coil, and along it to its length. The wire is round where the coil is 13 radii long."""
GRAIN = 1024
"""Places of wires are multiples of 1/GRAIN of the radius and length, so that they take little room in a page."""


@cache
def solid(name: str) -> Mesh:
    """Return a solid of radius 1 and length 1 along z, about its middle, by its name in `SOLIDS`."""
    return SOLIDS[name]()


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
    return joined([pot, cylinder(0.3, 1.0, sides=10)])


def _actuator() -> Mesh:
    """Return a cylinder over a little more than half of the length, and a piston rod."""
    barrel = cylinder(1.0, 0.55, sides=16).placed(np.eye(3), (0.0, 0.0, -0.225))
    return joined([barrel, cylinder(0.5, 0.45, sides=10).placed(np.eye(3), (0.0, 0.0, 0.275))])


def _fine(mesh: Mesh) -> Mesh:
    vertices: Numbers = np.round(GRAIN * mesh.vertices) / GRAIN
    return Mesh(vertices, np.round(64 * mesh.normals) / 64, mesh.faces, mesh.colors)


SOLIDS = {
    "rod": lambda: cylinder(1.0, 1.0, sides=20),
    "cone": lambda: cone(1.0, 1.0, sides=20),
    "ball": lambda: sphere(1.0),
    "spring": _coil,
    "damper": _damper,
    "actuator": _actuator,
}
"""The solids by name; pages need the first three for arrows and marks, the others for force elements alone."""
MARKS = ("rod", "cone", "ball")
