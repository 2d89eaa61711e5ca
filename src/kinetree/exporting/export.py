"""`export`: functions of a System, open or closed, as files in one folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..compiler.export.exportable import Exportable
from ..compiler.export.files import write
from ..compiler.targets import EMITTERS, OBJECT
from ..compiler.targets.c99.names import identifier
from ..dynamics import ALGORITHMS
from ..errors import InputError, brief, unknown_name, writing
from ..model.mechanism import Mechanism
from ..simulation.forces.point_forces import forces_of
from ..simulation.option_arguments import control_of, flag, listed, method_name, system_of
from ..simulation.rates import Force
from ..simulation.stabilization import Loops, Minimal
from ..system import System
from .acting import EXTRA, Acting, made

SYMBOLS = {"step": "time_step"}
"""The names of functions in files, where they differ: the C library of Linux has a function `step` of its own, which
would take the place of another one in a shared library."""

OBJECT_NAME = "object"
"""The name of object code in `to`, followed by a colon and a processor."""


def export(
    system: System | Mechanism,
    functions: str | Sequence[str] = ("forward_dynamics", "inverse_dynamics"),
    to: str | Sequence[str] = "c",
    folder: str | Path = ".",
    *,
    frame: str | None = None,
    axes: str | None = None,
    wrenches: bool = False,
    control: Any = None,
    forces: Force | Sequence[Force] | None = None,
    passive: bool = True,
    method: str = "rk4",
    loops: Loops | None = None,
    dtype: str = "float64",
    prefix: str = "",
) -> list[Path]:
    """Write functions of a System as code for other machines, each with a self-test, and return the paths.

    `functions` are functions of a System by name, and besides: "step", one time step with torques that are held over
    it, named time_step in files; "run", a whole run; "rates", "loads" and "control", the torques of a controller. The
    latter five act under `control`, `forces` and, with `passive`, the forces of the mechanism itself, as in `simulate`.
    `method` is the integrator of step and run, `loops` the way in which loops stay closed.

    `to` are "c", "object" or "object:PROCESSOR", and other formats by their suffix, such as "wasm" or "ptx". Functions
    with a choice of `frame` and `axes`, or with external `wrenches`, get them. The files are named like the functions,
    with a `prefix`, which keeps the functions of several models apart.
    """
    system = system_of(system, "export")
    acting = _acting(system, control, forces, passive, method_name(method), loops, dtype)
    formats = [_format(x) for x in _names(to, "to")]
    chosen = [_known(name) for name in _names(functions, "functions")]
    ready = [
        made(acting, name, _file_name(prefix, SYMBOLS.get(name, name), None))
        if name in EXTRA
        else _function(system, name, frame, axes, wrenches, dtype, prefix)
        for name in chosen
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


def _acting(system: System, control, forces, passive, method: str, loops, dtype: str) -> Acting:
    controller = control_of(control)
    if getattr(controller, "outside", False):
        raise InputError(
            f"control is a {type(controller).__name__}, which runs in Python; give a controller that is compiled, such "
            "as the one inside of it"
        )
    if isinstance(loops, Minimal) or not isinstance(loops, Loops | None):
        raise InputError(f"loops is {brief(loops)}; exported code takes Projection() or Baumgarte(rate)")
    acting = (*(forces_of(system.mechanism) if flag(passive, "passive") else ()), *listed(forces, "forces", "apply"))
    return Acting(system, acting, controller, method, loops, dtype)


def _function(
    system: System, name: str, frame: str | None, axes: str | None, wrenches: bool, dtype: str, prefix: str
) -> Exportable:
    algorithm = ALGORITHMS[name]
    function = system.function(
        name, frame=frame if algorithm.frame else None, axes=axes if algorithm.axes else None,
        wrenches=wrenches and algorithm.wrenches, dtype=dtype,
    )  # fmt: skip
    return function.exportable(_file_name(prefix, name, frame if algorithm.frame else None))


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
