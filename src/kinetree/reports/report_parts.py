"""Parts of reports as web pages: sections, tables, the stage of a replay, and the page around them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from .._support.atomic import replacing
from ..algebra.arrays import Numbers
from ..page.data import run_data
from ..page.file import bundle, fill_template, texts
from ..results.trajectory import Trajectory

FRAMES = 360
"""The number of frames of the replay in the page."""
SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
"""The speeds of the player, from which the page chooses one."""
SHOWN_FOR = 4.0
"""The least time that the replay takes at its first speed, if a slower one exists [s]."""


def section(title: str, lead: str, content: str) -> str:
    """Return a section with a heading, an introduction, and content that is HTML already."""
    intro = f'<p class="lead">{escape(lead)}</p>' if lead else ""
    return f"<section><h2>{escape(title)}</h2>{intro}{content}</section>"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """Return a table of cells that are HTML already; the first columns are texts, the others numbers."""
    kinds = [' class="text"'] * texts + [""] * (len(heads) - texts)
    head = "".join(f"<th{kind}>{escape(x)}</th>" for kind, x in zip(kinds, heads, strict=True))
    lines = ["".join(f"<td{kind}>{x}</td>" for kind, x in zip(kinds, row, strict=True)) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def motion_section(title: str, lead: str, side: str) -> str:
    """Return the stage of the replay, with HTML beside it."""
    both = f'<div class="motion">\n<div id="motion"></div>\n<div class="instants">{side}</div>\n</div>'
    note = "<noscript>The replay requires JavaScript; its scripts are part of this file.</noscript>"
    return section(title, lead, both + note)


def motion_data(run: Trajectory, at: float, arrows: Any = True, share: Any = None) -> dict[str, Any]:
    """Return the data of a replay inside of a report that first shows the time `at` [s]."""
    return run_data(run, _fps(run.t), arrows, share) | {"at": at, "speed": _speed(run.t)}


def report_html(data: dict[str, Any] | None, *, title: str, subtitle: str, summary: str, motion: str, body: str) -> str:
    """Return a report as a page; `data` are those of its replay, None for a page without one, which has no script."""
    moving = data is not None
    script = bundle("page/report/report.js") if moving else ""
    style = texts([*(["js/stage.css"] if moving else []), "report/report.css"])
    return fill_template(
        "report/page.html", script, style, data or {},
        TITLE=escape(title), SUBTITLE=escape(subtitle), SUMMARY=summary, MOTION=motion, BODY=body,
    )  # fmt: skip


def write_page(path: str | Path, page: str) -> Path:
    """Write a page and return its path."""
    path = Path(path)
    with replacing(path) as written:
        written.write_text(page, encoding="utf-8")
    return path


def _fps(t: Numbers) -> float:
    """Return frames per second that show short runs in detail and keep long ones small."""
    span = float(t[-1] - t[0])
    return min(1000.0, max(5.0, FRAMES / span)) if span > 0 else 60.0


def _speed(t: Numbers) -> float:
    slow = [speed for speed in SPEEDS if float(t[-1] - t[0]) / speed >= SHOWN_FOR]
    return min(1.0, max(slow, default=SPEEDS[0]))
