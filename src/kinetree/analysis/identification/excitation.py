"""Excitation: periodic motions of which torques determine the base parameters well, within the limits of the joints.

Each driven joint follows a finite Fourier series, [Swevers1997] with rest at its ends,
    q = center + sum over k = 1..N of a_k / (w k) sin(w k t) - b_k / (w k) (cos(w k t) - 1),    w = 2 pi / period,
whose coefficients of the highest harmonic follow from qd(0) = sum a_k = 0 and qdd(0) = w sum k b_k = 0. The shape of
each series and the center are free; its size is the largest within the limits of position, velocity and acceleration,
so that these hold for every candidate. The condition of the regressors, whose columns are scaled to unit length, is
minimized from several random starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.checks import positive, whole
from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...errors import AssemblyError, InputError, UnreachableError
from ...model.axes import axis_labels, axis_names
from ...model.scales import characteristic_length
from ...runtime.compiled import CompiledMechanism
from ..joint_entries import as_list
from ..loops.actuation import dofs
from ..loops.batch_assembly import assemble
from ..loops.driven_motion import driven_motion
from .base_parameters import BaseParameters, base_parameters
from .columns import column_names, regressor
from .identify import DEFAULT_COLUMNS
from .recordings import Recording

if TYPE_CHECKING:
    from ...model.mechanism import Mechanism
    from ...model.parts import Joint

FREE_TURN = 2.5
"""The largest excursion [rad] of joints without limits of position; slides have that part of the mechanism's length."""
USUAL_SPEED, USUAL_CHANGE = 1.5, 4.0
"""Velocity [rad/s, or lengths per second] of joints without a limit, and its limit of acceleration in 1/s times it."""
WITHIN = 0.98
"""The part of limits that is used."""
SAMPLES, DENSE = 80, 400
"""Times of a period at which the condition is computed, and at which limits are checked."""
STARTS, STEPS = 24, 40
REFUSED = 1e3
"""The logarithm of the condition of a motion that is not possible."""
SHRINK = 0.8
"""The factor by which a motion shrinks until torques and joints of loops are within their limits."""
SHRINKS = 20
CLOSED = 4
"""How many times fewer steps are made with closed mechanisms, whose motions take much longer."""


@dataclass(frozen=True, repr=False)
class Excitation(Displayed):
    """A periodic motion of joints [m] for identification: Fourier series with rest at the ends of each period.

    `sines` and `cosines` [m, harmonics] are a and b of the series, `center` [m] is the position at the ends.
    `condition` is that of the regressors of all columns in use, scaled to unit length, and `random_condition` the best
    of the random starts. `peaks` has the largest position (lowest, highest), velocity and acceleration, and `torques`
    the largest torque of the model, by joint.
    """

    system: CompiledMechanism
    base: BaseParameters
    joints: tuple[str, ...]
    period: float
    center: Numbers
    sines: Numbers
    cosines: Numbers
    condition: float
    random_condition: float
    peaks: dict[str, Numbers]
    torques: Numbers

    def motion(self, t: ArrayLike) -> tuple[Numbers, Numbers, Numbers]:
        """Return positions, velocities and accelerations [n, m] of the joints at times t [n]; at rest before t = 0."""
        return series(np.asarray(t, dtype=float), self.period, self.center, self.sines, self.cosines)

    def recording(self, rate: float = 200.0, periods: float = 1.0) -> Recording:
        """Return the motion of all joints at even times, with the torques that the model needs for it."""
        count = round(positive(rate, "rate") * positive(periods, "periods") * self.period) + 1
        t = np.linspace(0.0, periods * self.period, count)
        q, qd, qdd = _whole(self.system, self.joints, *self.motion(t))
        more: dict[str, Any] = {} if self.base.actuated is None else {"actuated": self.base.actuated}
        return Recording(t, q, qd, qdd, tau=self.system.inverse_dynamics(q, qd, qdd, **more))

    def display(self) -> list[str | Table]:
        """Return the condition, and the limits that are used by joint."""
        text = (
            f"{self.base.mechanism}: {self.sines.shape[1]} harmonics in {self.period:g} s for {len(self.base)} base "
            f"parameters; condition {self.condition:.3g}, of random motions {self.random_condition:.3g} at best"
        )
        heads = ("joint", "from", "to", "velocity", "acceleration", "torque")
        columns = (self.peaks["lower"], self.peaks["upper"], self.peaks["velocity"], self.peaks["acceleration"])
        rows = tuple(zip(self.joints, *(map(float, x) for x in (*columns, self.torques)), strict=True))
        return [text, Table(heads, rows)]


