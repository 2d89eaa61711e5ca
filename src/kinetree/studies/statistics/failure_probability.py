"""The probability that a run fails, with a confidence interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..._support.checks import number
from ..._support.tables import Displayed, Table
from ...errors import InputError, unknown_name
from ...simulation.outcomes import Outcome
from ..choosing import Bounds, checked_bounds, violation

if TYPE_CHECKING:
    from ..study import Study

METHODS = ("clopper-pearson", "wilson")
"""Confidence intervals: one that covers the truth at least as often as stated, and a narrower approximate one."""


@dataclass(frozen=True, repr=False)
class FailureProbability(Displayed):
    """The share of runs that failed, with a confidence interval from `low` to `high`.

    `reasons` has the number of runs by reason. A run that exceeds several limits is counted under each of them.
    """

    failed: int
    evaluated: int
    runs: int
    low: float
    high: float
    confidence: float
    method: str
    reasons: dict[str, int]
    random: bool

    @property
    def value(self) -> float:
        """The share of the evaluated runs that failed."""
        return self.failed / self.evaluated

    def display(self) -> list[str | Table]:
        """Return the probability with its interval in words, and the reasons with their numbers."""
        return [self.summary(), *([Table(("reason", "runs"), tuple(self.reasons.items()))] if self.reasons else [])]

    def summary(self) -> str:
        """Return the probability with its interval in words."""
        part = "" if self.evaluated == self.runs else f", of {self.runs:,} planned"
        words = (
            f"{self.failed:,} of {self.evaluated:,} runs{part} failed: probability {self.value:.4g}, "
            f"{100 * self.confidence:g} % confidence {self.low:.4g} to {self.high:.4g} ({self.method})"
        )
        return (
            words
            if self.random
            else f"{words}; the interval assumes random samples, and the runs are those of a grid or a scheme"
        )


def failure_probability_of(
    study: Study,
    limits: Mapping[str, Bounds] | None = None,
    *,
    confidence: float = 0.95,
    method: str = METHODS[0],
    count_failed: bool = True,
) -> FailureProbability:
    """Return the probability that a run ends with a status other than finished, or exceeds limits of its measures."""
    level = number(confidence, "confidence")
    if not 0.0 < level < 1.0:
        raise InputError(f"confidence is {level:g}; give a probability between 0 and 1, such as 0.95")
    if method not in METHODS:
        raise unknown_name("confidence interval", str(method), METHODS)
    bounds = checked_bounds(limits, study.measures)
    considered = study.status != Outcome.NOT_EVALUATED if count_failed else study.finished
    count = int(considered.sum())
    if not count:
        raise InputError(f"none of the {study.runs:,} runs of the study {'was evaluated' * count_failed or 'finished'}")
    lost = considered & ~study.finished
    reasons = {
        Outcome(code).sentence: int((study.status[lost] == code).sum()) for code in np.unique(study.status[lost])
    }
    bad = lost.copy()
    for name, pair in bounds.items():
        outside = study.finished & (violation(study.measures[name], pair) > 0.0)
        reasons[limit_text(name, pair, study.units.get(name, ""))] = int(outside.sum())
        bad |= outside
    failed = int(bad.sum())
    low, high = interval(failed, count, level, method)
    planned = "sensitivity" in study.about or any(name in study.dims for name in study.over)
    return FailureProbability(failed, count, study.runs, low, high, level, method, reasons, random=not planned)


def limit_text(name: str, bounds: Bounds, unit: str) -> str:
    """Return in words what exceeds a limit: "peak above 50 N m"."""
    end = f" {unit}" if unit else ""
    low, high = bounds
    sides = ([] if low is None else [f"below {low:g}{end}"]) + ([] if high is None else [f"above {high:g}{end}"])
    return f"{name} {' or '.join(sides)}"


def interval(failed: int, count: int, confidence: float, method: str = METHODS[0]) -> tuple[float, float]:
    """Return the confidence interval of the probability of an event that happened `failed` times of `count`."""
    from scipy.special import betaincinv, ndtri

    tail = 0.5 * (1.0 - confidence)
    if method == "wilson":
        z, share = float(ndtri(1.0 - tail)), failed / count
        middle = (share + z * z / (2 * count)) / (1 + z * z / count)
        half = z / (1 + z * z / count) * np.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
        return max(0.0, float(middle - half)), min(1.0, float(middle + half))
    low = 0.0 if failed == 0 else float(betaincinv(failed, count - failed + 1, tail))
    high = 1.0 if failed == count else float(betaincinv(failed + 1, count - failed, 1.0 - tail))
    return low, high
