"""The command line: options are parsed here and results printed by the other modules; no mathematics."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import typer

from . import analyses, identifying, kinematics, pages, simulating, studying
from .analyses import Lenient, Root, load_system
from .console import OUT, Folder, folder_of, status_of

app = typer.Typer(
    name="kinetree",
    help="Dynamics of rigid multibody systems by the DeNOC method.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(pages.app)
app.add_typer(simulating.app)
app.add_typer(kinematics.app)
app.add_typer(studying.app)
app.add_typer(analyses.app)
app.add_typer(identifying.app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; an error is one line on stderr, and the exit status shows its sort."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for names with characters that the terminal cannot show
    given = None if arguments is None else list(arguments)
    sys.exit(status_of(lambda: _commands()(args=given, prog_name="kinetree")))


@cache
def _commands() -> Callable[..., Any]:
    """Return all commands; they are built once in a process, a tenth of a second, however many of them run."""
    return typer.main.get_command(app)


def _version(asked: bool) -> None:
    if asked:
        from ... import __version__

        print(f"kinetree {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Parse the options before a command."""


@app.command("list")
def list_library() -> None:
    """List mechanisms and installed robots; `show NAME` has details."""
    from ... import library
    from ...formats import read
    from .console import make_console
    from .showing import print_library

    mechanisms = [(name, read(library.path(name))[0]) for name in library.names()]
    print_library(make_console(), mechanisms, list(library.robots()))


@app.command()
def show(
    model: Annotated[
        str, typer.Argument(help="A library name, or a .toml, .urdf, .xacro, .sdf, .xml, .csv or .m file.")
    ],
    base: Annotated[str, typer.Option(help="URDF, SDF: fixed, or free to let the root link float.")] = "fixed",
    fixed: Annotated[
        str, typer.Option(help="URDF, SDF: merge links on fixed joints, or keep them as bodies.")
    ] = "merge",
    root: Root = None,
    lenient: Lenient = False,
    everything: Annotated[bool, typer.Option("--all", help="Print all lists in full.")] = False,
) -> None:
    """Show a mechanism and the report of its import."""
    from .console import make_console
    from .showing import print_system

    print_system(make_console(), load_system(model, base, root, lenient, fixed=fixed), everything=everything)


@app.command("cache")
def show_cache(clear: Annotated[bool, typer.Option("--clear", help="Remove all compiled code.")] = False) -> None:
    """Show the cache of compiled code: its folder and size."""
    from ...runtime import cache as kept
    from .console import make_console
    from .showing import print_cache

    found = kept.files()
    if clear:
        kept.clear()
    print_cache(make_console(), kept.folder(), found, kept.LIMIT, cleared=clear)


@app.command()
def demo(
    output: Folder = OUT,
) -> None:
    """Compute, compare, simulate, time and draw arms."""
    from ..demo import run
    from .console import make_console
    from .demonstration import draw_demo, print_demo

    console, folder = make_console(), folder_of(output, "files are named like the arms")
    result = run(say=lambda text: typer.echo(f"... {text}", err=True))  # stderr: a closed pipe stops nothing
    print_demo(console, result, draw_demo(result, folder))
    if not result.holds:
        raise typer.Exit(1)
