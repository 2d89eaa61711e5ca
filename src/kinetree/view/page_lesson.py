"""Pages of lessons: the live page of a mechanism with a column of steps, in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..lessons import Lesson, find
from ..lessons.expressions import evaluated
from ..loading import load
from ..system import System
from .page_data import system_data
from .page_kernel import Progress
from .page_writer import Page, page_path, written_page


def lesson_page(name: str | Lesson, path: str | Path | None = None) -> Page:
    """Return the page of a lesson, by its name; write it with a `path`."""
    if path is not None:
        page_path(path)  # before the work
    lesson = find(name) if isinstance(name, str) else name
    return written_page(lesson_content(lesson)[1], path)


def lesson_content(lesson: Lesson, progress: Progress = lambda share: None) -> tuple[System, dict[str, Any]]:
    """Return the mechanism of a lesson, and the data of its page."""
    system = load(lesson.mechanism)
    start = evaluated(lesson.start, {}) if lesson.start else None
    edited = any(step.setting.get("mode") == "Model" for step in lesson.steps)
    data = system_data(system, q=start, editable=edited, progress=progress)
    return system, data | {"title": lesson.title, "lesson": lesson_data(lesson)}


def lesson_data(lesson: Lesson) -> dict[str, Any]:
    """Return a lesson as plain tables."""
    return {
        "name": lesson.name,
        "title": lesson.title,
        "steps": [
            {
                "title": step.title,
                "text": step.text,
                "do": step.do,
                "set": dict(step.setting),
                "look": step.look,
                "readings": [{"name": x.name, "unit": x.unit, "value": x.value} for x in step.readings],
                "question": None if step.question is None else dict(vars(step.question)),
            }
            for step in lesson.steps
        ],
    }
