"""Motions on the command line: states from options, summaries of trajectories, and the motions of `inverse`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._support.tables import count_text
from ...algebra.scalars import Numbers
from ...analysis.loops.driven_motion import nearest_motion
from ...errors import AssemblyError, InputError, ModelError, unknown_name
from ...experiments.forces_and_control import loops
from ...formats.fields import constant
from ...model.axes import axis_labels, entries
from ...model.parts import Limits
from ...results import read_trajectory
from ...results.columns import columns
from ...results.files import FORMATS, is_run
from ...results.trajectory import Trajectory
from ...simulation.acting.joint_forces import require_flat
from ...simulation.acting.references import Cycloid, Reference, Table, sampled
from ...simulation.acting.references.table import column_names
from ...simulation.monitors import limit_violations
from ...system import System
from .console import INTERRUPTED, clean, heading, make_table, print_table

if TYPE_CHECKING:
    from rich.console import Console


ROWS = 40
"""Largest number of coordinates or velocities that are printed, for tables that stay readable."""
ROUNDING = 1e-15
"""Fraction of the largest entry of a column below which a number is rounding error and printed as zero."""


def state(system: System, column: str, option: str, text: str | None) -> np.ndarray | None:
    """Return the numbers of an option, one per coordinate or velocity, or None without the option."""
    labels = columns(system.mechanism)[column].labels
    return None if text is None else listed_numbers(option, text, [label.partition(".")[2] for label in labels])


def listed_numbers(option: str, text: str, names: Sequence[str]) -> np.ndarray:
    """Return the numbers of an option, one per name."""
    words = text.split(",")
    if len(words) != len(names):
        listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        raise InputError(f"{option} has {count_text(len(words), 'number')}; give {len(names)}: {listed}")
    return np.array(_constants(option, text))


def by_joint(option: str, texts: Iterable[str]) -> dict[str, Any]:
    """Return {joint: numbers} from texts such as crank=pi/4 or rod=0.1,0.2."""
    out: dict[str, object] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (name.strip() and sign and value.strip()):
            raise InputError(f"{option} {text!a}: write joint=value, such as {option} crank=pi/4")
        numbers = _constants(f"{option} {name.strip()}", value)
        out[name.strip()] = numbers[0] if len(numbers) == 1 else numbers
    return out


def loops_of(system: System, text: str | None) -> Any:
    """Return the way to keep loops closed from a text: projection, baumgarte=30, minimal or minimal=crank; or None."""
    if text is None:
        return None
    kind, sign, value = (part.strip() for part in text.partition("="))
    table: dict[str, object] = {"kind": kind}
    if sign and kind == "baumgarte":
        (table["rate"],) = _constants("--loops baumgarte", value)[:1]
    elif sign and kind == "minimal":
        table["independent"] = [name.strip() for name in value.split(",")]
    elif sign:
        raise InputError(f"--loops {text!a}: only baumgarte has a value (a rate), and minimal (names of joints)")
    return loops(table, "--loops", system.mechanism)


def parameter_values(system: System, texts: Sequence[str] | None) -> np.ndarray | None:
    """Return the free parameters [np] with the values of texts such as l1=0.4; None if there are no free ones."""
    free = {p.name: p.value for p in system.mechanism.free_parameters}
    for text in texts or ():
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise InputError(f"--param {text!a}: write NAME=VALUE, such as --param l1=0.4")
        if name not in free:
            raise unknown_name("free parameter", name, free, where="--param")
        (free[name],) = _constants(f"--param {name}", value)[:1]
    return np.array(list(free.values())) if free else None


def output_times(duration: float, samples: int) -> np.ndarray:
    """Return evenly spaced times from zero."""
    if not 0 < duration < np.inf:
        raise InputError(f"duration is {duration}; expected a positive number of seconds")
    return np.linspace(0.0, duration, samples)


def check_names(save: str | None, replay: str | None) -> None:
    """Refuse file names of unknown formats before anything is computed."""
    if save is not None and Path(save).suffix.lower() not in FORMATS:
        raise InputError(f"--save {save!a}: use a name that ends with {', '.join(FORMATS)}")
    if replay is not None and Path(replay).suffix.lower() != ".html":
        raise InputError(f"--replay {replay!a}: use a name that ends with .html")


def file_stem(system: System) -> str:
    """Return the mechanism's name as a valid file name without suffix."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", system.mechanism.name)[:80] or "mechanism"


def exit_status(run: Trajectory, pressed: bool) -> int:
    """Return 130 after Ctrl-C, otherwise 0 for a finished run and 1 for one that stopped early or is in doubt."""
    return INTERRUPTED if pressed else int(not run.finished)


