"""The fastest motion along a path within limits of velocities, accelerations, jerks and torques: `kt.time_optimal`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import number, numbers, whole
from .._support.lazy_names import picture
from .._support.tables import Displayed
from .._support.tables import Table as Shown
from ..algebra.scalars import Numbers, Scalar
from ..analysis.joint_entries import as_list
from ..errors import InputError, argument, brief
from ..model.axes import axis_labels
from ..model.mechanism import Named, inputs_of
from ..simulation.acting.controllers import locate_joints
from ..simulation.acting.references.motions import Lists, as_time, sampled
from ..simulation.acting.references.table import Table, piecewise
from ..simulation.acting.references.waypoints import KNOTS, NO_WAY, chord_lengths, read_path
from ..system import System
from .jerk import with_jerks
from .limits import MotionLimits, read_limits, unit_of
from .timings import PathMotion, Profile, fastest, sampled_timing

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..model.mechanism import Mechanism
    from ..simulation.acting.references.motions import Reference

SORTS = ("velocity", "acceleration", "jerk", "torque")
"""The limits of a motion along a path."""
RESAMPLED = 401
"""The points of a path whose own parameter stands still somewhere; a spline through them is followed."""
REACHED = 0.01
"""How near a limit counts as reached, relative to it: motions are within it at both ends of an interval."""
HALVED = 900
"""The most intervals of the grid under a limit of the jerk: averages have twice as many."""


@dataclass(frozen=True, eq=False, repr=False)
class TimedMotion(Displayed):
    """The fastest motion along a path from rest to rest, a reference q(t) for controllers and drives.

    `t`, `q`, `qd`, `qdd` and `tau` are samples of all degrees of freedom, `s` and `speed` those of
    the path's parameter and of ds/dt. `usage`
    [samples, rows] is each quantity relative to its limit; `rows` are the sorts of limits and degrees of freedom.
    `without_jerk` is the time without the limit of the jerk [s], which no motion within that limit can beat.
    """

    system: System
    path: Reference
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
    path: Reference | ArrayLike,
    limits: Mapping[str, object] | None = None,
    *,
    actuated: str | Iterable[str] | None = None,
    span: Sequence[float] | None = None,
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
    driven, names = _coordinates(arm, actuated, who)
    bounds = read_limits(arm.mechanism, limits, driven, SORTS, who)
    if not any(np.isfinite(bounds.of(sort)).any() for sort in ("acceleration", "torque")):
        raise InputError(
            f"{who}: nothing limits the accelerations of {arm.mechanism.name!r}: its joints have no limits of effort, "
            'and none are given; give limits such as {"torque": 40.0} or {"acceleration": 5.0}',
            path=("limits",),
        )
    curve, ends = _regular(path, span, bounds.velocity[list(driven)], len(driven))
    along = PathMotion(arm, curve, ends, driven, names, forces, parameters)
    count = whole(knots, argument("knots", who), least=10, most=1900)
    jerky = bool(np.isfinite(bounds.jerk).any())
    profile = fastest(along, bounds, min(count, HALVED) if jerky else count)
    begin = number(start, argument("start", who))
    plain = float(profile[0][-1])
    if jerky:
        profile = with_jerks(along, bounds, profile)
    return _timed(along, bounds, profile, begin, plain)


def _coordinates(
    arm: System, actuated: str | Iterable[str] | None, who: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the degrees of freedom of the path's coordinates, and their names."""
    m = arm.mechanism
    if arm.closures and actuated is None:
        raise InputError(
            f"{who} on {m.name!r}, which has loops: name the joints with a drive, actuated=[...]; the path is theirs",
            path=("actuated",),
        )
    if actuated is not None and not arm.closures:
        raise InputError(f"{who}: {m.name!r} has no loops, and all its joints are driven; leave actuated out")
    names = None if actuated is None else [str(x) for x in as_list(actuated)]
    _, driven = locate_joints(_Only(m), names, who, key="actuated")  # type: ignore[arg-type]
    labels = axis_labels(m, 1)
    return tuple(driven), tuple(labels[k] for k in driven)


@dataclass(frozen=True)
class _Only:
    """A mechanism where an instant is expected."""

    mechanism: Mechanism


def _regular(path: Any, span: Sequence[float] | None, velocity: Numbers, count: int) -> tuple[Any, tuple[float, float]]:
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


def _lengths(path: object, velocity: Numbers) -> Numbers | float:
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


def _timed(along: PathMotion, bounds: MotionLimits, profile: Profile, start: float, without_jerk: float) -> TimedMotion:
    """Return the motion of a timing, with samples of it."""
    t, s, speed, rate, change = (x.reshape(-1) for x in sampled_timing(profile, (0.0, 0.25, 0.5, 0.75, 1.0 - 1e-9)))
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
