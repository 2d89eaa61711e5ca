"""The fastest motion along a path within limits of velocity, acceleration and torque, by sweeps over a grid.

Along q(s), with x = (ds/dt)^2 and u = d2s/dt2, velocities are q' sqrt(x) and accelerations q' u + q'' x, so that
torques are a(s) u + b(s) x + c(s) and what friction adds: f(s, sqrt(x)). [Pham2018] (6). The coefficients of all points
of a grid come from one call of inverse dynamics, at the motions (x, u) = (0, 0), (0, 1) and (1, 0). In a closed
mechanism they are torques of the actuated joints. Two sweeps over the grid then find the largest x (path_speeds).

Friction is linearized in x at the speeds of the sweeps before. By how much limits are exceeded between two points of
the grid is taken off them there, and the sweeps repeat, until the motion itself keeps all limits to KEPT.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.scalars import Numbers
from ..errors import AssemblyError, InputError
from ..model.axes import axis_labels
from ..model.mechanism import Named
from ..simulation.acting.references.motions import sampled
from ..simulation.acting.references.table import Table
from ..simulation.acting.references.waypoints import NO_WAY, Bounds, path_speeds
from ..system import System
from .limits import MotionLimits, unit_of

if TYPE_CHECKING:
    from ..simulation.acting.references.motions import Reference

KEPT = 1e-7
"""By how much a motion may exceed limits between the points of its grid, relative to them."""
SETTLED = 1e-5
"""The relative change of x from sweep to sweep below which friction counts as found."""
SWEEPS = 40
"""The most repetitions of the sweeps; without strong friction some 5 suffice."""
INNER = tuple(k / 8 for k in range(9))
"""The places in an interval of the grid at which limits are checked; between them, peaks of parabolas are."""


@dataclass(frozen=True)
class PathMotion:
    """Evaluates motions along a path: velocities, accelerations and torques of all degrees of freedom."""

    system: System
    path: Reference
    span: tuple[float, float]
    driven: tuple[int, ...]
    names: tuple[str, ...]
    forces: bool
    parameters: Named | None

    def along(self, s: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return q, q' and q'' of the path's coordinates at values of its parameter, [..., coordinates]."""
        q, by_s, by_ss = sampled(self.path, np.clip(s, *self.span))
        return q, by_s, by_ss

    def evaluate(self, q: Numbers, qd: Numbers, qdd: Numbers, *, forces: bool) -> tuple[Numbers, ...]:
        """Return q, qd, qdd and tau of all degrees of freedom from the path's coordinates [points, coordinates]."""
        more: dict[str, Any] = {} if self.parameters is None else {"parameters": self.parameters}
        if self.system.closures:
            given = [dict(zip(self.names, np.moveaxis(x, -1, 0), strict=True)) for x in (q, qd, qdd)]
            found = self.system.driven_motion(*given, forces=forces, **more)
            return found.q, found.qd, found.qdd, found.tau
        if not forces and self.system.mechanism.has_forces:
            more["forces"] = False
        return q, qd, qdd, self.system.inverse_dynamics(q, qd, qdd, **more)

    def motion(self, s: Numbers, speed: Numbers, rate: Numbers) -> tuple[Numbers, ...]:
        """Return q, qd, qdd and tau at values of s, ds/dt and d2s/dt2 of any one shape."""
        q, by_s, by_ss = (x.reshape(-1, x.shape[-1]) for x in self.along(s))
        v, u = speed.reshape(-1, 1), rate.reshape(-1, 1)
        found = self.evaluate(q, by_s * v, by_s * u + by_ss * v * v, forces=self.forces)
        return tuple(x.reshape(*s.shape, -1) for x in found)

    def jerk(self, s: Numbers, speed: Numbers, rate: Numbers, change: Numbers) -> Numbers:
        """Return jerks of the path's coordinates, with the third derivative d3s/dt3; q''' by central differences."""
        _, by_s, by_ss = self.along(s)
        step = 1e-5 * (self.span[1] - self.span[0])
        low, high = np.maximum(s - step, self.span[0]), np.minimum(s + step, self.span[1])
        by_sss = (self.along(high)[2] - self.along(low)[2]) / (high - low)[..., None]
        v, u, w = speed[..., None], rate[..., None], change[..., None]
        return by_sss * v**3 + 3.0 * by_ss * v * u + by_s * w


