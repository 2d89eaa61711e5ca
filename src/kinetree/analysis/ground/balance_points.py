"""Points of balance on the ground: zero-moment point, center of pressure and capture point.

A wrench of the ground with the force f and the moment n about a point o of the plane has no moment along the plane
about o + e x n / (e . f), where e is the normal. For the wrench that a motion requires this is the zero-moment point,
for the contact forces themselves the center of pressure. Both agree where nothing but the ground holds the mechanism.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...errors import InputError
from ...model.mechanism import resolved
from ...model.parameter_values import Named
from ...model.parts import GROUND
from ..loops.placements import parameters_of
from .planes import Plane, plane_of


def zero_moment_point(
    system: CompiledMechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    plane: Any = None,
    wrenches: ArrayLike | None = None,
    parameters: Named | None = None,
) -> Numbers:
    """Return the zero-moment points of a motion [..., 3]; NaN where the ground would have to pull.

    `plane` is a Surface or Placement on the ground, by default the plane of the contacts, or the level one through the
    origin. `wrenches` are those of forces other than gravity and the ground.
    """
    one = _one_set(system, parameters)
    on = plane_of(system.mechanism, plane, one)
    return pressure_point(ground_wrench(system, q, qd, qdd, wrenches=wrenches, parameters=one), on)


def capture_point(
    system: CompiledMechanism,
    q: ArrayLike,
    qd: ArrayLike,
    *,
    plane: Any = None,
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
    values = resolved(system.mechanism.bodies, system.mechanism.values(one))
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
    own = {name: x for name, x in options.items() if name != "wrenches"}
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
    values = parameters_of(system, parameters)
    if values is not None and values.ndim > 1:
        raise InputError(f"parameters have shape {values.shape}; give one set of them")
    return None if values is None else values.tolist()
