"""Monitors of a finished run: limits of joints, balances of energy and momentum, balance on the ground.

Work and impulse are integrals over the samples of a run: `integral` states their error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.tables import Displayed, Table
from ..errors import InputError
from ..joints import kind
from ..model.mechanism import resolve_parts
from ..model.parts import GROUND, Joint

if TYPE_CHECKING:
    from ..analysis.ground.balance_points import Plane
    from ..results.trajectory import Trajectory


# --- Limits of joints that a finished run exceeds: coordinates, velocities and efforts of control ---

TOLERANCE = 1e-6
"""The excess over a limit, relative to the limit, that is not reported. It is above the errors of a run with the
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


@dataclass(frozen=True, repr=False)
class LimitReport(Displayed):
    """The limits that a run exceeds, if any, and a `note` on the efforts that were compared."""

    violations: tuple[Violation, ...] = field(default=())
    note: str = ""

    def __bool__(self) -> bool:
        """Return whether a limit is exceeded."""
        return bool(self.violations)

    def display(self) -> list[str | Table]:
        """Return one row per exceeded limit."""
        rows = tuple((str(x),) for x in self.violations)
        found: list[str | Table] = [Table(("",), rows)] if rows else ["no limit is exceeded"]
        return [*found, self.note] if self.note else found

    def summary(self) -> str:
        """Return one line with the number of exceeded limits and the worst of them; "" if no limit is exceeded."""
        if not self.violations:
            return ""
        worst = max(self.violations, key=lambda v: v.excess / (abs(v.limit) or 1.0))
        count = len(self.violations)
        return f"{count} limit{'s are' if count > 1 else ' is'} exceeded; the most by {worst}"


def limit_violations(run: Trajectory) -> LimitReport:
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
                ("lower", bounds.lower, q),
                ("upper", bounds.upper, q),
                ("velocity", bounds.velocity, qd),
                ("effort", bounds.effort, tau),
            ):
                if values is not None and axis < len(limits):
                    slack = TOLERANCE * _limit_size(bounds, what, axis)
                    found += _passed(run, joint.name, axis, what, float(limits[axis]), values, slack)
    note = NOT_APART if efforts and drives == "tau" and run.torque is not None else ""
    return LimitReport(tuple(sorted(found, key=lambda v: (v.run, v.t_first))), note)


def joints_of(run: Trajectory) -> tuple[Joint, ...]:
    """Return the joints of a Trajectory with the numbers of its free parameters; of a batch, with the stored ones."""
    mechanism, given = run.system.mechanism, run.parameters
    if given is None or given.ndim > 1:
        return mechanism.resolved_joints
    return resolve_parts(mechanism.joints, mechanism.values(given.tolist()))


def _limit_size(bounds: object, what: str, axis: int) -> float:
    """Return the size of a limit; for a coordinate the larger of both limits, since one of them may be zero."""
    names = ("lower", "upper") if what in ("lower", "upper") else (what,)
    sizes = [abs(float(limits[axis])) for name in names if axis < len(limits := getattr(bounds, name))]
    return max((size for size in sizes if np.isfinite(size)), default=0.0)