# --- The largest speeds along the path ---


@dataclass(frozen=True)
class Rows:
    """The limits |a u + b x + c| <= most of accelerations and torques at a grid [points, rows], and x <= top."""

    grid: Numbers
    sorts: tuple[tuple[str, int], ...]
    a: Numbers
    b: Numbers
    c: Numbers
    most: Numbers
    top: Numbers

    @classmethod
    def of(cls, along: PathMotion, bounds: MotionLimits, grid: Numbers) -> Rows:
        """Return the coefficients of all points of a grid, by one call of inverse dynamics at three motions each."""
        q, by_s, by_ss = along.along(grid)
        zero = np.zeros_like(q)
        try:
            _, qd, qdd, tau = along.evaluate(
                np.stack([q, q, q]), np.stack([zero, zero, by_s]), np.stack([zero, by_s, by_ss]), forces=False
            )
            held = along.evaluate(q, zero, zero, forces=along.forces)[3]
        except AssemblyError as error:
            raise InputError(f"the path of time_optimal leaves the positions that the loops allow: {error}") from None
        speed, fast = bounds.velocity, np.abs(qd[2])
        with np.errstate(divide="ignore", over="ignore"):
            top = np.where(fast > 1e-12 * fast.max(), speed / np.maximum(fast, NO_WAY), np.inf).min(axis=1) ** 2
        sorts, parts = [], []
        for sort, x, rest in (("acceleration", qdd, 0.0 * tau[0]), ("torque", tau, held)):
            for k in np.flatnonzero(np.isfinite(bounds.of(sort))):
                sorts.append((sort, int(k)))
                base = x[0, :, k]
                parts.append([x[1, :, k] - base, x[2, :, k] - base, rest[:, k]])
        a, b, c = np.moveaxis(np.array(parts), 0, -1)
        most = np.array([bounds.of(sort)[k] for sort, k in sorts])
        return cls(grid, tuple(sorts), a, b, c, most, top)


Profile = tuple[Numbers, Numbers]
"""The times of a timing s(t) [n + 1], and its polynomials in powers of time [degree + 1, n, 1]."""


def fastest(along: PathMotion, bounds: MotionLimits, knots: int) -> Profile:
    """Return the fastest timing without a limit of the jerk.

    `margin` is what is taken off the limits at the points, above and below, and `top` the squares of the speeds there.
    """
    rows = Rows.of(along, bounds, _graded(along, knots))
    margin, top = np.zeros((2, *rows.a.shape)), rows.top
    rubs = along.forces and along.system.mechanism.has_forces
    speeds, no_friction = None, (0.0, 0.0)
    x = _swept(along, rows, margin, top, no_friction)
    for _ in range(SWEEPS):
        if rubs:
            x = _with_friction(along, rows, margin, top, x if speeds is None else speeds)
        else:
            x = _swept(along, rows, margin, top, no_friction)
        moved = np.inf if speeds is None else float(np.abs(x - speeds).max() / x.max())
        speeds = x
        beyond, fast = _excess(along, bounds, rows, x)
        worst = max(float((beyond / rows.most).max()), float(fast.max()) - 1.0)
        if worst <= KEPT and (moved <= KEPT or not rubs):
            break
        if rubs and moved > SETTLED:
            continue
        margin = margin + _at_points(beyond)
        top = top / _at_points(np.maximum(fast, 1.0)) ** 2
    s, speed = rows.grid, np.sqrt(x)
    rates = np.diff(x) / (2.0 * np.diff(s))
    times = np.concatenate([[0.0], np.cumsum(2.0 * np.diff(s) / (speed[:-1] + speed[1:]))])
    return slowed(along, bounds, (times, np.stack([s[:-1], speed[:-1], rates / 2.0])[..., None]))


def _graded(along: PathMotion, knots: int) -> Numbers:
    """Return a grid of the path, finer toward its ends, where speeds grow with the roots of distances."""
    first, last = along.span
    s = first + (last - first) * (1.0 - np.cos(np.linspace(0.0, math.pi, knots + 1))) / 2.0
    inner = along.path.times if isinstance(along.path, Table) else np.array([])
    s = np.union1d(s, inner[(inner > first) & (inner < last)])
    return s[np.concatenate([[True], np.diff(s) > 1e-9 * (last - first)])]


