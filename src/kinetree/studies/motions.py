"""Runs of a study along a prescribed motion: the driven joints determine all others through the loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..analysis.loops.kinematics import LoopKinematics
from ..errors import AssemblyError, InputError, brief
from ..model.axes import axis_labels
from ..model.scales import loop_units
from ..results.trajectory import Trajectory
from ..simulation.compiled_parts import kept_of
from ..simulation.control.driven import Driven, DrivenControl, resolved_control
from ..simulation.drives import Drives
from ..simulation.forces.point_forces import forces_of
from ..simulation.loads_at_samples import Acting
from ..simulation.rates import loads_and_drives
from ..system import System
from .actuator_torques import torque_programs
from .closing import HeldClosing, depends_on_parameters
from .outcomes import Outcome, first_lost
from .quantities import Quantities
from .statuses import Status

STRIDE = 0.05
"""The largest step of a driven joint between two closings [rad, or lengths of the mechanism]: small enough for Newton's
method to stay in the assembly mode."""

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
    def closing(self) -> HeldClosing:
        """The closing of the loops with the driven joints held."""
        return HeldClosing(self.system, self.drives.q, self.drives.v)

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
    def _wanted(self) -> tuple[Numbers, Numbers]:
        """The driven coordinates and velocities at all times, [nt, nd] each."""
        return self._driven(self.times)

    def _driven(self, times: Numbers) -> tuple[Numbers, Numbers]:
        q, qd, _ = self.drives.at(times)
        return tuple(  # type: ignore[return-value]
            np.stack([np.broadcast_to(np.asarray(x, dtype=float), times.shape) for x in entries], axis=-1)
            for entries in (q, qd)
        )

    @cached_property
    def same_for_all(self) -> bool:
        """Whether the varied parameters are in no equation of a loop, so that all designs move in the same way."""
        return not depends_on_parameters(self.system, tuple(self.varied.parameters.values()))

    @cached_property
    def _common(self) -> tuple[Numbers, Numbers]:
        """The states of all designs, if they are the same, [nt, .] each."""
        q, qd = self._marched(None if self.nominal is None else self.nominal[None], 1)
        return q[0], qd[0]

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
        closed = self._loaded(run.q[rows], run.qd[rows], own) if rows.size else None
        return Outcome(closed, rows, status, failed_at, {})

    def run(self, values: Numbers | None, count: int) -> Trajectory:
        """Return `count` designs along the motion; states after a loop stops closing are NaN."""
        if self.same_for_all:
            q, qd = (np.broadcast_to(x, (count, *x.shape)) for x in self._common)
        else:
            q, qd = self._marched(values, count)
        return self._loaded(q, qd, values)

    def _loaded(self, q: Numbers, qd: Numbers, values: Numbers | None) -> Trajectory:
        """Return states as a run, whose torques are computed when they are read."""
        source = MotionLoads(self, self._common_accelerations if self.same_for_all else None)
        fields = dict.fromkeys(("torque", "control", "accelerations", "wrenches"), source)
        return Trajectory(self.system, self.times, q, qd, parameters=values, method=MOTION, **fields)

    @cached_property
    def _common_accelerations(self) -> Numbers:
        """The accelerations of all designs, if their states are the same, [nt, nv]."""
        q, qd = self._common
        run = Trajectory(self.system, self.times, q, qd, parameters=self.nominal, method=MOTION)
        return self.kinematics("accelerations", run)

    @cached_property
    def kinematics(self) -> Acting:
        """The accelerations of the samples of a run, which follow from those of the driven joints."""
        kept, control = kept_of(self.system), DrivenControl(self.drives)
        key = ("loads", kept.key((), control))
        return kept.part(key, lambda: Acting(*loads_and_drives(self.system.mechanism, (), control)))

    @cached_property
    def torques(self) -> tuple[Any, Any]:
        """The compiled functions of `torque_programs`."""
        kept = kept_of(self.system)
        key = ("motion", self.actuated, kept.key(self.forces))
        made = kept.part(key, lambda: torque_programs(self.system.mechanism, self.forces, self.actuated))
        return kept.native(made[0]), kept.native(made[1])

    def _marched(self, values: Numbers | None, count: int) -> tuple[Numbers, Numbers]:
        """Return the states [count, nt, .] of designs, closed at one time after another."""
        closing, (wanted, speeds) = self.closing, self._wanted
        q, qd = (np.empty((len(self.times), count, n)) for n in (self.system.nq, self.system.nv))
        at = closing.arrived(self.start, self.nominal, values, np.broadcast_to(wanted[0], (count, len(self.drives.q))))
        rate, t = np.zeros((count, self.system.nv)), float(self.times[0])
        at, v = self._closed(at, values, wanted[0], speeds[0])
        q[0], qd[0] = at, v
        for k, (now, stops) in enumerate(self._stops, start=1):
            for s, (place, speed) in zip(now, zip(*stops, strict=True), strict=True):
                h = s - t
                guess = closing.predicted(at, h * v + 0.5 * h * h * rate, values)
                before = v
                at, v = self._closed(guess, values, place, speed)
                rate, t = (v - before) / h, s
            q[k], qd[k] = at, v
        return q.swapaxes(0, 1), qd.swapaxes(0, 1)

    def _closed(self, q: Numbers, values: Numbers | None, place: Numbers, speed: Numbers) -> tuple[Numbers, Numbers]:
        """Return closed states with the driven coordinates and velocities of a time.

        The other velocities are found from zero, so that rounding errors vanish with them where the motion rests.
        """
        q, qd = q.copy(), np.zeros((len(q), self.system.nv))
        q[:, list(self.drives.q)], qd[:, list(self.drives.v)] = place, speed
        return self.closing.close(q, qd, values)

    @cached_property
    def _stops(self) -> list[tuple[list[float], tuple[Numbers, Numbers]]]:
        """The times of closings after each sample up to the next one, with the driven coordinates and velocities."""
        units = loop_units(self.system.mechanism)[1][list(self.drives.v)] if self.system.closures else 1.0
        (wanted, speeds), out = self._wanted, []
        for k in range(len(self.times) - 1):
            begin, end = float(self.times[k]), float(self.times[k + 1])
            way = np.maximum(np.abs(wanted[k + 1] - wanted[k]), (end - begin) * np.abs(speeds[k : k + 2]).max(axis=0))
            count = max(1, ceil(float((way / units).max(initial=0.0)) / STRIDE)) if self.system.closures else 1
            now = [begin + (end - begin) * n / count for n in range(1, count)] + [end]
            out.append((now, self._driven(np.array(now))))
        return out


@dataclass(frozen=True, eq=False)
class MotionLoads:
    """Accelerations, torques and wrenches of runs along a motion, each computed when it is first read."""

    along: AlongMotion
    common: Numbers | None

    def __call__(self, field: str, run: Any) -> Numbers:
        """Return the array of a field at the samples of a run."""
        if field == "accelerations":
            if self.common is None or len(run.t) != len(self.common):
                return self.along.kinematics(field, run)
            return np.broadcast_to(self.common, run.qd.shape)
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
