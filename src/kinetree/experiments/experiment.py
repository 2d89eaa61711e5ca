"""Experiments read from a file: methods to simulate, to compute the tracking error and to write the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from ..algebra.scalars import Numbers
from ..analysis.joint_entries import numbers
from ..errors import ModelError, WriteError, quote, writing
from ..results.trajectory import Trajectory
from ..simulation.acting.instants import Force
from ..simulation.acting.sampled import sample_reference
from ..simulation.simulate import simulate
from ..system import System


@dataclass(frozen=True)
class Outputs:
    """The outputs of a run: files to save, with additional columns, columns to plot, and a replay page."""

    save: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    plot: tuple[str, ...] = ()
    replay: str | None = None


@dataclass(frozen=True)
class Experiment:
    """A System with its initial state, forces, control, output times, method and outputs.

    `forces` are all that act, including those of the mechanism itself unless the file leaves them out.
    """

    name: str
    system: System
    q0: Numbers
    qd0: Numbers
    times: Numbers
    description: str = ""
    forces: tuple[Force, ...] = ()
    control: Any = None
    parameters: Numbers | None = None
    method: Mapping[str, Any] = field(default_factory=dict)
    outputs: Outputs = Outputs()

    def simulate(self, *, progress: bool | None = None) -> Trajectory:
        """Return the trajectory of the run."""
        return simulate(
            self.system,
            self.q0,
            self.qd0,
            times=self.times,
            control=self.control,
            forces=self.forces,
            passive=False,
            parameters=self.parameters,
            progress=progress,
            **self.method,
        )

    def tracking_error(self, run: Trajectory) -> Numbers | None:
        """Return reference minus coordinates at the times of a run [nt, nq]; None without a reference.

        Coordinates of joints that are not driven have NaN.
        """
        wanted = sample_reference(self.system.mechanism, self.control, run.t)
        return None if wanted is None else wanted - run.q

    def write(self, run: Trajectory, folder: str | Path) -> list[Path]:
        """Write the outputs into a folder, and return the paths of the files."""
        return list(self.write_each(run, folder))

    def write_each(self, run: Trajectory, folder: str | Path) -> Iterator[Path]:
        """Write the outputs into a folder, and give the path of each file when it is written."""
        yield from write_run(run, made_folder(folder), self.outputs, f"{self.name}.png", self.description or self.name)


def write_run(run: Trajectory, folder: Path, outputs: Outputs, figure: str, heading: str) -> Iterator[Path]:
    """Write the outputs of a run, and give the path of each file when it is written.

    The figure is the last one, since it needs a package that a base installation does not have.
    """
    for name in outputs.save:
        yield run.save(_ready(folder / name), columns=outputs.columns)
    if outputs.replay:
        yield run.replay(_ready(folder / outputs.replay))
    if outputs.plot:
        run.plot(list(outputs.plot), _ready(folder / figure), heading=heading)
        yield folder / figure


def _ready(path: Path) -> Path:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path


# --- Initial states: all numbers, or the numbers of some joints by name, which determine the others through the loops.

Given = Numbers | Mapping[str, object] | None
"""A state as given: all numbers, the numbers of some joints by name, or None."""


def position(system: System, given: Given, parameters: Numbers | None = None) -> Numbers:
    """Return q [nq]; joints that are not named are neutral, or positioned by the loops."""
    if isinstance(given, np.ndarray):
        return given
    if system.closures:
        return system.assemble(hold=given or (), parameters=parameters)
    return _fill_state(system, system.neutral(), given, 0)


def speed(system: System, q: Numbers, given: Given, parameters: Numbers | None = None) -> Numbers:
    """Return qd [nv]; joints that are not named are at rest, or moved by the loops."""
    if isinstance(given, np.ndarray):
        return given
    if system.closures and given:
        return system.consistent_speeds(q, given, parameters=parameters)
    return _fill_state(system, np.zeros(system.nv), given, 1)


def _fill_state(system: System, state: Numbers, given: Mapping[str, object] | None, which: int) -> Numbers:
    for at, values in numbers(system.mechanism, given or {}, which).items():
        state[list(at)] = values
    return state


# --- File names in an experiment, confined to the folder of the experiment or of the results ---


REMEDY = "give a name without .. and without a leading /, relative to"


def inner(folder: Path, name: str, where: str) -> Path:
    """Return the path of a file inside a folder, after following links, or raise ModelError."""
    plain(name, where, "the folder of the experiment")
    try:
        inside = (folder / name).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        inside = False
    if not inside:
        raise ModelError(
            f"{quote(name)} leads out of the folder of the experiment", where=where, remedy="copy it there"
        )
    if not (folder / name).is_file():
        raise ModelError(f"there is no file {quote(name)}", where=where, remedy=f"put it into {folder.resolve()}")
    return folder / name


def plain(name: str, where: str, folder: str) -> str:
    """Return a relative name without "..", on any operating system, or raise ModelError."""
    climbs = ".." in PureWindowsPath(name).parts
    rooted = PureWindowsPath(name).anchor or PurePosixPath(name).is_absolute()
    if not name or "\0" in name or climbs or rooted:
        raise ModelError(
            f"{quote(name)} is not the name of a file in {folder}", where=where, remedy=f"{REMEDY} {folder}"
        )
    return name


def made_folder(folder: str | Path) -> Path:
    """Return a folder for results, created if it does not exist, or raise WriteError."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WriteError(
            f"{folder}: cannot be used as the folder for results ({reason}); give another with --output"
        ) from None
    return folder
