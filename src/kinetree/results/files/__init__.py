"""Files of trajectories: the format follows from the suffix, writing is atomic, and content is checked when read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError, KinetreeError, writing
from ...system import System
from .content import pack, unpack
from .formats import FORMATS, Format

if TYPE_CHECKING:
    from ..trajectory import Trajectory


def save(run: Trajectory, path: str | Path, *, columns: Sequence[str] = ()) -> Path:
    """Write a run, with additional columns by name, and return the path."""
    path = Path(path)
    write = _format(path).write
    content = pack(run, columns)
    with writing(path):
        write(content, path)
    return path


def read_fields(path: str | Path, system: System | None = None) -> dict[str, Any]:
    """Return the fields of a run that `save` wrote, with a System; see `read_trajectory`."""
    path = Path(path)
    read = _format(path).read
    if not path.exists():
        raise InputError(f"{path}: does not exist; give the path of a {_endings()} file")
    try:
        return unpack(read(path), path, system)
    except KinetreeError:
        raise
    except Exception as error:  # every format has errors of its own for truncated or altered files
        raise InputError(
            f"{path}: is damaged or not a trajectory ({type(error).__name__}: {error}); save the run again"
        ) from None


def is_run(path: str | Path) -> bool:
    """Return whether a file is a saved run: by its suffix or, since other tables are .csv too, by its first line."""
    path = Path(path)
    if path.suffix.lower() != ".csv":
        return path.suffix.lower() in FORMATS
    try:
        with open(path, "rb") as file:
            return file.readline(1000).startswith(b"# format:")
    except OSError:
        return False


def _format(path: Path) -> Format:
    ending = path.suffix.lower()
    if ending not in FORMATS:
        kind = f"files that end with {ending!r} are" if ending else "a file without a suffix is"
        what = "not trajectories" if ending else "not a trajectory"
        raise InputError(f"{path}: {kind} {what}; use {_endings()}")
    return FORMATS[ending]


def _endings() -> str:
    return ", ".join(list(FORMATS)[:-1]) + f" or {list(FORMATS)[-1]}"


__all__ = ["FORMATS", "is_run", "read_fields", "save"]
