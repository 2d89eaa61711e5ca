"""Points of balance on the ground: zero-moment point, center of pressure and capture point.

A wrench of the ground with the force f and the moment n about a point o of the plane has no moment along the plane
about o + e x n / (e . f), where e is the normal. For the wrench that a motion requires this is the zero-moment point,
for the contact forces themselves the center of pressure. Both agree where nothing but the ground holds the mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.scalars import Numbers
from ...algebra.vectors import to_matrix
from ...errors import InputError
from ...model.contacts import Surface
from ...model.mechanism import Mechanism, Named, one_set, resolve_parts
from ...model.parts import GROUND, Placement
from ...runtime.compiled import CompiledMechanism

if TYPE_CHECKING:
    from ...model.contacts import Contact

# --- The plane on which points of balance lie: the ground under a mechanism ---

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


def plane_of(mechanism: Mechanism, surface: object = None, parameters: Sequence[float] | None = None) -> Plane:
    """Return the plane of a Surface or Placement, by default the one that the contacts with the ground touch.

    Without contacts it is the level plane through the origin.
    """
    values = mechanism.values(parameters)
    gravity = np.array(resolve_parts(mechanism.gravity, values), dtype=float)
    size = float(np.linalg.norm(gravity))
    if size == 0.0:
        raise InputError(f"{mechanism.name!r} has no gravity: no point of balance exists")
    up = -gravity / size
    if surface is None:
        found = _of_contacts(resolve_parts(mechanism.contacts, values))
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


def _of_contacts(contacts: Iterable[Contact]) -> Placement | None:
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
                "the contacts touch several planes; name the one for points of balance: plane=kt.Surface(...)"
            )
    return first


def _level(up: Numbers) -> Placement:
    """Return a level plane through the origin; its x axis is near one of the ground's."""
    k = int(np.flatnonzero(np.abs(up) < 0.9)[0])
    x = np.eye(3)[k] - up[k] * up
    x /= np.linalg.norm(x)
    R = np.column_stack([x, np.cross(up, x), up])
    return Placement((0.0, 0.0, 0.0), to_matrix(R.tolist()))


def zero_moment_point(
    system: CompiledMechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    plane: object = None,
    wrenches: ArrayLike | None = None,
    parameters: Named | None = None,
) -> Numbers:
    """Return the zero-moment points of a motion [..., 3]; NaN where the ground would have to pull.

    `plane` is a Surface or Placement on the ground, by default the plane of the contacts, or the level one through the
    origin. `wrenches` are those of forces other than gravity, the ground and the mechanism's own.
    """
    one = _one_set(system, parameters)
    on = plane_of(system.mechanism, plane, one)
    return pressure_point(ground_wrench(system, q, qd, qdd, wrenches=wrenches, parameters=one), on)


def capture_point(
    system: CompiledMechanism,
    q: ArrayLike,
    qd: ArrayLike,
    *,
    plane: object = None,
    parameters: Named | None = None,
    check: bool = True,
) -> Numbers:
    """Return the capture points of states [..., 3]: c + v / omega, projected on the plane, omega = sqrt(g / h).

    c and v are position and velocity of the center of mass at the height h. A mechanism whose center of mass stays at
    this height, as a linear inverted pendulum, comes to rest over this point if the ground acts there. With
    check=False, NaN passes.
    """
    one = _one_set(system, parameters)
    on = plane_of(system.mechanism, plane, one)
    options: dict[str, Any] = {"check": check} | ({} if one is None else {"parameters": one})
    values = resolve_parts(system.mechanism.bodies, system.mechanism.values(one))
    mass = float(sum(b.mass for b in values))
    c = np.asarray(system.center_of_mass(q, **options), dtype=float)
    v = np.asarray(system.momentum(q, qd, **options), dtype=float)[..., 3:] / mass
    foot, height = on.below(c)
    if (height <= 0.0).any():  # NaN passes
        raise InputError(f"the center of mass is {height.min():.6g} m above the plane; a capture point needs it above")
    level = v - (v @ on.up)[..., None] * on.up
    return on.below(foot + np.sqrt(height / on.gravity)[..., None] * level)[0]


