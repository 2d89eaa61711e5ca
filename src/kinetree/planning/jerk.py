"""The fastest motion along a path under a limit of the jerk, from the one without it, by linear programs.

A limit of the jerk is kept by averaging s(t) over a window of time d, which bounds the jerk by changes of the
acceleration over d, and by slowing the motion. From there, linear programs shorten the time with jerks of s that are
constant in short intervals, until limits that are linearized at the motion leave nothing to gain.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..algebra.scalars import Numbers
from ..errors import InputError
from ..model.axes import axis_labels
from .limits import MotionLimits
from .timings import PathMotion, Profile, slowed, slowing, stretched

WINDOWS = np.geomspace(0.05, 1.0, 6)
"""The tried windows of averaging, relative to the time without a limit of the jerk."""
STEPS = 160
"""The intervals of a timing under a limit of the jerk, in each of which the jerk of s is constant."""
PROGRAMS = 60
"""The most linear programs by which such a timing is made faster."""
GAIN = 2e-4
"""The part of the time that a program must promise."""


def _smoothed(along: PathMotion, bounds: MotionLimits, profile: Profile) -> Profile:
    """Return a timing that is the average of another over a window of time, slowed to keep all limits."""
    others = np.setdiff1d(np.flatnonzero(np.isfinite(bounds.jerk)), along.driven)
    if len(others):
        name = axis_labels(along.system.mechanism, 1)[others[0]]
        raise InputError(f"the jerk of {name!r} is limited, which is not driven; limit that of driven joints")

    def time(window: float) -> float:
        factor = slowing(along, bounds, _resampled(_averaged(profile, window)), jerk=True)[1]
        return factor * (profile[0][-1] + window)

    window = min((float(w) for w in WINDOWS * profile[0][-1]), key=time)
    try:
        return slowed(along, bounds, _averaged(profile, window), most=math.inf, jerk=True)
    except InputError:
        raise InputError(
            "time_optimal: no slower motion along the path keeps the jerk, because torques of "
            f"{along.system.mechanism.name!r} are beyond their limits at rest; give another path, less load, "
            "or larger limits"
        ) from None


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


def with_jerks(along: PathMotion, bounds: MotionLimits, profile: Profile) -> Profile:
    """Return the fastest timing within a limit of the jerk that is found from the one without it."""
    return _polished(along, bounds, _smoothed(along, bounds, profile))


def _polished(along: PathMotion, bounds: MotionLimits, profile: Profile) -> Profile:
    """Return a faster timing with jerks that are constant in STEPS intervals, by a sequence of linear programs.

    Each finds node values of s, ds/dt and d2s/dt2, and jerks of s, whose time can be shortened most by a factor 1 - d
    while the limits, linearized at the timing before, hold. A row g with the value r at rest then grows to
    r + (g - r) / (1 - d)^p, where p = 1, 2, 3 for velocities, accelerations or torques, and jerks; it stays below m
    if g <= m - p d (m - r). What the result exceeds is removed by slowing it. It is taken if it is faster; otherwise
    the next one stays nearer.
    """
    best, near, reach = profile, _resampled(profile), 0.05
    for _ in range(PROGRAMS):
        found = _program(along, bounds, near, reach)
        if found is not None and found[0][-1] > (1.0 - GAIN) * best[0][-1]:
            break
        try:
            tried = None if found is None else slowed(along, bounds, found, most=math.inf, jerk=True)
        except InputError:
            tried = None
        gain = 0.0 if tried is None else 1.0 - float(tried[0][-1] / near[0][-1])
        promise = 0.0 if found is None else 1.0 - float(found[0][-1] / near[0][-1])
        if tried is not None and tried[0][-1] < best[0][-1]:
            best = near = tried
        reach *= 1.5 if gain > 0.7 * promise > 0.0 else 0.9 if gain > 0.4 * promise > 0.0 else 0.35
        if reach < 1e-4:
            break
    return best


def _resampled(profile: Profile) -> Profile:
    """Return a timing with values on equidistant times, and the mean jerks between them: its cubics do not meet."""
    from scipy.interpolate import PPoly

    times, pieces = profile
    s = PPoly(pieces[::-1, :, 0], times)
    t = np.linspace(0.0, times[-1], STEPS + 1)
    v, u = s.derivative(), s.derivative(2)
    return t, np.stack([s(t)[:-1], v(t)[:-1], u(t)[:-1] / 2.0, np.diff(u(t)) / np.diff(t) / 6.0])[..., None]


def _program(along: PathMotion, bounds: MotionLimits, profile: Profile, reach: float) -> Profile | None:
    """Return the solution of one linear program near a timing; None if it has none."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, csr_array, eye_array, hstack, vstack

    times, pieces = profile
    n, h = len(times) - 1, float(times[1] - times[0])
    c = pieces[..., 0]
    last = np.array([sum(c[p, -1] * math.perm(p, k) * h ** (p - k) for p in range(k, 4)) for k in range(3)])
    s, v, u = (np.r_[math.factorial(k) * c[k], last[k]] for k in range(3))
    w = 6.0 * c[3]
    count = 4 * n + 4  # s, v, u of all nodes, w of all intervals, d
    step = (eye_array(n, n + 1), eye_array(n, n + 1, k=1))
    zero = csr_array((n, n + 1))
    one, end = eye_array(n), csr_array((n, 1))
    moves = [
        hstack([step[1] - step[0], -h * step[0], -(h**2) / 2.0 * step[0], -(h**3) / 6.0 * one, end]),
        hstack([zero, step[1] - step[0], -h * step[0], -(h**2) / 2.0 * one, end]),
        hstack([zero, zero, step[1] - step[0], -h * one, end]),
    ]
    rows, most = [], []
    nodes, first = np.arange(n + 1), np.arange(n)
    groups = [(_rows_of(along, bounds, jerk=False), nodes, None)]
    groups += [(_rows_of(along, bounds, jerk=True), first + k, first) for k in (0, 1)]
    for rows_of, at, interval in groups:
        at_w = np.zeros(len(at)) if interval is None else w
        values = [s[at], v[at], u[at], at_w]
        g, limits, powers, rest = rows_of(*values)
        slopes = []
        for k, x in enumerate(values):
            size = 1e-5 * max(float(np.abs(x).max()), 1e-9)
            up, down = (rows_of(*(y + f * size if j == k else y for j, y in enumerate(values)))[0] for f in (1.0, -1.0))
            slopes.append((up - down) / (2.0 * size))
        columns = [k * (n + 1) + at for k in range(3)] + ([3 * (n + 1) + interval] if interval is not None else [])
        m = len(at)
        here = np.arange(m)
        for j in range(g.shape[1]):
            slope = [slopes[k][:, j] for k in range(len(columns))]
            base = g[:, j] - sum(x * y for x, y in zip(slope, values, strict=False))
            for sign in (1.0, -1.0):
                room = powers[j] * (limits[j] - sign * rest[:, j])
                entries = np.concatenate([*(sign * x for x in slope), room]) / limits[j]
                places = np.tile(here, len(columns) + 1), np.concatenate([*columns, np.full(m, count - 1)])
                rows.append(coo_array((entries, places), shape=(m, count)))
                most.append(1.0 - sign * base / limits[j])
    way, fast = float(s[-1] - s[0]), float(v.max())
    bound = np.full((count, 2), [-np.inf, np.inf])
    bound[: n + 1] = np.stack([s - reach * way, s + reach * way], axis=1)
    bound[n + 1 : 2 * n + 2] = np.stack([np.maximum(v - 8.0 * reach * fast, 0.0), v + 8.0 * reach * fast], axis=1)
    for k, ends in enumerate(((along.span[0], along.span[1]), (0.0, 0.0), (0.0, 0.0))):
        bound[k * (n + 1)], bound[(k + 1) * (n + 1) - 1] = ends[0], ends[1]
    bound[-1] = 0.0, 0.05
    cost = np.zeros(count)
    cost[-1] = -1.0
    found = linprog(
        cost, vstack(rows).tocsr(), np.concatenate(most), vstack(moves).tocsr(), np.zeros(3 * n), bound, method="highs"
    )
    if not found.success:
        return None
    made = _integrated(found.x[3 * n + 3 : -1], float(s[0]), along.span[1], h)
    return stretched((times, made), 1.0 - float(found.x[-1]))


