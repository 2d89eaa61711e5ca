"""File names in an experiment, confined to the folder of the experiment or of the results."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

from ..errors import ModelError, WriteError, quote

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
