"""Shapes as lists of features that touch: points, balls and rims of discs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

from ..algebra.scalars import Scalar
from ..algebra.vectors import ZERO, Vector
from ..errors import unknown_name


@dataclass(frozen=True)
class Feature:
    """A ball of a radius [m] about a point of the shape's frame, or the rim of a disc about the z axis through it."""

    at: Vector = ZERO
    radius: Scalar = 0.0
    rim: bool = False

    @property
    def sort(self) -> str:
        """The sort of the feature: point, ball or rim."""
        if self.rim:
            return "rim"
        return "point" if isinstance(self.radius, int | float) and self.radius == 0 else "ball"


@dataclass(frozen=True)
class ShapeKind:
    """A shape: the meaning of its sizes, and the features that they make."""

    sizes: tuple[str, ...]
    made: Callable[..., list[Feature]]


def _capsule(radius: Scalar, length: Scalar) -> list[Feature]:
    return [Feature((0.0, 0.0, sign * length), radius) for sign in (-0.5, 0.5)]


def _box(x: Scalar, y: Scalar, z: Scalar) -> list[Feature]:
    return [Feature((i * x, j * y, k * z)) for k, j, i in product((-0.5, 0.5), repeat=3)]


def _cylinder(radius: Scalar, length: Scalar) -> list[Feature]:
    return [Feature((0.0, 0.0, sign * length), radius, rim=True) for sign in (-0.5, 0.5)]


SHAPES: dict[str, ShapeKind] = {
    "point": ShapeKind((), lambda: [Feature()]),
    "sphere": ShapeKind(("radius",), lambda radius: [Feature(ZERO, radius)]),
    "capsule": ShapeKind(("radius", "length"), _capsule),
    "box": ShapeKind(("x", "y", "z"), _box),
    "disc": ShapeKind(("radius",), lambda radius: [Feature(ZERO, radius, rim=True)]),
    "cylinder": ShapeKind(("radius", "length"), _cylinder),
}
"""The shapes by name; a capsule touches with its two ends, a box with its corners, a cylinder with its two rims."""


def shape_kind(name: str, where: str = "") -> ShapeKind:
    """Return a kind of shape by name."""
    if name not in SHAPES:
        raise unknown_name("shape of a contact", name, SHAPES, where=where)
    return SHAPES[name]


def features(contact: Any) -> list[Feature]:
    """Return the features of the shape of a contact."""
    return shape_kind(contact.shape).made(*contact.size)


LYING = 3
"""The number of points that carry a rim that lies flat."""


def rim_points(rim: Feature) -> list[Feature]:
    """Return three points of a rim, 120 degrees apart."""
    out = []
    for k in range(LYING):
        angle = 2 * math.pi * k / LYING
        x, y = rim.radius * math.cos(angle), rim.radius * math.sin(angle)
        out.append(Feature((rim.at[0] + x, rim.at[1] + y, rim.at[2])))
    return out
