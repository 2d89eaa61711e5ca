"""A mechanism that a tab opens: its System is kept for later actions, and its data go to the page."""

from __future__ import annotations

from typing import Any

from ..system import System
from ..view.page_data import system_data
from .tabs import Studio


def open_system(
    studio: Studio, system: System, *, q: Any = None, meshes: bool = False, source: str = ""
) -> dict[str, Any]:
    """Show a System in the tab and return {"data": ...}, which the page passes to `app.open`.

    `source` is where the address of the page opens it again: "library/NAME" or "folder/NAME", "" for nowhere; that of
    lessons is "lesson/NAME".
    """
    return show(studio, system, system_data(system, q=q, meshes=meshes, progress=studio.report), source=source)


def show(studio: Studio, system: System, data: dict[str, Any], *, source: str) -> dict[str, Any]:
    """Show a System with the data of its page in the tab, and return {"data": ...}."""
    studio.tab.system, studio.tab.data, studio.tab.before = system, data | {"source": source}, None
    studio.tab.changed.clear()
    return {"data": studio.tab.data}
