"""The mechanism that a tab of the browser shows, and the studio as an action receives it."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputError, KinetreeError
from ...page.data import system_data
from ...system import System
from .folder import Folder

MOST = 64
"""The most tabs that are kept; the one that was used least recently is forgotten first."""


class Cancelled(KinetreeError):
    """The reader cancelled a call."""


@dataclass
class Tab:
    """What a tab shows: its System, and the data of its page.

    `changed` are the last Systems with changed numbers. `before` is the mechanism to which a lesson leads back.
    """

    system: System | None = None
    data: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, System] = field(default_factory=dict)
    before: Tab | None = None

    def shown(self) -> System:
        """Return the System; a tab without one is refused."""
        if self.system is None:
            raise InputError("no mechanism is open in this tab; open one first")
        return self.system


@dataclass(frozen=True)
class Studio:
    """What an action may use: the folder, its tab, and `report`.

    `report(share)` reports the part that is done, from 0 to 1. It raises Cancelled after the reader cancelled the call.
    """

    folder: Folder
    tab: Tab = field(default_factory=Tab)
    report: Callable[[float], None] = lambda share: None


class Tabs:
    """The tabs of a studio by their keys; the newest are kept."""

    def __init__(self) -> None:
        """Start without tabs."""
        self._tabs: OrderedDict[str, Tab] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, tab: Tab) -> str:
        """Keep a tab and return its key."""
        key = secrets.token_urlsafe(12)
        with self._lock:
            self._tabs[key] = tab
            while len(self._tabs) > MOST:
                self._tabs.popitem(last=False)
        return key

    def get(self, key: str) -> Tab | None:
        """Return the tab of a key; None if it is not known."""
        with self._lock:
            if key in self._tabs:
                self._tabs.move_to_end(key)
            return self._tabs.get(key)


# --- A mechanism that a tab opens: its System is kept for later actions, and its data go to the page ---


def open_system(
    studio: Studio, system: System, *, q: object = None, meshes: bool = False, source: str = ""
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
