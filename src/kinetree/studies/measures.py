"""Measures: numbers that judge a run, each a reduction over time of a column, or any function of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..errors import InputError, brief, unknown_name
from ..results.trajectory import Trajectory
from .measured_columns import check_column, column_unit, column_values


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


def measuring(given: Any, name: str) -> Measuring:
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


def measures_of(system: Any, given: Any) -> dict[str, Measuring]:
    """Return measures by name, checked: reductions and columns must exist."""
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"measures is {brief(given)}; give measures by name, such as {{'rms': rms('control.crank')}}")
    if len(given) > MOST:
        raise InputError(f"measures are {len(given):,}; give no more than {MOST:,}")
    out = {}
    for name, one in given.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"the name of a measure is {brief(name)}; give an identifier, such as 'rms_torque'")
        made = measuring(one, name)
        if isinstance(made, Measure):
            if made.reduction not in REDUCTIONS:
                raise unknown_name("reduction", made.reduction, REDUCTIONS, where=f"measure {name!r}")
            check_column(system.mechanism, made.column, f"measure {name!r}")
        out[name] = made
    return out


def describe_measure(measure: Measuring) -> str:
    """Return the text form of a measure, or the name of a function."""
    return str(measure) if isinstance(measure, Measure) else getattr(measure, "__name__", type(measure).__name__)


def measure_unit(system: Any, measure: Measuring) -> str:
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
