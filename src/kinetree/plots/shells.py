"""Shells of machines around the rods of bodies without shapes: housings of joints, tapered links, rails, a base.

All of them are solids of unit size between two points, as rods are, so that they follow lengths and take no room in a
page. The girth of a link falls with the reach of what it carries, as that of a robot arm does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from .. import joints as joint_kinds
from ..algebra.scalars import Numbers
from ..joints.protocol import TRANSLATION
from ..model.parts import Joint
from .links import DARK, GREY, ORIGIN, STEEL, Point, Rod, at, rgb

ROOT, END = 0.042, 0.016
"""The girth of the first and of the last link of an arm, relative to its reach."""
SLIM = 0.14
"""The largest girth of a link relative to its length."""
HOUSING, CAP = (1.45, 3.1), (0.95, 3.5)
"""Radius and length of the housing of a revolute joint and of its caps, relative to the girth."""
CARRIAGE, BALL, RAIL = (1.5, 3.4), 1.7, 0.8
"""Radius and length of the carriage of a sliding joint, radii of balls and rails, relative to the girth."""
COLUMN, FOOT = (2.0, 2.2), (3.0, 0.6)
"""Radius and length of the column of a base and of its foot, relative to the girth."""


def girths(
    parents: Sequence[int], poses: Numbers, ends: Sequence[Sequence[tuple[int, Point]]], r: float
) -> list[float]:
    """Return the radius of the links of every body [m], from that of its rods `r` up to that of a machine.

    `ends` are the ends of the rods of each body as (body, point), at the poses [nb, 4, 4].
    """
    lengths = [
        max((float(np.linalg.norm(at(poses, *end) - poses[i, :3, 3])) for end in own), default=0.0)
        for i, own in enumerate(ends)
    ]
    beyond = list(lengths)
    for i in range(len(parents) - 1, -1, -1):
        if parents[i] >= 0:
            beyond[parents[i]] = max(beyond[parents[i]], lengths[parents[i]] + beyond[i])
    whole = max(beyond, default=0.0)
    if whole <= 0.0:
        return [r] * len(lengths)
    longest = max(lengths)
    out = []
    for i, length in enumerate(lengths):
        wanted = (END + (ROOT - END) * beyond[i] / whole) * whole
        out.append(max(r, min(wanted, SLIM * (length if length > 0.2 * longest else longest))))
    return out


def joint_shell(joint: Joint, i: int, g: float, color: tuple[float, float, float]) -> list[Rod]:
    """Return the solids of the joint of body i with girth g: a housing with caps, a carriage, a ball, or nothing."""
    kind = joint_kinds.kind(joint.kind)
    if kind.SOLID is None:
        return []
    if kind.SOLID == "ball":
        return [_along(i, ORIGIN, (0.0, 0.0, 1.0), BALL * g, BALL * g, rgb(DARK), "ball")]
    axis = np.array(kind.frame(joint), dtype=float)[:, 2]
    if kind.SOLID == "box":
        return [_along(i, ORIGIN, axis, CARRIAGE[0] * g, CARRIAGE[1] * g, rgb(DARK), "block")]
    housing = _along(i, ORIGIN, axis, HOUSING[0] * g, HOUSING[1] * g, color, "drum")
    return [housing, _along(i, ORIGIN, axis, CAP[0] * g, CAP[1] * g, rgb(DARK), "drum")]


def link_shell(rod: Rod, joints: Sequence[Joint], g: float, end: float) -> Rod:
    """Return the rod of a link as a tapered tube, or as a rail that leads to a sliding joint."""
    slides = rod.b >= 0 and rod.b != rod.a and joint_kinds.kind(joints[rod.b].kind).AXIAL == TRANSLATION
    if slides:
        return replace(rod, radius=RAIL * g, solid="block", color=rgb(STEEL))
    return replace(rod, radius=g, solid="link" if end < 0.95 * g else "rod")


def base(roots: Mapping[int, float], up: Numbers, *, raised: bool) -> list[Rod]:
    """Return the column and the foot of the base of an arm with a single root, given with its girth.

    They are below the housing of a joint at the origin of the ground, or below the post that carries a raised one.
    """
    if len(roots) != 1:
        return []
    ((_, g),) = roots.items()
    below = 0.0 if raised else 0.5 * HOUSING[1] - 0.3
    heights = -g * (below + np.array([0.0, COLUMN[1], COLUMN[1] + FOOT[1]]))
    top, middle, low = (_plain(height * up) for height in heights)
    return [
        Rod(-1, middle, -1, top, COLUMN[0] * g, rgb(GREY), "link"),
        Rod(-1, low, -1, middle, FOOT[0] * g, rgb(GREY), "drum"),
    ]


def frame_edges(i: int, ends: Sequence[tuple[int, Point]], poses: Numbers, r: float, color) -> list[Rod]:
    """Return rods around the ends of a body with three or more that lie about its origin, such as a platform."""
    places = np.array([at(poses, *end) for end in ends])
    if len(places) < 3:
        return []
    away = places - places.mean(axis=0)
    _, spread, axes = np.linalg.svd(away, full_matrices=False)
    if spread[1] < 0.2 * spread[0]:
        return []  # along a line
    order = np.argsort(np.arctan2(away @ axes[1], away @ axes[0]))
    chosen = [ends[k] for k in order]
    return [
        Rod(a, p, b, q, r, color)
        for (a, p), (b, q) in zip(chosen, [*chosen[1:], chosen[0]], strict=True)
        if np.linalg.norm(at(poses, a, p) - at(poses, b, q)) > 1e-9
    ]


def _along(i: int, middle, axis, radius: float, length: float, color, solid: str) -> Rod:
    half = 0.5 * length * np.asarray(axis, dtype=float)
    return Rod(i, _plain(np.array(middle) - half), i, _plain(np.array(middle) + half), radius, color, solid)


def _plain(point: Numbers) -> Point:
    x, y, z = (float(c) for c in point)
    return x, y, z