def _integrated(w: Numbers, first: float, last: float, h: float) -> Numbers:
    """Return the cubics of jerks w in steps h, changed least so that the motion ends at rest at the last place."""
    left = h * np.arange(len(w))[::-1]
    ends = np.stack([h**3 / 6.0 + h**2 / 2.0 * left + h / 2.0 * left**2, h**2 / 2.0 + h * left, np.full(len(w), h)])
    scale = np.abs(ends).max(axis=1)
    missed = (np.array([last - first, 0.0, 0.0]) - ends @ w) / scale
    w = w + np.linalg.lstsq(ends / scale[:, None], missed, rcond=None)[0]
    u = np.concatenate([[0.0], np.cumsum(h * w)])[:-1]
    v = np.concatenate([[0.0], np.cumsum(h * u + h**2 / 2.0 * w)])[:-1]
    s = first + np.concatenate([[0.0], np.cumsum(h * v + h**2 / 2.0 * u + h**3 / 6.0 * w)])[:-1]
    return np.stack([s, v, u / 2.0, w / 6.0])[..., None]


def _rows_of(along: PathMotion, bounds: MotionLimits, *, jerk: bool):
    """Return a function of s and its rates that returns rows, their limits, powers of time, and values at rest."""

    def rows(s, v, u, w):
        if jerk:
            sizes = bounds.jerk[list(along.driven)]
            kept = np.flatnonzero(np.isfinite(sizes))
            g = along.jerk(np.clip(s, *along.span), v, u, w)[:, kept]
            return g, sizes[kept], np.full(len(kept), 3.0), np.zeros_like(g)
        inside = np.clip(s, *along.span)
        _, qd, qdd, tau = along.motion(inside, v, u)
        held = along.motion(inside, 0.0 * v, 0.0 * u)[3]
        parts = []
        for x, rest, limit, power in (
            (qd, 0.0 * qd, bounds.velocity, 1.0),
            (qdd, 0.0 * qdd, bounds.acceleration, 2.0),
            (tau, held, bounds.torque, 2.0),
        ):
            k = np.flatnonzero(np.isfinite(limit))
            parts.append((x[:, k], rest[:, k], limit[k], np.full(len(k), power)))
        g, rest, limits, powers = (np.concatenate(x, axis=-1) for x in zip(*parts, strict=True))
        return g, limits, powers, rest

    return rows
