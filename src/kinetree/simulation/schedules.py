"""Parameters that change at given times of a run: a load that is picked up and released, a spring that is switched."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import number
from .._support.interruption import keep_in_interrupt
from ..errors import InputError, brief
from ..model.mechanism import Mechanism, parameter_sets, resolve_parts
from ..results.trajectory import SAMPLED, Trajectory
from ..system import System
from .outcomes import Endings, Outcome
from .run_states import output_times

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

NEAR = 1e-12
"""A change this close to an output time is at that time, relative to 1 + |t| [s]: sums of steps are rounded."""

Simulate = Callable[..., Trajectory]


@dataclass(frozen=True)
class Schedule:
    """The value of a free parameter in `simulate`: `first`, until it changes at times [s] to other values.

    Coordinates and velocities do not change at these times. A body that becomes heavier thus picks up mass that moves
    with it, without an impact, and one that becomes lighter leaves mass behind that moves on with its velocity.
    """

    first: float
    changes: Mapping[float, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check all numbers."""
        if not isinstance(self.changes, Mapping):
            raise InputError(f"the changes of a Schedule are {brief(self.changes)}; give {{time: value, ...}}")
        entries = {
            number(t, "a time of a Schedule"): number(x, "a value of a Schedule") for t, x in self.changes.items()
        }
        object.__setattr__(self, "first", number(self.first, "the first value of a Schedule"))
        object.__setattr__(self, "changes", dict(sorted(entries.items())))

    def at(self, t: float) -> float:
        """Return the value from a time on."""
        return [self.first, *(x for when, x in self.changes.items() if when <= t)][-1]


def has_schedule(parameters: object) -> bool:
    """Return whether some values of parameters by name are Schedules."""
    return isinstance(parameters, Mapping) and any(isinstance(x, Schedule) for x in parameters.values())


def run_by_schedule(
    simulate: Simulate,
    system: System,
    q0: ArrayLike | None,
    qd0: ArrayLike | None,
    options: dict[str, Any],
    progress: object,
) -> Trajectory:
    """Return a run whose parameters change: runs between the changes, each from the last state of the one before."""
    _require_single(q0, qd0, options)
    given = options["parameters"]
    times = output_times(options.pop("duration"), options.pop("times"))
    schedules = {name: x for name, x in given.items() if isinstance(x, Schedule)}
    ends = _ends(times, schedules)
    _require_ticks(options["control"], ends)
    sets = [_values(system.mechanism, given, t) for t in ends[:-1]]
    if any(_geometry(system.mechanism, x) != _geometry(system.mechanism, sets[0]) for x in sets[1:]):
        raise InputError(
            f"a Schedule of {', '.join(map(repr, schedules))} changes lengths of {system.mechanism.name!r}, so that "
            "its bodies would jump; give one for masses, inertias, springs, damping or gains"
        )
    pieces: list[Trajectory] = []
    for (begin, end), values in zip(pairwise(ends), sets, strict=True):
        inside = times[(times > begin) & (times < end)]
        part = options | {"times": [begin, *inside, end], "parameters": values}
        try:
            run = simulate(system, q0, qd0, **part, progress=_part_of(progress, times, begin, end))
        except KeyboardInterrupt as stop:
            if isinstance(done := getattr(stop, "run", None), Trajectory):
                pieces.append(done)
            if not pieces:
                raise
            raise keep_in_interrupt(
                str(stop.args[0]).removesuffix(" of this KeyboardInterrupt"), run=_joined(pieces, times, schedules)
            ) from None
        pieces.append(run)
        if run.outcome not in (Outcome.FINISHED, Outcome.DOUBTFUL) or run.t[-1] < end:
            break
        q0, qd0 = run.q[-1], run.qd[-1]
    return _joined(pieces, times, schedules)


def _require_single(q0: ArrayLike | None, qd0: ArrayLike | None, options: Mapping[str, Any]) -> None:
    """Raise InputError for runs whose parameters cannot change with time."""
    others = {name: x for name, x in options["parameters"].items() if not isinstance(x, Schedule)}
    if max(np.ndim(q0) if q0 is not None else 0, np.ndim(qd0) if qd0 is not None else 0) > 1 or any(
        np.ndim(x) for x in others.values()
    ):
        raise InputError("a Schedule is for a single run; give one state and one value of each parameter, run by run")
    if options["checkpoint"] is not None or options["keep"] != "host":
        what = "checkpoint" if options["checkpoint"] is not None else "keep='device'"
        raise InputError(f"{what} and a Schedule: leave out one of them, or continue a run with another value")


