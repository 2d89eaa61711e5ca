"""The plan of a study: system, space, evaluation and measures, with a hash that identifies it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support import VERSION
from .._support.checks import number, whole
from .._support.identity import Unidentified, digest
from .._support.options import explain
from ..algebra.scalars import Numbers
from ..errors import Advice, InputError, brief
from ..model.freeing import adjustable
from ..model.mechanism import Mechanism, Named, one_set
from ..simulation.acting.instants import Force
from ..simulation.acting.references import Hold
from ..simulation.acting.references.motions import Reference
from ..simulation.changes import with_free
from ..simulation.cycle import SAMPLES as POSITIONS
from ..simulation.options import flag, list_acting, system_of
from ..simulation.run_states import output_times
from ..system import System
from .evaluating import Evaluation, evaluate_by_simulation
from .measures import BEARING, Kept, Measure, Measuring, describe_measure, kept_columns, measure_unit, measures_of
from .motions import along_motion
from .samplings import scheme_of
from .space import Quantities, Space, quantities, space_of

WHO = "study, whose varied parameters are in `over`"
"""The function in messages about the parameters that do not vary."""
MEMORY = 128e6
"""The memory of the states and torques of a block of runs [bytes]: little for any machine, and enough for native
batches to run at full speed."""

SAMPLES = 201
"""The default number of samples of a motion: 200 steps."""

STEPS = 1_000_000
"""The largest number of steps of a motion, to keep a run in memory."""


CYCLE = ("drive", "speed", "start", "revolutions")
"""The values of `cycle`: the driven joint, its speed [rad/s], its angle at the start [rad], the number of turns."""


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """The declaration of the options of `study`, which describes them.

    Options of `optimize`, of study files and of the command line follow from it. Those with a help have values that
    text can state.
    """

    motion: Mapping[str, Reference] | None = None
    simulate: Mapping[str, object] | None = None
    cycle: Mapping[str, Any] | None = None
    duration: float | None = field(
        default=None, metadata=explain("Duration of a motion.", unit="s", tables=("motion",))
    )
    times: ArrayLike | None = field(
        default=None,
        metadata=explain("Times of a motion, instead of its duration and steps.", unit="s", tables=("motion",)),
    )
    steps: int | None = field(
        default=None,
        metadata=explain("Number of intervals. Default: 200 of a motion, 360 of a cycle.", tables=("motion", "cycle")),
    )
    parameters: Named | None = field(
        default=None, metadata=explain("Values of free parameters that do not vary, by name.")
    )
    actuated: str | Sequence[str] | None = field(
        default=None,
        metadata=explain("Joints with the torques of a motion. Default: the driven joints.", tables=("study",)),
    )
    forces: Force | Sequence[Force] | None = None
    passive: bool = field(
        default=True, metadata=explain("Damping, friction, springs of the mechanism, or not.", tables=("study",))
    )
    samples: int | None = field(
        default=None,
        metadata=explain(
            "Number of samples of quantities that are neither on grids nor in a table.", tables=("study",)
        ),
    )
    seed: int = field(default=0, metadata=explain("Seed of the random numbers of samples.", tables=("study",)))
    store: str | Path | None = field(
        default=None,
        metadata=explain("A Zarr folder for the results; the same call continues where it was interrupted or killed."),
    )
    keep: str | Sequence[str] = field(
        default=(), metadata=explain("Columns that are stored over time.", tables=("study",))
    )
    shard: int | None = field(default=None, metadata=explain("Number of runs that are computed and stored at a time."))
    workers: int | None = field(default=None, metadata=explain("Number of processes that compute shards."))
    on: object = field(
        default=None,
        metadata=explain(
            "Address of a Dask scheduler, tcp://HOST:8786, whose workers share the folder, or a Dask client."
        ),
    )


STORING = ("shard", "workers", "on")
"""The options that need a store."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What a study evaluates: a System over a space, along a motion or simulated, and the measures of each run."""

    system: System
    space: Space
    measures: Mapping[str, Measuring]
    parameters: Named | None = None
    motion: Mapping[str, Reference] | None = None
    simulate: Mapping[str, object] | None = None
    times: Numbers | None = None
    actuated: tuple[int, ...] | None = None
    forces: tuple[Force, ...] = ()
    passive: bool = True
    keep: tuple[str, ...] = ()
    _made: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the description alone; compiled parts are made again where they are needed."""
        own = ("system", "space", "measures", "parameters", "motion", "simulate", "times", "actuated", "forces",
               "passive", "keep")  # fmt: skip
        return {name: getattr(self, name) for name in own} | {"_made": {}}

    @cached_property
    def quantities(self) -> Quantities:
        """The varied quantities as entries of parameters and of the start."""
        return quantities(self.system.mechanism, self.space.names)

    @cached_property
    def nominal(self) -> Numbers | None:
        """The values of all free parameters where they do not vary, [np]."""
        free = self.system.mechanism.free_parameters
        if self.parameters is None:
            return np.array([p.value for p in free]) if free else None
        return one_set(self.system.mechanism, self.parameters, WHO)

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation of runs, made when it is first used."""
        if "evaluation" not in self._made:
            self._made["evaluation"] = self._evaluation()
        return self._made["evaluation"]

    def _evaluation(self) -> Evaluation:
        if self.simulate is not None:
            return evaluate_by_simulation(self.system, self.quantities, self.nominal, self.simulate)
        if self.quantities.starts:
            raise InputError(
                Advice(
                    f"{self.quantities.starts[0]!r} is an initial state, and a motion determines all states; vary "
                    "parameters, or give simulate={...} instead of motion",
                    f"{self.quantities.starts[0]!r} is an initial state, and a motion determines all states; vary "
                    "parameters, or write a table [simulate] instead of [motion]",
                )
            )
        assert self.times is not None  # of every motion
        return along_motion(
            self.system,
            self.motion,
            self.times,
            self.nominal,
            self.quantities,
            passive=self.passive,
            forces=self.forces,
            actuated=self.actuated,
        )

    @property
    def block(self) -> int:
        """The number of runs in a block."""
        m: Mechanism = self.system.mechanism
        count = m.nq + 4 * m.nv
        read = {x.column.partition(".")[0] if isinstance(x, Measure) else "" for x in self.measures.values()}
        if "" in read:  # functions may read anything; most read few columns
            count += 12 * len(m.bodies)
        if read & {*BEARING, "reactions", "loop_reactions"}:
            count += 24 * len(m.bodies)
            if not getattr(self.evaluation, "same_for_all", False):  # decompositions of J at every sample
                count += 2 * len(m.closures) ** 2 + 2 * m.nv**2
        return max(1, int(MEMORY / (8 * count * len(self.evaluation.times))))

    @cached_property
    def units(self) -> dict[str, str]:
        """The units of quantities and measures by name."""
        own = {name: measure_unit(self.system, x) for name, x in self.measures.items()}
        return {**self.quantities.units, **own}

    @cached_property
    def kept(self) -> tuple[Kept, ...]:
        """The columns that are stored over time."""
        return kept_columns(self.system.mechanism, self.keep, len(self.evaluation.times)) if self.keep else ()

    @cached_property
    def parts(self) -> dict[str, str]:
        """Digests of the parts that determine the results; an InputError for a part that has no identity."""
        simulate = None if self.simulate is None else dict(self.simulate)
        parts = {
            "mechanism": self.system.mechanism.hash,
            "over": self.space,
            "measures": dict(self.measures),
            "evaluation": {
                "parameters": self.nominal,
                "motion": self.motion,
                "simulate": simulate,
                "times": self.times,
                "actuated": self.actuated,
                "forces": self.forces,
                "passive": self.passive,
            },
            "keep": self.keep,
        }
        return {name: _digest_of(name, part) for name, part in parts.items()}

    @property
    def hash(self) -> str | None:
        """A digest of everything that determines the results; None if a function among it has no identity."""
        try:
            return digest(self.parts)
        except InputError:
            return None

    @property
    def about(self) -> dict[str, Any]:
        """The description of the study for files."""
        scheme = scheme_of(self.space.over)
        planned = {} if scheme is None else {"sensitivity": scheme.as_dict()}
        return {
            "mechanism": self.system.mechanism.name,
            "mechanism_hash": self.system.mechanism.hash,
            "study_hash": self.hash,
            "seed": self.space.seed,
            "kinetree": VERSION,
            "measures": {name: describe_measure(x) for name, x in self.measures.items()},
            **planned,
        }


