"""The evaluation of a range of runs of a plan, in blocks that bound the memory, and runs that are simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..algebra.scalars import Numbers
from ..analysis.loops.batch_assembly import assemble_from
from ..errors import InputError, brief, unknown_name
from ..model.axes import axis_labels
from ..results.trajectory import Trajectory
from ..simulation.acting.driven import combine_controls
from ..simulation.acting.drives import Drives, drives_of
from ..simulation.closing import Closer, CompiledCloser, closing_program
from ..simulation.options import RunOptions, control_of
from ..simulation.outcomes import Outcome
from ..simulation.run_states import output_times
from ..simulation.simulate import simulate
from ..simulation.starts import start_state
from ..system import System
from .measures import Kept, measure_runs
from .space import Quantities, depends_on_parameters

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


# --- Runs that are simulated: starts and parameters vary, one native batch for all ---


OPTIONS = ("q0", "qd0", *RunOptions.names("parameters", "threads", "checkpoint"))
"""The options of `simulate` that a study takes; parameters, threads and the store of results are its own."""


@dataclass(frozen=True, eq=False)
class Simulated:
    """The evaluation of designs and starts by simulation, with options of `simulate`."""

    system: System
    varied: Quantities
    nominal: Numbers | None
    times: Numbers
    options: Mapping[str, Any]

    @cached_property
    def _drives(self) -> Drives | None:
        return drives_of(combine_controls(self.system.mechanism, control_of(self.options.get("control"))))

    @cached_property
    def _held(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The entries in q and in qd of joints whose starting positions are given: by the study or by drives."""
        q, v = list(self.varied.q.values()), []
        labels = axis_labels(self.system.mechanism, 1)
        v = [labels.index(name.removeprefix("q.")) for name in self.varied.q]
        if self._drives is not None:
            q += [k for k in self._drives.q if k not in q]
            v += [k for k in self._drives.v if k not in v]
        return tuple(q), tuple(v)

    @cached_property
    def base(self) -> tuple[Numbers, Numbers]:
        """The start that all runs share except for the varied quantities, q [nq] and qd [nv]."""
        q0, qd0 = self.options.get("q0"), self.options.get("qd0")

        def position() -> np.ndarray:
            if not self.system.closures:
                return self.system.neutral()
            hold = {}
            if self._drives is not None:
                labels = axis_labels(self.system.mechanism, 0)
                wanted = self._drives.at(float(self.times[0]))[0]
                hold = {labels[k]: float(x) for k, x in zip(self._drives.q, wanted, strict=True)}
            return self.system.assemble(hold=hold, parameters=self.nominal)

        q, qd = (x.copy() for x in start_state(self.system, q0, qd0, position))
        if q.ndim != 1 or qd.ndim != 1:
            raise InputError("q0 and qd0 of a study are one state; vary starts with over={'q.joint': ...}")
        if self._drives is not None:
            wanted, speeds, _ = self._drives.at(float(self.times[0]))
            q[list(self._drives.q)], qd[list(self._drives.v)] = wanted, speeds
        return q, qd

    def evaluate(self, values: dict[str, Numbers]) -> EvaluatedRuns:
        """Return the runs with some values of the varied quantities, [n] each."""
        count = len(next(iter(values.values())))
        parameters = self.varied.parameter_values(self.nominal, values)
        q, qd = self._starts(values, parameters, count)
        good = np.isfinite(q).all(axis=-1) & np.isfinite(qd).all(axis=-1)
        rows = np.flatnonzero(good)
        status = np.full(count, Outcome.OPEN, dtype=np.uint8)
        failed_at = np.full(count, float(self.times[0]))
        if not rows.size:
            return EvaluatedRuns(None, rows, status, failed_at, {})
        own = parameters[rows] if parameters is not None and parameters.ndim > 1 else parameters
        run = simulate(self.system, q[rows], qd[rows], times=self.times, parameters=own, progress=False, **self._more)
        status[rows], failed_at[rows] = Outcome.FINISHED, np.nan
        reasons = {int(rows[k]): reason for k, reason in run.failures.items()}
        lost = ~np.isfinite(run.q[:, -1]).all(axis=-1)
        for k in np.flatnonzero(lost):
            ended = int(np.isfinite(run.q[k]).all(axis=-1).sum())
            status[rows[k]] = run.outcomes[k]
            failed_at[rows[k]] = self.times[max(ended - 1, 0)]
        for steps in run.options.get("doubtful_steps", ()):
            if status[rows[steps["run"]]] == Outcome.FINISHED:
                status[rows[steps["run"]]], failed_at[rows[steps["run"]]] = Outcome.DOUBTFUL, steps["t"]
        return EvaluatedRuns(run, rows, status, failed_at, reasons)

    @property
    def _more(self) -> dict[str, Any]:
        """The options of `simulate` besides the start and the times."""
        return {name: x for name, x in self.options.items() if name not in ("q0", "qd0", "duration", "times")}

    def single(self, values: Mapping[str, float]) -> tuple[Numbers, Numbers, dict[str, Any]]:
        """Return the start [nq], [nv] and the options of one run; quantities that are left out keep their values."""
        q, qd = (x.copy() for x in self.base)
        own = None if self.nominal is None else self.nominal.copy()
        for name, x in values.items():
            for places, entries in ((self.varied.q, q), (self.varied.qd, qd), (self.varied.parameters, own)):
                if name in places and entries is not None:
                    entries[places[name]] = x
        return q, qd, {"times": self.times, "parameters": own, **self._more}

    def _starts(self, values: dict[str, Numbers], parameters: Numbers | None, count: int) -> tuple[Numbers, Numbers]:
        """Return starts [n, .] with the varied coordinates and velocities; NaN where the loops do not close."""
        q0, qd0 = self.base
        q, qd = (np.repeat(x[None], count, axis=0) for x in (q0, qd0))
        for name, k in self.varied.q.items():
            q[:, k] = values[name]
        for name, k in self.varied.qd.items():
            qd[:, k] = values[name]
        if not self.system.closures:
            return q, qd
        if self.varied.q or depends_on_parameters(self.system, tuple(self.varied.parameters.values())):
            q = assemble_from(self.system, (q0, self.nominal), self._held, q, parameters)
        fast = tuple(self.varied.qd.values()) + (() if self._drives is None else self._drives.v)
        return self._closer(frozenset(fast)).close(q, qd, parameters)

    def _closer(self, held: frozenset[int]) -> Closer:
        """Return the closing of velocities that keeps some of them."""
        mechanism = self.system.mechanism
        return self.system._parts.part(
            ("closer", held), lambda: CompiledCloser.of_program(closing_program(mechanism, locked=held))
        )


def evaluate_by_simulation(system: System, varied: Quantities, nominal: Numbers | None, options: object) -> Simulated:
    """Return the evaluation by simulation; unknown options raise an error."""
    if not isinstance(options, Mapping):
        raise InputError(f"simulate is {brief(options)}; give options of simulate, such as {{'duration': 2.0}}")
    for name in options:
        if name not in OPTIONS:
            raise unknown_name("option of simulate in a study", str(name), OPTIONS)
    times = output_times(options.get("duration"), options.get("times"))
    made = Simulated(system, varied, nominal, times, dict(options))
    _ = made.base
    return made
