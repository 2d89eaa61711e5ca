"""Exact gradients of measures for the local search of an optimization, by derivatives of compiled functions.

Torques along a motion that does not depend on the design are differentiated with respect to parameters, and simulated
coordinates and velocities of trees by derivatives of their runs. Measures are reductions of these columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..algebra.scalars import Numbers
from ..compiler.derive.jacobians import jvp
from ..model.axes import axis_labels
from ..simulation.derivatives.of_runs import differentiable, simulation_derivatives
from ..simulation.derivatives.programs import obstacle
from ..simulation.problem import key_of
from .evaluating import Simulated
from .measures import REDUCTIONS, Measure, time_weights
from .motions import AlongMotion, torque_programs
from .searching import Judged, Objective, scale

Rows = dict[str, tuple[Numbers, Numbers]]
"""Samples x [nt] of columns by name, with their derivatives [nt, d] with respect to the varied quantities."""


def _at(pick: Callable[[Numbers], int]) -> Callable[[Numbers, Numbers, Numbers], Numbers]:
    return lambda x, dx, t: dx[pick(x)]


def _peak(x: Numbers, dx: Numbers, t: Numbers) -> Numbers:
    k = int(np.argmax(np.abs(x)))
    return np.sign(x[k]) * dx[k]


def _rms(x: Numbers, dx: Numbers, t: Numbers) -> Numbers:
    value = float(REDUCTIONS["rms"](x, t))
    return (time_weights(t) * x) @ dx / (value * (t[-1] - t[0])) if value > 0.0 else np.zeros(dx.shape[1])


SLOPES: dict[str, Callable[[Numbers, Numbers, Numbers], Numbers]] = {
    "peak": _peak,
    "rms": _rms,
    "mean": lambda x, dx, t: time_weights(t) @ dx / (t[-1] - t[0]),
    "maximum": _at(lambda x: int(np.argmax(x))),
    "minimum": _at(lambda x: int(np.argmin(x))),
    "span": lambda x, dx, t: dx[int(np.argmax(x))] - dx[int(np.argmin(x))],
    "integral": lambda x, dx, t: time_weights(t) @ dx,
    "at_end": _at(lambda x: -1),
}
"""The derivative [d] of each reduction of samples x [nt] with derivatives dx [nt, d] at times t [nt]."""

SMOOTH = ("rms", "mean", "integral", "at_end")
"""The reductions without kinks: where all measures are of these, the local search needs no neighborhood search."""


class Series(Protocol):
    """Columns of one design with their derivatives."""

    @property
    def times(self) -> Numbers:
        """The times of samples [s]."""
        ...

    def rows(self, values: Mapping[str, float]) -> Rows:
        """Return the columns for values of the varied quantities by name."""
        ...


@dataclass(frozen=True, eq=False)
class TorqueSeries:
    """Torques along a motion that is the same for all designs."""

    along: AlongMotion
    columns: tuple[str, ...]

    @property
    def times(self) -> Numbers:
        """The times of samples [s]."""
        return self.along.times

    @cached_property
    def _functions(self) -> tuple[Any, Any]:
        kept, a = self.along.system._parts, self.along
        key = ("torque derivatives", a.actuated, key_of(a.system.mechanism, a.forces))
        program = torque_programs(a.system.mechanism, a.forces, a.actuated)[0]
        return kept.part(key, lambda: (kept.native(program), kept.native(jvp(program, ["parameters"]))))

    def rows(self, values: Mapping[str, float]) -> Rows:
        """Return the torques and their derivatives with respect to parameters."""
        a = self.along
        own = {name: np.array([x]) for name, x in values.items()}
        parameters = a.varied.parameter_values(a.nominal, own)
        assert parameters is not None, "varied parameters have values"
        states = (a.times[:, None], *a.motion_of_all, parameters[0])
        units = np.stack([np.eye(parameters.shape[-1])[k] for k in a.varied.parameters.values()])
        function, along = self._functions
        x = function(*states)
        dx = along(*(s[..., None, :] for s in states), units)
        labels = axis_labels(a.system.mechanism, 1)
        places = {name: labels.index(name.partition(".")[2]) for name in self.columns}
        return {name: (x[:, k], dx[..., k]) for name, k in places.items()}


@dataclass(frozen=True, eq=False)
class StateSeries:
    """Coordinates and velocities of simulated runs of trees."""

    simulated: Simulated
    columns: tuple[str, ...]

    @property
    def times(self) -> Numbers:
        """The times of samples [s]."""
        return self.simulated.times

    def rows(self, values: Mapping[str, float]) -> Rows:
        """Return coordinates and velocities and their derivatives with respect to parameters and starts."""
        s, varied = self.simulated, self.simulated.varied
        q, qd, options = s.single(values)
        groups = [*(["q0"] if varied.q else []), *(["qd0"] if varied.qd else []), *varied.parameters]
        d = simulation_derivatives(s.system, q, qd, wrt=groups, progress=False, **options)
        whole = np.concatenate([d.dq, d.dqd], axis=-2)
        order = [self._column(d, name) for name in values]
        labels = axis_labels(s.system.mechanism, 1)
        found: Rows = {}
        for name in self.columns:
            base, _, part = name.partition(".")
            k = labels.index(part)
            x = d.run.q[:, k] if base == "q" else d.run.qd[:, k]
            found[name] = x, whole[:, k + (0 if base == "q" else s.system.nv)][:, order]
        return found

    def _column(self, d: Any, name: str) -> int:
        varied = self.simulated.varied
        if name in varied.parameters:
            return d.labels.index(name)
        group, k = ("q0", varied.q[name]) if name in varied.q else ("qd0", varied.qd[name])
        return d.columns.slice_of(group).start + k


def series_of(objective: Objective) -> Series | None:
    """Return the columns of an objective with derivatives; None if one of its measures has none."""
    plan = objective.plan
    chosen = [plan.measures[name] for name in (objective.minimize, *objective.subject_to)]
    if not all(isinstance(m, Measure) and m.reduction in SLOPES for m in chosen):
        return None
    columns = tuple(dict.fromkeys(m.column for m in chosen if isinstance(m, Measure)))
    evaluation, single = plan.evaluation, axis_labels(plan.system.mechanism, 1)
    parts = [name.partition(".") for name in columns]
    if not all(part in single for _, _, part in parts):
        return None
    bases = {base for base, _, _ in parts}
    if isinstance(evaluation, AlongMotion):
        same = bases == {"control"} and evaluation.same_for_all
        return TorqueSeries(evaluation, columns) if same else None
    if isinstance(evaluation, Simulated) and bases <= {"q", "qd"} and _differentiable(evaluation):
        return StateSeries(evaluation, columns)
    return None


def is_smooth(objective: Objective) -> bool:
    """Return whether no measure of an objective has kinks."""
    chosen = [objective.plan.measures[name] for name in (objective.minimize, *objective.subject_to)]
    return all(isinstance(m, Measure) and m.reduction in SMOOTH for m in chosen)


def exact_slopes(series: Series) -> Callable[[Objective, Numbers], tuple[Judged, Numbers, Numbers]]:
    """Return the function of a design, the gradients of its cost and of its margins, from columns."""

    def slopes(objective: Objective, x: Numbers) -> tuple[Judged, Numbers, Numbers]:
        found, d = objective.judge(x[None]), len(x)
        count = objective.margins(found.measures).shape[-1]
        if not np.isfinite(found.cost[0]):
            return found, np.zeros(d), np.zeros((count, d))
        values = dict(zip(objective.plan.space.names, objective.quantities(x[None])[0], strict=True))
        rows, width = series.rows(values), objective.hi - objective.lo

        def slope(name: str) -> Numbers:
            measure = objective.plan.measures[name]
            assert isinstance(measure, Measure), "other measures have no derivatives"
            return np.nan_to_num(SLOPES[measure.reduction](*rows[measure.column], series.times)) * width

        margins = []
        for name, (low, high) in objective.subject_to.items():
            each = slope(name) / scale((low, high))
            margins += [] if low is None else [each]
            margins += [] if high is None else [-each]
        return found, slope(objective.minimize), np.array(margins).reshape(count, d)

    return slopes


def _differentiable(simulated: Simulated) -> bool:
    """Return whether the simulated runs have derivatives: only trees whose coordinates are angles and lengths do."""
    system = simulated.system
    if system.closures or system.nq != system.nv:
        return False
    q, qd = simulated.base
    _, _, options = simulated.single({})
    problem, _ = differentiable(system, q, qd, "qd0", options)
    return not obstacle(problem)