def _at_points(x: Numbers) -> Numbers:
    """Return the larger one of the values of both intervals at each point, [..., n + 1, rows] or [n + 1]."""
    axis = 1 if x.ndim == 3 else 0
    first, last = np.take(x, [0], axis), np.take(x, [-1], axis)
    return np.maximum(np.concatenate([x, last], axis), np.concatenate([first, x], axis))


def _swept(
    along: PathMotion, rows: Rows, margin: Numbers, top: Numbers, friction: tuple[Numbers | float, Numbers | float]
) -> Numbers:
    """Return the largest x, with friction as its value at x = 0 and its slope."""
    value, slope = friction
    low, high = -rows.most + margin[1], rows.most - margin[0]
    try:
        return path_speeds(rows.grid, Bounds(rows.a, rows.b + slope, rows.c + value, low, high, top))
    except InputError as error:
        raise InputError(_reason(along, rows, str(error)), path=("path",)) from None


def _with_friction(along: PathMotion, rows: Rows, margin: Numbers, top: Numbers, x: Numbers) -> Numbers:
    """Return the largest x with friction linearized at given ones, or at lower ones if these leave no motion."""
    error: InputError | None = None
    for _ in range(30):
        try:
            return _swept(along, rows, margin, top, _friction(along, rows, x))
        except InputError as found:
            error, x = found, x / 4.0
    assert error is not None
    raise error


def _friction(along: PathMotion, rows: Rows, x: Numbers) -> tuple[Numbers, Numbers]:
    """Return the value at zero and the slope of lines in x that touch the torques of friction at given x."""
    q, by_s, _ = along.along(rows.grid)
    x = np.maximum(x, 1e-6 * x.max())
    speed, step = np.sqrt(x)[:, None], 1e-4
    qd = np.stack([0.0 * by_s, *(by_s * (speed * f) for f in (1.0 - step, 1.0, 1.0 + step))])
    q, zero = np.broadcast_to(q, qd.shape), np.zeros(qd.shape)
    with_, without = (along.evaluate(q, qd, zero, forces=own)[3] for own in (True, False))
    rest, *torque = with_ - without
    slope = (torque[2] - torque[0]) / (4.0 * step * x[:, None])  # dx = 2 x dv / v
    value = torque[1] - rest - slope * x[:, None]
    values, slopes = np.zeros_like(rows.a), np.zeros_like(rows.a)
    for n, (sort, k) in enumerate(rows.sorts):
        if sort == "torque":
            values[:, n], slopes[:, n] = value[:, k], slope[:, k]
    return values, slopes


def _excess(along: PathMotion, bounds: MotionLimits, rows: Rows, x: Numbers) -> tuple[Numbers, Numbers]:
    """Return by how much rows are exceeded above and below in each interval [2, n, rows], and speeds relative."""
    s, steps = rows.grid, np.diff(rows.grid)
    rate = np.diff(x) / (2.0 * steps)
    way = np.multiply.outer(steps, INNER)
    speed = np.sqrt(np.maximum(x[:-1, None] + 2.0 * rate[:, None] * way, 0.0))
    _, qd, qdd, tau = along.motion(s[:-1, None] + way, speed, np.broadcast_to(rate[:, None], way.shape))
    values = {"acceleration": qdd, "torque": tau}
    found = np.stack([values[sort][..., k] for sort, k in rows.sorts], axis=-1)
    beyond = np.stack([_peaks(found) - rows.most, _peaks(-found) - rows.most])
    return np.maximum(beyond, 0.0), (_largest(qd) / bounds.velocity).max(axis=1)


def _peaks(f: Numbers) -> Numbers:
    """Return the largest values in intervals [n, columns] from equidistant samples [n, samples, columns].

    A sample that is above its neighbors is replaced by the peak of the parabola through the three.
    """
    slope = (f[:, 2:] - f[:, :-2]) / 2.0
    bend = f[:, 2:] - 2.0 * f[:, 1:-1] + f[:, :-2]
    inside = np.abs(slope) < -bend
    above = np.where(inside, -(slope**2) / (2.0 * np.where(inside, bend, -1.0)), 0.0)
    return np.maximum(f.max(axis=1), (f[:, 1:-1] + above).max(axis=1))


def _largest(f: Numbers) -> Numbers:
    """Return the largest sizes in intervals [n, columns] from equidistant samples [n, samples, columns]."""
    return np.maximum(_peaks(f), _peaks(-f))


