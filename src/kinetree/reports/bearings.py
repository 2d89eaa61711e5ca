"""Bearing loads: the reaction at every joint and loop, split by the axis of the joint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from ..algebra.arrays import Numbers
from ..analysis.loops.constraints import standing
from ..model.mechanism import resolve_parts
from ..results.derived import acting_wrenches
from ..results.trajectory import Trajectory
from .measures import Extreme, highest, rms

PARTS = {"radial": "N", "axial": "N", "bending": "N m", "torsion": "N m"}
"""The parts of a reaction at a joint with an axis, with their units."""
TOTALS = {"force": "N", "moment": "N m"}
"""The magnitudes of the whole force and moment, which every joint has."""
ROUNDING = 1e-12
"""The part of the largest entry of all reactions below which a part is rounding and shown as zero."""
ALONG = 1e-9
"""The least direction cosine at which a component counts as contributing to a part: above rounding of poses."""


@dataclass(frozen=True)
class BearingLoad:
    """The reaction at a joint or loop over a run, at the origin of its child frame (frame b of a loop).

    `values` has magnitudes [nt]: "force" and "moment" of every joint and, if it has an axis, "radial", the force
    perpendicular to it, "axial" along it, "bending", the moment perpendicular to the axis, and "torsion" about it.
    `drives` names those parts that the joint leaves free: there the drive acts, not the bearing. `shared` names those
    that motion alone does not determine, so that joints share them by their compliance.
    """

    name: str
    sort: str
    kind: str
    drives: tuple[str, ...]
    shared: tuple[str, ...]
    peaks: dict[str, Extreme]
    rms: dict[str, float]
    t: Numbers = field(repr=False)
    values: dict[str, Numbers] = field(repr=False)

    @property
    def has_axis(self) -> bool:
        """Whether the joint has one axis, by which its reaction is split."""
        return "radial" in self.values


def bearing_loads(run: Trajectory, share: Any = None) -> tuple[BearingLoad, ...]:
    """Return the loads at all joints of a single run, then at its loops; joints that leave all motions free have none.

    Reactions that the run does not have are computed from its states and torques, all samples at once. `share` are
    compliances of joints and loops, as for `System.loads`.
    """
    mechanism = run.system.mechanism
    values = mechanism.values(run.constant_parameters)
    wrenches, unique = reactions(run, share)
    noise = ROUNDING * float(np.abs(wrenches).max(initial=0.0))
    out = []
    for k, joint in enumerate(resolve_parts(mechanism.joints, values)):
        kind = joint_kinds.kind(joint.kind)
        if kind.NV < 6:
            axes, free = None, ()
            if one_axis(kind.DATA):
                axes, free = np.array(kind.frame(joint), dtype=float), _free_parts(joint)
            names = (joint.name, "joint", joint.kind, free)
            out.append(_bearing(names, run.t, wrenches[:, k], unique[:, k], axes, noise))
    poses = run["poses"] if mechanism.loops else np.zeros((0, 0, 4, 4))
    for k, loop in enumerate(resolve_parts(mechanism.loops, values), len(mechanism.joints)):
        kind, axes, free = loop_kinds.kind(loop.kind), None, ()
        if one_axis(kind.data):  # the axis is fixed in frame a; the wrench is in the axes of frame b
            a, b = (
                standing(mechanism, poses, body, place)[:, :3, :3]
                for body, place in ((loop.body_a, loop.placement_a), (loop.body_b, loop.placement_b))
            )
            axes = np.swapaxes(b, -1, -2) @ a @ np.array(loop_kinds.frame(loop), dtype=float)
            free = _free_parts(loop) if kind.joint else ()
        names = (loop.name, "loop", loop.kind, free)
        out.append(_bearing(names, run.t, wrenches[:, k], unique[:, k], axes, noise))
    return tuple(out)


def reactions(run: Trajectory, share: Any = None) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return the wrenches at joints and loops [nt, nb + nl, 6], and whether motion determines their components."""
    if not run.system.closures:
        return run["reactions"], np.ones(run["reactions"].shape, dtype=bool)
    more = {} if run.parameters is None else {"parameters": run.parameters}
    found = run.system.loads(
        run.q, run.qd, tau=run["tau"], wrenches=acting_wrenches(run), forces=False, share=share, **more
    )
    return (
        np.concatenate([found.joints, found.cuts], axis=-2),
        np.concatenate([found.unique_joints, found.unique_cuts], axis=-2),
    )


def _bearing(
    names: tuple[str, str, str, tuple[str, ...]],
    t: Numbers,
    wrench: Numbers,
    unique: NDArray[np.bool_],
    axes: Numbers | None,
    noise: float,
) -> BearingLoad:
    values = {part: x if x.max() > noise else np.zeros_like(x) for part, x in split_wrench(wrench, axes).items()}
    peaks = {part: highest(t, x) for part, x in values.items()}
    means = {part: rms(t, x) for part, x in values.items()}
    return BearingLoad(*names, _shared_axes(unique, axes), peaks, means, t, values)


def _shared_axes(unique: NDArray[np.bool_], axes: Numbers | None) -> tuple[str, ...]:
    """Return the parts to which components contribute that motion does not determine in some state."""
    vague = np.logical_not(np.logical_and.reduce(unique, axis=0))
    out = [total for total, entries in (("force", vague[3:]), ("moment", vague[:3])) if entries.any()]
    if axes is None or not vague.any():
        return tuple(out)
    used = np.abs(axes).reshape(-1, 3, 3).max(axis=0) > ALONG
    for n, f, across in (("bending", "radial", slice(0, 2)), ("torsion", "axial", slice(2, 3))):
        own = used[:, across].any(axis=1)
        out += [part for part, entries in ((f, vague[3:]), (n, vague[:3])) if (own & entries).any()]
    return tuple(out)


def split_wrench(wrench: Numbers, axes: Numbers | None) -> dict[str, Numbers]:
    """Return the magnitudes of a wrench [..., 6] by part; `axes` [..., 3, 3] have z along the joint's axis, or None."""
    return {part: magnitude(wrench, axes, part) for part in (TOTALS if axes is None else {**TOTALS, **PARTS})}


def magnitude(wrench: Numbers, axes: Numbers | None, part: str) -> Numbers:
    """Return the magnitude [...] of one part of a wrench [..., 6]."""
    half = wrench[..., 3:] if {**TOTALS, **PARTS}[part] == "N" else wrench[..., :3]
    if part in TOTALS or axes is None:
        return np.linalg.norm(half, axis=-1)
    own = (half[..., None, :] @ axes)[..., 0, :]
    return np.linalg.norm(own[..., :2], axis=-1) if part in ("radial", "bending") else np.abs(own[..., 2])


def one_axis(data: tuple[str, ...]) -> bool:
    """Return whether a kind has a single axis; the two axes of a universal joint have no common split."""
    return "axis" in data and "axis2" not in data


def _free_parts(joint) -> tuple[str, ...]:
    """Return the parts along which a joint moves freely, for single rotations and translations."""
    kind = joint_kinds.kind(joint.kind)
    motion = kind.motion(joint, kind.neutral(joint), (0.0,) * kind.NV)
    out = []
    for column in motion.columns:
        entries = [*column.w, *column.v]
        moved = [k for k, x in enumerate(entries) if x != 0.0]
        if len(moved) == 1:
            out.append(("bending", "bending", "torsion", "radial", "radial", "axial")[moved[0]])
    return tuple(dict.fromkeys(out))
