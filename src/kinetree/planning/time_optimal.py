"""The fastest motion along a path within limits of velocities, accelerations, jerks and torques: `kt.time_optimal`.

Along q(s), with x = (ds/dt)^2 and u = d2s/dt2, velocities are q' sqrt(x) and accelerations q' u + q'' x, so that
torques are a(s) u + b(s) x + c(s) and what friction adds: f(s, sqrt(x)). [Pham2018] (6). The coefficients of all points
of a grid come from one call of inverse dynamics, at the motions (x, u) = (0, 0), (0, 1) and (1, 0). In a closed
mechanism they are torques of the actuated joints. Two sweeps over the grid then find the largest x (path_speeds).

Friction is linearized in x at the speeds of the sweeps before. By how much limits are exceeded between two points of
the grid is taken off them there, and the sweeps repeat, until the motion itself keeps all limits to KEPT.

A limit of the jerk is kept by averaging s(t) over a window of time d, which bounds the jerk by changes of the
acceleration over d, and by slowing the motion; d is chosen for the least time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._support.checks import number, numbers, whole
from .._support.pictures import picture
from .._support.tables import Displayed
from .._support.tables import Table as Shown
from ..algebra.arrays import Numbers
from ..algebra.scalars import Scalar
from ..analysis.joint_entries import as_list
from ..errors import AssemblyError, InputError, argument, brief
from ..model.axes import axis_labels
from ..model.mechanism import Named, inputs_of
from ..simulation.acting.controllers import locate_joints
from ..simulation.acting.references.motions import Lists, as_time, sampled
from ..simulation.acting.references.table import Table, piecewise
from ..simulation.acting.references.waypoints import (
    KNOTS,
    NO_WAY,
    Bounds,
    chord_lengths,
    path_speeds,
    read_path,
)
from ..system import System
from .limits import MotionLimits, read_limits, unit_of

KEPT = 1e-7
"""By how much a motion may exceed limits between the points of its grid, relative to them."""
SETTLED = 1e-5
"""The relative change of x from sweep to sweep below which friction counts as found."""
SWEEPS = 40
"""The most repetitions of the sweeps; without strong friction some 5 suffice."""
INNER = tuple(k / 8 for k in range(9))
"""The places in an interval of the grid at which limits are checked; between them, peaks of parabolas are."""
SORTS = ("velocity", "acceleration", "jerk", "torque")
"""The limits of a motion along a path."""
RESAMPLED = 401
"""The points of a path whose own parameter stands still somewhere; a spline through them is followed."""
REACHED = 0.01
"""How near a limit counts as reached, relative to it: motions are within it at both ends of an interval."""
WINDOWS = np.geomspace(0.01, 1.0, 25)
"""The tried windows of averaging, relative to the time without a limit of the jerk."""
HALVED = 900
"""The most intervals of the grid under a limit of the jerk: averages have twice as many."""


@dataclass(frozen=True)
class PathMotion:
    """Evaluates motions along a path: velocities, accelerations and torques of all degrees of freedom."""

    system: System
    path: Any
    span: tuple[float, float]
    driven: tuple[int, ...]
    places: tuple[int, ...]
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


@dataclass(frozen=True, eq=False, repr=False)
class TimedMotion(Displayed):
    """The fastest motion along a path from rest to rest, a reference q(t) for controllers and drives.

    `t`, `q`, `qd`, `qdd` and `tau` are samples of all degrees of freedom, `s` and `speed` those of
    the path's parameter and of ds/dt. `usage`
    [samples, rows] is each quantity relative to its limit; `rows` are the sorts of limits and degrees of freedom.
    `without_jerk` is the time without the limit of the jerk [s], which no motion within that limit can beat.
    """

    system: System
    path: Any
    span: tuple[float, float]
    limits: MotionLimits
    joints: tuple[str, ...]
    start: float
    times: Numbers
    pieces: Numbers
    t: Numbers
    s: Numbers
    speed: Numbers
    q: Numbers
    qd: Numbers
    qdd: Numbers
    tau: Numbers
    rows: tuple[tuple[str, int], ...]
    usage: Numbers
    without_jerk: float

    @property
    def duration(self) -> float:
        """The time of the whole motion [s]."""
        return float(self.times[-1])

    def __call__(self, t: Scalar) -> Lists:
        """Return q, qd, qdd of the path's coordinates."""
        (s,), (speed,), (rate,) = piecewise(self.times, self.pieces, as_time(t) - self.start)
        q, by_s, by_ss = self.path(s)
        qd = [speed * x for x in by_s]
        return q, qd, [rate * x + speed * speed * y for x, y in zip(by_s, by_ss, strict=True)]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The names of the limits, as in "torque of joint2"."""
        names = axis_labels(self.system.mechanism, 1)
        return tuple(f"{sort} of {names[k]}" for sort, k in self.rows)

    @property
    def active(self) -> list[tuple[float, float, str]]:
        """The first time, the last time and the name of the limit that is reached, one after the other."""
        first = self.usage.argmax(axis=1)
        reached = np.where(self.usage.max(axis=1) >= 1.0 - REACHED, first, -1)
        edges = np.flatnonzero(np.diff(reached)) + 1
        parts = zip([0, *edges], [*edges, len(reached)], strict=True)
        return [(float(self.t[a]), float(self.t[b - 1]), self.labels[reached[a]]) for a, b in parts if reached[a] >= 0]

    def display(self) -> list[str | Shown]:
        """Return the time, and how much of each limit is used and where it is reached."""
        m = self.system.mechanism
        worst = self.usage.max(axis=0)
        share = (self.usage >= 1.0 - REACHED).mean(axis=0)
        rows = []
        for n, (sort, k) in enumerate(self.rows):
            at = int(self.usage[:, n].argmax())
            limit = float(self.limits.of(sort)[k])
            rows.append(
                (self.labels[n], limit, unit_of(m, sort, k), float(worst[n]), float(self.t[at]), float(share[n]))
            )
        heads = ("limit of", "value", "", "largest use", "at", "reached for")
        extra = (
            "" if self.without_jerk == self.duration else f"; {self.without_jerk:.6g} s without the limit of the jerk"
        )
        return [
            f"{m.name}: along the path in {self.duration:.6g} s{extra}",
            Shown(heads, tuple(rows), ("", "", "", "", "s", "of the samples")),
        ]

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw ds/dt over s, and the use of all limits over time; write the picture to `path`, or open it."""
        return picture("timing_plot")(self, path)


