"""Where the command line writes: colors and lines on a screen, plain text in a pipe, and files by --output."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ..._support.interruption import INTERRUPTED, noted_interrupts, usual
from ...errors import KinetreeError, WriteError, unwritable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


WIDTH_OF_A_PIPE = 160
"""Width of the output in a pipe [columns], which has none itself: enough for the widest table."""
NARROW = 72
"""Width [columns] below which texts are printed as lines instead of tables, whose cells would be too narrow."""


def make_console() -> Console:
    """Return the console of stdout; lines in a pipe have a fixed width, independent of the terminal."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH_OF_A_PIPE
    return console


def make_table(console: Console, *columns: str, numeric: tuple[str, ...] = ()) -> Table:
    """Return a table whose cells wrap instead of being cut off; in a pipe it has no drawn lines."""
    from rich import box
    from rich.table import Table

    lines = box.SIMPLE_HEAD if console.is_terminal else None
    padding = (0, 1, 0, 0) if lines else (0, 2, 0, 0)
    table = Table(box=lines, padding=padding, pad_edge=False, header_style="bold", show_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold", justify="right" if name in numeric else "left")
    return table


def print_table(console: Console, table: object) -> None:
    """Print a table; in a pipe, without trailing spaces."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        console.print(line.rstrip(), soft_wrap=True)


def clean(text: str) -> str:
    """Return a text as one line without control characters, since names may come from untrusted files."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def heading(console: Console, text: str) -> None:
    """Print the heading of a section after an empty line."""
    console.print()
    console.print(text, style="bold", soft_wrap=True)


# --- The end of a command: its exit status, and one line on stderr in place of a traceback ---

WRONG = 2
"""Exit status if an option, a file or a model is wrong, so that nothing ran."""
UNWRITABLE = 74
"""Exit status if a file or the output could not be written, such as on a full disk: EX_IOERR of sysexits.h."""
CLOSED = 141
"""Exit status if the reader of the output closed the pipe: 128 + SIGPIPE, as shells report for other programs."""


def status_of(command: Callable[[], object]) -> int:
    """Run a command, flush its output, print its first error as one line on stderr, and return the exit status."""
    _occupy_output()
    status, text = _attempt(lambda: _interruptible(command))
    flushed, reason = _attempt(_flush)
    if flushed and not text:
        status, text = flushed, reason
    if text:
        with suppress(OSError, AttributeError):  # stderr may be closed as well
            print(f"kinetree: {clean(text)}", file=sys.stderr, flush=True)
    return status


T = TypeVar("T")


def compute_or_keep(name: str, compute: Callable[[], T]) -> tuple[T, bool]:
    """Return a result, after Ctrl-C the part that the KeyboardInterrupt keeps by this name, and whether that is so."""
    try:
        return compute(), False
    except KeyboardInterrupt as error:
        part = getattr(error, name, None)
        if part is None:
            raise
        return part, True


def _interruptible(command: Callable[[], object]) -> None:
    """Run a command that Ctrl-C ends, also while it imports packages, which report it as an error of their own."""
    usual()
    with noted_interrupts() as interrupted:
        try:
            command()
        except (KinetreeError, OSError):
            raise
        except Exception as error:
            if interrupted():
                raise KeyboardInterrupt from error
            raise


def _attempt(step: Callable[[], object]) -> tuple[int, str]:
    """Run a step and return its exit status, with the text of its error."""
    try:
        try:
            step()
        except SystemExit as stop:
            hidden = _cause(stop)
            if hidden is None:
                return (stop.code if isinstance(stop.code, int) else int(stop.code is not None)), ""
            raise hidden from None
    except BrokenPipeError:
        _discard_output()
        return CLOSED, "the reader of the output closed the pipe; the rest is not printed"
    except WriteError as error:
        return UNWRITABLE, error.command_line
    except OSError as error:
        _discard_output()
        named = f"{error.filename}: {error.strerror}" if error.filename else ""
        return UNWRITABLE, named or str(unwritable("the output", error))
    except KinetreeError as error:
        return WRONG, error.command_line
    except KeyboardInterrupt:
        return INTERRUPTED, "interrupted"
    return 0, ""


def _cause(stop: BaseException) -> BaseException | None:
    """Return the interruption or closed pipe behind an exit that a library raised in its place, or None."""
    found = stop.__cause__ or stop.__context__
    while found is not None and not isinstance(found, KeyboardInterrupt | BrokenPipeError):
        found = found.__cause__ or found.__context__
    return found


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _discard_output() -> None:
    """Discard buffered output, so that Python does not try to write it again at exit."""
    with suppress(OSError, ValueError, AttributeError):  # a stream without a descriptor has nothing to redirect
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if sys.__stdout__ is not None:
            os.dup2(nowhere, sys.__stdout__.fileno())
        os.close(nowhere)


def _occupy_output() -> None:
    """Give a closed stdout a descriptor that refuses what is written, since Python would drop it silently."""
    if sys.stdout is None:
        sys.stdout = sys.__stdout__ = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")


# --- The option --output of all commands, and the one rule for where results go ---
#
# PATH is a folder, `out` by default. Files in it are named like the model, the run or the study. A command with one
# main file also takes the path of that file: PATH with the ending of a file. Names of other files (--save, --replay,
# --report, --csv) are relative to the folder.


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


NO_FIGURES = "Figures need the package matplotlib: pip install 'kinetree[plots]'"


def can_draw() -> bool:
    """Return whether the package for figures is installed."""
    return find_spec("matplotlib") is not None
