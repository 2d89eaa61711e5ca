"""Motions through points, and along paths, as fast as limits of velocities, accelerations and jerks allow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...._support.checks import number, numbers, real_array, whole
from ....algebra.scalars import Numbers, Scalar
from ....errors import InputError, argument, brief
from ...arguments import spread
from .motions import NO_WAY, Lists, Profile, as_time
from .table import Table, piecewise

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .motions import Reference

# --- The fastest motion along a path, in the plane of its parameter s and the square x of its rate ---
#
# Along q(s), all velocities and accelerations follow from x = (ds/dt)^2 and u = d2s/dt2, since dx/ds = 2 u:
#
#     qd = q' sqrt(x),    qdd = q' u + q'' x.
#
# Limits of accelerations, and those of torques M q' u + (M q'' + C) x + g, are linear in u and x. [Pham2018] (6)


ROUNDING = 1e-12
"""By how much bounds may cross, relative to their size."""


@dataclass(frozen=True)
class Bounds:
    """Limits least <= a u + b x + c <= most at the points of a grid, each [points, rows], and x <= top [points].

    At a point where the motion must rest, `top` is zero. A velocity v of a coordinate gives top = (v / q')^2.
    """

    a: Numbers
    b: Numbers
    c: Numbers
    least: Numbers
    most: Numbers
    top: Numbers


def path_speeds(s: Numbers, bounds: Bounds, *, first: float = 0.0, last: float = 0.0) -> Numbers:
    """Return the largest squares x of the rates along a grid s [points], from `first` to `last`, within bounds.

    u is constant between two points, so that x is linear in s. Backward, the interval of x at each point from which the
    end can be reached is found; forward, the largest u that stays in these intervals is taken. [Pham2018] algorithm 1.
    Limits hold at both ends of every interval. InputError names the point of the path at which they contradict.
    """
    steps = np.diff(s)
    low, high = np.zeros_like(s), np.zeros_like(s)
    low[-1] = high[-1] = last
    for k in reversed(range(len(steps))):
        low[k], high[k] = _interval(*_rows(bounds, k, steps[k], low[k + 1], high[k + 1]), bounds.top[k])
        if low[k] > high[k]:
            raise InputError(
                f"no motion along the path is within the limits near s = {s[k]:.6g}: they contradict there"
            )
    if not low[0] * (1.0 - 1e-9) <= first <= high[0] * (1.0 + 1e-9):
        raise InputError(
            f"the motion cannot begin with ds/dt = {np.sqrt(first):.6g}: from {np.sqrt(low[0]):.6g} to "
            f"{np.sqrt(high[0]):.6g} is possible there"
        )
    x = np.empty_like(s)
    x[0] = first
    for k, h in enumerate(steps):
        alpha, beta, gamma = _rows(bounds, k, h, low[k + 1], high[k + 1])
        up = alpha > 0.0
        u = float(((gamma - beta * x[k])[up] / alpha[up]).min())
        x[k + 1] = min(max(x[k] + 2.0 * h * u, low[k + 1]), high[k + 1])
    return x


def _rows(bounds: Bounds, k: int, h: float, low: float, high: float) -> tuple[Numbers, Numbers, Numbers]:
    """Return the rows alpha u + beta x <= gamma of a step from point k, at both of its ends.

    At the end of the step x is x + 2 h u.
    """
    b = bounds
    alpha, beta, most, least = (
        np.concatenate(pair)
        for pair in (
            (b.a[k], b.a[k + 1] + 2.0 * h * b.b[k + 1]),
            (b.b[k], b.b[k + 1]),
            (b.most[k] - b.c[k], b.most[k + 1] - b.c[k + 1]),
            (b.least[k] - b.c[k], b.least[k + 1] - b.c[k + 1]),
        )
    )
    reach = 2.0 * h
    return (
        np.concatenate([alpha, -alpha, [reach, -reach]]),
        np.concatenate([beta, -beta, [1.0, -1.0]]),
        np.concatenate([most, -least, [high, -low]]),
    )


def _interval(alpha: Numbers, beta: Numbers, gamma: Numbers, top: float) -> tuple[float, float]:
    """Return the least and the largest x from 0 to `top` for which a u exists.

    Rows with alpha > 0 bound u from above, those with alpha < 0 from below; each pair of them bounds x.
    """
    up, down, flat = alpha > 0.0, alpha < 0.0, alpha == 0.0
    slope = np.add.outer(beta[up] / alpha[up], -beta[down] / alpha[down]).ravel()
    reach = np.add.outer(gamma[up] / alpha[up], -gamma[down] / alpha[down]).ravel()
    slope, reach = np.concatenate([slope, beta[flat]]), np.concatenate([reach, gamma[flat]])
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = reach / slope
    high = min(ends[slope > 0.0].min(initial=np.inf), top)
    low = max(ends[slope < 0.0].max(initial=0.0), 0.0)
    if (reach[slope == 0.0] < 0.0).any():
        return 1.0, 0.0
    return (high, high) if high < low <= high + ROUNDING * max(abs(high), 1.0) else (low, high)


KNOTS = 1000
"""The default number of intervals of a path's timing. Its time is within some 0.1 % of the shortest, with an error in
proportion to their length: limits hold at both ends of an interval in which the acceleration of the parameter is
constant."""
BETWEEN = 8
"""The number of times in each interval at which limits are checked; accelerations are smooth within intervals."""
SHARP = 0.05
"""The excess of a limit between the points of the grid, beyond which the path is too sharp for it. Smaller ones are
removed by slowing the whole motion."""


@dataclass(frozen=True, eq=False)
class Waypoints:
    """A motion through points [points, coordinates], from rest at the first to rest at the last, within limits.

    `velocity`, `acceleration` and `jerk` are one number, or one per coordinate [rad/s, m/s, ...]. The motion stops at
    every point, and runs straight from one to the next: all coordinates start and arrive together, and follow one
    profile that is as fast as all limits allow. Its velocity is a trapezoid; with `jerk`, its acceleration is one. With
    `stop=False` the motion passes through the points along a cubic spline, with the fastest timing within the limits of
    velocity and acceleration (TimedPath). `arrivals` are the times at the points [s].
    """

    points: Any
    _: KW_ONLY
    velocity: Any
    acceleration: Any
    jerk: Any = None
    stop: bool = True
    start: float = 0.0

    def __post_init__(self) -> None:
        """Read the points and the limits."""
        points = _points(self.points, "Waypoints")
        still = np.flatnonzero((np.abs(np.diff(points, axis=0)) <= NO_WAY).all(axis=1))
        if len(still):
            raise InputError(
                f"points {still[0] + 1} and {still[0] + 2} of Waypoints are equal; leave one of them out",
                path=("points",),
            )
        if not isinstance(self.stop, bool):
            raise InputError(f"stop of Waypoints is {brief(self.stop)}; give True or False", path=("stop",))
        if self.jerk is not None and not self.stop:
            raise InputError(
                "jerk of Waypoints is given with stop=False, and the timing along a curved path has no limit of the "
                "jerk; leave jerk out, or stop at the points",
                path=("jerk",),
            )
        object.__setattr__(self, "points", points)
        _read_limits(self, points.shape[1], "Waypoints")

    @cached_property
    def arrivals(self) -> Numbers:
        """The times at which the motion is at each point [s]."""
        if not self.stop:
            return self._passing.times_at(self._passing.path.times)
        durations = [sum(p[0] for p in segment) for segment in self._segments]
        return self.start + np.concatenate([[0.0], np.cumsum(durations)])

    @property
    def duration(self) -> float:
        """The time of the whole motion [s]."""
        return float(self.arrivals[-1] - self.start)

    def __call__(self, t: Scalar) -> Lists:
        """Return q, qd, qdd."""
        return piecewise(*self._pieces, as_time(t) - self.start) if self.stop else self._passing(t)

    @cached_property
    def _passing(self) -> TimedPath:
        return TimedPath(self.points, velocity=self.velocity, acceleration=self.acceleration, start=self.start)

    @cached_property
    def _segments(self) -> list[list[tuple[float, float, float]]]:
        """The phases (duration, acceleration at its start, jerk) of each segment, of a motion from 0 to 1."""
        out = []
        for way in np.abs(np.diff(self.points, axis=0)):
            moving = way > NO_WAY
            limits = [x for x in (self.velocity, self.acceleration, self.jerk) if x is not None]
            out.append(_phases(*((np.array(x)[moving] / way[moving]).min() for x in limits)))
        return out

    @cached_property
    def _pieces(self) -> tuple[Numbers, Numbers]:
        """The times of the phases of all segments, and the cubics between them [4, phases, coordinates]."""
        times, cubics = [0.0], []
        for a, b, phases in zip(self.points[:-1], self.points[1:], self._segments, strict=True):
            s, v = 0.0, 0.0
            for h, rate, jerk in phases:
                cubic = np.multiply.outer([s, v, rate / 2.0, jerk / 6.0], b - a)
                cubic[0] += a
                cubics.append(cubic)
                s, v = s + h * (v + h * (rate / 2.0 + h * jerk / 6.0)), v + h * (rate + h * jerk / 2.0)
                times.append(times[-1] + h)
        return np.array(times), np.stack(cubics, axis=1)


@dataclass(frozen=True, eq=False)
class TimedPath:
    """The fastest motion along a path within limits of velocity and acceleration, from rest to rest.

    The `path` is an array of points [points, coordinates], joined by a cubic spline; a Table, whose own times are
    replaced; Waypoints; or any other reference q(s), whose parameter runs over a `span` (first, last). The limits are
    one number, or one per coordinate. The timing is computed on a grid of `knots` intervals and slowed by what the
    limits were exceeded between its points.
    """

    path: Any
    _: KW_ONLY
    velocity: Any
    acceleration: Any
    span: Any = None
    start: float = 0.0
    knots: int = KNOTS

    def __post_init__(self) -> None:
        """Read the path and the limits."""
        path = read_path(self.path, self.velocity)
        if self.span is None and not isinstance(path, Table):
            raise InputError(
                "span of TimedPath is missing: give the first and the last value of the parameter of the path",
                path=("span",),
            )
        given = path.times[[0, -1]] if self.span is None else self.span
        span = numbers(given, argument("span", "TimedPath", ""))
        if len(span) != 2 or not span[0] < span[1]:
            raise InputError(f"span of TimedPath is {brief(self.span)}; give two numbers that rise", path=("span",))
        object.__setattr__(self, "span", span)
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "knots", whole(self.knots, argument("knots", "TimedPath"), least=10, most=1900))
        _read_limits(self, len(path(span[0])[0]), "TimedPath")

    @property
    def duration(self) -> float:
        """The time of the whole motion [s]."""
        return float(self._timing[0][-1])

    def times_at(self, s: Scalar) -> Numbers:
        """Return the times [s] at which the motion is at values of the path's parameter."""
        times, squares = self._timing[0], self._timing[1]
        grid, s = self._grid, np.asarray(s, dtype=float)
        k = np.clip(np.searchsorted(grid, s, side="right") - 1, 0, len(grid) - 2)
        first, rate = np.sqrt(squares[k]), self._timing[2][k]
        way = np.clip(s, grid[0], grid[-1]) - grid[k]
        speed = first + np.sqrt(np.maximum(squares[k] + 2.0 * rate * way, 0.0))
        return self.start + times[k] + np.divide(2.0 * way, speed, out=np.zeros_like(way), where=speed > 0.0)

    def __call__(self, t: Scalar) -> Lists:
        """Return q, qd, qdd: qd = q' ds/dt and qdd = q' d2s/dt2 + q'' (ds/dt)^2."""
        times, squares, rates = self._timing
        pieces = np.stack([self._grid[:-1], np.sqrt(squares[:-1]), rates / 2.0])[..., None]
        (s,), (speed,), (rate,) = piecewise(times, pieces, as_time(t) - self.start)
        q, by_s, by_ss = self.path(s)
        qd = [speed * x for x in by_s]
        return q, qd, [rate * x + speed * speed * y for x, y in zip(by_s, by_ss, strict=True)]

    @cached_property
    def _grid(self) -> Numbers:
        """The grid of the path's parameter, with all knots of a Table."""
        first, last = numbers(self.span, "span")
        inner = self.path.times if isinstance(self.path, Table) else np.array([])
        ends = np.array([first, *inner[(inner > first) & (inner < last)], last])
        counts = np.maximum(np.ceil(np.diff(ends) * (self.knots / (last - first)) - 1e-9), 1).astype(int)
        parts = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(ends[:-1], ends[1:], counts, strict=True)]
        return np.concatenate([*parts, [last]])

    @cached_property
    def _timing(self) -> tuple[Numbers, Numbers, Numbers]:
        """The times of the grid, the squares of ds/dt there, and d2s/dt2 between."""
        s, most = self._grid, np.array(self.acceleration)
        _, by_s, by_ss = self._along(s)
        still = np.flatnonzero((np.abs(by_s) <= 1e-9 * np.abs(by_s).max(axis=0, initial=NO_WAY)).all(axis=1))
        if len(still):
            raise InputError(
                f"the path of TimedPath stands still at s = {s[still[0]]:.6g}: its derivatives are zero there; give an "
                "array of points of it, kt.TimedPath(points, ...)",
                path=("path",),
            )
        top = (np.array(self.velocity) / np.maximum(np.abs(by_s), NO_WAY)).min(axis=1) ** 2
        one = np.ones_like(by_s)
        x = path_speeds(s, Bounds(by_s / most, by_ss / most, 0.0 * one, -one, one, top))
        rates, speeds = np.diff(x) / (2.0 * np.diff(s)), np.sqrt(x)
        steps = 2.0 * np.diff(s) / (speeds[:-1] + speeds[1:])
        excess = self._excess(s, speeds, rates, steps)
        if excess > 1.0 + SHARP:
            raise InputError(
                f"the path of TimedPath bends too sharply for a grid of {self.knots} intervals: limits are exceeded by "
                f"{100.0 * (excess - 1.0):.3g} % between its points; give a smoother path, or more knots",
                path=("path",),
            )
        slow = max(excess, 1.0)
        return np.concatenate([[0.0], np.cumsum(steps * slow)]), x / slow**2, rates / slow**2

    def _excess(self, s: Numbers, speeds: Numbers, rates: Numbers, steps: Numbers) -> float:
        """Return the factor by which time must pass more slowly, so that all limits hold between the grid's points."""
        since = np.multiply.outer(np.linspace(0.0, 1.0, BETWEEN + 1), steps)
        _, by_s, by_ss = self._along(s[:-1] + since * (speeds[:-1] + since * rates / 2.0))
        speed = (speeds[:-1] + since * rates)[..., None]
        fast = np.abs(by_s * speed / np.array(self.velocity)).max()
        hard = np.abs((by_s * rates[:, None] + by_ss * speed**2) / np.array(self.acceleration)).max()
        return float(max(fast, math.sqrt(hard)))

    def _along(self, s: Numbers) -> list[Numbers]:
        """Return q, q' and q'' of the path, [..., coordinates]."""
        s = np.clip(s, *self.span)
        return [np.stack([np.broadcast_to(x, s.shape) for x in entries], axis=-1) for entries in self.path(s)]


