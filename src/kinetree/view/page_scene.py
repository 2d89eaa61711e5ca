"""The drawing of a mechanism for a page: triangles of all bodies, rods, tips of trails, floor and camera."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..system import System
from .animation import floor_cell
from .camera import FIELD, Camera, fit
from .links import Rod
from .meshes import joined
from .skeleton import Scene
from .solids import MARKS, solid

FLAT = 1e-9
"""The part of a velocity perpendicular to a plane below which a motion is planar: above rounding."""


NEARER = 0.65
"""The part of the distance from which all positions of an arm are visible: it is larger, and most of them still are."""


def page_scene(drawn: Scene, poses: Numbers, normal: Numbers | None, *, standing: bool) -> dict[str, Any]:
    """Return the drawing of poses [nt, nb, 4, 4]; `normal` is that of the plane of a planar mechanism.

    With `standing`, the poses are the first position and others that the mechanism may reach. The floor is then that of
    the first position, except for planar mechanisms, which may swing below it.
    """
    sight = fit(drawn, poses)
    if standing and normal is None:
        still = fit(drawn, poses[:1])
        near = replace(sight.camera, distance=max(NEARER * sight.camera.distance, still.camera.distance))
        sight = replace(sight, camera=near, floor=still.floor)
    names = list(dict.fromkeys([*MARKS, *(rod.solid for rod in drawn.rods)]))
    solids = [*drawn.bodies, *map(solid, names), *(cut.mesh for cut in drawn.cuts)]
    whole = joined(solids)
    counts = [3 * len(mesh.faces) for mesh in solids]
    starts = np.cumsum([0, *counts])
    camera, floor = sight.camera, float(sight.floor)
    flat = normal is not None and abs(float(normal @ camera.axes[2])) > 0.5
    if normal is not None:
        camera = _facing(camera, normal)
    return {
        "vertices": np.concatenate([whole.vertices, whole.normals, whole.colors], axis=1).astype(np.float32),
        "faces": whole.faces.astype(np.uint32),
        "ranges": [[int(start), count] for start, count in zip(starts, counts, strict=False)],
        "solids": {name: len(drawn.bodies) + k for k, name in enumerate(names)},
        "cuts": [
            {"loop": cut.loop, "end": cut.end, "solid": len(drawn.bodies) + len(names) + k}
            for k, cut in enumerate(drawn.cuts)
        ],
        "rods": [_rod(r) for r in drawn.rods],
        "tips": [[body, _plain(point)] for body, point in drawn.tips],
        "size": drawn.size,
        "cell": floor_cell(drawn.size),
        "floor": None if flat else floor,
        "follows": sight.follows,
        "planar": normal is not None,
        "camera": {
            "target": _plain(camera.target),
            "distance": camera.distance,
            "azimuth": camera.azimuth,
            "elevation": camera.elevation,
            "axes": [_plain(row) for row in camera.axes],
            "field": FIELD,
        },
    }


def _rod(rod: Rod) -> dict[str, Any]:
    return {
        "a": rod.a, "pa": _plain(rod.point_a), "b": rod.b, "pb": _plain(rod.point_b), "radius": rod.radius,
        "color": rod.color, "solid": rod.solid, "pin": rod.pin, "element": rod.element,
    }  # fmt: skip


def plane_of(system: System, q: Numbers, parameters: Numbers | None = None) -> Numbers | None:
    """Return the normal of the plane in which all bodies move; None for motions in space."""
    if not system.nv:
        return None
    more: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
    qd = np.random.default_rng(1).normal(size=(4, system.nv))
    turned = np.asarray(system.poses(q, **more))[..., :3, :3]
    twists = np.asarray(system.twists(q, qd, **more))
    w, v = (np.einsum("bij,tbj->tbi", turned, part).reshape(-1, 3) for part in (twists[..., :3], twists[..., 3:]))
    found = w[np.argmax(np.linalg.norm(w, axis=1))]
    if not np.linalg.norm(found):
        return None
    normal = found / np.linalg.norm(found)
    across = np.linalg.norm(w - np.outer(w @ normal, normal)) / np.linalg.norm(w)
    along = np.linalg.norm(v @ normal) / (np.linalg.norm(v) or 1.0)
    if across > FLAT or along > FLAT:
        return None
    return normal if normal[np.argmax(np.abs(normal))] > 0 else -normal


def _facing(camera: Camera, normal: Numbers) -> Camera:
    """Return the camera that looks at a plane face on, with the vertical or the second axis of the ground upwards."""
    up = camera.axes[2]
    if abs(float(normal @ up)) > 0.5:
        up = np.eye(3)[(int(np.argmax(np.abs(normal))) + 2) % 3]
        return Camera(camera.target, camera.distance, 0.0, 0.0, np.stack([normal, np.cross(up, normal), up]))
    if normal @ np.cross(up, [1.0, 0.0, 0.0]) > 0:  # the first axis of the ground to the right where it is in the plane
        normal = -normal
    azimuth = float(np.arctan2(normal @ camera.axes[1], normal @ camera.axes[0]))
    return Camera(camera.target, camera.distance, azimuth, 0.0, camera.axes)


def _plain(values: Any) -> list[float]:
    return [float(x) for x in values]