def time_optimal(
    arm: System,
    path: Any,
    limits: Any = None,
    *,
    actuated: str | Iterable[str] | None = None,
    span: Any = None,
    start: float = 0.0,
    knots: int = KNOTS,
    forces: bool = True,
    parameters: Named | None = None,
) -> TimedMotion:
    """Return the fastest motion of an arm along a path, from rest to rest, within limits.

    The `path` has points [points, coordinates], joined by a cubic spline; or it is a CartesianMotion, a Table, or any
    other reference q(s) over a `span` of its parameter, whose own timing is replaced. `limits` has numbers by sort,
    "velocity", "acceleration", "jerk" and "torque": one, one per coordinate, or by joint. Velocities and torques that
    are not given are limited as the joints are. In a closed mechanism the path is that of its `actuated` joints, and
    limits of other joints may be given by joint. The forces of the mechanism act unless `forces` is False; `parameters`
    are one set of its free parameters, such as a payload. `knots` is the number of intervals of the grid.
    """
    who = "time_optimal"
    if not isinstance(arm, System):
        raise InputError(f"{who} takes a System first, not {brief(arm)}; load one with kt.load(name or file)")
    values = inputs_of(arm.mechanism, parameters)
    if values is not None and values.ndim > 1:
        raise InputError(f"{who} takes one set of parameters; time the motions of several one by one")
    places, driven, names = _coordinates(arm, actuated, who)
    bounds = read_limits(arm.mechanism, limits, driven, SORTS, who)
    if not any(np.isfinite(bounds.of(sort)).any() for sort in ("acceleration", "torque")):
        raise InputError(
            f"{who}: nothing limits the accelerations of {arm.mechanism.name!r}: its joints have no limits of effort, "
            'and none are given; give limits such as {"torque": 40.0} or {"acceleration": 5.0}',
            path=("limits",),
        )
    curve, ends = _regular(path, span, bounds.velocity[list(driven)], len(driven))
    along = PathMotion(arm, curve, ends, driven, places, names, forces, parameters)
    count = whole(knots, argument("knots", who), least=10, most=1900)
    jerky = bool(np.isfinite(bounds.jerk).any())
    profile = _profile(along, bounds, min(count, HALVED) if jerky else count)
    begin = number(start, argument("start", who))
    plain = float(profile[0][-1])
    if jerky:
        profile = _smoothed(along, bounds, profile)
    return _timed(along, bounds, profile, begin, plain)


