"""The plane on which points of balance lie: that of the ground under a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...errors import InputError
from ...model.contacts import Surface
from ...model.mechanism import Mechanism, resolved
from ...model.parts import GROUND, Placement

SAME = 1e-9
"""The largest distance [m] and sine of an angle between planes that count as the same."""


@dataclass(frozen=True)
class Plane:
    """A plane fixed in the ground: a point, the normal out of the ground, two axes in it, and the direction upward."""

    point: Numbers
    normal: Numbers
    x: Numbers
    y: Numbers
    up: Numbers
    gravity: float

    def within(self, points: Numbers) -> Numbers:
        """Return the coordinates of points in the plane [..., 2]."""
        away = points - self.point
        return np.stack([away @ self.x, away @ self.y], axis=-1)

    def below(self, points: Numbers) -> tuple[Numbers, Numbers]:
        """Return the points of the plane vertically below others [..., 3], and the heights above them [...]."""
        height = ((points - self.point) @ self.normal) / float(self.up @ self.normal)
        return points - height[..., None] * self.up, height


def plane_of(mechanism: Mechanism, surface: Any = None, parameters: Sequence[float] | None = None) -> Plane:
    """Return the plane of a Surface or Placement, by default that of the contacts with the ground.

    Without contacts it is the level plane through the origin.
    """
    values = mechanism.values(parameters)
    gravity = np.array(resolved(mechanism.gravity, values), dtype=float)
    size = float(np.linalg.norm(gravity))
    if size == 0.0:
        raise InputError(f"{mechanism.name!r} has no gravity: no point of balance exists")
    up = -gravity / size
    if surface is None:
        found = _of_contacts(resolved(mechanism.contacts, values))
        place = _level(up) if found is None else found
    else:
        place = getattr(surface, "placement", surface)
        flat = not isinstance(surface, Surface) or (surface.kind == "plane" and surface.body == GROUND)
        if not isinstance(place, Placement) or not flat:
            raise InputError(f"plane is {surface!r}; give a kt.Surface of kind plane on the ground, or a kt.Placement")
    R = np.array(place.rotation, dtype=float)
    if R[:, 2] @ up <= 0.0:
        raise InputError("the normal of the plane does not point upward; rotate its placement so that z does")
    return Plane(np.array(place.translation, dtype=float), R[:, 2], R[:, 0], R[:, 1], up, size)


def _of_contacts(contacts: Any) -> Placement | None:
    """Return the placement of the plane that all contacts touch; None without contacts."""
    places = []
    for contact in contacts:
        surface = contact.surface
        if surface.kind != "plane" or surface.body != GROUND:
            raise InputError(
                f"contact {contact.name!r} touches {surface.kind} of {surface.body!r}, not a plane of the ground; "
                "name the plane of the points of balance: plane=kt.Surface(...)"
            )
        places.append(surface.placement)
    if not places:
        return None
    first = places[0]
    n = np.array(first.rotation, dtype=float)[:, 2]
    for place in places[1:]:
        other = np.array(place.rotation, dtype=float)[:, 2]
        step = np.subtract(place.translation, first.translation) @ n
        if abs(step) > SAME or np.abs(np.cross(n, other)).max() > SAME or n @ other < 0:
            raise InputError(
                "the contacts touch several planes; name that of the points of balance: plane=kt.Surface(...)"
            )
    return first


def _level(up: Numbers) -> Placement:
    """Return a level plane through the origin; its x axis is near one of the ground's."""
    k = int(np.flatnonzero(np.abs(up) < 0.9)[0])
    x = np.eye(3)[k] - up[k] * up
    x /= np.linalg.norm(x)
    R = np.column_stack([x, np.cross(up, x), up])
    return Placement((0.0, 0.0, 0.0), tuple(map(tuple, R.tolist())))  # type: ignore[arg-type]
