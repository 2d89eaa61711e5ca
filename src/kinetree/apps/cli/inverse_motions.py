"""Motions of `kinetree inverse`: by all coordinates, from a table, or by the driven joints of a closed mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...algebra.arrays import Numbers
from ...analysis.loops.driven_motion import nearest_motion
from ...errors import AssemblyError, InputError
from ...model.axes import axis_labels, entries
from ...results import read_trajectory
from ...results.columns import columns
from ...results.files import is_run
from ...results.trajectory import Trajectory
from ...simulation.acting.joint_forces import require_flat
from ...simulation.acting.references import Cycloid, Reference, Table, sampled
from ...simulation.acting.references.table import column_names
from ...system import System
from .motions import listed_numbers, state

POSE = ["x", "y", "z", "roll", "pitch", "yaw"]
OPEN = 1e-4
"""Largest gap of a loop in a given motion [m, rad], above what rounded table entries and splines between them cause."""
MEASURED = "not-a-knot"
"""The ends of the spline through a given motion, which need not begin or end at rest."""


class Motion(NamedTuple):
    """Times [nt], coordinates [nt, nq], velocities and accelerations [nt, nv]."""

    t: Numbers
    q: Numbers
    qd: Numbers
    qdd: Numbers


def cycloid_motion(
    system: System,
    q0: str | None,
    q1: str | None,
    duration: float,
    samples: int,
    parameters: Numbers | None = None,
    actuated: Sequence[str] | None = None,
) -> Motion:
    """Return the cycloid between two positions; with actuated joints of a closed mechanism, between theirs."""
    if q1 is None:
        raise InputError("--cycloid requires --q1, the position at which the motion ends")
    if actuated and system.closures:
        return _driven_cycloid(system, q0, q1, duration, samples, parameters, actuated)
    _require_flat(system, [joint.name for joint in system.joints])
    start, end = state(system, "q", "--q0", q0), state(system, "q", "--q1", q1)
    motion = _sample_at(Cycloid(system.neutral() if start is None else start, end, duration), samples)
    _require_closed(system, motion, parameters)
    return motion


def table_motion(
    system: System,
    file: Path,
    samples: int,
    parameters: Numbers | None = None,
    actuated: Sequence[str] | None = None,
) -> Motion:
    """Return the motion of a CSV file with columns of the names of the coordinates, or of a saved run.

    For a closed mechanism, the columns of the actuated joints suffice: the loops determine the others.
    """
    if actuated and system.closures and not is_run(file):
        names = _driven_names(system, actuated)
        if not set(axis_labels(system.mechanism, 0)) <= set(found := column_names(file)) and set(names) <= set(found):
            return _driven(
                system,
                _sample_at(Table.from_csv(file, columns=names, ends=MEASURED), samples),
                parameters,
                actuated,
            )
    _require_flat(system, [joint.name for joint in system.joints])
    motion = _sample_at(_table(system, file), samples)
    _require_closed(system, motion, parameters)
    if not (actuated and system.closures):
        return motion
    return Motion(motion.t, *nearest_motion(system, *motion[1:], parameters=parameters))


def path_motion(
    system: System, file: Path, frame: str, q0: str | None, samples: int, parameters: Numbers | None = None
) -> Motion:
    """Return the motion of an arm whose frame moves along the poses, or points, of a CSV file."""
    names = [name for name in POSE if name in column_names(file)]
    if names not in (POSE[:3], POSE):
        raise InputError(
            f"{file}: has the columns {', '.join(names) or 'none'} of {', '.join(POSE)}; give x, y, z or all"
        )
    table = Table.from_csv(file, columns=names, ends=MEASURED)
    more = {} if parameters is None else {"parameters": parameters}
    start = state(system, "q", "--q0", q0)
    found = system.cartesian_motion(table.values, frame, times=table.times, samples=samples, q0=start, **more)
    return Motion(found.t, found.q, found.qd, found.qdd)


def inverse_run(
    system: System, motion: Motion, parameters: Numbers | None = None, actuated: Sequence[str] | None = None
) -> Trajectory:
    """Return a motion with the torques of its drives, in all joints or the actuated ones."""
    from ...reports.causes import driven_run

    t, q, qd, qdd = motion
    tau = system.inverse_dynamics(q, qd, qdd, parameters=parameters, actuated=list(actuated) if actuated else None)
    run = Trajectory(
        system,
        t,
        q,
        qd,
        torque=tau,
        accelerations=qdd,
        parameters=parameters,
        method="inverse dynamics",
        evaluations=len(t),
    )
    return driven_run(run, tau) if system.mechanism.has_forces else run


def _driven_cycloid(
    system: System, q0: str | None, q1: str, duration: float, samples: int, parameters, actuated: Sequence[str]
) -> Motion:
    """Return the motion of a closed mechanism whose actuated joints follow a cycloid."""
    names = _driven_names(system, actuated)
    at = [k for name in actuated for k in entries(system.mechanism, name, 0)]
    start = system.assemble(parameters=parameters)[at] if q0 is None else listed_numbers("--q0", q0, names)
    motion = _sample_at(Cycloid(start, listed_numbers("--q1", q1, names), duration), samples)
    return _driven(system, motion, parameters, actuated)


def _driven_names(system: System, actuated: Sequence[str], which: int = 0) -> list[str]:
    """Return the names of the coordinates (0) or velocities (1) of actuated joints."""
    _require_flat(system, actuated)
    labels = axis_labels(system.mechanism, which)
    return [labels[k] for name in actuated for k in entries(system.mechanism, name, which)]


def _driven(system: System, motion: Motion, parameters: Numbers | None, actuated: Sequence[str]) -> Motion:
    """Return the motion of a closed mechanism whose actuated joints move as given; the loops move the others."""
    names, t = _driven_names(system, actuated), motion.t
    q, path = system.assemble(parameters=parameters), []
    for now, values in zip(t, motion.q, strict=True):  # each position is assembled from the one before, in its mode
        try:
            q = system.assemble(q, dict(zip(names, values.tolist(), strict=True)), parameters=parameters)
        except AssemblyError as error:
            raise AssemblyError(f"at t = {now:g} s of the motion, {error}") from None
        path.append(q)
    q, names = np.array(path), _driven_names(system, actuated, which=1)
    speeds, accelerations = (dict(zip(names, x.T, strict=True)) for x in (motion.qd, motion.qdd))
    qd = system.consistent_speeds(q, speeds, parameters=parameters)
    return Motion(t, q, qd, system.consistent_accelerations(q, qd, accelerations, parameters=parameters))


def _table(system: System, file: Path) -> Table:
    """Return the table of a CSV file, or of a saved run."""
    labels = columns(system.mechanism)["q"].labels
    if not is_run(file):
        return Table.from_csv(file, columns=[label.partition(".")[2] for label in labels], ends=MEASURED)
    run = read_trajectory(file)
    found = columns(run.system.mechanism)["q"].labels
    if found != labels or run.shape:
        what = f"{len(run)} runs" if run.shape else f"the coordinates {', '.join(found[:12])}"
        raise InputError(f"{file}: has {what}; give a single run with {', '.join(labels[:12])}")
    return Table(run.t, run.q, ends=MEASURED)


def _sample_at(reference: Reference, samples: int) -> Motion:
    """Return a reference at evenly spaced times."""
    times = getattr(reference, "times", None)
    first, last = (0.0, reference.duration) if times is None else (times[0], times[-1])  # type: ignore[attr-defined]
    t = np.linspace(first, last, samples)
    return Motion(t, *sampled(reference, t))


def _require_closed(system: System, motion: Motion, parameters: Numbers | None) -> None:
    """Refuse a motion that opens loops, and report the time and equation of the largest gap."""
    if not system.closures:
        return
    gaps = np.abs(system.closure_residual(motion.q, parameters=parameters))
    k, equation = np.unravel_index(int(np.argmax(gaps)), gaps.shape)
    if gaps[k, equation] > OPEN:
        closure = system.closures[equation]
        raise InputError(
            f"the motion opens loop {closure.name!r} ({closure.label}): by {gaps[k, equation]:.3g} {closure.unit} at "
            f"t = {motion.t[k]:g} s; name the driven joints by --actuated, and give --q0 and --q1 of these alone, or "
            "give a --table of closed positions"
        )


def _require_flat(system: System, names: Sequence[str]) -> None:
    for joint in system.joints:
        if joint.name in names:
            require_flat(joint, "a motion by coordinates")
