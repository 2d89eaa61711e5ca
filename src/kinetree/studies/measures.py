"""Measures: numbers that judge a run, each a reduction over time of a column, or any function of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from ..algebra.scalars import Numbers
from ..analysis.balance import shaking
from ..errors import InputError, brief, unknown_name
from ..model.axes import axis_labels
from ..model.mechanism import Mechanism, resolve_parts
from ..reports.loads import PARTS, TOTALS, magnitude, one_axis
from ..reports.motors import deflection
from ..results.columns import columns, find
from ..results.trajectory import Trajectory
from ..system import System


def time_weights(t: Numbers) -> Numbers:
    """Return the weights of the trapezoidal rule [s]."""
    steps = np.diff(t)
    return 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps))


def _integral(x: Numbers, t: Numbers) -> Numbers:
    """Return the integral of each run; not by a matrix product, whose bits depend on the number of runs."""
    return (x * time_weights(t)).sum(axis=-1)


def _mean(x: Numbers, t: Numbers) -> Numbers:
    return _integral(x, t) / (t[-1] - t[0])


MOST = 1000
"""The largest number of measures of a study: each is checked, and is an array of its own."""

REDUCTIONS: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "peak": lambda x, t: np.maximum(x.max(axis=-1), -x.min(axis=-1)),
    "rms": lambda x, t: np.sqrt(_mean(x * x, t)),
    "mean": _mean,
    "maximum": lambda x, t: x.max(axis=-1),
    "minimum": lambda x, t: x.min(axis=-1),
    "span": lambda x, t: x.max(axis=-1) - x.min(axis=-1),
    "integral": _integral,
    "at_end": lambda x, t: x[..., -1],
}
"""Reductions of samples x [..., nt] at times t [nt] by name; time means and integrals by the trapezoidal rule."""


@dataclass(frozen=True)
class Measure:
    """A reduction over time of a column of a run: "rms" of "control.crank"."""

    reduction: str
    column: str

    def __call__(self, run: Trajectory) -> Numbers:
        """Return the measure of each run of a batch, [...]."""
        samples = np.ascontiguousarray(column_values(run, self.column))  # the bits of sums depend on the layout
        return REDUCTIONS[self.reduction](samples, run.t)

    def __str__(self) -> str:
        """Return the text form, such as "rms control.crank"."""
        return f"{self.reduction} {self.column}"


def peak(column: str) -> Measure:
    """Return the largest magnitude of a column, such as "control.crank" or "radial.crank_pin"."""
    return Measure("peak", column)


def rms(column: str) -> Measure:
    """Return the root of the time mean of the square of a column."""
    return Measure("rms", column)


def mean(column: str) -> Measure:
    """Return the time mean of a column."""
    return Measure("mean", column)


def maximum(column: str) -> Measure:
    """Return the largest value of a column."""
    return Measure("maximum", column)


def minimum(column: str) -> Measure:
    """Return the smallest value of a column."""
    return Measure("minimum", column)


def span(column: str) -> Measure:
    """Return the difference between the largest and the smallest value of a column."""
    return Measure("span", column)


def integral(column: str) -> Measure:
    """Return the integral of a column over time."""
    return Measure("integral", column)


def at_end(column: str) -> Measure:
    """Return the value of a column at the last time."""
    return Measure("at_end", column)


Measuring = Measure | Callable[[Trajectory], Any]
"""A measure as it is evaluated: a Measure, or a function of a batch of runs that returns a number per run."""


def read_measure(given: object, name: str) -> Measuring:
    """Return a measure from a Measure, its text form such as "rms control.crank", or a function of runs."""
    if isinstance(given, Measure) or (callable(given) and not isinstance(given, type)):
        return given
    if not isinstance(given, str):
        raise InputError(
            f"the measure {name!r} is {brief(given)}; give one such as rms('control.crank'), its text, or a function"
        )
    words = given.split()
    if len(words) != 2:
        raise InputError(
            f"the measure {name!r} is {brief(given)}; give a reduction and a column, such as 'rms control.crank'"
        )
    return Measure(*words)


def measures_of(system: System, given: object) -> dict[str, Measuring]:
    """Return measures by name, checked: reductions and columns must exist."""
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"measures is {brief(given)}; give measures by name, such as {{'rms': rms('control.crank')}}")
    if len(given) > MOST:
        raise InputError(f"measures are {len(given):,}; give no more than {MOST:,}")
    out = {}
    for name, one in given.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"the name of a measure is {brief(name)}; give an identifier, such as 'rms_torque'")
        made = read_measure(one, name)
        if isinstance(made, Measure):
            if made.reduction not in REDUCTIONS:
                raise unknown_name("reduction", made.reduction, REDUCTIONS, where=f"measure {name!r}")
            check_column(system.mechanism, made.column, f"measure {name!r}")
        out[name] = made
    return out


def describe_measure(measure: Measuring) -> str:
    """Return the text form of a measure, or the name of a function."""
    return str(measure) if isinstance(measure, Measure) else getattr(measure, "__name__", type(measure).__name__)


def measure_unit(system: System, measure: Measuring) -> str:
    """Return the unit of a measure; an empty text for a function of runs."""
    if not isinstance(measure, Measure):
        return ""
    unit = column_unit(system.mechanism, measure.column)
    return f"{unit} s" if measure.reduction == "integral" and unit else unit


def measure_runs(run: Trajectory, measure: Measuring, name: str) -> Numbers:
    """Return a measure of each run of a batch [n]; a function must return one number per run."""
    with np.errstate(all="ignore"):
        values = np.asarray(measure(run), dtype=float)
    if values.shape != run.shape:
        raise InputError(
            f"the measure {name!r} returned shape {values.shape}; expected {run.shape}, one number per run. Its "
            "argument has arrays [runs, times, ...]: reduce over axis 1"
        )
    return values


# --- Columns of runs that measures read, and columns that a store keeps over time ---


BEARING = {**TOTALS, **PARTS}
"""Parts of the reaction at a joint or loop, with their units: total magnitudes, and magnitudes split by the axis."""
POSITION = ("x", "y", "z")
SHAKING = {"shaking_force": "N", "shaking_moment": "N m"}
"""What the motion exerts on the ground, the moment about its origin, with units: magnitudes, or parts by the axis."""


def column_values(run: Trajectory, name: str) -> Numbers:
    """Return a column as one number per sample, [..., nt]; of several entries, the magnitude."""
    base, _, part = name.partition(".")
    if base in BEARING:
        return _bearing(run, base, part)
    if base == "power":
        return run[f"control.{part}"] * run[f"qd.{part}"]
    if base in SHAKING:
        found = shaking(run.system, run.q, run.qd, run["qdd"], parameters=run.parameters_at_samples)
        values = found.force if base == "shaking_force" else found.moment
        return values[..., POSITION.index(part)] if part else np.linalg.norm(values, axis=-1)
    if base == "deflection":
        return deflection(run, part)
    if base == "position":
        frame, at = _frame_and_axis(run.system.mechanism, part)
        place = run[f"poses.{frame}"][..., :3, 3]
        return np.linalg.norm(place, axis=-1) if at is None else place[..., at]
    values = run[name]
    extra = values.ndim - len(run.shape) - 1
    return np.sqrt((values * values).sum(axis=tuple(range(-extra, 0)))) if extra else values


def column_unit(mechanism: Mechanism, name: str) -> str:
    """Return the unit of a column."""
    base = name.partition(".")[0]
    if base in BEARING:
        return BEARING[base]
    if base == "power":
        return "W"
    if base in ("position", "deflection"):
        return "m"
    if base in SHAKING:
        return SHAKING[base]
    known = columns(mechanism, given=("control",))
    column, where = find(known, name)
    units = np.array(known[column].units).reshape(known[column].shape)[where]
    found = list(dict.fromkeys(np.atleast_1d(units).ravel().tolist()))
    return found[0] if len(found) == 1 else ""


def check_column(mechanism: Mechanism, name: str, where: str) -> None:
    """Raise an error for a column that runs of the mechanism do not have, or that mixes units."""
    base, _, part = name.partition(".")
    more = {"power": axis_labels(mechanism, 1), "position": _frames(mechanism), "deflection": _frames(mechanism)}
    known = columns(mechanism, given=("control",))
    if base in BEARING:
        _require(f"joint or loop of {base!r}", part, _bearings(mechanism, base), where)
    elif base in SHAKING:
        if part:
            _require(f"axis of {base!r}", part, list(POSITION), where)
    elif base == "position":
        frame, _ = _frame_and_axis(mechanism, part)
        _require("frame of 'position'", frame, more["position"], where)
    elif base == "deflection":
        if not mechanism.has_flexible:
            raise InputError(f"{where}: {mechanism.name!r} has no flexible bodies, so that {name!r} is zero")
        _require("frame of 'deflection'", part, more["deflection"], where)
    elif base == "power":
        _require("axis of 'power'", part, more["power"], where)
    elif base not in known:
        raise unknown_name("column", name, [*known, *BEARING, *SHAKING, *more], where=where)
    else:
        find_column(known, name, where)
        if not column_unit(mechanism, name):
            raise InputError(
                f"{where}: the entries of {name!r} have different units, {known[base].unit}; name one, such as "
                f"{known[base].labels[0]!r}"
            )


def find_column(known: dict, name: str, where: str) -> None:
    """Raise an error for an unknown part of a column, with the location of the measure."""
    base, dot, part = name.partition(".")
    if dot and part not in known[base].parts:
        raise unknown_name(f"part of column {base!r}", part, known[base].parts, where=where)


def _require(kind: str, name: str, known: list[str], where: str) -> None:
    if name not in known:
        raise unknown_name(kind, name, known, where=where)


def _frames(mechanism: Mechanism) -> list[str]:
    return list(dict.fromkeys([*(b.name for b in mechanism.bodies), *(f.name for f in mechanism.frames)]))


def _frame_and_axis(mechanism: Mechanism, part: str) -> tuple[str, int | None]:
    frame, _, axis = part.rpartition(".")
    if frame in _frames(mechanism) and axis in POSITION:
        return frame, POSITION.index(axis)
    return part, None


def _bearings(mechanism: Mechanism, part: str) -> list[str]:
    """Return the names of joints and loops whose reaction has a part."""
    of_joints = [j.name for j in mechanism.joints if part not in PARTS or one_axis(joint_kinds.kind(j.kind).DATA)]
    of_loops = [p.name for p in mechanism.loops if part not in PARTS or _axial(loop_kinds.kind(p.kind))]
    return [*of_joints, *of_loops]


def _axial(kind: loop_kinds.LoopKind) -> bool:
    """Return whether the reaction of a loop has parts along and perpendicular to an axis that both frames share."""
    return kind.aligned and one_axis(kind.data)


def _bearing(run: Trajectory, part: str, name: str) -> Numbers:
    """Return a part of the reaction at a joint or loop, [..., nt]."""
    mechanism = run.system.mechanism
    names = [j.name for j in mechanism.joints]
    if name in names:
        joint = mechanism.resolved_joints[names.index(name)]
        wrench = run["reactions"][..., names.index(name), :]
        turn = joint_kinds.kind(joint.kind).frame(joint) if part in PARTS else None
    else:
        place = [p.name for p in mechanism.loops].index(name)
        wrench = run["loop_reactions"][..., place, :]
        loop = resolve_parts(mechanism.loops[place], mechanism.values())
        turn = loop_kinds.frame(loop) if part in PARTS else None  # closed: the same axes in frame a and in frame b
    return magnitude(wrench, None if turn is None else np.array(turn, dtype=float), part)


# --- Columns of runs that a study stores over time, beside its measures ---

DIMENSIONS = {"q": "coordinate", "qd": "joint", "qdd": "joint", "tau": "joint", "control": "joint"}
"""The dimension of the entries of a whole column; other columns are stored by parts."""


@dataclass(frozen=True)
class Kept:
    """A column to store: its dimensions after that of the runs, its sizes, labels and units of its entries."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    labels: tuple[str, ...]
    units: str

    def values(self, run: Trajectory) -> Numbers:
        """Return the column of a batch of runs, [n, nt] or [n, nt, entries]."""
        return run[self.name]


