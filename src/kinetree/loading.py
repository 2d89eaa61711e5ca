"""Files, tables and sizes in, a System out: `load`, `from_dh`, `chain`, `rope`, ...; `save`, a mechanism as a file."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec

from . import library
from .compiler.rolled.weightless import weightless_joints
from .errors import InputError, ModelError, unknown_name
from .formats import KNOWN, read
from .formats.dh import mechanism_from_dh
from .formats.report import Report, report_tolerated
from .formats.toml_writer import write_toml
from .library.chains import chain_mechanism, rope_mechanism
from .library.closed import n_four_bars_mechanism
from .library.nets import net_mechanism, rope_tree_mechanism
from .model import Frame, Loop, Parameter
from .model.mechanism import Mechanism
from .system import System

P = ParamSpec("P")


def load(
    model: str | Path,
    *,
    base: str = "fixed",
    fixed: str = "merge",
    roots: Iterable[str | Path] = (),
    lenient: bool | None = None,
) -> System:
    """Return the System of a library name, or of a file: .toml, .urdf, .xml (URDF or MJCF) or .csv.

    For URDF: base="free" lets the root link float, and `roots` are the folders in which package:// paths of meshes may
    lie. For URDF and MJCF: fixed="keep" keeps what fixed joints hold as bodies of their own. MJCF needs mujoco. For
    .toml and .csv: lenient=True lets inertias pass that no body can have, as is always done for URDF and MJCF. What the
    file held, what was changed, dropped or let pass is in the System's `report`.
    """
    if not isinstance(model, str | os.PathLike):
        raise InputError(f"model is {repr(model)[:80]}; expected a library name, or the path of a {KNOWN} file")
    if isinstance(model, str) and _is_name(model):
        if model not in library.names():
            raise unknown_name("library mechanism", model, library.names())
        model = library.path(model)
    mechanism, report = read(model, base=base, fixed=fixed, roots=tuple(roots), lenient=lenient)
    return _system(mechanism, report)


def from_dh(
    rows: Sequence[Mapping[str, Any]],
    *,
    convention: str = "standard",
    degrees: bool = False,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    name: str = "dh",
    parameters: Iterable[Parameter] = (),
    frames: Iterable[Frame | Mapping[str, Any]] = (),
    tool: Any = None,
    loops: Iterable[Loop | Mapping[str, Any]] = (),
    guess: Mapping[str, Any] | None = None,
    lenient: bool = False,
) -> System:
    """Return the System of a Denavit-Hartenberg table; see docs/conventions.md for the rows and the conventions.

    `tool` is where the frame "tool" stands as seen from the last row's frame: a translation [m], a 4 x 4 matrix, or a
    Placement. `frames` and `loops` are parts, or tables as in TOML files; `guess` has coordinates by joint name near
    which the loops close. `lenient` lets inertias pass that no body can have, and lists them in the System's `report`.
    """
    mechanism = mechanism_from_dh(
        rows, convention=convention, degrees=degrees, gravity=gravity, name=name, parameters=parameters,
        frames=frames, tool=tool, loops=loops, guess=guess, lenient=lenient,
    )  # fmt: skip
    report = Report(file=name)
    report_tolerated(mechanism, report)
    return _system(mechanism, report)


def save(mechanism: Mechanism | System, path: str | Path) -> Path:
    """Write a mechanism, or that of a System, as a native .toml file that `load` reads again, and return the path."""
    found = getattr(mechanism, "mechanism", mechanism)
    if not isinstance(found, Mechanism):
        what = f"mechanism is {repr(mechanism)[:80]}"
        raise InputError(f"{what}; expected a Mechanism or a System; runs have run.save(path)")
    path = Path(path)
    if path.suffix.lower() != ".toml":
        raise InputError(f"{path}: mechanisms are written as .toml, not as {path.suffix or 'a name without ending'!r}")
    text, written = write_toml(found), path.with_name(f".{path.stem[:100]}.{os.getpid()}.tmp")
    try:
        written.write_text(text, encoding="utf-8")
        os.replace(written, path)  # whole or not at all
    except OSError as error:
        written.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); give another place") from None
    return path


def _built(make: Callable[P, Mechanism]) -> Callable[P, System]:
    """Return a function of the same arguments that returns the System of a mechanism."""
    signature, name = inspect.signature(make), make.__name__.removesuffix("_mechanism")

    @functools.wraps(make)
    def build(*arguments: P.args, **options: P.kwargs) -> System:
        try:
            signature.bind(*arguments, **options)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}; it takes {', '.join(signature.parameters)}") from None
        mechanism = make(*arguments, **options)
        return System(mechanism, Report(file=mechanism.name))

    build.__signature__ = signature.replace(return_annotation="System")  # type: ignore[attr-defined]
    build.__name__ = build.__qualname__ = name
    return build


n_four_bars = _built(n_four_bars_mechanism)
chain = _built(chain_mechanism)
rope = _built(rope_mechanism)
rope_tree = _built(rope_tree_mechanism)
net = _built(net_mechanism)


def _system(mechanism: Mechanism, report: Report) -> System:
    for joint in weightless_joints(mechanism):
        report.suspect(f"joint {joint!r} moves nothing that has inertia: forward dynamics is not possible as it is")
    return System(mechanism, report)


def _is_name(text: str) -> bool:
    if not text:
        raise ModelError("an empty model name", remedy="give a library name or the path of a file")
    return not any(mark in text for mark in "/\\.") and not os.path.exists(text)
