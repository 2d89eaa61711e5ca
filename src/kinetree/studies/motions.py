"""Runs of a study along a prescribed motion: the driven joints determine all others through the loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..analysis.loops.assembly import STRIDE
from ..analysis.loops.kinematics import LoopKinematics
from ..analysis.loops.motion_runs import Course, motion_of_designs
from ..errors import AssemblyError, InputError, brief
from ..model.axes import axis_labels
from ..model.scales import loop_units
from ..results.trajectory import Trajectory
from ..simulation.compiled_parts import kept_of
from ..simulation.control.driven import Driven, resolved_control
from ..simulation.drives import Drives
from ..simulation.forces.point_forces import forces_of
from ..system import System
from .actuator_torques import torque_programs
from .loop_parameters import depends_on_parameters
from .outcomes import Outcome, first_lost
from .quantities import Quantities
from .statuses import Status

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
    forces: tuple[Any, ...]
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
                f"with the driven joints of t = {self.times[0]:g} s and the nominal parameters, {error}; other designs "
                "are assembled from this one: give parameters= with which it closes"
            ) from None
        mobility = LoopKinematics(self.system, self.nominal).motions(q).mobility
        if mobility != len(self.drives.v):
            raise undetermined(self.drives, mobility)
        return q

    @cached_property
    def _wanted(self) -> Kinematics:
        """The driven coordinates, velocities and accelerations of all samples, [nt, nd] each."""
        return self._driving(self.times)

    def _driving(self, times: Numbers) -> Kinematics:
        return tuple(  # type: ignore[return-value]
            np.stack([np.broadcast_to(np.asarray(x, dtype=float), times.shape) for x in entries], axis=-1)
            for entries in self.drives.at(times)
        )

    @cached_property
    def same_for_all(self) -> bool:
        """Whether the varied parameters are in no equation of a loop, so that all designs move in the same way."""
        return not depends_on_parameters(self.system, tuple(self.varied.parameters.values()))

    @cached_property
    def motion_of_all(self) -> Kinematics:
        """The motion of all designs, if it is the same, [nt, .] each."""
        q, qd, qdd = self._moved(None if self.nominal is None else self.nominal[None])
        return q[0], qd[0], qdd[0]

    def outcome(self, values: dict[str, Numbers]) -> Outcome:
        """Return the outcome of designs with some values of the varied parameters, [n] each."""
        count = len(next(iter(values.values())))
        parameters = self.varied.parameter_values(self.nominal, values)
        run = self.run(parameters, count)
        status, failed_at = np.full(count, Status.FINISHED, dtype=np.uint8), np.full(count, np.nan)
        lost, first = first_lost(run)
        if not lost.any():
            return Outcome(run, np.arange(count), status, failed_at, {})
        status[lost], failed_at[lost] = Status.OPEN, self.times[first[lost]]
        rows = np.flatnonzero(~lost)
        own = parameters[rows] if parameters is not None and parameters.ndim > 1 else parameters
        closed = (
            self._loaded((run.q[rows], run.qd[rows], np.asarray(run.accelerations)[rows]), own) if rows.size else None
        )
        return Outcome(closed, rows, status, failed_at, {})

    def run(self, values: Numbers | None, count: int) -> Trajectory:
        """Return `count` designs along the motion; states after a loop stops closing are NaN."""
        if not self.same_for_all:
            return self._loaded(self._moved(values), values)
        q, qd, qdd = (np.broadcast_to(x, (count, *x.shape)) for x in self.motion_of_all)
        return self._loaded((q, qd, qdd), values)

    def _loaded(self, motion: Kinematics, values: Numbers | None) -> Trajectory:
        """Return a motion as a run, whose torques are computed when they are read."""
        q, qd, qdd = motion
        fields = dict.fromkeys(("torque", "control", "wrenches"), MotionLoads(self))
        more = {"parameters": values, "method": MOTION}
        return Trajectory(self.system, self.times, q, qd, accelerations=qdd, **more, **fields)

    @cached_property
    def torques(self) -> tuple[Any, Any]:
        """The compiled functions of `torque_programs`."""
        kept = kept_of(self.system)
        key = ("motion", self.actuated, kept.key(self.forces))
        made = kept.part(key, lambda: torque_programs(self.system.mechanism, self.forces, self.actuated))
        return kept.native(made[0]), kept.native(made[1])

    def _moved(self, values: Numbers | None) -> Kinematics:
        """Return q, qd and qdd [n, nt, .] of designs with parameters [n, np]."""
        if not self.system.closures:
            return self._tree()
        times, shown = self._instants
        entries, course = (self.drives.q, self.drives.v), Course(self.nominal, times, shown)
        found = motion_of_designs(self.system, entries, self._driving(times), self.start, course, values)
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

    def __call__(self, field: str, run: Any) -> Numbers:
        """Return the array of a field at the samples of a run."""
        more = () if run.parameters is None else (run.parameters[..., None, :],)
        states = (run.t[:, None], run.q, run.qd, run.accelerations, *more)
        with np.errstate(all="ignore"):  # samples after a loop stopped closing are NaN
            if field == "control":
                return self.along.torques[0](*states)
            return self.along.torques[1](*states)[0 if field == "torque" else 1]


def along_motion(
    system: System,
    motion: Any,
    times: Numbers,
    nominal: Numbers | None,
    varied: Quantities,
    *,
    passive: bool,
    forces: tuple[Any, ...],
    actuated: tuple[int, ...] | None,
) -> AlongMotion:
    """Return the evaluation of designs along a motion, after a check that it determines all joints."""
    drives = _drives(system, motion)
    acting = (*(forces_of(system) if passive else ()), *forces)
    driven = tuple(sorted(drives.v))
    if not system.closures and len(driven) != system.nv:
        raise undetermined(drives, system.nv)
    made = AlongMotion(system, drives, times, nominal, acting, actuated or driven, varied)
    if len(made.actuated) != len(driven):
        raise InputError(
            f"{len(made.actuated)} degrees of freedom are actuated and the motion has {len(driven)}; actuate as many "
            "as there are, so that their torques are unique"
        )
    _ = made.start
    return made


def undetermined(drives: Drives, mobility: int) -> InputError:
    """Return the error for a motion that leaves joints free, or drives too many."""
    names = ", ".join(map(repr, drives.names))
    return InputError(
        f"the motion drives {names} with {len(drives.v)} of {mobility} degrees of freedom; drive as "
        "many joints as there are degrees of freedom, or give simulate={...} for joints that move freely"
    )


def _drives(system: System, motion: Any) -> Drives:
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
    drives = resolved_control(system.mechanism, (motion,)).drives
    if drives.couplings:
        raise InputError(
            f"the motion drives the coupling {drives.couplings[0][0]!r}; drive a joint, or give simulate={{...}}"
        )
    return drives


def _each_joint(system: System, reference: Any) -> dict[str, Any]:
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

    def __call__(self, t: Any):
        return tuple(list(entries)[self.start : self.stop] for entries in self.reference(t))