def _phases(speed: float, acceleration: float, jerk: float = math.inf) -> list[tuple[float, float, float]]:
    """Return the phases (duration, acceleration at its start, jerk) of the fastest motion from rest at 0 to rest at 1.

    With a jerk j, the acceleration rises for a time r, stays at j r, and falls for r; all of it takes b. The velocity
    is then j r (b - r), and b times it is the distance of both ramps. The limits that are reached determine r and b.
    """
    v, a, j = speed, acceleration, jerk
    if j == math.inf:
        profile = Profile(v, a)
        r = profile.ramp
        return [x for x in ((r, a, 0.0), (profile.duration - 2.0 * r, 0.0, 0.0), (r, -a, 0.0)) if x[0] > 0.0]
    r = min(a / j, math.sqrt(v / j))  # the velocity limit is reached: v = j r (b - r)
    b = v / (j * r) + r
    cruise = 1.0 / v - b
    if cruise < 0.0:  # it is not: j r (b - r) b = 1
        r = min(a / j, (0.5 / j) ** (1.0 / 3.0))
        b = r / 2.0 + math.sqrt(r * r / 4.0 + 1.0 / (j * r))
        cruise = 0.0
    top, hold = j * r, max(b - 2.0 * r, 0.0)
    rising = [(r, 0.0, j), (hold, top, 0.0), (r, top, -j)]
    falling = [(r, 0.0, -j), (hold, -top, 0.0), (r, -top, j)]
    return [x for x in (*rising, (cruise, 0.0, 0.0), *falling) if x[0] > 0.0]