def _reason(along: PathMotion, rows: Rows, what: str) -> str:
    """Return why no motion is within the limits: the joint whose torque is farthest beyond its limit at rest."""
    torques = np.array([sort == "torque" for sort, _ in rows.sorts])
    use = np.where(torques, np.abs(rows.c) / rows.most, 0.0)
    if not use.size or use.max() <= 1.0:
        return f"time_optimal: {what}"
    at, n = np.unravel_index(int(use.argmax()), use.shape)
    m, k = along.system.mechanism, rows.sorts[n][1]
    unit, name = unit_of(m, "torque", k), axis_labels(m, 1)[k]
    first = np.flatnonzero(use.max(axis=1) > 1.0)[0]
    return (
        f"time_optimal: the torques cannot carry {m.name!r} along the path: at s = {rows.grid[at]:.6g} of "
        f"{along.span[0]:.6g} to {along.span[1]:.6g}, {name!r} needs {abs(rows.c[at, n]):.4g} {unit} at rest, and its "
        f"limit is {rows.most[n]:.4g} {unit} (beyond limits first at s = {rows.grid[first]:.6g}); give another path, "
        "less load, or larger limits"
    )


# --- Motions that are slowed or averaged, and what they use of the limits ---


def sampled_timing(profile: Profile, places: Sequence[float] = INNER) -> tuple[Numbers, ...]:
    """Return t, s, ds/dt, d2s/dt2 and d3s/dt3 at places in all intervals of a timing, [intervals, places] each."""
    times, pieces = profile
    t = np.multiply.outer(np.diff(times), places)
    c = pieces[..., 0][..., None]
    out = [times[:-1, None] + t]
    for order in range(4):
        total = np.zeros_like(t)
        for power in reversed(range(order, len(c))):
            total = total * t + math.perm(power, order) * c[power]
        out.append(total)
    return tuple(out)


def stretched(profile: Profile, factor: float) -> Profile:
    """Return the timing that takes longer by a factor."""
    times, pieces = profile
    powers = np.arange(len(pieces), dtype=float)
    return times * factor, pieces / factor ** powers[:, None, None]


def slowing(along: PathMotion, bounds: MotionLimits, profile: Profile, *, jerk: bool) -> tuple[float, float]:
    """Return the largest use of all limits, and the factor of time that would remove what is exceeded."""
    _, s, speed, rate, change = sampled_timing(profile)
    _, qd, qdd, tau = along.motion(s, speed, rate)
    use = [(_largest(qd) / bounds.velocity).max(), (_largest(qdd) / bounds.acceleration).max()]
    factors = [use[0], math.sqrt(use[1])]
    if jerk:
        use.append((_largest(along.jerk(s, speed, rate, change)) / bounds.jerk[list(along.driven)]).max())
        factors.append(float(use[-1]) ** (1.0 / 3.0))
    held = along.motion(s, 0.0 * speed, 0.0 * rate)[3]
    for sign in (1.0, -1.0):
        most, rest = _peaks(sign * tau), (sign * held).max(axis=1)
        use.append((most / bounds.torque).max())
        with np.errstate(divide="ignore", invalid="ignore"):
            room = (most - rest) / (bounds.torque - rest)
        room = np.where(most > bounds.torque, np.where(room > 0.0, room, np.inf), 0.0)
        factors.append(math.sqrt(room.max(initial=0.0)))
    return float(max(use)), float(max(factors))


def slowed(
    along: PathMotion, bounds: MotionLimits, profile: Profile, most: float = 1.05, *, jerk: bool = False
) -> Profile:
    """Return a timing slowed so far that all limits hold between the points of its grid too."""
    total, use = 1.0, 1.0
    for _ in range(30):
        use, factor = slowing(along, bounds, profile, jerk=jerk)
        if use <= 1.0 + KEPT:
            return profile
        total *= factor
        if not total <= most:
            break
        profile = stretched(profile, max(factor, 1.0) * (1.0 + 1e-9))
    raise InputError(
        f"the path of time_optimal bends too sharply for a grid of {len(profile[0]) - 1} intervals: limits are "
        f"exceeded by {100.0 * (use - 1.0):.3g} % between its points; give a smoother path, or more knots",
        path=("path",),
    )