def _digest_of(name: str, part: object) -> str:
    try:
        return digest(part)
    except Unidentified as error:
        where = ", ".join([name, *reversed(error.path)])
        raise InputError(
            f"{where}: is {error}, whose content cannot be compared, so that a store could not tell whether it is the "
            "same in the next call; read numbers, arrays and functions instead, or leave store out"
        ) from None


def plan_of(system: System | Mechanism, over: object, measures: object, options: StudyOptions) -> Plan:
    """Return the plan of a study from its arguments, after all checks that need no run."""
    o = options
    space = space_of(over, o.samples, o.seed)
    system, parameters = _free_varied(system_of(system), space.names, o.parameters)
    _refuse_ways(o)
    motion, times = o.motion, None
    if o.cycle is not None:
        motion, times = _revolution(o)
    elif o.simulate is None:
        times = _times(o)
    made = Plan(
        system, space, measures_of(system, measures), parameters, motion, o.simulate, times,
        _actuated_dofs(system, o.actuated), tuple(list_acting(o.forces, "forces", "apply")), flag(o.passive, "passive"),
        (o.keep,) if isinstance(o.keep, str) else tuple(o.keep),
    )  # fmt: skip
    _ = made.quantities, made.nominal, made.evaluation, made.kept
    _refuse_twins(made)
    return made