def excitation(
    system: CompiledMechanism,
    *,
    period: float = 10.0,
    harmonics: int = 5,
    columns: str | Iterable[str] = DEFAULT_COLUMNS,
    actuated: str | Iterable[str] | None = None,
    position: Mapping[str, tuple[float, float]] | None = None,
    velocity: Mapping[str, float] | float | None = None,
    acceleration: Mapping[str, float] | float | None = None,
    starts: int = STARTS,
    seed: int = 0,
) -> Excitation:
    """Return a motion that excites the base parameters of a mechanism well, by the condition of its regressors.

    Each joint follows a Fourier series of `harmonics` in `period` [s], which begins and ends at rest. Limits of
    position, velocity and torque are those of the joints; `position`, `velocity` and `acceleration` by joint narrow
    them, or give those that are missing (by default 2.5 rad to both sides, 1.5 rad/s, and 4/s times the velocity). A
    closed mechanism moves by its `actuated` joints, and all others keep their limits of position, too. `columns` are
    sorts of parameters that are to be found, as in `identify`.
    """
    m = system.mechanism
    T, N = positive(period, "period"), whole(harmonics, "harmonics", least=3)
    chosen = column_names(columns)
    base = base_parameters(system, chosen, actuated=actuated)
    labels = axis_labels(m, 1)
    joints = tuple(labels) if base.actuated is None else tuple(as_list(base.actuated))
    if base.actuated is None and m.nq != m.nv:
        raise InputError(
            f"{m.name!r} has joints with quaternions, which follow no Fourier series; give actuated= or another motion"
        )
    low, high, speed, change = _limits(system, joints, position, velocity, acceleration)
    plan = _Plan(system, base, joints, T, N, low, high, speed, change)
    rng = np.random.default_rng(whole(seed, "seed", least=0))
    tries = [plan.random(rng) for _ in range(whole(starts, "starts"))]
    values = [plan.cost(x) for x in tries]
    best, first = tries[int(np.argmin(values))], min(values)
    if first >= REFUSED:
        raise UnreachableError(
            f"none of {len(tries)} random motions of {m.name!r} keeps its limits; give narrower ranges by "
            "position=, or lower velocity= and acceleration="
        )
    found = _improved(plan, best)
    (center, sines, cosines), _ = plan.coefficients(found)
    t = np.linspace(0.0, T, DENSE)
    q, qd, qdd = series(t, T, center, sines, cosines)
    peaks = {"lower": q.min(axis=0), "upper": q.max(axis=0), "velocity": np.abs(qd).max(axis=0),
             "acceleration": np.abs(qdd).max(axis=0)}  # fmt: skip
    torques = np.abs(plan.torques(q, qd, qdd)).max(axis=0)
    after, before = (math.exp(plan.cost(x)) for x in (found, best))
    return Excitation(system, base, joints, T, center, sines, cosines, after, before, peaks, torques)


