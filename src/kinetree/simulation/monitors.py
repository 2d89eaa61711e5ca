"""Monitors: what a finished run says about itself, in energy, momentum and the limits of its joints.

Work and impulse are integrals over the samples of a run, by splines of degree five: sixth order in their spacing where
the forces are smooth, first order across the jumps of sampled control.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import InputError
from ..joints import kind
from ..model.mechanism import resolved
from ..model.parts import GROUND

FREE = ("free", "free_euler")

TOLERANCE = 1e-6
"""The share of a limit by which it may be passed: above the errors of a run with the default tolerances (1e-8) and of
limits that were converted from degrees with eight digits, below what any drive or sensor resolves."""

NOT_APART = (
    "Efforts are those of all torques in joints, friction and stops included: the run does not tell control apart."
)


@dataclass(frozen=True, eq=False)
class EnergyBalance:
    """Energy against work [J], [..., nt]: residual = energy - energy(0) - joint_work - wrench_work.

    The joint work is that of control and of all forces in joints, dampers included; that of wrenches has the springs
    and dampers between points. `scale` is the largest of the energy in motion and the work, for each run.
    """

    t: np.ndarray
    energy: np.ndarray
    joint_work: np.ndarray
    wrench_work: np.ndarray
    residual: np.ndarray
    scale: np.ndarray

    @property
    def error(self) -> float:
        """The largest residual over the scale, of all runs."""
        return _largest(self.residual, self.scale[..., None])

    def __str__(self) -> str:
        """Return the error and the work in a line."""
        return (
            f"energy balance: largest residual {_most(self.residual):.3g} J, {self.error:.3g} of the energy in motion; "
            f"work in joints {_ends(self.joint_work)} J, of wrenches {_ends(self.wrench_work)} J"
        )


@dataclass(frozen=True, eq=False)
class MomentumBalance:
    """Momentum [angular; linear] about the ground's origin against the impulse of gravity and wrenches, [..., nt, 6].

    residual = momentum - momentum(0) - impulse [N m s, N s].
    """

    t: np.ndarray
    momentum: np.ndarray
    impulse: np.ndarray
    residual: np.ndarray

    def __str__(self) -> str:
        """Return the largest residuals in a line."""
        angular, linear = _most(self.residual[..., :3]), _most(self.residual[..., 3:])
        return f"momentum balance: largest residual {angular:.3g} N m s angular, {linear:.3g} N s linear"


@dataclass(frozen=True)
class Violation:
    """A limit that is passed: by how much at worst, when that is, when it is first, and in how many samples."""

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
        """How far the worst value is beyond the limit."""
        return abs(self.worst - self.limit) if self.what in ("lower", "upper") else abs(self.worst) - self.limit

    def __str__(self) -> str:
        """Return all of it in a line."""
        where = f"run {', '.join(map(str, self.run))}: " if self.run else ""
        axis = f"[{self.axis}]" if self.axis else ""
        return (
            f"{where}{self.joint}{axis}: {self.what} limit {self.limit:g} passed by {self.excess:.3g} "
            f"at t = {self.t_worst:g} s, first at t = {self.t_first:g} s, in {self.samples} samples"
        )


@dataclass(frozen=True)
class LimitReport:
    """The limits that a run passes, if any, and a `note` on what they were compared with."""

    violations: tuple[Violation, ...] = field(default=())
    note: str = ""

    def __bool__(self) -> bool:
        """Return whether a limit is passed."""
        return bool(self.violations)

    def __str__(self) -> str:
        """Return a line for each limit that is passed."""
        lines = list(map(str, self.violations)) or ["all limits are kept"]
        return "\n".join([*lines, self.note] if self.note else lines)

    def summary(self) -> str:
        """Return a line: how many limits are passed and which is passed most, or "" where all are kept."""
        if not self.violations:
            return ""
        worst = max(self.violations, key=lambda v: v.excess / (abs(v.limit) or 1.0))
        count = len(self.violations)
        return f"{count} limit{'s are' if count > 1 else ' is'} passed; the most by {worst}"


def energy_balance(run: Any) -> EnergyBalance:
    """Return the energy of a Trajectory less the work of the torques and wrenches that acted."""
    energy = run["energy"]
    joint_work = _integral(run.t, (run["tau"] * run.qd).sum(axis=-1))
    wrench_work = np.zeros_like(energy)
    if run.wrenches is not None and np.any(run.wrenches):
        power = (run.wrenches * run.system.twists(run.q, run.qd, **_options(run))).sum(axis=(-1, -2))
        wrench_work = _integral(run.t, power)
    residual = energy - energy[..., :1] - joint_work - wrench_work
    potential = run["potential_energy"]
    sizes = (
        _highest(run["kinetic_energy"]), _highest(potential) + _highest(-potential),
        _highest(np.abs(joint_work)), _highest(np.abs(wrench_work)),
    )  # fmt: skip
    return EnergyBalance(run.t, energy, joint_work, wrench_work, residual, np.max(sizes, axis=0))


def momentum_balance(run: Any) -> MomentumBalance:
    """Return the momentum of a free-floating Trajectory less the impulse of gravity and of the wrenches that acted."""
    mechanism = run.system.mechanism
    at = 0
    for joint in mechanism.joints:
        count = kind(joint.kind).NV
        if joint.parent == GROUND:
            if joint.kind not in FREE:
                raise InputError(f"the joint {joint.name!r} ({joint.kind}) holds {mechanism.name!r} to the ground")
            if run.torque is not None and np.nan_to_num(run.torque[..., at : at + count]).any():
                raise InputError(f"the free joint {joint.name!r} has torques of its own; use an ExternalWrench")
        at += count
    weight = np.empty((*run.shape, 1, 3))
    for index in np.ndindex(*run.shape):
        values = run.parameters
        own = mechanism.values(None if values is None else values[index] if values.ndim > 1 else values)
        now = resolved(mechanism, own)
        weight[index] = sum(b.mass for b in now.bodies) * np.array(now.gravity, dtype=float)
    force = np.broadcast_to(weight, (*run.q.shape[:-1], 3))
    total = np.concatenate([np.cross(run["center_of_mass"], force), force], axis=-1)
    if run.wrenches is not None:
        R, p = run["poses"][..., :3, :3], run["poses"][..., :3, 3]
        n, f = (np.einsum("...ij,...j->...i", R, part) for part in (run.wrenches[..., :3], run.wrenches[..., 3:]))
        total = total + np.concatenate([n + np.cross(p, f), f], axis=-1).sum(axis=-2)
    momentum = run["momentum"]
    impulse = np.stack([_integral(run.t, total[..., k]) for k in range(6)], axis=-1)
    return MomentumBalance(run.t, momentum, impulse, momentum - momentum[..., :1, :] - impulse)


def limit_violations(run: Any) -> LimitReport:
    """Return the limits of joints that a Trajectory passes at its samples, by more than TOLERANCE of their size.

    Efforts are those of control, run["control"]: friction, damping, springs and stops are not given by the drive.
    """
    drives = "control" if run.control is not None else "tau"
    found: list[Violation] = []
    efforts, at_q, at_v = False, 0, 0
    for joint in run.system.joints:
        module = kind(joint.kind)
        bounds = joint.limits
        efforts = efforts or bool(bounds.effort)
        flat = module.NQ == module.NV  # a quaternion has no limits
        for axis in range(module.NV):
            q = run.q[..., at_q + axis] if flat else None
            qd, tau = run.qd[..., at_v + axis], run[drives][..., at_v + axis] if bounds.effort else None
            for what, limits, values in (
                ("lower", bounds.lower, q), ("upper", bounds.upper, q),
                ("velocity", bounds.velocity, qd), ("effort", bounds.effort, tau),
            ):  # fmt: skip
                if values is not None and axis < len(limits):
                    slack = TOLERANCE * _limit_size(bounds, what, axis)
                    found += _passed(run, joint.name, axis, what, float(limits[axis]), values, slack)
        at_q, at_v = at_q + module.NQ, at_v + module.NV
    note = NOT_APART if efforts and drives == "tau" and run.torque is not None else ""
    return LimitReport(tuple(sorted(found, key=lambda v: (v.run, v.t_first))), note)


def _limit_size(bounds: Any, what: str, axis: int) -> float:
    """Return the size of a limit; for a coordinate that of the larger of its two, one of which may be zero."""
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


def _integral(t: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Return the integral [..., nt] of samples from the first time on; NaN where samples are NaN."""
    from scipy.interpolate import make_interp_spline

    out = np.full(rate.shape, np.nan)
    for index in np.ndindex(*rate.shape[:-1]):
        good = np.isfinite(rate[index])
        count = len(t) if good.all() else int(np.argmin(good))
        if count == 0:
            continue
        degree = min(5, count - 1)
        degree -= 1 - degree % 2 if degree else 0
        spline = make_interp_spline(t[:count], rate[index][:count], k=degree)
        whole = spline.antiderivative()
        out[index][:count] = whole(t[:count]) - whole(t[0])
    return out


def _options(run: Any) -> dict[str, Any]:
    """Return the options of a System's function that belong to a run."""
    options: dict[str, Any] = {"check": False}
    return options if run.parameters is None else options | {"parameters": run.parameters[..., None, :]}


def _highest(x: np.ndarray) -> np.ndarray:
    return np.fmax.reduce(x, axis=-1)


def _most(x: np.ndarray) -> float:
    return float(np.fmax.reduce(np.abs(x), axis=None))


def _largest(residual: np.ndarray, scale: np.ndarray) -> float:
    return _most(residual / np.where(scale > 0, scale, 1.0))


def _ends(work: np.ndarray) -> str:
    """Return the last finite value of one run, or the least and largest of a batch."""
    last = [row[np.isfinite(row)][-1] for row in np.atleast_2d(work).reshape(-1, work.shape[-1])]
    return f"{last[0]:.6g}" if len(last) == 1 else f"{min(last):.6g} to {max(last):.6g}"
