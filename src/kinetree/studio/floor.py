"""A floor under a mechanism that floats: its named frames touch it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..errors import InputError
from ..model.contacts import Contact, Surface
from ..model.mechanism import resolved
from ..model.parts import GROUND, Placement
from ..system import System


def on_floor(system: System, q: Any, friction: float, values: dict[str, Any]) -> System:
    """Return a System whose named frames are points that touch a floor, with Coulomb friction.

    The floor is perpendicular to gravity, through the lowest of the frames at the coordinates q. `values` has the free
    parameters, as an option of functions.
    """
    m = system.mechanism
    gravity = np.array(resolved(tuple(m.gravity), m.values(values.get("parameters"))), dtype=float)
    frames = [f for f in m.frames if f.body != GROUND]
    if not frames or not gravity.any():
        raise InputError(f"{m.name}: a floor needs gravity, and frames that touch it; name frames in the file")
    up = -gravity / np.linalg.norm(gravity)
    height = min(float(up @ np.asarray(system.pose(q, f.name, **values))[:3, 3]) for f in frames)
    surface = Surface("plane", placement=Placement(tuple((height * up).tolist()), _axes(up)))
    contacts = tuple(Contact(f.name, f.body, placement=f.placement, surface=surface, friction=friction) for f in frames)
    return System(replace(m, contacts=contacts), system.report)


def _axes(up: Numbers) -> Any:
    """Return a rotation whose third axis is a unit vector."""
    x = np.cross(np.eye(3)[(int(np.argmax(np.abs(up))) + 1) % 3], up)
    x /= np.linalg.norm(x)
    return tuple(tuple(row) for row in np.column_stack([x, np.cross(up, x), up]).tolist())
