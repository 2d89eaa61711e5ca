"""Runs of a study that failed: values, instant and part of each, found when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from .._support.tables import Displayed, Table
from ..simulation.acting.driven_states import stop_reason
from ..simulation.outcomes import Outcome
from .evaluating import EvaluatedRuns
from .motions import AlongMotion
from .plan import Plan

if TYPE_CHECKING:
    from .study import Study

SHOWN = 10
"""The number of failed runs that a text lists."""


@dataclass(frozen=True)
class FailedRun:
    """A run that failed: its number, its values by name, the time [s], and the reason."""

    run: int
    values: dict[str, float]
    time: float
    reason: str

    def __str__(self) -> str:
        """Return number, values and reason on one line."""
        values = ", ".join(f"{name} = {x:.6g}" for name, x in self.values.items())
        return f"run {self.run} ({values}): {self.reason}"


class FailedRuns(Displayed, Sequence[FailedRun]):
    """The runs of a study that failed, in order; the reason of each is found when it is read."""

    def __init__(self, study: Study) -> None:
        """Store the study and find the runs."""
        self._study = study
        codes = study.status
        self.runs: NDArray[np.int_] = np.flatnonzero((codes != Outcome.FINISHED) & (codes != Outcome.NOT_EVALUATED))

    def __len__(self) -> int:
        """Return the number of failed runs."""
        return len(self.runs)

    @overload
    def __getitem__(self, index: int) -> FailedRun: ...
    @overload
    def __getitem__(self, index: slice) -> list[FailedRun]: ...
    def __getitem__(self, index):
        """Return a failed run with its reason, or several."""
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        run = int(self.runs[index])
        study = self._study
        at, code = float(study.failed_at[run]), int(study.status[run])
        values = study.values_of(run)
        return FailedRun(run, values, at, _reason(study.plan, values, code, at))

    def by_status(self) -> list[str]:
        """Return a line per status: the number of runs that have it, and the first of them with its reason."""
        codes = self._study.status[self.runs]
        firsts = {code: int(np.argmax(codes == code)) for code in np.unique(codes)}
        return [f"{int((codes == code).sum()):,} failed, the first is {self[k]}" for code, k in firsts.items()]

    def __iter__(self) -> Iterator[FailedRun]:
        """Yield the failed runs."""
        return (self[k] for k in range(len(self)))

    def display(self) -> list[str | Table]:
        """Return the first failed runs, a row each, and the number of the others."""
        rows = tuple((str(x),) for x in self[:SHOWN])
        more = len(self) - len(rows)
        return [Table(("",), rows), *([f"... and {more} more"] if more else [])] if rows else ["no run failed"]


def _reason(plan: Plan | None, values: dict[str, float], code: int, at: float) -> str:
    """Return the reason of a failed run as text; without its plan, the meaning of its status."""
    plain = f"{Outcome(code).sentence} at t = {at:.6g} s" if np.isfinite(at) else Outcome(code).sentence
    if plan is None:
        return plain
    arrays = {name: np.array([x]) for name, x in values.items()}
    evaluated = plan.evaluation.evaluate(arrays)
    if code == Outcome.NOT_A_NUMBER:
        return _bad_measure(plan, evaluated)
    if evaluated.reasons:
        return f"{evaluated.reasons[0]}"
    parameters = plan.quantities.parameter_values(plan.nominal, arrays)
    own = parameters[0] if parameters is not None and parameters.ndim > 1 else parameters
    if isinstance(plan.evaluation, AlongMotion):
        along = plan.evaluation
        q = along.run(parameters, 1).q[0]
        good = np.isfinite(q).all(axis=-1)
        last = int(np.argmin(good)) - 1
        start = along.start if last < 0 else q[last]
        return stop_reason(plan.system, start, own, along.drives, float(along.times[max(last, 0)]), at)
    return f"{plain}: the start cannot be assembled"


def _bad_measure(plan: Plan, evaluated: EvaluatedRuns) -> str:
    from .measures import measure_runs

    assert evaluated.run is not None, "its measures were evaluated"
    bad = [name for name, x in plan.measures.items() if not np.isfinite(measure_runs(evaluated.run, x, name)[0])]
    return f"the measure {', '.join(map(repr, bad))} is not a finite number"
