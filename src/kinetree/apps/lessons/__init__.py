"""Lessons: steps beside a live page, one TOML file each, with questions whose answers the mechanism itself computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import unknown_name
from .reading import Lesson, Question, Reading, Step, read_lesson

_FOLDER = Path(__file__).parent
ORDER = (
    "pendulum",
    "planar_arms",
    "dh_frames",
    "stanford_arm",
    "four_bar_linkage",
    "double_pendulum",
    "biped_on_one_foot",
    "hanging_rope",
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


def lesson(name: str, path: str | Path | None = None) -> Any:
    """Return a lesson as a page: a live mechanism with steps and questions; write it with a `path`.

    `kinetree lesson` lists the names.
    """
    from .page import lesson_page

    return lesson_page(name, path)
