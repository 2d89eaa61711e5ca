"""`study`: a mechanism over many designs or starts, and its results by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.interruption import keep_in_interrupt
from .._support.lazy_names import picture
from .._support.progress import show_runs
from .._support.tables import Table, html_of
from ..algebra.scalars import Numbers
from ..errors import InputError, brief, unknown_name
from ..model.mechanism import Mechanism, Named
from ..results.trajectory import Trajectory
from ..simulation.acting.instants import Force
from ..simulation.acting.references.motions import Reference
from ..simulation.outcomes import Outcome
from ..system import System
from .evaluating import Block, evaluate
from .failed_runs import FailedRuns
from .measures import Measuring
from .plan import STORING, Plan, StudyOptions, plan_of
from .running import stored_results
from .samplings import distributions, sensitivity
from .searching import Bounds, Choice, best_of, front_of, worst_of
from .space import Varied, space_of
from .statistics.bands import MEMORY, QUANTILES, Bands, bands_of
from .statistics.indices import Indices, indices_of
from .statistics.summary import BINS, FailureProbability, Histogram, failure_probability_of, histogram_of
from .store import Store, open_store

if TYPE_CHECKING:
    from ..plots.figures import Picture


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """The results of a study: measures by name, and how each run ended.

    `dims` are the sizes of the dimensions. `over` has the varied quantities by name, each with its dimension and its
    values along it. `measures` [runs] are NaN for runs that failed. `status` [runs] has their codes, `failed_at` [runs]
    the times [s] of failures. Runs are numbered with the last dimension fastest. `store` has the columns over time.
    """

    dims: dict[str, int]
    over: Mapping[str, tuple[str, Numbers]]
    measures: dict[str, Numbers]
    status: NDArray[np.uint8]
    failed_at: Numbers
    units: dict[str, str]
    about: dict[str, Any] = field(default_factory=dict)
    plan: Plan | None = None
    store: Store | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return tuple(self.dims.values())

    @property
    def runs(self) -> int:
        """The number of runs."""
        return prod(self.shape)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Whether each run finished with finite measures, [runs]."""
        return self.status == Outcome.FINISHED

    @property
    def complete(self) -> bool:
        """Whether all runs were evaluated: false after Ctrl-C."""
        return not (self.status == Outcome.NOT_EVALUATED).any()

    @property
    def evaluated(self) -> int:
        """The number of runs that were evaluated, also those that failed."""
        return int((self.status != Outcome.NOT_EVALUATED).sum())

    @property
    def failed(self) -> FailedRuns:
        """The runs that failed, with their values, instants and reasons."""
        return FailedRuns(self)

    def __getitem__(self, name: str) -> Numbers:
        """Return a measure, or the values of a quantity, with the shape of the study."""
        if name in self.measures:
            return self.measures[name].reshape(self.shape)
        if name not in self.over:
            raise unknown_name("measure or quantity", str(name), [*self.measures, *self.over])
        return np.broadcast_to(self._along(name), self.shape)

    def column(self, name: str) -> Numbers:
        """Return a measure, or the values of a quantity, for all runs in order, [runs]."""
        return self[name].reshape(-1)

    def _along(self, name: str) -> Numbers:
        dim, values = self.over[name]
        return values.reshape([len(values) if own == dim else 1 for own in self.dims])

    def values_of(self, run: int) -> dict[str, float]:
        """Return the values of all quantities of a run."""
        if not 0 <= run < self.runs:
            raise InputError(f"no run {run}; the study has runs 0 to {self.runs - 1}")
        place = dict(zip(self.dims, np.unravel_index(run, self.shape), strict=True))
        return {name: float(values[place[dim]]) for name, (dim, values) in self.over.items()}

    def run(self, index: int) -> Trajectory:
        """Return a run of the study as a Trajectory, evaluated again."""
        if self.plan is None:
            raise InputError("this study was read from a file without its mechanism; call kt.study again to have runs")
        values = {name: np.array([x]) for name, x in self.values_of(index).items()}
        run = self.plan.evaluation.evaluate(values).run
        if run is None:
            raise InputError(f"run {index} has no motion: {self.failed[self.failed.runs.tolist().index(index)].reason}")
        return run.run(0)

    def best(self, measure: str, *, largest: bool = False, subject_to: Mapping[str, Bounds] | None = None):
        """Return the run with the smallest (or largest) measure, with its values and all measures, within bounds."""
        return best_of(self, measure, largest=largest, subject_to=subject_to)

    def worst(self, measure: str, n: int = 5, *, largest: bool = True) -> list[Choice]:
        """Return the runs with the largest (or smallest) values of a measure; `study.run` evaluates one again."""
        return worst_of(self, measure, n, largest=largest)

    def bands(self, column: str, quantiles: Sequence[float] = QUANTILES, *, memory: float = MEMORY) -> Bands:
        """Return exact quantiles over the finished runs at every time, of a column that the store keeps.

        The column is a whole one, "q", or an entry, "q.elbow". It is read shard by shard, a few times if it is larger
        than the `memory` [bytes]; beside it, one shard is in memory.
        """
        return bands_of(self, column, quantiles, memory)

    def histogram(self, measure: str, bins: int = BINS) -> Histogram:
        """Return how often a measure is in each of some intervals, with mean, median and standard deviation."""
        return histogram_of(self, measure, bins)

    def failure_probability(
        self,
        limits: Mapping[str, Bounds] | None = None,
        *,
        confidence: float = 0.95,
        method: str = "clopper-pearson",
        count_failed: bool = True,
    ) -> FailureProbability:
        """Return the probability that a run fails, with a confidence interval.

        A run fails if it did not finish, or if a measure is outside of its `limits`: {"peak": (None, 50.0)}. With
        `count_failed=False`, runs that did not finish are left out. The `method` is "clopper-pearson", which covers the
        truth with at least this `confidence`, or "wilson", which does so on average. Both assume random samples.
        """
        return failure_probability_of(self, limits, confidence=confidence, method=method, count_failed=count_failed)

    def sensitivity(
        self, measure: str, *, samples: int | None = None, seed: int = 0, confidence: float = 0.95
    ) -> Indices:
        """Return the Sobol or Morris indices of a measure in a study over `kt.sensitivity({...})`.

        With `samples`, a power of two, Sobol indices of any study whose quantities are random, by new runs of that many
        base samples; their results are not stored.
        """
        if samples is None:
            return indices_of(self, measure, confidence=confidence)
        if measure not in self.measures:
            raise unknown_name("measure", str(measure), self.measures)
        if self.plan is None:
            raise InputError("this study was read from a file without its mechanism; call kt.study again for new runs")
        over = sensitivity(distributions(self.plan.space.over), samples=samples, seed=seed)
        planned = evaluate_plan(replace(self.plan, space=space_of(over, None, seed), keep=()), progress=False)
        return indices_of(planned, measure, confidence=confidence)

    def report(self, path: str | Path = "report.html", **options: object) -> Path:
        """Write the statistics as one web page that any browser opens offline; return the file.

        The page has a summary in words, bands, histograms, sensitivity indices, failures by reason, and worst cases
        with a replay of the worst one. Options: `limits` as in failure_probability, `columns` over time (all),
        `measures` (all), the number `n` of worst cases (5), `smallest` with the measures whose smallest values are the
        worst, and a `title`.
        """
        return picture("study_report")(self, path, **options)

    def pareto(self, *measures: str) -> NDArray[np.int_]:
        """Return the runs that no other run beats in all of some measures, sorted by the first.

        Smaller is better, or larger for a name with a minus sign: study.pareto("-reach", "torque").
        """
        return front_of(self, measures)

    @property
    def dataset(self) -> Any:
        """The study as an xarray Dataset: measures over the dimensions, quantities as coordinates, units in attrs."""
        from .files import dataset_of

        return dataset_of(self)

    def to_dataframe(self) -> Any:
        """Return a pandas DataFrame with a row per run."""
        from .files import dataframe_of

        return dataframe_of(self)

    def plot(
        self, measures: Sequence[str] | str | None = None, path: str | Path | None = None, **options: object
    ) -> Picture | Path:
        """Draw measures: curves over one quantity, maps over two, parallel coordinates or a Pareto front of more."""
        return picture("study_plot")(self, measures, path, **options)

    def save(self, path: str | Path) -> Path:
        """Write the results to an .npz file, or as a table with a row per run to .csv; return the path."""
        from .files import save

        return save(self, path)

    def __repr__(self) -> str:
        """Return the dimensions, the measures and the number of failed runs on one line."""
        dims = ", ".join(f"{name} {count}" for name, count in self.dims.items())
        left = int((self.status == Outcome.NOT_EVALUATED).sum())
        failed = self.runs - int(self.finished.sum()) - left
        end = (f", {failed} failed" if failed else "") + (f", {left} not evaluated" if left else "")
        name, measures = self.about.get("mechanism", "?"), ", ".join(self.measures)
        return f"<Study of {name!r}: {self.runs} runs ({dims}), {measures}{end}>"

    def __str__(self) -> str:
        """Return the same line, and a line with a reason for each status of runs that failed."""
        return "\n".join([repr(self), *(f"  {line}" for line in self.failed.by_status())])

    def _repr_html_(self) -> str:
        """Return a summary, reasons of failures and the ranges of all measures as HTML, for notebooks."""
        good = self.finished
        rows = tuple((name, self.units.get(name, ""), *_range(x[good])) for name, x in self.measures.items())
        table = Table(("measure", "unit", "smallest", "median", "largest"), rows)
        return html_of([repr(self), *self.failed.by_status(), table])