def _free_varied(system: System, names: Sequence[str], parameters: Named | None) -> tuple[System, Named | None]:
    """Return a System whose varied numbers are free parameters, and given values of those that were free before."""
    mechanism = system.mechanism
    free = [p.name for p in mechanism.free_parameters]
    kinds = {x.stem.partition(".")[0] for x in adjustable(mechanism)} - {"q", "qd"}
    fixed = [p.name for p in mechanism.parameters if not p.free]
    more = [name for name in names if name in fixed or (name not in free and name.partition(".")[0] in kinds)]
    if not more:
        return system, parameters
    if parameters is not None and not isinstance(parameters, Mapping):
        values = one_set(mechanism, parameters, WHO)
        parameters = None if values is None else dict(zip(free, values.tolist(), strict=True))
    return with_free(system, *(escape(name) for name in more)), parameters


def _refuse_ways(options: StudyOptions) -> None:
    """Refuse no way of evaluation or several, and for simulations the options of motions."""
    if sum(x is not None for x in (options.motion, options.simulate, options.cycle)) != 1:
        raise InputError(
            "give one of motion={joint: reference}, cycle={'drive': joint, 'speed': rad/s} and simulate={...}: the way "
            "in which each design is evaluated"
        )
    for name in ("duration", "times", "steps", "actuated", "forces") if options.simulate is not None else ():
        if getattr(options, name) is not None:
            raise InputError(f"{name} is for studies along a motion; put it into simulate={{...}}, or leave it out")


def _refuse_twins(plan: Plan) -> None:
    """Refuse a name that two arrays of the results would have."""
    names = [*plan.space.names, *plan.measures, *plan.keep, "failed_at", "status", "time"]
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{name!r} is the name of two results; rename the measure, or keep the whole column")


def _times(options: StudyOptions) -> Numbers:
    if options.times is not None and options.steps is not None:
        raise InputError("steps and times: give one of them")
    found = output_times(options.duration, options.times)
    if options.times is not None:
        return found
    return np.linspace(0.0, float(found[-1]), SAMPLES if options.steps is None else _count(options.steps))


def _count(steps: object) -> int:
    """Return the number of times of so many steps."""
    return whole(steps, "steps", most=STEPS) + 1


def _revolution(options: StudyOptions) -> tuple[dict[str, Reference], Numbers]:
    """Return motion and times of revolutions at constant speed."""
    cycle = options.cycle
    if not isinstance(cycle, Mapping) or not {"drive", "speed"} <= set(cycle) <= set(CYCLE):
        raise InputError(f"cycle is {brief(cycle)}; give {{'drive': joint, 'speed': rad/s}}, and start or revolutions")
    if options.duration is not None or options.times is not None:
        raise InputError("a cycle has its own duration, that of its revolutions; leave duration and times out")
    speed = number(cycle["speed"], "the speed of cycle")
    if speed == 0.0:
        raise InputError("the speed of cycle is 0; give the speed of the drive [rad/s], which may be negative")
    turns = whole(cycle.get("revolutions", 1), "revolutions")
    count = POSITIONS if options.steps is None else _count(options.steps)
    end = 2.0 * np.pi * turns / abs(speed)
    start = number(cycle.get("start", 0.0), "the start of cycle")
    return {cycle["drive"]: Hold(start, speed=speed)}, np.linspace(0.0, end, count)


def _actuated_dofs(system: System, names: str | Iterable[str] | None) -> tuple[int, ...] | None:
    if names is None:
        return None
    from ..analysis.loops.actuation import dofs

    return tuple(dofs(system.mechanism, names))
