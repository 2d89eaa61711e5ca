"""Mechanisms of tables that the reader changes in the page: another structure, and a diagnosis."""

from __future__ import annotations

from typing import Any

from ...errors import InputError, brief
from ...loading import from_dh
from ...system import System
from ..changed import changed
from ..opened import open_system
from ..tabs import Studio

MOST = 64
"""The most rows of a table: pages of longer mechanisms have no functions."""


def build(
    studio: Studio, rows: Any, convention: Any = "standard", gravity: Any = (0.0, 0.0, -9.81), name: Any = "robot",
    tool: Any = None, frames: Any = (), q: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Open the mechanism of a DH table; the arguments are those of `from_dh`, with angles in radians.

    `q` are the coordinates at first, by default zeros.
    """
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST:
        raise InputError(f"the table is {brief(rows)}; expected a list of 1 to {MOST} rows")
    if not isinstance(frames, list | tuple) or len(frames) > MOST:
        raise InputError(f"the frames are {brief(frames)}; expected a list of at most {MOST}")
    system = from_dh(rows, convention=convention, gravity=gravity, name=name, tool=tool, frames=frames)
    return open_system(studio, system, q=_coordinates(system, q))


def doctor(studio: Studio, parameters: Any = None, model: Any = None) -> dict[str, Any]:
    """Return notes on the mechanism of the tab: what its file had, and what the doctor finds.

    `parameters` and `model` are those of `simulate`.
    """
    system, values = changed(studio, parameters, model)
    found = system.doctor(**values)
    entries = [{"level": e.sort, "text": e.text} for e in system.report.entries if e.sort != "read"]
    findings = [
        {"level": f.level, "text": " ".join(x for x in (f.title + ".", f.text, f.advice) if x)} for f in found.findings
    ]
    return {"notes": [*entries, *findings]}


def _coordinates(system: System, q: Any) -> list[float] | None:
    """Return coordinates for a new mechanism; None if they are not its own."""
    if not isinstance(q, list) or len(q) != system.nq:
        return None
    if not all(isinstance(x, int | float) and abs(x) < 1e9 for x in q):
        raise InputError(f"the coordinates are {brief(q)}; expected {system.nq} finite numbers")
    return [float(x) for x in q]