def center_of_pressure(points: Numbers, forces: Numbers, on: Plane) -> Numbers:
    """Return the centers of pressure [..., 3] of forces at points [..., nc, 3], in axes of the ground."""
    moment = np.cross(points, forces).sum(axis=-2)
    return pressure_point(np.concatenate([moment, forces.sum(axis=-2)], axis=-1), on)


def pressure_point(wrench: Numbers, on: Plane) -> Numbers:
    """Return the points of the plane about which wrenches [..., 6], given about the origin, have no moment along it."""
    n, f = wrench[..., :3], wrench[..., 3:]
    press = f @ on.normal
    with np.errstate(divide="ignore", invalid="ignore"):
        arm = np.cross(on.normal, n - np.cross(on.point, f)) / np.where(press > 0.0, press, np.nan)[..., None]
    return on.point + arm


def ground_wrench(system: CompiledMechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Any) -> Numbers:
    """Return the wrench [n; f] of the ground on the mechanism that a motion requires, about the origin [..., 6]."""
    mechanism = system.mechanism
    options = {name: x for name, x in options.items() if x is not None}
    own = {name: x for name, x in options.items() if name not in ("wrenches", "forces")}
    reactions = np.asarray(system.tree.reactions(q, qd, qdd, **options), dtype=float)
    poses = np.asarray(system.poses(q, **own), dtype=float)
    roots = [mechanism.body_indices[j.child] for j in mechanism.joints if j.parent == GROUND]
    out = np.zeros((*reactions.shape[:-2], 6))
    for k in roots:
        R, p = poses[..., k, :3, :3], poses[..., k, :3, 3]
        n, f = (np.einsum("...ij,...j->...i", R, x) for x in (reactions[..., k, :3], reactions[..., k, 3:]))
        out += np.concatenate([n + np.cross(p, f), f], axis=-1)
    return out


def _one_set(system: CompiledMechanism, parameters: Named | None) -> Any:
    values = one_set(system.mechanism, parameters, "ground_balance")
    return None if values is None else values.tolist()


# --- Support polygons: convex hulls of points in a plane, and the distance of a point from their border ---


def convex_hull(points: Numbers) -> Numbers:
    """Return the corners of the convex hull of points [n, 2], counterclockwise; points on an edge are left out."""
    order = sorted({(float(x), float(y)) for x, y in points})
    if len(order) <= 2:
        return np.array(order).reshape(-1, 2)

    def chain(given: list[tuple[float, float]]) -> list[tuple[float, float]]:
        out: list[tuple[float, float]] = []
        for p in given:
            while len(out) > 1 and _turn(out[-2], out[-1], p) <= 0.0:
                out.pop()
            out.append(p)
        return out[:-1]

    return np.array(chain(order) + chain(order[::-1]))


def margin(corners: Numbers, point: Numbers) -> float:
    """Return the distance of a point [2] from the border of a convex polygon, negative outside of it.

    A polygon of one corner, or of two, has no inside. NaN without corners.
    """
    if not len(corners) or not np.isfinite(point).all():
        return float("nan")
    ends = np.roll(corners, -1, axis=0)
    along, away = ends - corners, point - corners
    size = np.maximum((along * along).sum(axis=-1), 1e-300)
    part = np.clip((away * along).sum(axis=-1) / size, 0.0, 1.0)
    distance = float(np.linalg.norm(away - part[:, None] * along, axis=-1).min())
    inside = len(corners) > 2 and bool((along[:, 0] * away[:, 1] - along[:, 1] * away[:, 0] >= 0.0).all())
    return distance if inside else -distance


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    """Return twice the area of a triangle, positive if it is counterclockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
