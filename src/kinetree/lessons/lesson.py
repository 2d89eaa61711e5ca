"""The data of a lesson: a mechanism, and steps with text, a setting of the page, readings and a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TOLERANCE = 0.01
"""The relative error of an answer that counts as right, unless a question states its own."""


@dataclass(frozen=True)
class Reading:
    """A number that the page shows while the mechanism moves: a name, a unit, and a formula of q, qd and t."""

    name: str
    unit: str
    value: str


@dataclass(frozen=True)
class Question:
    """A number to find: the answer is a formula of the mechanism's functions at given values.

    `given` has formulas by name, which may use those before them. An answer counts as right if its error is at most
    `within` times the right number. `hint` follows a wrong answer, `why` the right one.
    """

    ask: str
    unit: str
    answer: str
    given: Mapping[str, str] = field(default_factory=dict)
    within: float = TOLERANCE
    hint: str = ""
    why: str = ""


@dataclass(frozen=True)
class Step:
    """A step: its text, a button that sets the page, what to look at, readings, and perhaps a question.

    `setting` has the fields of the page by name: a mode, a state, curves. Texts in it that are formulas are evaluated.
    """

    title: str
    text: str
    do: str = ""
    setting: Mapping[str, Any] = field(default_factory=dict)
    look: str = ""
    readings: tuple[Reading, ...] = ()
    question: Question | None = None


@dataclass(frozen=True)
class Lesson:
    """A lesson: a title, a mechanism of the library, one sentence on what it teaches, and its steps."""

    name: str
    title: str
    mechanism: str
    summary: str
    minutes: int
    steps: tuple[Step, ...]
    start: str = ""


__all__ = ["TOLERANCE", "Lesson", "Question", "Reading", "Step"]