def _passed(
    run: Trajectory, joint: str, axis: int, what: str, limit: float, values: np.ndarray, slack: float
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


# --- Integrals over the samples of a run, by splines of degree five ---
#
# Their error is of sixth order in the spacing of the samples if the integrand is smooth, and of first order at jumps.

DEGREE = 5
"""The degree of the splines; fewer than six samples have lower, odd degrees."""


def spline(t: np.ndarray, values: np.ndarray) -> Any:
    """Return the interpolating spline of finite samples [nt] at the times t."""
    from scipy.interpolate import make_interp_spline

    degree = min(DEGREE, len(t) - 1)
    degree -= 1 - degree % 2 if degree else 0
    return make_interp_spline(t, values, k=degree)


def integral(t: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Return the integral of samples from the first time on, [..., nt]; NaN from the first sample that is NaN."""
    out = np.full(rate.shape, np.nan)
    for index in np.ndindex(*rate.shape[:-1]):
        good = np.isfinite(rate[index])
        count = len(t) if good.all() else int(np.argmin(good))
        if count == 0:
            continue
        whole = spline(t[:count], rate[index][:count]).antiderivative()
        out[index][:count] = whole(t[:count]) - whole(t[0])
    return out


DOUBTFUL = 1e-3
"""The residual, relative to the energy in motion, above which the samples are checked for coarseness. Samples that are
too coarse leave far larger residuals. Fast motions with little work may be sampled coarsely without harm."""

COARSE = 0.01
"""The largest `coarseness` with which samples are fine enough for work. On a damped pendulum and on random trees with
flexible bodies, the error of the work was below 1 % up to here."""


@dataclass(frozen=True, eq=False, repr=False)
class EnergyBalance(Displayed):
    """Energy against work [J], [..., nt]: residual = energy - energy(0) - joint_work - wrench_work.

    The joint work is that of control and of all forces in joints, dampers included. The wrench work is that of forces
    between points and of external wrenches. Per run, `scale` is the larger of the energy in motion and the work, and
    `coarseness` is the difference between velocities and the integral of the accelerations, relative to the largest
    velocity, or the same times the torques, if that is more. Above COARSE the samples are too far apart to integrate
    work: the residual is the error of the integral.
    """

    t: np.ndarray
    energy: np.ndarray
    joint_work: np.ndarray
    wrench_work: np.ndarray
    residual: np.ndarray
    scale: np.ndarray
    coarseness: np.ndarray

    @property
    def too_coarse(self) -> bool:
        """Whether the samples of any run are too coarse to integrate work."""
        return bool((self.coarseness > COARSE).any())

    @property
    def error(self) -> float:
        """The largest residual of all runs, relative to the scale; NaN if the samples of all runs are too coarse."""
        fine = np.where(self.coarseness > COARSE, np.nan, 1.0)
        return _largest(self.residual * fine[..., None], self.scale[..., None])

    def display(self) -> list[str | Table]:
        """Return one line with the error and the work, or with the coarseness of the samples."""
        if self.too_coarse:
            count, size = int((self.coarseness > COARSE).sum()), self.coarseness.size
            runs = f" in {count} of {size} runs" if size > 1 else ""
            return [
                f"energy balance: the samples are too coarse to integrate work{runs} (accelerations at the samples "
                f"give the velocities only to {_most(self.coarseness):.2g} of their size); simulate with more output "
                "times"
            ]
        return [
            f"energy balance: largest residual {_most(self.residual):.3g} J, {self.error:.3g} of the energy in motion; "
            f"work in joints {_ends(self.joint_work)} J, of wrenches {_ends(self.wrench_work)} J"
        ]


@dataclass(frozen=True, eq=False, repr=False)
class MomentumBalance(Displayed):
    """Momentum [angular; linear] about the ground's origin against the impulse of gravity and wrenches, [..., nt, 6].

    residual = momentum - momentum(0) - impulse [N m s, N s].
    """

    t: np.ndarray
    momentum: np.ndarray
    impulse: np.ndarray
    residual: np.ndarray

    def display(self) -> list[str | Table]:
        """Return one line with the largest residuals."""
        angular, linear = _most(self.residual[..., :3]), _most(self.residual[..., 3:])
        return [f"momentum balance: largest residual {angular:.3g} N m s angular, {linear:.3g} N s linear"]


def energy_balance(run: Trajectory) -> EnergyBalance:
    """Return the energy of a Trajectory less the work of the torques and wrenches that acted."""
    options, energy = _options(run), run["energy"]
    joint_work = integral(run.t, (run["tau"] * run.qd).sum(axis=-1))
    wrench_work = np.zeros_like(energy)
    if run.wrenches is not None and np.any(run.wrenches):
        power = (run.wrenches * run.system.twists(run.q, run.qd, **options)).sum(axis=(-1, -2))
        wrench_work = integral(run.t, power)
    residual = energy - energy[..., :1] - joint_work - wrench_work
    potential = run["potential_energy"]
    sizes = (
        _highest(run["kinetic_energy"]),
        _highest(potential) + _highest(-potential),
        _highest(np.abs(joint_work)),
        _highest(np.abs(wrench_work)),
    )
    scale = np.max(sizes, axis=0)
    return EnergyBalance(run.t, energy, joint_work, wrench_work, residual, scale, _coarseness(run, residual, scale))


def _coarseness(run: Trajectory, residual: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the coarseness of each run; 0 if its residual is small."""
    doubted = _highest(np.abs(residual)) > DOUBTFUL * scale
    if run.accelerations is None or not np.any(doubted):
        return np.zeros(run.shape)
    gap, size = np.zeros((2, *run.shape)), np.zeros((2, *run.shape))
    for k in range(run.qd.shape[-1]):
        speed = run.qd[..., k]
        reached = speed[..., :1] + integral(run.t, run.accelerations[..., k])
        torque = _highest(np.abs(run["tau"][..., k]))  # small, fast vibrations may have most of the work
        for n, weight in enumerate((1.0, torque)):
            gap[n] = np.fmax(gap[n], weight * _highest(np.abs(speed - reached)))
            size[n] = np.fmax(size[n], weight * _highest(np.abs(speed)))
    return np.where(doubted, (gap / np.where(size > 0, size, 1.0)).max(axis=0), 0.0)


def momentum_balance(run: Trajectory) -> MomentumBalance:
    """Return the momentum of a free-floating Trajectory less the impulse of gravity and of the wrenches that acted."""
    mechanism = run.system.mechanism
    for joint, own in zip(mechanism.joints, mechanism.v_slices, strict=True):
        if joint.parent == GROUND:
            if kind(joint.kind).NV != 6:
                raise InputError(f"the joint {joint.name!r} ({joint.kind}) holds {mechanism.name!r} to the ground")
            if run.torque is not None and np.nan_to_num(run.torque[..., own]).any():
                raise InputError(f"the free joint {joint.name!r} has torques of its own; use an ExternalWrench")
    weight = np.empty((*run.shape, 1, 3))
    for index in np.ndindex(*run.shape):
        values = run.constant_parameters
        own = mechanism.values(None if values is None else values[index] if values.ndim > 1 else values)
        now = resolve_parts(mechanism, own)
        weight[index] = sum(b.mass for b in now.bodies) * np.array(now.gravity, dtype=float)
    force = np.broadcast_to(weight, (*run.q.shape[:-1], 3))
    total = np.concatenate([np.cross(run["center_of_mass"], force), force], axis=-1)
    if run.wrenches is not None:
        R, p = run["poses"][..., :3, :3], run["poses"][..., :3, 3]
        n, f = (np.einsum("...ij,...j->...i", R, part) for part in (run.wrenches[..., :3], run.wrenches[..., 3:]))
        total = total + np.concatenate([n + np.cross(p, f), f], axis=-1).sum(axis=-2)
    momentum = run["momentum"]
    impulse = np.stack([integral(run.t, total[..., k]) for k in range(6)], axis=-1)
    return MomentumBalance(run.t, momentum, impulse, momentum - momentum[..., :1, :] - impulse)


def _options(run: Trajectory) -> dict[str, Any]:
    """Return the options of functions of a System for a run whose parameters do not change."""
    options: dict[str, Any] = {"check": False}
    return options if run.constant_parameters is None else options | {"parameters": run.parameters_at_samples}


def _highest(x: np.ndarray) -> np.ndarray:
    return np.fmax.reduce(x, axis=-1)


def _most(x: np.ndarray) -> float:
    return float(np.fmax.reduce(np.abs(x), axis=None))


def _largest(residual: np.ndarray, scale: np.ndarray) -> float:
    return _most(residual / np.where(scale > 0, scale, 1.0))


def _ends(work: np.ndarray) -> str:
    """Return the last finite value of one run, or the range over a batch, as text."""
    last = [row[np.isfinite(row)][-1] for row in np.atleast_2d(work).reshape(-1, work.shape[-1])]
    return f"{last[0]:.6g}" if len(last) == 1 else f"{min(last):.6g} to {max(last):.6g}"


__all__ = [
    "EnergyBalance",
    "LimitReport",
    "MomentumBalance",
    "Violation",
    "energy_balance",
    "limit_violations",
    "momentum_balance",
]


# --- On the ground: zero-moment point, center of pressure, capture point and support polygon ---


NEAR = 1e-6
"""The gap of contacts that support, relative to the characteristic length: above the errors of a run."""


@dataclass(frozen=True, eq=False, repr=False)
class GroundBalance(Displayed):
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

    def display(self) -> list[str | Table]:
        """Return one line with the least margin, and the largest difference of the two points."""
        known = np.isfinite(self.margin)
        if not known.any():
            return ["ground balance: nothing presses on the ground"]
        least = float(np.fmin.reduce(self.margin, axis=None))
        at = np.unravel_index(int(np.nanargmin(self.margin)), self.margin.shape)
        return [
            f"ground balance: least margin {least:.6g} m at t = {self.t[int(at[-1])]:.6g} s; zero-moment point and "
            f"center of pressure differ by {self.difference:.3g} m; on the ground at {int(known.sum())} of "
            f"{known.size} samples"
        ]


def ground_balance(run: Trajectory, *, plane: object = None) -> GroundBalance:
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


def _total(run: Trajectory) -> np.ndarray:
    """Return the sum of all external wrenches of a run about the origin of the ground [..., nt, 6]."""
    R, p = run["poses"][..., :3, :3], run["poses"][..., :3, 3]
    wrenches = run["wrenches"]
    n, f = (np.einsum("...ij,...j->...i", R, x) for x in (wrenches[..., :3], wrenches[..., 3:]))
    return np.concatenate([n + np.cross(p, f), f], axis=-1).sum(axis=-2)
