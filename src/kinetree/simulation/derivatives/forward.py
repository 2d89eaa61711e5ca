"""Forward mode: states at the output times with their derivatives, by one native integrator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...algebra.scalars import Numbers
from ...compiler.ir.operations import Op
from ...compiler.ir.program import Program
from ...compiler.lanes.form import Kernel
from ...compiler.lower.build import Request, build
from ...errors import InputError, unknown_name
from ...model.axes import axis_labels, quaternion_places
from ...model.mechanism import Mechanism
from ...runtime.native import native, native_kernel
from ...system import System
from ..closing import CompiledCloser
from ..engines.engine import Progress, run
from ..methods.protocol import Scheme
from ..methods.tangent_states import Varied
from ..problem import Problem
from ..run_states import Run, blank_run
from .programs import (
    along,
    closing_of,
    conversions_of,
    differentiate_program,
    free_count,
    given_parameters,
    rates_of,
    refuse,
    scheme_of,
    with_inputs_of,
)

# --- The native integrator of states with their derivatives, and the closing of their loops between steps ---


@dataclass(frozen=True)
class TangentStepper:
    """The integrator of states [q, its derivatives] and [qd, its derivatives], as `Stepper` is for states.

    `program` are the rates, or the step of a method that is one. `closing` closes loops after a step.
    """

    program: Program
    closing: Program | None
    varied: Varied
    method: Scheme
    quaternions: tuple[int, ...]

    @cached_property
    def kernel(self) -> Kernel:
        """The loop over time steps in the lane language."""
        return self.method.tangent_kernel(self.program, self.varied, self.quaternions)

    @cached_property
    def gufunc(self) -> Callable[..., Any]:
        """The compiled function of the arguments of the kernel."""
        return native_kernel(self.kernel)

    @cached_property
    def closer(self) -> TangentCloser | None:
        """The closing of loops for states between steps; None without loops."""
        return None if self.closing is None else TangentCloser(self.closing, self.varied)


class TangentCloser:
    """The closing of loops for batches of states with their derivatives."""

    def __init__(self, closing: Program, varied: Varied) -> None:
        """Compile the closing and its derivative along a tangent."""
        inputs = [a for a in closing.inputs if a.name != "h"]  # the length of a step has no effect
        alone = closing.with_inputs(inputs, {})
        self.varied, self.inputs = varied, inputs
        self._closer, self._along = CompiledCloser.of_program(alone), native(along(alone))

    def close(self, q: Numbers, qd: Numbers, parameters: Numbers | None, t: Numbers) -> tuple[Numbers, Numbers]:
        """Return states with their loops closed; NaN if the loops do not close."""
        nq, nv = (a.size for a in self.inputs[1:3])
        closed = self._closer.close(q[..., :nq], qd[..., :nv], parameters, t)
        columns = [split_columns(x, n)[1] for x, n in ((q, nq), (qd, nv))]
        moved = self.columns(t, *closed, parameters, *columns)
        return join_columns(closed[0], moved[0]), join_columns(closed[1], moved[1])

    def columns(
        self, t: Numbers, q: Numbers, qd: Numbers, parameters: Numbers | None, dq: Numbers, dqd: Numbers
    ) -> tuple[Numbers, Numbers]:
        """Return columns [..., columns, .] of closed states: tangents of the motions that the loops allow."""
        more: tuple[Any, ...] = ()
        units: tuple[Any, ...] = ()
        if parameters is not None:
            more, units = (parameters[..., None, :],), (unit_columns(self.varied, parameters.shape[-1]),)
        given = np.asarray(t)[..., None, :], q[..., None, :], qd[..., None, :], *more
        with np.errstate(all="ignore"):
            dq, _ = self._along(*given, dq, dqd, *units)
            _, dqd = self._along(*given, dq, dqd, *units)
        return dq, dqd


def unit_columns(varied: Varied, count: int) -> Numbers:
    """Return the tangents of all parameters in each column, [columns, count]."""
    units = np.zeros((varied.columns, count))
    first = varied.columns - len(varied.parameters)
    for k, entry in enumerate(varied.parameters):
        units[first + k, entry] = 1.0
    return units


def split_columns(x: Numbers, size: int) -> tuple[Numbers, Numbers]:
    """Return a state [..., size] and the columns of its derivatives [..., columns, size]."""
    return x[..., :size], x[..., size:].reshape(*x.shape[:-1], -1, size)


def join_columns(x: Numbers, columns: Numbers) -> Numbers:
    """Return a state with the columns of its derivatives as one array, the reverse of `split_columns`."""
    flat = columns.reshape(*columns.shape[:-2], -1)
    lead = np.broadcast_shapes(x.shape[:-1], flat.shape[:-1])
    return np.concatenate([np.broadcast_to(y, (*lead, y.shape[-1])) for y in (x, flat)], axis=-1)


# --- Coordinates and their tangent space: derivatives of entries of q as directions of joint velocities, and back.


def directions(system: System, q: Numbers) -> Numbers | None:
    """Return dq/dv [..., nq, nv] at coordinates [..., nq]; None if coordinates and directions are the same."""
    if system.nq == 0 or _is_flat(system):
        return None
    units = np.eye(system.nv)
    return np.swapaxes(system.function("coordinate_rate").gufunc(*_given(system, q[..., None, :], units)), -1, -2)


def of_entries(system: System, q: Numbers, columns: Numbers) -> Numbers:
    """Return derivatives of entries of q [..., columns, nq] as derivatives of directions [..., nv, columns]."""
    E = directions(system, q)
    if E is None:
        return np.swapaxes(columns, -1, -2)
    turned = np.swapaxes(E, -1, -2)
    try:
        return np.linalg.solve(turned @ E, turned @ np.swapaxes(columns, -1, -2))
    except np.linalg.LinAlgError:
        raise InputError(
            f"the coordinates of {system.mechanism.name!r} are singular in this run (gimbal lock): the directions of "
            "the tangent space do not determine them; use joints with quaternions"
        ) from None


def _is_flat(system: System) -> bool:
    """Return whether all coordinates are the integrals of their velocities."""
    return system._parts.part("flat", lambda: system.nq == system.nv and _has_equal_rates(system.mechanism))


def _has_equal_rates(mechanism: Mechanism) -> bool:
    program = build(mechanism, Request("coordinate_rate").checked(mechanism))
    places = [a.name for a in program.inputs]
    ends = [program.ops[k] for k in program.results[0]]
    return all(op[0] is Op.INPUT and places[op[1]] == "qd" and op[2] == k for k, op in enumerate(ends))


def _given(system: System, q: Numbers, v: Numbers) -> tuple[Numbers, ...]:
    """Return the inputs of coordinate_rate, whose result does not depend on free parameters."""
    count = len(system.mechanism.free_parameters)
    return (q, v, np.zeros(count)) if count else (q, v)


# --- The quantities that runs are differentiated with respect to, and their columns ---

GROUPS = ("q0", "qd0", "parameters", "tau")
"""The start, the free parameters, and torques that are added to those that act."""


@dataclass(frozen=True)
class Columns:
    """The columns of derivatives, in this order: q0 and qd0 if chosen, free parameters by index, torques if chosen.

    A column of q0 is a direction of the tangent space, like a column of qd0.
    """

    groups: tuple[str, ...]
    free: tuple[int, ...]
    nv: int
    labels: tuple[str, ...]

    @property
    def state(self) -> int:
        """The number of columns of the start."""
        return self.nv * sum(name in self.groups for name in GROUPS[:2])

    def slice_of(self, group: str) -> slice:
        """Return the columns of a group; an empty slice if it is not among them."""
        first = 0
        for name in GROUPS:
            size = 0 if name not in self.groups else len(self.free) if name == "parameters" else self.nv
            if name == group:
                return slice(first, first + size)
            first += size
        raise unknown_name("group of columns", group, GROUPS)

    def parameters(self, count: int) -> tuple[int, ...]:
        """Return the entries of [free parameters, torques] that the last columns belong to."""
        torques = range(count, count + self.nv) if "tau" in self.groups else ()
        return (*self.free, *torques)

    def __len__(self) -> int:
        """Return the number of columns."""
        return self.slice_of("tau").stop


def columns_of(mechanism: Mechanism, wrt: object) -> Columns:
    """Return the columns of names: groups, or free parameters; by default the start and all free parameters."""
    free = [p.name for p in mechanism.free_parameters]
    given = (*GROUPS[:2], *((GROUPS[2],) if free else ())) if wrt is None else (wrt,) if isinstance(wrt, str) else wrt
    names = tuple(given) if isinstance(given, Iterable) else ()
    if not names or not all(isinstance(x, str) for x in names):
        raise InputError(f"wrt is {repr(wrt)[:60]}; give names such as 'q0' or ('q0', 'qd0', 'parameters', 'tau')")
    if len(set(names)) < len(names):
        raise InputError(f"wrt is {', '.join(names)}; expected each name once")
    for name in names:
        if name not in (*GROUPS, *free):
            raise unknown_name("quantity of a run", name, (*GROUPS, *free))
    if "parameters" in names and not free:
        raise InputError(
            f"wrt has 'parameters', and {mechanism.name!r} has no free parameters; declare some with free=True"
        )
    chosen = tuple(k for k, name in enumerate(free) if name in names or "parameters" in names)
    groups = tuple(x for x in GROUPS if x in names or (x == "parameters" and chosen))
    axes = axis_labels(mechanism, 1)
    labels = [f"{x} of {a}" for x in ("q0", "qd0") if x in groups for a in axes]
    labels += [*(free[k] for k in chosen), *(f"tau of {a}" for a in axes if "tau" in groups)]
    return Columns(groups, chosen, mechanism.nv, tuple(labels))


def forward(
    problem: Problem, columns: Columns, torques: Numbers | None = None, progress: Progress | None = None
) -> tuple[Run, Numbers, Numbers]:
    """Return the run of a problem, with the derivatives of q and qd [..., nt, nv, columns] at the output times.

    Those of q are directions of the tangent space at q. `torques` [..., nt - 1, nv] are added in each output interval.
    """
    refuse(problem)
    if torques is not None:
        return _by_intervals(problem, columns, torques, progress, anew=False)
    made, values = _made(problem, columns, torques=False), given_parameters(problem, torques="tau" in columns.groups)
    start = _start(problem, made, columns, values)
    return _resolved(problem, _run(problem, made, start, values, progress))


def of_intervals(
    problem: Problem, columns: Columns, torques: Numbers | None = None, progress: Progress | None = None
) -> tuple[Run, Numbers, Numbers]:
    """Return the same run, with derivatives that begin anew at each output time, [..., nt - 1, nv, columns]."""
    refuse(problem)
    whole, dq, dqd = _by_intervals(problem, columns, torques, progress, anew=True)
    return whole, dq[..., 1:, :, :], dqd[..., 1:, :, :]


def _by_intervals(
    problem: Problem, columns: Columns, torques: Numbers | None, progress: Progress | None, *, anew: bool
) -> tuple[Run, Numbers, Numbers]:
    """Return a run and its derivatives, interval by interval; `anew` is whether derivatives begin anew in each."""
    p, made = problem, _made(problem, columns, torques=torques is not None)
    whole, count = blank_run(p.start, p.times), len(p.times) - 1
    found = tuple(np.full((*p.lead, count + 1, p.system.nv, len(columns)), np.nan) for _ in range(2))
    state, values = None, given_parameters(p, torques="tau" in columns.groups)
    for k in range(count):
        span, first = p.times[k : k + 2], float(p.times[k + 1] - p.times[k])
        near = replace(p.settings, first=min(p.settings.first, first))
        short = replace(p, start=(whole.q[..., k, :], whole.qd[..., k, :]), times=span, settings=near)
        if torques is not None:
            values = given_parameters(p, torques=True, added=torques[..., k, :])
        if state is None or anew:
            state = _start(short, made, columns, values)
        piece = _run(short, made, state, values, None)
        state = piece.q[..., -1, :], piece.qd[..., -1, :]
        alone, *both = _resolved(short, piece)
        _append(whole, alone, k)
        for kept, new in zip(found, both, strict=True):
            kept[..., k + (k > 0) : k + 2, :, :] = new[..., 1 if k else 0 :, :, :]
        if progress is not None:
            progress((k + 1) / count)
        if whole.interrupted or whole.all_failed:
            break
    return whole, found[0], found[1]


def _append(whole: Run, piece: Run, k: int) -> None:
    """Copy the last sample of interval k into the whole run."""
    whole.q[..., k + 1, :], whole.qd[..., k + 1, :] = piece.q[..., 1, :], piece.qd[..., 1, :]
    whole.evaluations += piece.evaluations
    whole.steps += piece.steps
    whole.reached, whole.interrupted = k + piece.reached, piece.interrupted
    for number, reason in piece.failures.items():
        whole.failures.setdefault(number, reason)


def _made(problem: Problem, columns: Columns, *, torques: bool) -> TangentStepper:
    """Return the compiled integrator, which the System keeps."""
    p, held = problem, torques or "tau" in columns.groups
    key = ("derivatives", p.method.name, p.loops, p.acting_key, columns, held)
    return p.kept.part(key, lambda: stepper_of(p, columns, torques=held))


def _run(
    problem: Problem,
    made: TangentStepper,
    start: tuple[Numbers, Numbers],
    values: Numbers | None,
    progress: Progress | None,
) -> Run:
    """Return a run of states with their derivatives."""
    p = problem
    return run(made, *start, p.times, p.settings, parameters=values, threads=p.threads, progress=progress)


def _resolved(problem: Problem, done: Run) -> tuple[Run, Numbers, Numbers]:
    """Return the run of the states alone, and the derivatives of q and qd."""
    system = problem.system
    (q, dq), (qd, dqd) = split_columns(done.q, system.nq), split_columns(done.qd, system.nv)
    found = of_entries(system, _finite(q), dq), np.swapaxes(dqd, -1, -2)
    return replace(done, q=np.ascontiguousarray(q), qd=np.ascontiguousarray(qd)), *found


def stepper_of(problem: Problem, columns: Columns, *, torques: bool) -> TangentStepper:
    """Return the integrator of a problem with derivatives along columns."""
    p = problem
    program = rates_of(p, torques=torques)
    closing, chosen = closing_of(p, program), columns.parameters(free_count(p.mechanism))
    scheme = with_inputs_of(scheme_of(p), program)
    varied = Varied(
        differentiate_program(program, chosen),
        None if closing is None else differentiate_program(closing, chosen),
        len(columns),
        chosen,
        {x.name: differentiate_program(x, chosen) for x in conversions_of(scheme)},
    )
    return TangentStepper(program, closing, varied, scheme, tuple(quaternion_places(p.mechanism)))


def _start(problem: Problem, made: TangentStepper, columns: Columns, values: Numbers | None) -> tuple[Numbers, Numbers]:
    """Return the start with its derivatives: unit columns, projected onto the motions that the loops allow."""
    p, system = problem, problem.system
    (q, qd), count = p.start, len(columns)
    dq, dqd = np.zeros((*p.lead, count, system.nq)), np.zeros((*p.lead, count, system.nv))
    E = directions(system, q)
    at = columns.slice_of("q0")
    if at.stop > at.start:
        dq[..., at, :] = np.eye(system.nv) if E is None else np.swapaxes(E, -1, -2)
    at = columns.slice_of("qd0")
    dqd[..., at, :] = np.eye(system.nv)[: at.stop - at.start]
    closing = closing_of(p, made.program, start=True)
    if closing is not None:
        closer = p.kept.part(("start derivatives", closing.hash, columns), lambda: TangentCloser(closing, made.varied))
        dq, dqd = closer.columns(p.times[:1], q, qd, values, dq, dqd)
    return join_columns(q, dq), join_columns(qd, dqd)


def _finite(q: Numbers) -> Numbers:
    """Return coordinates in which failed runs have ones, whose derivatives are NaN in any case."""
    return np.where(np.isfinite(q), q, 1.0)
