"""Mechanisms with numbers that the reader changes in the page, those of tables, and a diagnosis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InputError, brief, unknown_name
from ....loading import from_dh, load
from ....page.table import free_lengths
from ....system import System
from ..tabs import Studio, open_system, write_folder

# --- The mechanism of a tab with the numbers that its reader changed in the page ---

LENGTHS = "lengths"
"""The key of the System whose lengths of loops are parameters, as in the page."""


def system_with_edits(studio: Studio, parameters: object = None, model: object = None) -> tuple[System, dict[str, Any]]:
    """Return the System of a tab, and the values of its free parameters as an option of its functions.

    `parameters` are values by name; those that are not free in the mechanism are lengths of loops. `model` is the text
    of a TOML file that takes the place of the mechanism.
    """
    system = studio.tab.shown() if model is None else text_system(studio, model)
    given = {} if parameters is None else parameters
    if not isinstance(given, dict):
        raise InputError(f"the parameters are {brief(given)}; expected values by name")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise InputError(f"the parameter {brief(name)} is {brief(value)}; expected a finite number")
    own = {p.name: p.value for p in system.mechanism.free_parameters}
    if not given.keys() <= own.keys():
        lengths = {p.name: p.value for p in free_lengths(system.mechanism)[0].free_parameters}
        if unknown := sorted(given.keys() - lengths.keys()):
            raise unknown_name("parameter", unknown[0], lengths)
        if any(given.get(name, value) != value for name, value in lengths.items() if name not in own):
            system, own = _kept(studio, LENGTHS, lambda: System(free_lengths(system.mechanism)[0])), lengths
    values = [float(given.get(name, value)) for name, value in own.items()]
    return system, {"parameters": np.array(values)} if own else {}


def text_system(studio: Studio, text: object) -> System:
    """Return the System of the text of a TOML file; the tab keeps the last one."""
    if not isinstance(text, str):
        raise InputError(f"the model is {brief(text)}; expected the text of a TOML file")

    def read() -> System:
        with write_folder({"model.toml": text.encode()}) as folder:
            return load(folder / "model.toml", lenient=True)

    return _kept(studio, text, read)


def _kept(studio: Studio, key: str, make: Any) -> System:
    """Return a System that is kept with its compiled code; the tab keeps one."""
    kept = studio.tab.changed
    if key not in kept:
        made = make()
        kept.clear()
        kept[key] = made
    return kept[key]


MOST = 64
"""The most rows of a table: pages of longer mechanisms have no functions."""


def build(
    studio: Studio,
    rows: Any,
    convention: Any = "standard",
    gravity: Any = (0.0, 0.0, -9.81),
    name: Any = "robot",
    tool: Any = None,
    frames: Any = (),
    q: object = None,
) -> dict[str, object]:
    """Open the mechanism of a DH table; the arguments are those of `from_dh`, with angles in radians.

    `q` are the coordinates at first, by default zeros.
    """
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST:
        raise InputError(f"the table is {brief(rows)}; expected a list of 1 to {MOST} rows")
    if not isinstance(frames, list | tuple) or len(frames) > MOST:
        raise InputError(f"the frames are {brief(frames)}; expected a list of at most {MOST}")
    system = from_dh(rows, convention=convention, gravity=gravity, name=name, tool=tool, frames=frames)
    return open_system(studio, system, q=_coordinates(system, q))


def doctor(studio: Studio, parameters: object = None, model: object = None) -> dict[str, Any]:
    """Return notes on the mechanism of the tab: what its file had, and what the doctor finds.

    `parameters` and `model` are those of `simulate`.
    """
    system, values = system_with_edits(studio, parameters, model)
    found = system.doctor(**values)
    entries = [{"level": e.sort, "text": e.text} for e in system.report.entries if e.sort != "read"]
    findings = [
        {"level": f.level, "text": " ".join(x for x in (f.title + ".", f.text, f.advice) if x)} for f in found.findings
    ]
    return {"notes": [*entries, *findings]}


def _coordinates(system: System, q: object) -> list[float] | None:
    """Return coordinates for a new mechanism; None if they are not its own."""
    if not isinstance(q, list) or len(q) != system.nq:
        return None
    if not all(isinstance(x, int | float) and abs(x) < 1e9 for x in q):
        raise InputError(f"the coordinates are {brief(q)}; expected {system.nq} finite numbers")
    return [float(x) for x in q]