def _range(x: Numbers) -> tuple[float | None, float | None, float | None]:
    """Return the smallest, the median and the largest value, if there are any."""
    return (float(x.min()), float(np.median(x)), float(x.max())) if x.size else (None, None, None)


def study(
    system: System | Mechanism,
    over: Mapping[str, object],
    *,
    measures: Mapping[str, str | Measuring],
    motion: Mapping[str, Reference] | None = None,
    simulate: Mapping[str, object] | None = None,
    cycle: Mapping[str, Any] | None = None,
    duration: float | None = None,
    times: ArrayLike | None = None,
    steps: int | None = None,
    parameters: Named | None = None,
    actuated: str | Sequence[str] | None = None,
    forces: Force | Sequence[Force] | None = None,
    passive: bool = True,
    samples: int | None = None,
    seed: int = 0,
    store: str | Path | None = None,
    keep: str | Sequence[str] = (),
    shard: int | None = None,
    workers: int | None = None,
    on: object = None,
    progress: bool | None = None,
) -> Study:
    """Evaluate a mechanism over many designs or starts in native batches, and return measures of every run.

    `over` has a sampling for each varied quantity: a free parameter by its name, an initial coordinate or velocity as
    "q.elbow" or "qd.elbow". Samplings are `grid`, `latin`, `sobol`, `uniform`, `normal` and the columns of a `table`.
    The runs are all combinations of the grids with the `samples` of the others. Their random numbers depend on the
    `seed` and the number of the run alone.

    Runs follow a motion, or are simulated. `motion` has references by joint, over a `duration` [s] of `steps`
    intervals (200), or at `times` [s]. The loops determine the other joints, and run["control"] has the torques of the
    driven joints, or of the `actuated` ones. `cycle` is a motion at constant speed: {"drive": "crank", "speed": 10.0},
    in 361 positions. Passive forces of the mechanism act unless `passive` is False, and `forces` in addition.
    `simulate` has options of kt.simulate: {"duration": 2.0, "control": ...}.

    `measures` by name are reductions of columns over time, rms("control.elbow"), or functions of a batch of runs that
    return one number per run. `parameters` are values of the free parameters that do not vary.

    A run that fails keeps its status: `study.failed` lists these runs with instant and part. Ctrl-C raises a
    KeyboardInterrupt whose `study` has what is done.

    With a `store`, results are written to a Zarr folder, a `shard` of runs at a time. The same call continues a study
    that was interrupted or killed, with the same bits. `keep` has columns that are stored over time, such as "q".
    `workers` is a number of processes, `on` a Dask client or the address of a scheduler.
    """
    if store is not None and not isinstance(store, str | Path):
        raise InputError(f"store is {brief(store)}; give the path of a folder, such as 'study.zarr', or None")
    options = StudyOptions(
        motion=motion, simulate=simulate, cycle=cycle, duration=duration, times=times, steps=steps,
        parameters=parameters, actuated=actuated, forces=forces, passive=passive, samples=samples, seed=seed,
        store=store, keep=keep, shard=shard, workers=workers, on=on,
    )  # fmt: skip
    return evaluate_plan(plan_of(system, over, measures, options), options, progress=progress)


