"""The library of mechanisms: a list to choose from, and one of them opened."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from .... import library
from ....errors import brief, unknown_name
from ....formats import read
from ....joints import kind
from ....loading import load
from ....model.parts import GROUND
from ... import lessons as taught
from ...lessons import lesson_content
from ..tabs import Studio, Tab, open_system, show


def gallery(studio: Studio) -> dict[str, Any]:
    """Return the mechanisms of the library: name, description, sizes, and the bytes of a PNG picture, or None."""
    return {"mechanisms": _rows()}


@cache
def _rows() -> list[dict[str, Any]]:
    """Read all files of the library, once for all tabs."""
    rows = []
    for name in library.names():
        m = read(library.path(name))[0]
        picture = files("kinetree.apps.studio") / "pictures" / f"{name}.png"
        rows.append(
            {
                "name": name,
                "description": m.description,
                "bodies": len(m.bodies),
                "nv": m.nv,
                "loops": len(m.loops),
                "floats": any(kind(j.kind).FLOATS and j.parent == GROUND for j in m.joints),
                "picture": picture.read_bytes() if picture.is_file() else None,
            }
        )
    return rows


def open_library(studio: Studio, name: Any) -> dict[str, Any]:
    """Open a mechanism of the library by its name."""
    if name not in library.names():  # a path is none
        raise unknown_name("library mechanism", name if isinstance(name, str) else brief(name), library.names())
    return open_system(studio, load(name), source=f"library/{name}")


# --- Lessons: a list to choose from, one of them opened, and the way back to the mechanism before it ---


def lessons(studio: Studio) -> dict[str, Any]:
    """Return the lessons in their order: name, title, summary and minutes."""
    keys = ("name", "title", "summary", "minutes")
    return {"lessons": [{key: getattr(lesson, key) for key in keys} for lesson in map(taught.find, taught.names())]}


def open_lesson(studio: Studio, name: Any) -> dict[str, Any]:
    """Open a lesson by its name; the tab keeps the mechanism that it showed before."""
    lesson = taught.find(name if isinstance(name, str) else brief(name))
    system, data = lesson_content(lesson, studio.report)
    tab = studio.tab
    before = tab.before if "lesson" in tab.data else Tab(tab.system, tab.data) if tab.system else None
    found = show(studio, system, data, source=f"lesson/{name}")
    tab.before = before
    return found


def leave_lesson(studio: Studio) -> dict[str, Any]:
    """Open the mechanism that the tab showed before its lesson, or that of the lesson if there was none."""
    before = studio.tab.before
    if before is None or before.system is None:
        return open_library(studio, studio.tab.shown().mechanism.name)
    return show(studio, before.system, before.data, source=before.data["source"])
