"""Reading of runs from files."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError
from ..system import System
from .files import read_fields
from .trajectory import Trajectory


def read_trajectory(path: str | Path, *, system: System | None = None) -> Trajectory:
    """Read a run that `save` wrote, with the System of the mechanism in the file, or with `system` if it is equal."""
    fields = read_fields(path, system)
    try:
        return Trajectory(**fields)
    except InputError as error:
        raise InputError(f"{path}: is damaged or not a trajectory ({error})") from None