def evaluate_plan(plan: Plan, options: StudyOptions | None = None, *, progress: bool | None = None) -> Study:
    """Return the results of a plan, by way of a store if the options have one.

    Ctrl-C raises a KeyboardInterrupt whose `study` has the runs that were evaluated.
    """
    given = options or StudyOptions()
    store = given.store
    if store is not None:
        whole, pressed = stored_results(plan, store, given, progress)
    else:
        for name, value in {"keep": plan.keep or None, **{name: getattr(given, name) for name in STORING}}.items():
            if value is not None:
                raise InputError(f"{name} needs a store, a folder for the results: store='study.zarr'")
        whole, pressed = _results(plan, progress)
    found = study_of(plan, whole, store)
    if pressed:
        text = f"the study was interrupted after {found.evaluated} of {found.runs} runs; they are `study`"
        raise keep_in_interrupt(text, study=found)
    return found


def _results(plan: Plan, progress: bool | None) -> tuple[Block, bool]:
    """Return the results of a plan, and whether Ctrl-C ended their computation."""
    count = plan.space.runs
    whole = empty_block(plan, count)
    with show_runs(progress, count) as show:

        def keep(first: int, block: Block) -> None:
            store_results(whole, first, block)
            show(first + len(block.status))

        try:
            evaluate(plan, 0, count, progress=keep)
        except KeyboardInterrupt:
            return whole, True
    return whole, False


def empty_block(plan: Plan, count: int) -> Block:
    """Return results of runs that were not evaluated."""
    measures = {name: np.full(count, np.nan) for name in plan.measures}
    return Block(measures, np.full(count, Outcome.NOT_EVALUATED, dtype=np.uint8), np.full(count, np.nan))


def store_results(whole: Block, first: int, block: Block) -> None:
    """Store the results of consecutive runs, the status last."""
    rows = slice(first, first + len(block.status))
    for name, x in block.measures.items():
        whole.measures[name][rows] = x
    whole.failed_at[rows] = block.failed_at
    whole.status[rows] = block.status


def study_of(plan: Plan, whole: Block, store: str | Path | None = None) -> Study:
    """Return the Study of a plan and the results of all its runs, with the path of its store."""
    space = plan.space
    return Study(
        dict(space.dims), Varied(space), whole.measures, whole.status, whole.failed_at, dict(plan.units), plan.about,
        plan, None if store is None else open_store(plan, Path(store), None),
    )  # fmt: skip