def series(t: Numbers, period: float, center: Numbers, a: Numbers, b: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return the series with the coefficients a and b [m, harmonics], and its derivatives [n, m]."""
    wk = 2.0 * math.pi / period * np.arange(1, a.shape[1] + 1)
    angle = wk * t[..., None]
    s, c = np.sin(angle), np.cos(angle)
    q = center + s @ (a / wk).T - (c - 1.0) @ (b / wk).T
    return q, c @ a.T + s @ b.T, c @ (b * wk).T - s @ (a * wk).T


@dataclass(frozen=True)
class _Plan:
    """The shapes that are tried: 2 (harmonics - 1) numbers and a place between the limits per joint."""

    system: CompiledMechanism
    base: BaseParameters
    joints: tuple[str, ...]
    period: float
    harmonics: int
    low: Numbers
    high: Numbers
    speed: Numbers
    change: Numbers

    def random(self, rng: np.random.Generator) -> Numbers:
        """Return a random shape."""
        return rng.normal(size=(len(self.joints), 2 * (self.harmonics - 1) + 1)).ravel()

    def coefficients(self, x: Numbers) -> tuple[tuple[Numbers, Numbers, Numbers], Numbers | None]:
        """Return center, a and b of a shape, as large as limits allow, and the motion of all joints, or None."""
        m, n = len(self.joints), self.harmonics - 1
        shape = x.reshape(m, 2 * n + 1)
        k = np.arange(1, n + 1)
        free_a, free_b = shape[:, :n], shape[:, n : 2 * n]
        a = np.hstack([free_a, -free_a.sum(axis=1, keepdims=True)])
        b = np.hstack([free_b, -(k * free_b).sum(axis=1, keepdims=True) / self.harmonics])
        t = np.linspace(0.0, self.period, DENSE)
        q, qd, qdd = series(t, self.period, np.zeros(m), a, b)
        below, above = q.min(axis=0), q.max(axis=0)
        sizes = [(self.high - self.low) / (above - below), self.speed / np.abs(qd).max(axis=0),
                 self.change / np.abs(qdd).max(axis=0)]  # fmt: skip
        size = WITHIN * np.min(sizes, axis=0)
        part = 0.5 + 0.5 * np.tanh(shape[:, -1])
        room = (self.high - self.low) - size * (above - below)
        center = self.low + part * room - size * below
        for _ in range(SHRINKS):
            found = center, size[:, None] * a, size[:, None] * b
            if (motion := self._motion(*found)) is not None:
                return found, motion
            size = SHRINK * size
            center = center + (1.0 - SHRINK) * (0.5 * (self.low + self.high) - center)
        return (center, size[:, None] * a, size[:, None] * b), None

    def _motion(self, center: Numbers, a: Numbers, b: Numbers) -> Any:
        """Return the motion of all joints, or None if torques, or joints that follow by loops, exceed their limits."""
        m = self.system.mechanism
        t = np.linspace(0.0, self.period, SAMPLES, endpoint=False)
        try:
            q, qd, qdd = _whole(self.system, self.joints, *series(t, self.period, center, a, b))
        except (AssemblyError, InputError):
            return None
        if self.system.closures:
            for joint, own in zip(m.joints, m.q_slices, strict=True):
                for bound, way in ((joint.limits.lower, 1.0), (joint.limits.upper, -1.0)):
                    if len(bound) and (way * (q[:, own] - np.asarray(bound, dtype=float)) < 0.0).any():
                        return None
        most = {j.name: float(j.limits.effort[0]) for j in m.joints if len(j.limits.effort)}  # pyright: ignore
        bounded = [x for x in self.joints if math.isfinite(most.get(x, math.inf))]
        if bounded:
            tau = np.abs(self._torques(q, qd, qdd)).max(axis=0)
            if any(tau[dofs(m, [x])[0]] > WITHIN * most[x] for x in bounded):
                return None
        return q, qd, qdd

    def torques(self, q: Numbers, qd: Numbers, qdd: Numbers) -> Numbers:
        """Return the torques of the driven joints [n, m] for their motion."""
        return self._torques(*_whole(self.system, self.joints, q, qd, qdd))[:, dofs(self.system.mechanism, self.joints)]

    def _torques(self, q: Numbers, qd: Numbers, qdd: Numbers) -> Numbers:
        more: dict[str, Any] = {} if self.base.actuated is None else {"actuated": list(self.base.actuated)}
        return np.asarray(self.system.inverse_dynamics(q, qd, qdd, **more))

    def cost(self, x: Numbers) -> float:
        """Return the logarithm of the condition of the scaled regressors of a shape."""
        motion = self.coefficients(x)[1]
        if motion is None:
            return REFUSED
        q, qd, qdd = motion
        driven = dofs(self.system.mechanism, self.joints)
        Y = regressor(self.system, q, qd, qdd, columns=self.base.columns, actuated=self.base.actuated)[:, driven]
        W = Y[..., list(self.base.kept)].reshape(-1, len(self.base))
        sizes = np.linalg.norm(W, axis=0)
        if not (sizes > 0.0).all():
            return REFUSED
        values = np.linalg.svd(np.linalg.qr(W / sizes, mode="r"), compute_uv=False)
        return float(np.log(values[0] / max(values[-1], 1e-300)))


def _improved(plan: _Plan, start: Numbers) -> Numbers:
    """Return a better shape: quasi-Newton steps by differences, as long as they help."""
    from scipy.optimize import minimize

    steps = STEPS // CLOSED if plan.system.closures else STEPS
    found: Any = minimize(plan.cost, start, method="L-BFGS-B", options={"maxiter": steps, "eps": 1e-5})
    return found.x if found.fun <= plan.cost(start) else start


def _whole(
    system: CompiledMechanism, joints: tuple[str, ...], q: Numbers, qd: Numbers, qdd: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """Return the motion of all joints from that of the driven ones."""
    if not system.closures:
        return q, qd, qdd
    given = [dict(zip(joints, x.T, strict=True)) for x in (q, qd, qdd)]
    moved = driven_motion(system, *given, keep=("q", "qd", "qdd"))
    return moved.q, moved.qd, moved.qdd


def _limits(
    system: CompiledMechanism, joints: tuple[str, ...], position: object, velocity: object, acceleration: object
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return bounds of positions, velocities and accelerations of the driven joints [m] each."""
    m = system.mechanism
    units = dict(zip(axis_labels(m, 1), (unit for _, _, unit in axis_names(m, 1)), strict=True))
    owners = {label: (joint, k) for joint in m.joints for k, label in enumerate(_labels_of(m, joint.name))}
    out = []
    for name, given in (("position", position), ("velocity", velocity), ("acceleration", acceleration)):
        if isinstance(given, Mapping) and (unknown := [x for x in given if x not in joints]):
            raise InputError(f"{name} has {unknown[0]!r}; the driven joints are {', '.join(joints)}")
    for label in joints:
        joint, k = owners[label]
        size = 1.0 if units[label] == "rad" else characteristic_length(m)
        home = (
            float(system.neutral()[dofs(m, [label])[0]])
            if not system.closures
            else float(assemble(system)[m.q_slices[[j.name for j in m.joints].index(joint.name)].start + k])
        )
        ends = []
        for bound, way in ((joint.limits.lower, -1.0), (joint.limits.upper, 1.0)):
            limit = float(bound[k]) if len(bound) > k else way * math.inf
            ends.append(limit if math.isfinite(limit) else home + way * FREE_TURN * size)
        if isinstance(position, Mapping) and label in position:
            low, high = map(float, position[label])
            if not ends[0] - 1e-9 <= low < high <= ends[1] + 1e-9 and _bounded(joint, k):
                raise InputError(
                    f"position of {label!r} is ({low:g}, {high:g}); give (lower, upper) within its limits "
                    f"({ends[0]:g}, {ends[1]:g})"
                )
            ends = [low, high]
        limit = float(joint.limits.velocity[k]) if len(joint.limits.velocity) > k else math.inf
        speed = _given(velocity, label, "velocity", limit if math.isfinite(limit) else USUAL_SPEED * size, limit)
        change = _given(acceleration, label, "acceleration", USUAL_CHANGE * speed, math.inf)
        out.append((*ends, speed, change))
    low, high, speed, change = np.array(out).T
    return low, high, speed, change


def _given(given: object, label: str, name: str, usual: float, most: float) -> float:
    value = given.get(label) if isinstance(given, Mapping) else given
    if value is None:
        return usual
    found = positive(value, f"{name} of {label!r}")
    return min(found, most)


def _bounded(joint: Joint, k: int) -> bool:
    return any(len(x) > k and math.isfinite(float(x[k])) for x in (joint.limits.lower, joint.limits.upper))


def _labels_of(m: Mechanism, name: str) -> list[str]:
    own = m.v_slices[[j.name for j in m.joints].index(name)]
    return list(axis_labels(m, 1))[own]
