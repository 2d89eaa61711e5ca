"""Monitor of a run on the ground: zero-moment point, center of pressure, capture point and support polygon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from ..analysis.ground.balance_points import Plane

NEAR = 1e-6
"""The gap of contacts that support, in parts of the characteristic length: above the errors of a run."""


@dataclass(frozen=True, eq=False)
class GroundBalance:
    """Points of balance at the samples of a run, in the frame of the ground [m], [..., nt, 3] each.

    `zero_moment_point` is computed from the motion, `center_of_pressure` from the contact forces. They are NaN where
    nothing presses on the ground. `support` [..., nt] has the corners of the support polygon in the plane [k, 2], and
    `margin` [..., nt] the distance of the zero-moment point from its border [m], negative outside.
    """

    t: np.ndarray
    zero_moment_point: np.ndarray
    center_of_pressure: np.ndarray
    capture_point: np.ndarray
    support: np.ndarray
    margin: np.ndarray
    plane: Plane

    @property
    def difference(self) -> float:
        """The largest distance between zero-moment point and center of pressure [m]; NaN where nothing touches."""
        away = np.linalg.norm(self.zero_moment_point - self.center_of_pressure, axis=-1)
        return float(np.fmax.reduce(away, axis=None, initial=np.nan))

    def __str__(self) -> str:
        """Return one line with the least margin, and the largest difference of the two points."""
        known = np.isfinite(self.margin)
        if not known.any():
            return "ground balance: nothing presses on the ground"
        least = float(np.fmin.reduce(self.margin, axis=None))
        at = np.unravel_index(int(np.nanargmin(self.margin)), self.margin.shape)
        return (
            f"ground balance: least margin {least:.6g} m at t = {self.t[int(at[-1])]:.6g} s; zero-moment point and "
            f"center of pressure differ by {self.difference:.3g} m; on the ground at {int(known.sum())} of "
            f"{known.size} samples"
        )


def ground_balance(run: Any, *, plane: Any = None) -> GroundBalance:
    """Return zero-moment point, center of pressure, capture point and support polygon of a run with contacts.

    `plane` is a Surface or Placement on the ground, by default the plane that all contacts touch.
    """
    from ..analysis.ground.balance_points import (
        capture_point,
        convex_hull,
        ground_wrench,
        margin,
        plane_of,
        pressure_point,
    )
    from ..analysis.ground.forces import contact_motion

    if run.contact_forces is None:
        raise InputError("the run has no contacts; give simulate(..., contacts=[kt.Contact(...)])")
    values = run.constant_parameters
    if values is not None and values.ndim > 1:
        raise InputError("the runs differ in their parameters; examine them one by one")
    system = run.system
    on = plane_of(system.mechanism, plane, None if values is None else values.tolist())
    with np.errstate(invalid="ignore"):  # runs that failed have NaN
        numbers, (_, _, _, _, points, axes) = contact_motion(system, system.mechanism, run.q, run.qd, values)
    forces = np.where(numbers.grounded[:, None], run["contact_forces"], 0.0)
    world = np.einsum("...ck,...ckj->...cj", forces, axes)
    contact = np.concatenate([np.cross(points, world).sum(axis=-2), world.sum(axis=-2)], axis=-1)
    others = _total(run) - contact
    motion = run.q, run.qd, run["qdd"]
    required = ground_wrench(system, *motion, parameters=values, forces=False, check=False) - others
    presses = np.any(forces[..., 0] > 0.0, axis=-1, keepdims=True)
    zero = np.where(presses, pressure_point(required, on), np.nan)
    support, margins = np.empty(zero.shape[:-1], dtype=object), np.full(zero.shape[:-1], np.nan)
    flat, target = on.within(points), on.within(zero)
    touches = (run["contact_gaps"] <= NEAR * numbers.length) | (forces[..., 0] > 0.0)
    closed = np.logical_and(numbers.grounded, touches)
    for at in np.ndindex(*margins.shape):
        support[at] = convex_hull(flat[at][closed[at]])
        margins[at] = margin(support[at], target[at])
    captured = capture_point(system, run.q, run.qd, plane=plane, parameters=values, check=False)
    return GroundBalance(run.t, zero, pressure_point(contact, on), captured, support, margins, on)


def _total(run: Any) -> np.ndarray:
    """Return the sum of all external wrenches of a run about the origin of the ground [..., nt, 6]."""
    R, p = run["poses"][..., :3, :3], run["poses"][..., :3, 3]
    wrenches = run["wrenches"]
    n, f = (np.einsum("...ij,...j->...i", R, x) for x in (wrenches[..., :3], wrenches[..., 3:]))
    return np.concatenate([n + np.cross(p, f), f], axis=-1).sum(axis=-2)
