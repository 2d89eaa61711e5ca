"""Limits of joints that a finished run exceeds: coordinates, velocities and efforts of control."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..joints import kind
from ..model.mechanism import resolved
from ..model.parts import Joint

TOLERANCE = 1e-6
"""The excess over a limit, in parts of the limit, that is not reported. It is above the errors of a run with the
default tolerances (1e-8) and of limits converted from degrees with eight digits, and below the resolution of drives."""

NOT_APART = (
    "Efforts are those of all torques in joints, friction and stops included: the run does not record control apart."
)
"""The note of a report if the torques of control are not known separately."""


@dataclass(frozen=True)
class Violation:
    """An exceeded limit: the worst value and its time, the first time, and the number of samples."""

    joint: str
    axis: int
    what: str
    limit: float
    worst: float
    t_worst: float
    t_first: float
    samples: int
    run: tuple[int, ...] = ()

    @property
    def excess(self) -> float:
        """The distance of the worst value beyond the limit, in its unit."""
        return abs(self.worst - self.limit) if self.what in ("lower", "upper") else abs(self.worst) - self.limit

    def __str__(self) -> str:
        """Return one line with all fields."""
        where = f"run {', '.join(map(str, self.run))}: " if self.run else ""
        axis = f"[{self.axis}]" if self.axis else ""
        return (
            f"{where}{self.joint}{axis}: {self.what} limit {self.limit:g} exceeded by {self.excess:.3g} "
            f"at t = {self.t_worst:g} s, first at t = {self.t_first:g} s, in {self.samples} samples"
        )


@dataclass(frozen=True)
class LimitReport:
    """The limits that a run exceeds, if any, and a `note` on the efforts that were compared."""

    violations: tuple[Violation, ...] = field(default=())
    note: str = ""

    def __bool__(self) -> bool:
        """Return whether a limit is exceeded."""
        return bool(self.violations)

    def __str__(self) -> str:
        """Return one line per exceeded limit."""
        lines = list(map(str, self.violations)) or ["no limit is exceeded"]
        return "\n".join([*lines, self.note] if self.note else lines)

    def summary(self) -> str:
        """Return one line with the number of exceeded limits and the worst of them; "" if no limit is exceeded."""
        if not self.violations:
            return ""
        worst = max(self.violations, key=lambda v: v.excess / (abs(v.limit) or 1.0))
        count = len(self.violations)
        return f"{count} limit{'s are' if count > 1 else ' is'} exceeded; the most by {worst}"


def limit_violations(run: Any) -> LimitReport:
    """Return the limits of joints that a Trajectory exceeds at its samples, by more than TOLERANCE of their size.

    Efforts are those of control, run["control"]. Friction, damping, springs and stops are no effort of a drive.
    """
    drives = "control" if run.control is not None else "tau"
    found: list[Violation] = []
    efforts, mechanism = False, run.system.mechanism
    for joint, own_q, own_v in zip(joints_of(run), mechanism.q_slices, mechanism.v_slices, strict=True):
        module = kind(joint.kind)
        bounds = joint.limits
        efforts = efforts or bool(bounds.effort)
        flat = module.QUATERNION is None  # a quaternion has no limits
        for axis in range(module.NV):
            q = run.q[..., own_q.start + axis] if flat else None
            qd, tau = run.qd[..., own_v.start + axis], run[drives][..., own_v.start + axis] if bounds.effort else None
            for what, limits, values in (
                ("lower", bounds.lower, q), ("upper", bounds.upper, q),
                ("velocity", bounds.velocity, qd), ("effort", bounds.effort, tau),
            ):  # fmt: skip
                if values is not None and axis < len(limits):
                    slack = TOLERANCE * _limit_size(bounds, what, axis)
                    found += _passed(run, joint.name, axis, what, float(limits[axis]), values, slack)
    note = NOT_APART if efforts and drives == "tau" and run.torque is not None else ""
    return LimitReport(tuple(sorted(found, key=lambda v: (v.run, v.t_first))), note)


def joints_of(run: Any) -> tuple[Joint, ...]:
    """Return the joints of a Trajectory with the numbers of its free parameters; of a batch, with the stored ones."""
    mechanism, given = run.system.mechanism, run.parameters
    if given is None or given.ndim > 1:
        return mechanism.resolved_joints
    return resolved(mechanism.joints, mechanism.values(given.tolist()))


def _limit_size(bounds: Any, what: str, axis: int) -> float:
    """Return the size of a limit; for a coordinate the larger of both limits, since one of them may be zero."""
    names = ("lower", "upper") if what in ("lower", "upper") else (what,)
    sizes = [abs(float(limits[axis])) for name in names if axis < len(limits := getattr(bounds, name))]
    return max((size for size in sizes if np.isfinite(size)), default=0.0)


def _passed(
    run: Any, joint: str, axis: int, what: str, limit: float, values: np.ndarray, slack: float
) -> list[Violation]:
    excess = {"lower": limit - values, "upper": values - limit}.get(what, np.abs(values) - limit)
    found = []
    for index in np.ndindex(*run.shape):
        over = excess[index] > slack
        if over.any():
            worst = int(np.nanargmax(excess[index]))
            times = float(run.t[worst]), float(run.t[np.argmax(over)])
            value = float(values[index][worst])
            found.append(Violation(joint, axis, what, limit, value, *times, int(over.sum()), index))
    return found
