"""A mechanism that a tab opens: its System is kept for later actions, and its data go to the page."""

from __future__ import annotations

from typing import Any

from ..system import System
from ..view.page_writer import system_data
from .tabs import Studio


def open_system(
    studio: Studio, system: System, *, q: Any = None, meshes: bool = False, source: str = ""
) -> dict[str, Any]:
    """Show a System in the tab and return {"data": ...}, which the page passes to `app.open`.

    `source` is where the address of the page opens it again: "library/NAME" or "folder/NAME"; "" for nowhere.
    """
    data = system_data(system, q=q, meshes=meshes) | {"source": source}
    studio.tab.system, studio.tab.data = system, data
    studio.tab.changed.clear()
    return {"data": data}
