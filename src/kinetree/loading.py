"""`load` and `from_dh`: files, library names and tables in, a System out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import library
from .compiler.build import weightless_joints
from .errors import ModelError, unknown_name
from .formats import read
from .formats.dh import mechanism_from_dh
from .formats.report import Report
from .model.mechanism import Mechanism
from .system import System


def load(
    model: str | Path,
    *,
    base: str = "fixed",
    fixed: str = "merge",
    roots: Iterable[str | Path] = (),
) -> System:
    """Return the System of a library name, or of a .toml, .urdf, .xml or .csv file.

    For URDF: base="free" lets the root link float, fixed="keep" keeps links on fixed joints as bodies of their own, and
    `roots` are the folders in which package:// paths of meshes may lie. What the file held, what was changed and
    what was dropped is in the System's `report`.
    """
    text = str(model)
    if isinstance(model, str) and _is_name(text):
        if text not in library.names():
            raise unknown_name("library mechanism", text, library.names())
        model = library.path(text)
    mechanism, report = read(model, base=base, fixed=fixed, roots=tuple(roots))
    return _system(mechanism, report)


def from_dh(
    rows: Sequence[Mapping[str, Any]],
    *,
    convention: str = "standard",
    degrees: bool = False,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    name: str = "dh",
) -> System:
    """Return the System of a Denavit-Hartenberg table; see docs/conventions.md for the rows and the conventions."""
    mechanism = mechanism_from_dh(rows, convention=convention, degrees=degrees, gravity=gravity, name=name)
    return _system(mechanism, Report(file=name))


def _system(mechanism: Mechanism, report: Report) -> System:
    for joint in weightless_joints(mechanism):
        report.suspect(f"joint {joint!r} moves nothing that has inertia: forward dynamics is not possible as it is")
    return System(mechanism, report)


def _is_name(text: str) -> bool:
    if not text:
        raise ModelError("an empty model name", remedy="give a library name or the path of a file")
    return not any(mark in text for mark in "/\\.") and not Path(text).exists()
