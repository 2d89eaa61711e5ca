"""Lessons: a list to choose from, one of them opened, and the way back to the mechanism before it."""

from __future__ import annotations

from typing import Any

from ... import lessons as taught
from ...errors import brief
from ...view.page_lesson import lesson_content
from ..opened import show
from ..tabs import Studio, Tab
from .library import open_library


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
