"""The evaluation of a range of runs of a plan, in blocks that bound the memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ..algebra.arrays import Numbers
from ..results.trajectory import Trajectory
from ..simulation.outcomes import Outcome
from .measures import Kept, measure_runs

if TYPE_CHECKING:
    from .plan import Plan


@dataclass(frozen=True, eq=False)
class EvaluatedRuns:
    """A batch of runs with their rows among all runs of the block, and the outcome and end [s] of all of them.

    Rows without a run could not start, or did not follow their motion. `status` has the codes of Outcomes, `failed_at`
    is NaN for runs that finished. `reasons` has why simulated runs stopped or are in doubt, by row.
    """

    run: Trajectory | None
    rows: NDArray[np.int_]
    status: NDArray[np.uint8]
    failed_at: Numbers
    reasons: dict[int, str]


class Evaluation(Protocol):
    """A way to evaluate runs of a study."""

    @property
    def times(self) -> Numbers:
        """The times of the samples of all runs [s]."""
        ...

    def evaluate(self, values: dict[str, Numbers]) -> EvaluatedRuns:
        """Return the runs with some values of the varied quantities, [n] each."""
        ...


@dataclass(frozen=True, eq=False)
class Block:
    """Measures of consecutive runs by name, with the status and, for runs that failed, the time [s]; [n] each.

    `kept` are the columns that the plan stores, [n, nt] or [n, nt, entries].
    """

    measures: dict[str, Numbers]
    status: NDArray[np.uint8]
    failed_at: Numbers
    kept: dict[str, Numbers] = field(default_factory=dict)


def evaluate(plan: Plan, start: int, stop: int, *, progress: Callable[[int, Block], None] | None = None) -> Block:
    """Return the measures of the runs start to stop - 1.

    They are evaluated in blocks, whose size bounds the memory; the bits of a run do not depend on its block. After each
    block, `progress` is called with the first run of the block and its measures.
    """
    blocks = []
    for first in range(start, stop, plan.block):
        last = min(first + plan.block, stop)
        blocks.append(_block(plan, plan.space.values(first, last), last - first))
        if progress is not None:
            progress(first, blocks[-1])
    return join_blocks(blocks, plan)


def evaluate_values(plan: Plan, values: dict[str, Numbers]) -> Block:
    """Return the measures of runs with given values of the varied quantities, [n] each."""
    count = len(next(iter(values.values())))
    blocks = []
    for first in range(0, count, plan.block):
        own = {name: x[first : first + plan.block] for name, x in values.items()}
        blocks.append(_block(plan, own, min(plan.block, count - first)))
    return join_blocks(blocks, plan)


def join_blocks(blocks: list[Block], plan: Plan) -> Block:
    """Return consecutive blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    none = np.zeros(0)
    return Block(
        {name: np.concatenate([none, *(b.measures[name] for b in blocks)]) for name in plan.measures},
        np.concatenate([none.astype(np.uint8), *(b.status for b in blocks)]),
        np.concatenate([none, *(b.failed_at for b in blocks)]),
        {kept.name: np.concatenate([b.kept[kept.name] for b in blocks]) for kept in plan.kept if blocks},
    )


def _block(plan: Plan, values: dict[str, Numbers], count: int) -> Block:
    evaluated = plan.evaluation.evaluate(values)
    found, bad = _measure_block(plan, evaluated, count)
    status = evaluated.status.copy()
    status[bad & (status == Outcome.FINISHED)] = Outcome.NOT_A_NUMBER
    for x in found.values():
        x[status != Outcome.FINISHED] = np.nan
    return Block(
        found, status, evaluated.failed_at, {kept.name: _kept_samples(kept, evaluated, count) for kept in plan.kept}
    )


def _kept_samples(kept: Kept, evaluated: EvaluatedRuns, count: int) -> Numbers:
    """Return a stored column of a block, NaN where there is no run."""
    found = np.full((count, *kept.shape), np.nan)
    if evaluated.run is not None:
        found[evaluated.rows] = kept.values(evaluated.run)
    return found


def _measure_block(plan: Plan, evaluated: EvaluatedRuns, count: int) -> tuple[dict[str, Numbers], NDArray[np.bool_]]:
    """Return all measures of a block, NaN for runs without any, and which runs have one that is not finite."""
    found = {name: np.full(count, np.nan) for name in plan.measures}
    if evaluated.run is not None:
        for name, measure in plan.measures.items():
            found[name][evaluated.rows] = measure_runs(evaluated.run, measure, name)
    bad = np.zeros(count, dtype=bool)
    for x in found.values():
        bad |= ~np.isfinite(x)
    return found, bad