def kept_columns(mechanism: Mechanism, names: Iterable[str], count: int) -> tuple[Kept, ...]:
    """Return the columns to store, checked; `count` is the number of times."""
    known = columns(mechanism, given=("control",))
    out = []
    for name in [names] if isinstance(names, str) else list(names if isinstance(names, Iterable) else (names,)):
        if not isinstance(name, str):
            raise InputError(f"keep has {name!r}; give names of columns, such as 'q' or 'control.elbow'")
        base = name.partition(".")[0]
        if base in known:
            find_column(known, name, "keep")
        column, where = find(known, name)
        labels = np.array(known[column].labels).reshape(known[column].shape)[where]
        units = np.array(known[column].units).reshape(known[column].shape)[where]
        together = ", ".join(dict.fromkeys(np.atleast_1d(units).ravel().tolist()))
        if not np.ndim(labels):
            out.append(Kept(name, ("time",), (count,), (), together))
        elif name in DIMENSIONS:
            found = tuple(str(x).partition(".")[2] for x in np.ravel(labels))
            out.append(Kept(name, ("time", DIMENSIONS[name]), (count, len(found)), found, together))
        else:
            raise InputError(
                f"keep has {name!r}, which has {np.size(labels)} entries per time; name single ones, such as "
                f"{np.ravel(labels)[0]!r}"
            )
    return tuple(out)