def _points(x: ArrayLike, owner: str, key: str = "points") -> Numbers:
    """Return points [points, coordinates]; numbers in a row belong to one coordinate."""
    points = real_array(x, f"{key} of {owner}")
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or len(points) < 2 or not points.shape[1]:
        raise InputError(
            f"{key} of {owner} has shape {np.shape(x)}; give two or more points [points, coordinates]", path=(key,)
        )
    if not np.isfinite(points).all():
        first = np.argwhere(~np.isfinite(points))[0].tolist()
        raise InputError(f"{key} of {owner} are not all finite: entry {first}", path=(key,))
    points.setflags(write=False)
    return points


def read_path(x: Reference | ArrayLike, velocity: ArrayLike, owner: str = "TimedPath") -> Any:
    """Return a path as a reference: points become a spline by the lengths between them."""
    if isinstance(x, Mapping | str) or x is None:
        raise InputError(f"path of {owner} is {brief(x)}; give points, a Table or another reference", path=("path",))
    if isinstance(x, Waypoints):
        if x.stop:
            raise InputError(
                "these Waypoints stop at their points, along straight lines; give Waypoints other limits, or give "
                f"{owner} their points, which it passes through along a spline",
                path=("path",),
            )
        return x._passing.path
    if callable(x):
        return x
    points = _points(x, owner, "path")
    return Table(chord_lengths(points, velocity), points, ends="not-a-knot")


def chord_lengths(points: Numbers, velocity: ArrayLike) -> Numbers:
    """Return the lengths from the first point to each, in times of the fastest coordinate at its velocity limit."""
    limits = np.array(spread(numbers(velocity, argument("velocity", "TimedPath", "")), points.shape[1], "velocity"))
    steps = np.linalg.norm(np.diff(points, axis=0) / limits, axis=1)
    still = np.flatnonzero(steps <= NO_WAY)
    if len(still):
        raise InputError(f"points {still[0] + 1} and {still[0] + 2} of the path are equal; leave one of them out")
    return np.concatenate([[0.0], np.cumsum(steps)])


def _read_limits(motion: Waypoints | TimedPath, count: int, owner: str) -> None:
    """Read the limits of a motion, one per coordinate, and its start."""
    for name in ("velocity", "acceleration", "jerk"):
        given = getattr(motion, name, None)
        if given is None:
            continue
        what = argument(name, owner, "")
        limits = spread(numbers(given, what), count, what)
        if min(limits) <= 0.0:
            raise InputError(f"{name} of {owner} is {min(limits):g}; give more than zero", path=(name,))
        object.__setattr__(motion, name, limits)
    object.__setattr__(motion, "start", number(motion.start, argument("start", owner)))
