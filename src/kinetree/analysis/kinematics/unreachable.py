"""Messages about targets that no position reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...model.axes import axis_labels
from ..joint_entries import some
from .pose_targets import Targets

if TYPE_CHECKING:
    from .inverse_kinematics import PoseSolution


def reason(result: PoseSolution, targets: Targets, restarts: int) -> str:
    """Return the sentence about the first target that is not reached: its errors, joints at limits, and remedies."""
    place = tuple(int(k) for k in np.argwhere(~np.asarray(result.converged))[0])
    system, count = targets.system, int((~np.asarray(result.converged)).sum())
    m = system.mechanism
    which = f"target {list(place)}" if place else "the target"
    head = f"inverse kinematics of {m.name!r}: {which} of {targets.frame!r} is not reached"
    if count > 1:
        head += f", nor are {count - 1} others"
    point = np.round(np.broadcast_to(targets.poses, (*result.q.shape[:-1], 4, 4))[(*place, slice(3), 3)], 6)
    miss = f"{result.position[place]:.3g} m" + (
        f" and {result.rotation[place]:.3g} rad" if any(targets.used[:3]) else ""
    )
    text = f"{head}: the nearest position of {restarts + 1} searches misses the pose at {point.tolist()} by {miss}"
    limited = [name for name, at in zip(axis_labels(m, 1), result.at_limit[place], strict=True) if at]
    if limited:
        text += f", with {some(limited)} at a limit"
    asked, able = sum(targets.used), system.nv
    if able < asked:
        text += (
            f"; {able} degrees of freedom meet {asked} errors only at special targets: give weights of zero for errors "
            "that do not matter, or a point [3] for the position alone"
        )
    else:
        text += "; move the target, give q0 near a solution or more restarts"
    return text + "; on_failure='nearest' returns the nearest positions"
