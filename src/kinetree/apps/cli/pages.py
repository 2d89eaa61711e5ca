"""The commands `kinetree page`, `teach` and `dh`, lessons, the studio, and templates of robots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...simulation.methods.table import names_of
from .analyses import Base, Lenient, Model, Root, load_system
from .console import NAMES, OUT, FileOrFolder, Folder, check_folder, file_of, folder_of
from .motions import file_stem

app = typer.Typer()


@app.command()
def page(
    model: Annotated[
        str, typer.Argument(help="A library name, or a .toml, .urdf, .xacro, .sdf, .xml, .csv or .m file.")
    ],
    output: FileOrFolder = OUT,
    base: Annotated[str, typer.Option(help="URDF, SDF: fixed, or free to let the root link float.")] = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    meshes: Annotated[bool, typer.Option("--meshes", help="Draw the meshes of the model, simplified.")] = False,
) -> None:
    """Write a web page that moves and computes by itself."""
    system = load_system(model, base, root, lenient)
    path = file_of(output, f"{file_stem(system)}.html")
    made = system.page(path, meshes=meshes)
    print(f"{path} ({len(made.text) / 1000:.0f} kB)")


@app.command()
def teach(
    model: Model,
    output: FileOrFolder = OUT,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    meshes: Annotated[bool, typer.Option("--meshes", help="Draw the meshes of the model, simplified.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Write the page only.")] = False,
) -> None:
    """Move the joints by sliders in the browser.

    The page shows the pose of a frame, and has a handle that drags it.
    """
    system = load_system(model, base, root, lenient)
    path = file_of(output, f"{file_stem(system)}_teach.html")
    print(system.teach(path=path, meshes=meshes, show=not no_browser))


@app.command("dh")
def dh_table(
    model: Model,
    convention: Annotated[str, typer.Option(help="modified, or standard for chains.")] = "modified",
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
) -> None:
    """Print the Denavit-Hartenberg table of a mechanism."""
    print(load_system(model, base, root, lenient).dh_table(convention))


# --- The command `kinetree lesson`: a guided page that runs alone, or the list of lessons ---


@app.command()
def lesson(
    name: Annotated[
        str | None, typer.Argument(help="The name of a lesson. Without one, all lessons are listed.")
    ] = None,
    output: FileOrFolder = OUT,
) -> None:
    """Write a lesson: a live page with guided steps."""
    from ..lessons import find, names

    if name is None:
        for each in names():
            found = find(each)
            print(f"{each:<18} {found.minutes:>3} min  {found.title}. {found.summary}")
        return
    from ..lessons import lesson as lesson_page

    path = file_of(output, f"{name}.html")
    made = lesson_page(name, path)
    print(f"{path} ({len(made.text) / 1000:.0f} kB)")


# --- The command `kinetree studio`: the web page served on this machine, with Python behind it ---

FIRST, WELCOME = "puma560", "#welcome"
"""The mechanism of a studio that is opened without one, and the end of the address at which it swings."""


@app.command()
def studio(
    model: Annotated[
        str, typer.Argument(help="A library name, or a .toml, .urdf, .xacro, .sdf, .xml, .csv or .m file.")
    ] = FIRST,
    folder: Annotated[Path, typer.Option(help="The folder of files to open and to save.")] = Path("."),
    port: Annotated[
        int | None, typer.Option(help="The port of 127.0.0.1. Default: 8347, or a free one.", min=0, max=65535)
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
    base: Annotated[str, typer.Option(help="URDF, SDF: fixed, or free to let the root link float.")] = "fixed",
    root: Root = None,
    lenient: Lenient = False,
) -> None:
    """Build, move and simulate mechanisms in the browser.

    Only programs of this machine reach it, and only with the token in its address. Ctrl-C ends it.
    """
    from ..studio.actions.files import has_links
    from ..studio.server import listen, open_browser
    from ..studio.tabs import Folder

    packages = root if root and has_links(Path(model)) else None  # of other models, those that the page opens later
    system = load_system(model, base, packages, lenient)
    made = listen(lambda: system, Folder.of(folder, root or ()), port)
    address = made.address + (WELCOME if model == FIRST else "")
    print(f"The studio is at {address}")
    print("Ctrl-C ends it.", flush=True)
    if not no_browser:
        open_browser(address)
    made.run()


# --- `kinetree new`: a folder with the template of a robot, an experiment and a guide ---
#
# Exit status 2 if the name or the kind is wrong, or a file exists.


@app.command()
def new(
    robot: Annotated[str, typer.Argument(help="The name of the robot, of its folder and of its model file.")],
    kind: Annotated[
        str, typer.Option(help="The template: arm, tree (branches), or closed (a loop, a linear actuator, a spring).")
    ] = "arm",
    output: Annotated[Path | None, typer.Option(*NAMES, help="The folder to make. Default: ROBOT.")] = None,
) -> None:
    """Make a folder with a commented template of a robot.

    It runs at once: a model file, an experiment, and a README with the seven steps from CAD to results. Nothing is
    overwritten.
    """
    from ...library.templates import new_robot
    from .console import clean, make_console
    from .motions import print_files

    if output is not None:
        check_folder(output, "files are named like the robot")
    console, files = make_console(), new_robot(robot, kind, output)
    print_files(console, files)
    console.print(clean(f"Next: cd {files[0].parent} && kinetree show {files[0].name}"), soft_wrap=True)


# --- The command of export: functions of a mechanism as code for other machines ---
#
# Exit status 2 if an option, a file or a model is wrong.


@app.command("export")
def export_command(
    model: Model,
    functions: Annotated[
        str,
        typer.Option(
            help="Names and commas: functions of a mechanism, step (a time step), run (a whole run), rates, loads."
        ),
    ] = "forward_dynamics,inverse_dynamics",
    to: Annotated[
        str,
        typer.Option(help="Formats and commas: c, object:PROCESSOR (such as aarch64 or cortex-m7), wasm, ptx."),
    ] = "c",
    output: Folder = OUT,
    dtype: Annotated[str, typer.Option(help="The precision: float64 or float32.")] = "float64",
    method: Annotated[
        str,
        typer.Option(
            help=f"The integrator of step and run: {names_of(adaptive=False)}; of run also {names_of(adaptive=True)}."
        ),
    ] = "rk4",
    frame: Annotated[str | None, typer.Option(help="The frame of pose, twist, jacobian and the like.")] = None,
    axes: Annotated[str | None, typer.Option(help="Their axes: body or world.")] = None,
    wrenches: Annotated[bool, typer.Option("--wrenches", help="Take external wrenches on all bodies.")] = False,
    passive: Annotated[
        bool, typer.Option("--passive/--no-passive", help="Damping, friction, springs of the mechanism, or not.")
    ] = True,
    prefix: Annotated[str, typer.Option(help="The beginning of all names, to keep several models apart.")] = "",
    jacobian: Annotated[bool, typer.Option("--jacobian", help="Write Jacobians too, which CasADi finds.")] = False,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
) -> None:
    """Write functions as code for other machines.

    Each has a self-test.
    """
    from ...exporting.writing import export
    from .console import make_console
    from .motions import print_files

    folder = folder_of(output, "files are named like the functions, and their formats by --to")
    paths = export(
        load_system(model, base, root, lenient), _words(functions), _words(to), folder,
        frame=frame, axes=axes, wrenches=wrenches, passive=passive, method=method, dtype=dtype, prefix=prefix,
        jacobian=jacobian,
    )  # fmt: skip
    print_files(make_console(), paths)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
