"""The option --output of all commands, and the one rule for where results go.

PATH is a folder, `out` by default. Files in it are named like the model, the run or the study. A command with one main
file also takes the path of that file: PATH with the ending of a file. Names of other files (--save, --replay, --report,
--csv) are relative to the folder.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

OUT = Path("out")
"""The folder of every command for its results, unless it makes or replaces one by another name."""
NAMES = ("--output", "--out", "-o")
Folder = Annotated[Path, typer.Option(*NAMES, help="The folder for the results.")]
FileOrFolder = Annotated[Path, typer.Option(*NAMES, help="The folder for the result, or the path of its file.")]
ENDING = re.compile(r"\.(?:[a-z]{1,7}|mp4|h5)", re.IGNORECASE)
"""The ending of a file: short and of letters, unlike the end of a version such as results.v2."""


def names_a_file(path: Path) -> bool:
    """Return whether a path belongs to a file rather than a folder."""
    return bool(ENDING.fullmatch(path.suffix)) and not path.is_dir()


def check_folder(path: Path, naming: str) -> None:
    """Refuse the path of a file where a folder belongs; `naming` is what names the files in it."""
    from ...errors import InputError

    if names_a_file(path):
        raise InputError(f"--output {str(path)!a}: give a folder, without {path.suffix}; {naming}")


def folder_of(path: Path, naming: str) -> Path:
    """Return the folder for a command's files, made where needed; `naming` is what names the files in it."""
    from ...experiments.experiment import made_folder

    check_folder(path, naming)
    return made_folder(path)


def file_of(path: Path, name: str) -> Path:
    """Return the file of a command that writes one: the path itself, or the name in that folder, made where needed."""
    from ...experiments.experiment import made_folder

    return made_folder(path.parent) / path.name if names_a_file(path) else made_folder(path) / name


def run_of(path: Path, save: str | None) -> tuple[Path, str | None]:
    """Return the folder for a run's files and the name of the saved run, which the path may also give."""
    from ...errors import InputError
    from ...results.files import FORMATS

    if not names_a_file(path):
        return path, save
    if path.suffix.lower() not in FORMATS:
        raise InputError(
            f"--output {str(path)!a}: give a folder, or a file for the run that ends with {', '.join(FORMATS)}"
        )
    if save is not None:
        raise InputError(f"--output {str(path)!a} names the file of the run; leave out --save, or give a folder")
    return path.parent, path.name