def print_run(console: Console, run: Trajectory, seconds: float) -> None:
    """Print the method and status of a run, its energy error if energy is conserved, and the range of its states."""
    heading(console, f"{clean(run.system.mechanism.name)}: {count_text(len(run), 'sample')} to {run.t[-1]:g} s")
    numbers = ", ".join(f"{key} = {run.options[key]:g}" for key in ("dt", "rtol", "atol") if key in run.options)
    console.print(f"method {run.method} ({numbers}), {run.evaluations:,} evaluations, {seconds:.2g} s in all")
    console.print(f"status: {clean(run.status)}", style=None if run.finished else "bold red")
    if len(run) > 1 and _conserves(run):
        console.print(f"energy error: {run.energy_error:.1e} of the energy in motion")
    if run.system.closures:
        console.print(f"loops closed to {np.abs(run['gap']).max():.1e} m or rad")
    _print_limits(console, run)
    print_columns(console, run, ("q", "qd"))


def _print_limits(console: Console, run: Trajectory) -> None:
    """Print the limits that a run exceeds, if its mechanism has any."""
    if all(joint.limits == Limits() for joint in run.system.joints):
        return
    passed = limit_violations(run).violations
    for line in passed[:ROWS]:
        console.print(f"limit exceeded: {clean(str(line))}", style="bold yellow", soft_wrap=True)
    if len(passed) > ROWS:
        console.print(f"... and {len(passed) - ROWS} more limits", style="italic")
    if not passed:
        console.print("no limit is exceeded")


def print_torques(console: Console, run: Trajectory, actuated: Sequence[str] | None = None) -> None:
    """Print the torques of inverse dynamics at both ends, and the least and the largest."""
    heading(console, f"{clean(run.system.mechanism.name)}: torques at {len(run)} times to {run.t[-1]:g} s")
    print_columns(console, run, ("q", "tau" if run.control is None else "control"))
    if run.system.mechanism.has_forces:
        console.print("These are the torques of the drives: damping, friction and springs of the mechanism act too.")
    if run.system.closures and not actuated:
        console.print(
            "These torques drive every joint, and the loops transmit no force; --actuated selects the driven joints.",
            soft_wrap=True,
        )


def print_tracking(console: Console, run: Trajectory, error: np.ndarray | None) -> None:
    """Print the distance of a run from its reference."""
    if error is None:
        return
    heading(console, "Distance from the reference")
    column = next(c for c in run.columns if c.name == "q")
    cells = ("largest", "at the end")
    table = make_table(console, "", *cells, "unit", numeric=cells)
    for k, (label, unit) in enumerate(zip(column.labels[:ROWS], column.units, strict=False)):
        if np.isnan(error[:, k]).all():
            continue  # not driven
        table.add_row(clean(label), f"{np.abs(error[:, k]).max():.3g}", f"{abs(error[-1, k]):.3g}", unit)
    print_table(console, table)


def print_files(console: Console, files: Sequence[Path]) -> None:
    """Print the paths of the files that were written."""
    if files:
        heading(console, "Files")
    for file in files:
        console.print(clean(str(file)), soft_wrap=True)


def print_columns(console: Console, run: Trajectory, names: Sequence[str]) -> None:
    """Print both ends, the least and the largest value of columns."""
    cells = ("start", "end", "least", "largest")
    table = make_table(console, "", *cells, "unit", numeric=cells)
    more = 0
    for column in (c for c in run.columns if c.name in names):
        values = run[column.name]
        rounding = ROUNDING * float(np.abs(values).max(initial=0.0))
        for k, (label, unit) in enumerate(zip(column.labels[:ROWS], column.units, strict=False)):
            x = values[:, k]
            table.add_row(clean(label), *(_format_number(v, rounding) for v in (x[0], x[-1], x.min(), x.max())), unit)
        more += max(0, len(column.labels) - ROWS)
    print_table(console, table)
    if more:
        console.print(f"... and {more} more: --save writes all of them", style="italic")


def _format_number(x: float, rounding: float) -> str:
    return f"{x:.6g}" if abs(x) > rounding else "0"


def _conserves(run: Trajectory) -> bool:
    """Return whether only gravity did work."""
    return all(x is None or not x.any() for x in (run.torque, run.wrenches))


def _constants(option: str, text: str) -> list[float]:
    """Return the values of numbers, or formulas of numbers, separated by commas."""
    try:
        return [constant(word.strip(), option) for word in text.split(",")]
    except ModelError as error:
        raise InputError(str(error)) from None


# --- Motions of `kinetree inverse`: by all coordinates, from a table, or by the driven joints of a closed mechanism ---


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
