"""Scripts and styles of pages: the modules that a page needs, and those that it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .page_bundle import bundle
from .page_file import texts

ENTRY, STYLES = "view/page/main.js", ("page/stage.css", "page/page.css", "page/model.css")
"""The first module of a page, and its styles: those of stage and player, of the page around them, of the mode Model."""
LESSON_ENTRY, LESSON_STYLE = "view/page/lesson_page.js", "page/lesson.css"
"""The first module of a page that may have a lesson, and the style of its column."""
STUDIO = (
    "view/page/chooser.js", "view/page/python_runs.js", "view/page/folder.js", "view/page/structure.js",
    "view/page/structure_history.js", "view/page/replacing.js",
)  # fmt: skip
"""The modules that need Python, which files leave out."""
TABLE = ("view/page/panels/model.js", "view/page/editing.js", "view/page/model_files.js")
"""The modules of the mode Model, which files without a table leave out."""


def script_of(loops: Sequence[Any], *, table: bool, lesson: bool = False) -> str:
    """Return the script of the file of a mechanism with these loops, with or without a table and a lesson."""
    unused = (*STUDIO, *(() if loops else ("view/page/panels/loops.js",)), *(() if table else TABLE))
    return bundle(LESSON_ENTRY if lesson else ENTRY, unused)


def served_script() -> str:
    """Return the script of the studio, whose page opens any mechanism and any lesson."""
    return bundle(LESSON_ENTRY)


def style_of(*, lesson: bool = False) -> str:
    """Return the style of a page, with or without the column of a lesson."""
    return texts((*STYLES, LESSON_STYLE) if lesson else STYLES)