def _require_ticks(control: object, ends: Sequence[float]) -> None:
    """Raise InputError if torques are held across a change: each piece begins with a call of its controllers."""
    for one in control if isinstance(control, Sequence) else [control]:
        rate: Any = getattr(one, "rate", None) if getattr(one, "outside", False) else None
        for t in ends[1:-1] if rate else ():
            ticks = (t - ends[0]) * rate
            if abs(ticks - round(ticks)) > 1e-9 * max(1.0, ticks):
                raise InputError(
                    f"a Schedule changes a value at {t:g} s, while the torques of a {type(one).__name__} are held; "
                    f"choose a multiple of its period, {1.0 / rate:g} s after the start"
                )


def _ends(times: np.ndarray, schedules: Mapping[str, Schedule]) -> list[float]:
    """Return start, changes and end of a run; changes near an output time are at that time."""
    out = {float(times[0]), float(times[-1])}
    for schedule in schedules.values():
        for t in schedule.changes:
            near = float(times[np.argmin(np.abs(times - t))])
            when = near if math.isclose(t, near, rel_tol=0.0, abs_tol=NEAR * (1.0 + abs(t))) else t
            if times[0] < when < times[-1]:
                out.add(when)
    return sorted(out)


def _geometry(mechanism: Mechanism, values: np.ndarray) -> Hashable:
    """Return all numbers on which the poses of bodies and the equations of loops depend."""
    joints = tuple((j.placement, j.axis, j.axis2, j.pitch) for j in mechanism.joints)
    return resolve_parts((joints, mechanism.loops, mechanism.couplings), mechanism.values(values.tolist()))


def _values(mechanism: Mechanism, given: Mapping[str, Schedule | float], t: float) -> np.ndarray:
    """Return the values of all free parameters from a time on, which may be a change but for rounding."""
    later = t + NEAR * (1.0 + abs(t))
    now = {name: x.at(later) if isinstance(x, Schedule) else x for name, x in given.items()}
    found = parameter_sets(mechanism, now)
    assert found is not None
    return found


def _part_of(progress: Any, times: np.ndarray, begin: float, end: float) -> Callable[[float], object] | None:
    """Return the progress of a piece: as part of the run for a function."""
    if not callable(progress):
        return progress
    span = times[-1] - times[0]
    return lambda share: progress(float((begin + share * (end - begin) - times[0]) / span))


def _joined(pieces: Sequence[Trajectory], times: np.ndarray, schedules: Mapping[str, Schedule]) -> Trajectory:
    """Return one run of the pieces, at its output times; a sample at a change has the values from then on."""
    first, last = pieces[0], pieces[-1]
    rows = []
    for piece, following in zip(pieces, [*pieces[1:], None], strict=True):
        kept = np.isin(piece.t, times)
        kept[-1] |= following is None  # where it stopped
        if following is not None:
            kept &= piece.t < following.t[0]
        rows.append(kept)

    def joined(name: str) -> np.ndarray | None:
        parts = [getattr(piece, name) for piece in pieces]
        return None if parts[0] is None else np.concatenate([x[k] for x, k in zip(parts, rows, strict=True)])

    events = [hit for piece in pieces for hit in piece.options.get("events", ())]
    ended = [piece.endings for piece in pieces if not piece.finished]
    changes = {name: [x.first, [[t, value] for t, value in x.changes.items()]] for name, x in schedules.items()}
    values = [np.asarray(piece.parameters, dtype=float) for piece in pieces]
    parameters = np.concatenate([np.broadcast_to(x, (int(k.sum()), len(x))) for x, k in zip(values, rows, strict=True)])
    return replace(
        last,
        t=np.concatenate([piece.t[k] for piece, k in zip(pieces, rows, strict=True)]),
        **{name: joined(name) for name in (*SAMPLED, "reference")},
        parameters=parameters,
        method=", ".join(dict.fromkeys(piece.method for piece in pieces)),
        options=dict(first.options) | ({"events": events} if events else {}) | {"schedule": changes},
        endings=ended[-1] if ended else Endings(),
        evaluations=sum(piece.evaluations for piece in pieces),
    )
