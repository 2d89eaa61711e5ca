"""The writing of exported functions: checks of the options, and one file or more per function and format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.export.exportable import Exportable
from ..compiler.export.files import write
from ..dynamics import ALGORITHMS
from ..errors import InputError, brief, unknown_name, writing
from ..simulation.acting.driven import combine_controls
from ..simulation.acting.instants import Force
from ..simulation.acting.point_forces import forces_of
from ..simulation.closing import Loops, Minimal
from ..simulation.options import control_of, flag, list_acting, method_name, system_of
from ..system import System
from ..targets import EMITTERS, OBJECT
from ..targets.c.programs import REALS, identifier
from .acting import EXTRA, Acting, make_exportable

if TYPE_CHECKING:
    from ..model.mechanism import Mechanism


SYMBOLS = {"step": "time_step"}
"""The names of functions in files, where they differ: the C library of Linux has a function `step` of its own, which
would take the place of another one in a shared library."""

OBJECT_NAME = "object"
"""The name of object code in `to`, followed by a colon and a processor."""
MOVING = ("step", "run", "rates")
"""Functions that move a mechanism: without its contacts they would move another one."""


@dataclass(frozen=True)
class Options:
    """The options of `export`, before they are checked."""

    frame: str | None
    axes: str | None
    wrenches: bool
    control: Any
    forces: Force | Sequence[Force] | None
    passive: bool
    method: str
    loops: Loops | None
    dtype: str
    prefix: str
    jacobian: bool = False


def write_functions(system: object, functions: object, to: object, folder: str | Path, options: Options) -> list[Path]:
    """Write functions and return the paths; with the arguments of `export`."""
    o = options
    if not isinstance(o.prefix, str):
        raise InputError(f"prefix is {brief(o.prefix)}; give the beginning of names, such as 'arm_'")
    system = system_of(system, "export")
    acting = _acting(system, o)
    formats = [_format(x) for x in _names(to, "to")]
    chosen = [_known(name) for name in _names(functions, "functions")]
    if moving := [name for name in chosen if name in MOVING and system.mechanism.contacts]:
        raise InputError(
            f"{system.mechanism.name!r} has contacts, which exported code does not have: {', '.join(moving)} would let "
            "its bodies fall through the ground; export a mechanism without them, dataclasses.replace(m, contacts=())"
        )
    if flag(o.jacobian, "jacobian") and (without := [name for name in chosen if name in EXTRA]):
        raise InputError(f"jacobian: {', '.join(without)} has none in files; export it by itself")
    ready = [
        each
        for name in chosen
        for each in (
            [make_exportable(acting, name, _file_name(o.prefix, SYMBOLS.get(name, name), None))]
            if name in EXTRA
            else _function(system, name, o)
        )
    ]
    place = Path(folder)
    with writing(place):
        place.mkdir(parents=True, exist_ok=True)
    paths = [
        path
        for each in ready
        for suffix, processor in formats
        for path in write(each, place / f"{each.unit.name}{suffix}", triple=processor, beside=each.unit.name)
    ]
    return list(dict.fromkeys(paths))


def _acting(system: System, o: Options) -> Acting:
    controller, loops = combine_controls(system.mechanism, control_of(o.control)), o.loops
    if getattr(controller, "outside", False):
        raise InputError(
            f"control is a {type(controller).__name__}, which runs in Python; give a controller that is compiled, such "
            "as the one inside of it"
        )
    if isinstance(loops, Minimal) or not isinstance(loops, Loops | None):
        raise InputError(f"loops is {brief(loops)}; exported code takes Projection() or Baumgarte(rate)")
    acting = (
        *(forces_of(system.mechanism) if flag(o.passive, "passive") else ()),
        *list_acting(o.forces, "forces", "apply"),
    )
    return Acting(system, acting, controller, method_name(o.method), loops, _dtype(o.dtype))


def _dtype(x: Any) -> str:
    """Return the name of a precision."""
    try:
        name = np.dtype(x).name
    except TypeError:
        name = ""
    if name not in REALS:
        raise InputError(f"dtype is {brief(x)}; expected 'float64' or 'float32'")
    return name


def _function(system: System, name: str, o: Options) -> list[Exportable]:
    """Return a function, and its Jacobian if it is wanted."""
    algorithm = ALGORITHMS[name]
    frame = o.frame if algorithm.frame else None
    function = system.function(
        name,
        frame=frame,
        axes=o.axes if algorithm.axes else None,
        wrenches=o.wrenches and algorithm.wrenches,
        dtype=o.dtype,
        forces=None if o.passive else False,
    )
    file = _file_name(o.prefix, name, frame)
    more = [function.exportable(file, jacobian=True)] if o.jacobian else []
    return [function.exportable(file), *more]


def _file_name(prefix: str, function: str, frame: str | None) -> str:
    return identifier(f"{prefix}{function}" + (f"_{frame}" if frame else ""))


def _names(x: Any, what: str) -> list[str]:
    """Return names, given as one text or several."""
    names = [x] if isinstance(x, str) else list(x) if isinstance(x, Iterable) else [x]
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} is {brief(x)}; give a name or a list of names")
    return list(dict.fromkeys(names))


def _known(name: str) -> str:
    if name not in ALGORITHMS and name not in EXTRA:
        raise unknown_name("function", name, [*EXTRA, *ALGORITHMS])
    return name


def _format(name: str) -> tuple[str, str | None]:
    """Return the suffix of a format, and the processor of object code."""
    word, colon, processor = name.partition(":")
    formats = [*dict.fromkeys(OBJECT_NAME if s in OBJECT else s.removeprefix(".") for s in EMITTERS)]
    if word not in formats:
        raise unknown_name("format", word, formats)
    if word != OBJECT_NAME:
        if colon:
            raise InputError(f"the format {name!r} has a processor; only {OBJECT_NAME}:PROCESSOR has one")
        return f".{word}", None
    return (f".{identifier(processor)}.o", processor) if processor else (OBJECT[0], None)


# --- `export`: functions of a System, open or closed, as files in one folder ---


def export(
    system: System | Mechanism,
    functions: str | Sequence[str] = ("forward_dynamics", "inverse_dynamics"),
    to: str | Sequence[str] = "c",
    folder: str | Path = ".",
    *,
    frame: str | None = None,
    axes: str | None = None,
    wrenches: bool = False,
    control: object = None,
    forces: Force | Sequence[Force] | None = None,
    passive: bool = True,
    method: str = "rk4",
    loops: Loops | None = None,
    dtype: str = "float64",
    prefix: str = "",
    jacobian: bool = False,
) -> list[Path]:
    """Write functions of a System as code for other machines, each with a self-test, and return the paths.

    `functions` are functions of a System by name, and besides: "step", one time step with torques that are held over
    it, named time_step in files; "run", a whole run; "rates", "loads" and "control", the torques of a controller. The
    latter five act under `control`, `forces` and, with `passive`, the forces of the mechanism itself, as in `simulate`.
    `method` is the integrator of step and run, `loops` the way in which loops stay closed.

    `to` are "c", "object" or "object:PROCESSOR", and other formats by their suffix, such as "wasm" or "ptx". Functions
    with a choice of `frame` and `axes`, or with external `wrenches`, get them. The files are named like the functions,
    with a `prefix`, which keeps the functions of several models apart. With `jacobian`, each function of the System has
    its Jacobian with respect to all inputs beside it, jac_NAME, which CasADi finds in the same library.
    """
    options = Options(frame, axes, wrenches, control, forces, passive, method, loops, dtype, prefix, jacobian)
    return write_functions(system, functions, to, folder, options)
