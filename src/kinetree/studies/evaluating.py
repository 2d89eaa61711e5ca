"""The evaluation of a range of runs of a plan, in blocks that bound the memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..algebra.arrays import Numbers
from .kept_columns import Kept
from .measures import measured
from .outcomes import Outcome
from .plan import Plan
from .statuses import Status


@dataclass(frozen=True, eq=False)
class Block:
    """Measures of consecutive runs by name, with the status and, for runs that failed, the time [s]; [n] each.

    `kept` are the columns that the plan stores, [n, nt] or [n, nt, entries].
    """

    measures: dict[str, Numbers]
    status: NDArray[np.uint8]
    failed_at: Numbers
    kept: dict[str, Numbers] = field(default_factory=dict)


def evaluate(
    plan: Plan, start: int, stop: int, *, progress: Callable[[int, Block], None] | None = None
) -> Block:  # fmt: skip
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
    return joined(blocks, plan)


def evaluate_values(plan: Plan, values: dict[str, Numbers]) -> Block:
    """Return the measures of runs with given values of the varied quantities, [n] each."""
    count = len(next(iter(values.values())))
    blocks = []
    for first in range(0, count, plan.block):
        own = {name: x[first : first + plan.block] for name, x in values.items()}
        blocks.append(_block(plan, own, min(plan.block, count - first)))
    return joined(blocks, plan)


def joined(blocks: list[Block], plan: Plan) -> Block:
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
    outcome = plan.evaluation.outcome(values)
    found, bad = _measured(plan, outcome, count)
    status = outcome.status.copy()
    status[bad & (status == Status.FINISHED)] = Status.NOT_A_NUMBER
    for x in found.values():
        x[status != Status.FINISHED] = np.nan
    return Block(found, status, outcome.failed_at, {kept.name: _samples(kept, outcome, count) for kept in plan.kept})


def _samples(kept: Kept, outcome: Outcome, count: int) -> Numbers:
    """Return a stored column of a block, NaN where there is no run."""
    found = np.full((count, *kept.shape), np.nan)
    if outcome.run is not None:
        found[outcome.rows] = kept.values(outcome.run)
    return found


def _measured(plan: Plan, outcome: Outcome, count: int) -> tuple[dict[str, Numbers], NDArray[np.bool_]]:
    """Return all measures of a block, NaN for runs without any, and which runs have one that is not finite."""
    found = {name: np.full(count, np.nan) for name in plan.measures}
    if outcome.run is not None:
        for name, measure in plan.measures.items():
            found[name][outcome.rows] = measured(outcome.run, measure, name)
    bad = np.zeros(count, dtype=bool)
    for x in found.values():
        bad |= ~np.isfinite(x)
    return found, bad
