"""Lessons: steps beside a live page, one TOML file each, with questions whose answers the mechanism itself computes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import unknown_name
from ...loading import load
from ...page.data import system_data
from ...page.kernel import Progress
from ...page.writer import Page, page_path, written_page
from ...system import System
from .reading import Lesson, Question, Reading, Step, evaluate_formula, page_tree, read_lesson

_FOLDER = Path(__file__).parent
ORDER = (
    "pendulum",
    "planar_arms",
    "two_links_by_hand",
    "dh_frames",
    "dh_conventions",
    "stanford_arm",
    "spatial_operators",
    "branching_tree",
    "four_bar_linkage",
    "four_bar_multipliers",
    "double_pendulum",
    "equimomental_points",
    "biped_on_one_foot",
    "hanging_rope",
    "seven_steps_of_charmie",
)
"""The names of the lessons, in the order in which they build on each other."""


def names() -> tuple[str, ...]:
    """Return the names of the lessons."""
    return ORDER


def find(name: str) -> Lesson:
    """Return a lesson by its name."""
    if name not in ORDER:
        raise unknown_name("lesson", name, ORDER)
    return read_lesson(_FOLDER / f"{name}.toml")


__all__ = ["Lesson", "Question", "Reading", "Step", "find", "names", "read_lesson"]


# --- Pages of lessons: the live page of a mechanism with a column of steps, in one HTML file ---


def lesson(name: str | Lesson, path: str | Path | None = None) -> Page:
    """Return a lesson as a page: a live mechanism with steps and questions; write it with a `path`.

    `kinetree lesson` lists the names.
    """
    if path is not None:
        page_path(path)  # before the work
    return written_page(lesson_content(find(name) if isinstance(name, str) else name)[1], path)


def lesson_content(lesson: Lesson, progress: Progress = lambda share: None) -> tuple[System, dict[str, object]]:
    """Return the mechanism of a lesson, and the data of its page."""
    system = load(lesson.mechanism)
    start = evaluate_formula(lesson.start, {}) if lesson.start else None
    edited = any(step.setting.get("mode") == "Build" for step in lesson.steps)
    data = system_data(system, q=start, editable=edited, progress=progress)
    return system, data | {"title": lesson.title, "lesson": lesson_data(lesson)}


def lesson_data(lesson: Lesson) -> dict[str, object]:
    """Return a lesson as plain tables."""
    return {
        "name": lesson.name,
        "title": lesson.title,
        "steps": [
            {
                "title": step.title,
                "text": step.text,
                "do": step.do,
                "set": {name: _setting(x, always=name in ("q", "qd")) for name, x in step.setting.items()},
                "look": step.look,
                "readings": [{"name": x.name, "unit": x.unit, "value": page_tree(x.value)} for x in step.readings],
                "question": None if step.question is None else _question(step.question),
            }
            for step in lesson.steps
        ],
    }


def _question(question: Question) -> dict[str, object]:
    given = {name: page_tree(formula) for name, formula in question.given.items()}
    return dict(vars(question)) | {"answer": page_tree(question.answer), "given": given}


def _setting(x: object, *, always: bool = False) -> Any:
    """Return what a step sets with formulas as their trees: texts that begin with "[", or `always`."""
    if isinstance(x, Mapping):
        return {name: _setting(value) for name, value in x.items()}
    return {"formula": page_tree(x)} if isinstance(x, str) and (always or x.startswith("[")) else x
