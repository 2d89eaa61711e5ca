"""An experiment that has been read: it runs, measures how well a reference was followed, and writes its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..algebra.arrays import Numbers
from ..errors import InputError
from ..results.trajectory import Trajectory
from ..simulation.control.following import followed
from ..simulator import simulate
from ..system import System
from .paths import made_folder


@dataclass(frozen=True)
class Outputs:
    """What to keep of a run: files to save with further columns, columns to plot, a page to replay."""

    save: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    plot: tuple[str, ...] = ()
    replay: str | None = None


@dataclass(frozen=True)
class Experiment:
    """A System, where it starts, what acts on it, the times and the method, and what to keep.

    `forces` are all that act, those of the mechanism itself among them unless the file leaves them out.
    """

    name: str
    system: System
    q0: Numbers
    qd0: Numbers
    times: Numbers
    description: str = ""
    forces: tuple[Any, ...] = ()
    control: Any = None
    parameters: Numbers | None = None
    method: Mapping[str, Any] = field(default_factory=dict)
    outputs: Outputs = Outputs()

    def simulate(self, *, progress: bool | None = None) -> Trajectory:
        """Return the run."""
        return simulate(
            self.system, self.q0, self.qd0,
            times=self.times, control=self.control, forces=self.forces, passive=False, parameters=self.parameters,
            progress=progress, **self.method,
        )  # fmt: skip

    def tracking_error(self, run: Trajectory) -> Numbers | None:
        """Return reference less coordinates at the times of a run [nt, nq], NaN where a joint is not driven.

        None without a reference.
        """
        wanted = followed(self.system.mechanism, self.control, run.t)
        return None if wanted is None else wanted - run.q

    def write(self, run: Trajectory, folder: str | Path) -> list[Path]:
        """Write what the outputs ask for into a folder, and return the files."""
        folder = made_folder(folder)
        return write_run(run, folder, self.outputs, f"{self.name}.png", self.description or self.name)


def write_run(run: Trajectory, folder: Path, outputs: Outputs, figure: str, heading: str) -> list[Path]:
    """Write a run as its outputs ask, and return the files in the order in which they were written."""
    files: list[Path] = []
    path = folder
    try:
        for name in outputs.save:
            path = _ready(folder / name)
            files.append(run.save(path, columns=outputs.columns))
        if outputs.plot:
            path = _ready(folder / figure)
            run.plot(list(outputs.plot), path, heading=heading)
            files.append(path)
        if outputs.replay:
            path = _ready(folder / outputs.replay)
            files.append(run.replay(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); give another place") from None
    return files


def _ready(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