def _coordinates(arm: System, actuated: Any, who: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[str, ...]]:
    """Return the entries of the path's coordinates in q and qd, and their names."""
    m = arm.mechanism
    if arm.closures and actuated is None:
        raise InputError(
            f"{who} on {m.name!r}, which has loops: name the joints with a drive, actuated=[...]; the path is theirs",
            path=("actuated",),
        )
    if actuated is not None and not arm.closures:
        raise InputError(f"{who}: {m.name!r} has no loops, and all its joints are driven; leave actuated out")
    names = None if actuated is None else [str(x) for x in as_list(actuated)]
    places, driven = locate_joints(_Only(m), names, who, key="actuated")  # type: ignore[arg-type]
    labels = axis_labels(m, 1)
    return tuple(places), tuple(driven), tuple(labels[k] for k in driven)


@dataclass(frozen=True)
class _Only:
    """A mechanism where an instant is expected."""

    mechanism: Any


def _regular(path: Any, span: Any, velocity: Numbers, count: int) -> tuple[Any, tuple[float, float]]:
    """Return a path as a reference whose parameter stands still nowhere, and the span of its parameter."""
    who = "time_optimal"
    if hasattr(path, "manipulability") and hasattr(path, "poses"):  # a CartesianMotion
        curve: Any = _through(np.asarray(path.q))
    else:
        curve = read_path(path, _lengths(path, velocity), who)
    if span is None and not isinstance(curve, Table):
        raise InputError(
            f"span of {who} is missing: give the first and the last value of the parameter of the path", path=("span",)
        )
    given = curve.times[[0, -1]] if span is None else span
    ends = numbers(given, argument("span", who, ""))
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise InputError(f"span of {who} is {brief(span)}; give two numbers that rise", path=("span",))
    _, by_s, _ = sampled(curve, np.linspace(*ends, RESAMPLED))
    if by_s.shape[-1] != count:
        raise InputError(
            f"the path of {who} has {by_s.shape[-1]} coordinates, and {count} are expected, one per degree of freedom "
            "that is driven",
            path=("path",),
        )
    if not np.isfinite(by_s).all():
        raise InputError(f"the path of {who} has derivatives that are not finite", path=("path",))
    size = np.abs(by_s).max(axis=1)
    if size.max() <= NO_WAY:
        raise InputError(f"the path of {who} does not move; give two or more points that differ", path=("path",))
    if size.min() <= 1e-6 * size.max():
        q, _, _ = sampled(curve, np.linspace(*ends, RESAMPLED))
        curve = _through(q)
        ends = float(curve.times[0]), float(curve.times[-1])
    return curve, (ends[0], ends[1])


def _lengths(path: Any, velocity: Numbers) -> Any:
    """Return the velocities by which steps between points are measured: limits, where they fit the points."""
    fits = isinstance(path, list | tuple | np.ndarray) and np.shape(path)[1:] == velocity.shape
    return np.where(np.isfinite(velocity), velocity, 1.0) if fits else 1.0


def _through(q: Numbers) -> Table:
    """Return a spline by lengths through points [n, coordinates], without those that lie very near to each other."""
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(q, axis=0), axis=1))])
    least = 0.5 * way[-1] / (len(q) - 1)
    kept = [0]
    for k in range(1, len(q) - 1):
        if way[k] - way[kept[-1]] >= least and way[-1] - way[k] >= least:
            kept.append(k)
    points = q[[*kept, len(q) - 1]]
    return Table(chord_lengths(points, 1.0), points, ends="not-a-knot")


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


def _profile(along: PathMotion, bounds: MotionLimits, knots: int) -> Profile:
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
    return _slowed(along, bounds, (times, np.stack([s[:-1], speed[:-1], rates / 2.0])[..., None]))


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


def _swept(along: PathMotion, rows: Rows, margin: Numbers, top: Numbers, friction: tuple[Any, Any]) -> Numbers:
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


def _sampled_timing(profile: Profile, places: Sequence[float] = INNER) -> tuple[Numbers, ...]:
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


def _stretched(profile: Profile, factor: float) -> Profile:
    """Return the timing that takes longer by a factor."""
    times, pieces = profile
    powers = np.arange(len(pieces), dtype=float)
    return times * factor, pieces / factor ** powers[:, None, None]


def _slowing(along: PathMotion, bounds: MotionLimits, profile: Profile, *, jerk: bool) -> tuple[float, float]:
    """Return the largest use of all limits, and the factor of time that would remove what is exceeded."""
    _, s, speed, rate, change = _sampled_timing(profile)
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


