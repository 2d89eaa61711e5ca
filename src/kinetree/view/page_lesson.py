"""Pages of lessons: the live page of a mechanism with a column of steps, in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..lessons import Lesson, find
from ..lessons.expressions import evaluated
from ..loading import load
from .page_writer import Page, lesson_data_page, page_path, system_data


def lesson_page(name: str | Lesson, path: str | Path | None = None) -> Page:
    """Return the page of a lesson, by its name; write it with a `path`."""
    if path is not None:
        page_path(path)  # before the work
    lesson = find(name) if isinstance(name, str) else name
    start = evaluated(lesson.start, {}) if lesson.start else None
    edited = any(step.setting.get("mode") == "Model" for step in lesson.steps)
    data = system_data(load(lesson.mechanism), q=start, editable=edited)
    return lesson_data_page(data | {"title": lesson.title, "lesson": lesson_data(lesson)}, path)


def lesson_data(lesson: Lesson) -> dict[str, Any]:
    """Return a lesson as plain tables."""
    return {
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
