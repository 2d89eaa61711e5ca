"""The actions that a page of the studio may call, by name: functions of a Studio and of plain values.

An action returns a table of plain values and arrays. Errors of Kinetree become one sentence in the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .files import files, gallery, leave_lesson, lessons, open_file, open_lesson, open_library, page_file, save_file
from .model import build, doctor
from .runs import batch, run_options, simulate
from .structure import cut, reshape

Action = Callable[..., Mapping[str, Any]]

ACTIONS: dict[str, Action] = {
    "gallery": gallery,
    "open_library": open_library,
    "lessons": lessons,
    "open_lesson": open_lesson,
    "leave_lesson": leave_lesson,
    "files": files,
    "open_file": open_file,
    "save_file": save_file,
    "page_file": page_file,
    "build": build,
    "doctor": doctor,
    "run_options": run_options,
    "simulate": simulate,
    "batch": batch,
    "cut": cut,
    "reshape": reshape,
}
