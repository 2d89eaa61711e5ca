"""Runs of a study along a prescribed motion: the driven joints determine all others through the loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..algebra.scalars import Numbers
from ..analysis.loops.kinematics import LoopKinematics
from ..analysis.loops.motion_runs import Course, motion_of_designs
from ..analysis.loops.samples import STRIDE
from ..compiler.ir.program import Array, Program
from ..compiler.ir.trace import Trace
from ..errors import Advice, AssemblyError, InputError, brief
from ..model.axes import axis_labels
from ..model.mechanism import Mechanism
from ..model.scales import loop_units
from ..results.trajectory import Trajectory
from ..simulation.acting.driven import Driven, combine_controls
from ..simulation.acting.drives import Drives
from ..simulation.acting.instants import Force, Instant
from ..simulation.acting.point_forces import forces_of
from ..simulation.outcomes import Outcome
from ..simulation.problem import key_of
from ..system import System
from .evaluating import EvaluatedRuns
from .space import Quantities, depends_on_parameters

# --- The torques of actuated joints that make a given motion under given forces, as Programs ---


@dataclass(frozen=True)
class Actuated:
    """Actuated degrees of freedom with the accelerations of a motion, in the form of driven ones."""

    v: tuple[int, ...]
    qdd: Sequence[Any]
    couplings: tuple = ()

    @property
    def locked(self) -> frozenset[int]:
        """The actuated degrees of freedom."""
        return frozenset(self.v)

    def accelerations(self, t: object, count: int) -> list[Any]:
        """Return qdd of all degrees of freedom; those that are not actuated follow from the loops."""
        return [self.qdd[k] if k in self.v else 0.0 for k in range(count)]


def torque_programs(
    mechanism: Mechanism, forces: Sequence[Force], actuated: tuple[int, ...]
) -> tuple[Program, Program]:
    """Return the Programs (t, q, qd, qdd[, parameters]) -> control and -> (tau, wrenches) of a motion.

    `control` are the torques of the actuated joints, tau the torques of all that acts in the joints, [nv] each. The
    wrenches are what the forces exert on the bodies, [nb, 6] in their frames.
    """
    nv, nb = mechanism.nv, len(mechanism.bodies)
    trace = Trace()
    inputs = [Array("t", (1,)), Array("q", (mechanism.nq,)), Array("qd", (nv,)), Array("qdd", (nv,))]
    if mechanism.free_parameters:
        inputs.append(Array("parameters", (len(mechanism.free_parameters),)))
    given = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}
    now = Instant(mechanism, given["t"][0], given["q"], given["qd"], given.get("parameters"), given)
    for force in forces:
        force.apply(now)
    tau, control = now.driven_torques(Actuated(actuated, given["qdd"]))  # type: ignore[arg-type]
    control = [x if k in actuated else 0.0 for k, x in enumerate(control)]
    alone = Program.of_trace("control", inputs, (Array("control", (nv,)),), trace, [control])
    outputs = (Array("tau", (nv,)), Array("wrenches", (nb, 6)))
    return alone, Program.of_trace("loads", inputs, outputs, trace, [tau, now.wrenches()])


Kinematics = tuple[Numbers, Numbers, Numbers]
"""Coordinates, velocities and accelerations."""

MOTION = "motion"
"""The method of runs that follow a motion."""


@dataclass(frozen=True, eq=False)
class AlongMotion:
    """The evaluation of designs along a motion: drives with references, times [s], and the forces that act.

    `actuated` are the degrees of freedom whose torques make the motion, by default the driven ones.
    """

    system: System
    drives: Drives
    times: Numbers
    nominal: Numbers | None
    forces: tuple[Force, ...]
    actuated: tuple[int, ...]
    varied: Quantities

    @cached_property
    def start(self) -> Numbers:
        """The position at the first time with the nominal parameters, [nq]."""
        labels, wanted = axis_labels(self.system.mechanism, 0), self._wanted[0][0]
        if not self.system.closures:
            q = self.system.neutral()
            q[list(self.drives.q)] = wanted
            return q
        hold = dict(zip([labels[k] for k in self.drives.q], wanted.tolist(), strict=True))
        try:
            q = self.system.assemble(hold=hold, parameters=self.nominal)
        except AssemblyError as error:
            raise AssemblyError(
                f"with the driven joints of t = {self.times[0]:g} s and the nominal parameters, {error}",
                remedy=Advice(
                    "other designs are assembled from this one: give parameters= with which it closes",
                    "other designs are assembled from this one: give [parameters] with which it closes",
                ),
            ) from None
        mobility = LoopKinematics(self.system, self.nominal).motions(q).mobility
        if mobility != len(self.drives.v):
            raise undetermined_error(self.drives, mobility)
        return q

    @cached_property
    def _wanted(self) -> Kinematics:
        """The driven coordinates, velocities and accelerations of all samples, [nt, nd] each."""
        return self._drive_references(self.times)

    def _drive_references(self, times: Numbers) -> Kinematics:
        q, qd, qdd = (
            np.stack([np.broadcast_to(np.asarray(x, dtype=float), times.shape) for x in entries], axis=-1)
            for entries in self.drives.at(times)
        )
        return q, qd, qdd

    @cached_property
    def same_for_all(self) -> bool:
        """Whether the varied parameters are in no equation of a loop, so that all designs move in the same way."""
        return not depends_on_parameters(self.system, tuple(self.varied.parameters.values()))

    @cached_property
    def motion_of_all(self) -> Kinematics:
        """The motion of all designs, if it is the same, [nt, .] each."""
        q, qd, qdd = self._solve_motion(None if self.nominal is None else self.nominal[None])
        return q[0], qd[0], qdd[0]

    def evaluate(self, values: dict[str, Numbers]) -> EvaluatedRuns:
        """Return the designs with some values of the varied parameters, [n] each."""
        count = len(next(iter(values.values())))
        parameters = self.varied.parameter_values(self.nominal, values)
        run = self.run(parameters, count)
        status, failed_at = np.full(count, Outcome.FINISHED, dtype=np.uint8), np.full(count, np.nan)
        lost, first = _first_lost(run)
        if not lost.any():
            return EvaluatedRuns(run, np.arange(count), status, failed_at, {})
        status[lost], failed_at[lost] = Outcome.OPEN, self.times[first[lost]]
        rows = np.flatnonzero(~lost)
        own = parameters[rows] if parameters is not None and parameters.ndim > 1 else parameters
        closed = (
            self._add_loads((run.q[rows], run.qd[rows], np.asarray(run.accelerations)[rows]), own)
            if rows.size
            else None
        )
        return EvaluatedRuns(closed, rows, status, failed_at, {})

    def run(self, values: Numbers | None, count: int) -> Trajectory:
        """Return `count` designs along the motion; states after a loop stops closing are NaN."""
        if not self.same_for_all:
            return self._add_loads(self._solve_motion(values), values)
        q, qd, qdd = (np.broadcast_to(x, (count, *x.shape)) for x in self.motion_of_all)
        return self._add_loads((q, qd, qdd), values)

    def _add_loads(self, motion: Kinematics, values: Numbers | None) -> Trajectory:
        """Return a motion as a run, whose torques are computed when they are read."""
        q, qd, qdd = motion
        fields = dict.fromkeys(("torque", "control", "wrenches"), MotionLoads(self))
        more = {"parameters": values, "method": MOTION}
        return Trajectory(self.system, self.times, q, qd, accelerations=qdd, **more, **fields)

    @cached_property
    def torques(self) -> tuple[Any, Any]:
        """The compiled functions of `torque_programs`."""
        kept = self.system._parts
        key = ("motion", self.actuated, key_of(self.system.mechanism, self.forces))
        made = kept.part(key, lambda: torque_programs(self.system.mechanism, self.forces, self.actuated))
        return kept.native(made[0]), kept.native(made[1])

    def _solve_motion(self, values: Numbers | None) -> Kinematics:
        """Return q, qd and qdd [n, nt, .] of designs with parameters [n, np]."""
        if not self.system.closures:
            return self._tree()
        times, shown = self._instants
        entries, course = (self.drives.q, self.drives.v), Course(self.nominal, times, shown)
        found = motion_of_designs(self.system, entries, self._drive_references(times), self.start, course, values)
        return found.q, found.qd, found.qdd

    @cached_property
    def _instants(self) -> tuple[Numbers, list[int]]:
        """The times of closings, between which the driven joints move by strides at most, and the places of samples."""
        units = loop_units(self.system.mechanism)[1][list(self.drives.v)]
        (wanted, speeds, _), times, shown = self._wanted, [float(self.times[0])], [0]
        for k, (begin, end) in enumerate(pairwise(self.times.tolist())):
            way = np.maximum(np.abs(wanted[k + 1] - wanted[k]), (end - begin) * np.abs(speeds[k : k + 2]).max(axis=0))
            count = max(1, ceil(float((way / units).max(initial=0.0)) / STRIDE))
            times += [begin + (end - begin) * n / count for n in range(1, count)] + [end]
            shown.append(len(times) - 1)
        return np.array(times), shown

    def _tree(self) -> Kinematics:
        """Return the motion of a mechanism without loops, all of whose joints are driven, [1, nt, .] each."""
        count, nv = len(self.times), self.system.nv
        out = np.repeat(self.start[None], count, axis=0)[None], np.zeros((1, count, nv)), np.zeros((1, count, nv))
        for x, places, given in zip(out, (self.drives.q, self.drives.v, self.drives.v), self._wanted, strict=True):
            x[..., list(places)] = given
        return out


@dataclass(frozen=True, eq=False)
class MotionLoads:
    """Torques and wrenches of runs along a motion, each computed when it is first read."""

    along: AlongMotion

    def __call__(self, field: str, run: Trajectory) -> Numbers:
        """Return the array of a field at the samples of a run."""
        more = () if run.parameters is None else (run.parameters_at_samples,)
        states = (run.t[:, None], run.q, run.qd, run.accelerations, *more)
        with np.errstate(all="ignore"):  # samples after a loop stopped closing are NaN
            if field == "control":
                return self.along.torques[0](*states)
            return self.along.torques[1](*states)[0 if field == "torque" else 1]


def along_motion(
    system: System,
    motion: object,
    times: Numbers,
    nominal: Numbers | None,
    varied: Quantities,
    *,
    passive: bool,
    forces: tuple[Force, ...],
    actuated: tuple[int, ...] | None,
) -> AlongMotion:
    """Return the evaluation of designs along a motion, after a check that it determines all joints."""
    drives = _drives(system, motion)
    acting = (*(forces_of(system) if passive else ()), *forces)
    driven = tuple(sorted(drives.v))
    if not system.closures and len(driven) != system.nv:
        raise undetermined_error(drives, system.nv)
    made = AlongMotion(system, drives, times, nominal, acting, actuated or driven, varied)
    if len(made.actuated) != len(driven):
        raise InputError(
            f"{len(made.actuated)} degrees of freedom are actuated and the motion has {len(driven)}; actuate as many "
            "as there are, so that their torques are unique"
        )
    _ = made.start
    return made


def undetermined_error(drives: Drives, mobility: int) -> InputError:
    """Return the error for a motion that leaves joints free, or drives too many."""
    names = ", ".join(map(repr, drives.names))
    fact = (
        f"the motion drives {names} with {len(drives.v)} of {mobility} degrees of freedom; drive as many joints as "
        "there are degrees of freedom"
    )
    free = "for joints that move freely"
    return InputError(Advice(f"{fact}, or give simulate={{...}} {free}", f"{fact}, or write a table [simulate] {free}"))


def _drives(system: System, motion: object) -> Drives:
    """Return the drives of a motion: joints with references, a Driven, or one reference for all joints."""
    if isinstance(motion, Mapping):
        motion = Driven(dict(motion))
    elif callable(motion):
        motion = Driven(_each_joint(system, motion))
    if not isinstance(motion, Driven):
        raise InputError(
            f"motion is {brief(motion)}; give references by joint, {{'crank': Hold(speed=10.0)}}, or one reference for "
            "all joints"
        )
    drives = combine_controls(system.mechanism, (motion,)).drives
    if drives.couplings:
        fact = f"the motion drives the coupling {drives.couplings[0][0]!r}; drive a joint"
        raise InputError(Advice(f"{fact}, or give simulate={{...}}", f"{fact}, or write a table [simulate]"))
    return drives


def _each_joint(system: System, reference: object) -> dict[str, object]:
    """Return one reference for all coordinates as references by joint."""
    mechanism = system.mechanism
    return {
        joint.name: _Part(reference, own.start, own.stop)
        for joint, own in zip(mechanism.joints, mechanism.q_slices, strict=True)
        if own.stop > own.start
    }


@dataclass(frozen=True)
class _Part:
    """Some coordinates of a reference."""

    reference: Any
    start: int
    stop: int

    def __call__(self, t: object):
        return tuple(list(entries)[self.start : self.stop] for entries in self.reference(t))


def _first_lost(run: Trajectory) -> tuple[NDArray[np.bool_], NDArray[np.int_]]:
    """Return whether each run of a batch has samples that are NaN, and the first of these samples."""
    q = run.q
    if q.strides[0] == 0:  # one motion for all runs
        q = q[:1]
    bad = ~np.isfinite(q.sum(axis=-1))
    bad = np.broadcast_to(bad, run.q.shape[:2])
    return np.asarray(bad.any(axis=-1)), np.asarray(np.argmax(bad, axis=-1))