def _slowed(
    along: PathMotion, bounds: MotionLimits, profile: Profile, most: float = 1.05, *, jerk: bool = False
) -> Profile:
    """Return a timing slowed so far that all limits hold between the points of its grid too."""
    total, use = 1.0, 1.0
    for _ in range(30):
        use, factor = _slowing(along, bounds, profile, jerk=jerk)
        if use <= 1.0 + KEPT:
            return profile
        total *= factor
        if not total <= most:
            break
        profile = _stretched(profile, max(factor, 1.0) * (1.0 + 1e-9))
    raise InputError(
        f"the path of time_optimal bends too sharply for a grid of {len(profile[0]) - 1} intervals: limits are "
        f"exceeded by {100.0 * (use - 1.0):.3g} % between its points; give a smoother path, or more knots",
        path=("path",),
    )


def _smoothed(along: PathMotion, bounds: MotionLimits, profile: Profile) -> Profile:
    """Return the fastest of the timings that are averages of one over windows of time, slowed to keep all limits."""
    others = np.setdiff1d(np.flatnonzero(np.isfinite(bounds.jerk)), along.driven)
    if len(others):
        name = axis_labels(along.system.mechanism, 1)[others[0]]
        raise InputError(f"the jerk of {name!r} is limited, which is not driven; limit that of driven joints")

    def attempt(window: float) -> tuple[float, Profile | None]:
        found = _averaged(profile, window)
        try:
            found = _slowed(along, bounds, found, most=math.inf, jerk=True)
        except InputError:
            return math.inf, None
        return float(found[0][-1]), found

    windows = WINDOWS * profile[0][-1]
    tried = [attempt(w) for w in windows]
    best = int(np.argmin([x[0] for x in tried]))
    low, high = windows[max(best - 1, 0)], windows[min(best + 1, len(windows) - 1)]
    closer = [attempt(w) for w in np.linspace(low, high, 15)]
    found = min([*tried, *closer], key=lambda x: x[0])[1]
    if found is None:
        raise InputError(
            "time_optimal: no slower motion along the path keeps the jerk, because torques of "
            f"{along.system.mechanism.name!r} are beyond their limits at rest; give another path, less load, "
            "or larger limits"
        )
    return found


def _averaged(profile: Profile, window: float) -> Profile:
    """Return the average of s(t) over the window before each time: its acceleration has slopes up to du / window."""
    from scipy.interpolate import PPoly

    times, pieces = profile
    position = PPoly(pieces[::-1, :, 0], times)
    area, speed, end = position.antiderivative(), position.derivative(), times[-1]
    rate = speed.derivative()
    first, last = float(position(0.0)), float(position(end))

    def value(f: Callable[[Numbers], Numbers], at: Numbers, before: float, after: float) -> Numbers:
        return np.where(at <= 0.0, before, np.where(at >= end, after, f(np.clip(at, 0.0, end))))

    def whole_area(at: Numbers) -> Numbers:
        inside = area(np.clip(at, 0.0, end))
        return inside + first * np.minimum(at, 0.0) + last * np.maximum(at - end, 0.0)

    t = np.union1d(times, times + window)
    t = t[np.concatenate([[True], np.diff(t) > 1e-9 * end])]
    ago, middle = t - window, (t[:-1] + t[1:]) / 2.0
    s = (whole_area(t) - whole_area(ago)) / window
    v = (value(position, t, first, last) - value(position, ago, first, last)) / window
    u = (value(speed, t, 0.0, 0.0) - value(speed, ago, 0.0, 0.0)) / window
    w = (value(rate, middle, 0.0, 0.0) - value(rate, middle - window, 0.0, 0.0)) / window
    return t, np.stack([s[:-1], v[:-1], u[:-1] / 2.0, w / 6.0])[..., None]


def _timed(along: PathMotion, bounds: MotionLimits, profile: Profile, start: float, without_jerk: float) -> TimedMotion:
    """Return the motion of a timing, with samples of it."""
    t, s, speed, rate, change = (x.reshape(-1) for x in _sampled_timing(profile, (0.0, 0.25, 0.5, 0.75, 1.0 - 1e-9)))
    q, qd, qdd, tau = along.motion(s, speed, rate)
    values = {"velocity": qd, "acceleration": qdd, "torque": tau}
    if np.isfinite(bounds.jerk).any():
        values["jerk"] = np.zeros_like(qd)
        values["jerk"][:, list(along.driven)] = along.jerk(s, speed, rate, change)
    rows = [(sort, int(k)) for sort in values for k in np.flatnonzero(np.isfinite(bounds.of(sort)))]
    usage = np.stack([np.abs(values[sort][:, k]) / bounds.of(sort)[k] for sort, k in rows], axis=-1)
    return TimedMotion(
        along.system, along.path, along.span, bounds, along.names, start, *profile, start + t, s, speed, q, qd, qdd,
        tau, tuple(rows), usage, without_jerk,
    )  # fmt: skip
