"""Parts of reports as web pages: charts as SVG, sections, tables, the replay, and the page around them.

A page with a strict policy allows no style attributes. Colors and dashes are therefore classes (c0, c1, ...) of the
page's style sheet or plain SVG attributes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from .._support.atomic import replacing
from ..algebra.scalars import Numbers
from ..page.data import run_data
from ..page.file import bundle, fill_template, texts
from ..results.trajectory import Trajectory

WIDTH, HEIGHT = 540, 190
"""Size of a chart [px], scaled with the width of the page."""
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 24, 34
"""Margins of the plot in a chart [px], for labels and ticks."""
POINTS = 420
"""The most points of a curve; of more samples, the least and largest of every group are drawn."""

_ids = count()


@dataclass(frozen=True)
class Curve:
    """A curve: x and y [n], a label for the legend ("" for none), and its class in the style sheet, such as "c0"."""

    x: Numbers
    y: Numbers
    label: str = ""
    look: str = "c0"


@dataclass(frozen=True)
class Band:
    """A shaded area between two curves, x, low and high [n]."""

    x: Numbers
    low: Numbers
    high: Numbers


@dataclass(frozen=True)
class Mark:
    """A dot at a point with a label beside it."""

    x: float
    y: float
    label: str = ""


def chart(
    curves: Sequence[Curve],
    *,
    title: str,
    xlabel: str = "time [s]",
    ylabel: str,
    marks: Sequence[Mark] = (),
    bands: Sequence[Band] = (),
    xspan: tuple[float, float] | None = None,
    yspan: tuple[float, float] | None = None,
    filled: bool = False,
    over_time: bool = True,
    height: int = HEIGHT,
) -> str:
    """Return a chart as HTML: a figure with a title, the plot, and a legend if curves have labels.

    `filled` shades the area between the first curve and zero: above zero as motoring, below as braking.
    """
    x0, x1 = xspan or _span([c.x for c in curves], pad=0.0)
    shown = [c.y for c in curves] + [y for band in bands for y in (band.low, band.high)]
    y0, y1 = yspan or _span([*shown, np.array([0.0])], pad=0.2 if marks else 0.08)
    box = _Box(x0, x1, y0, y1, height)
    parts = [_frame(box, xlabel, ylabel)]
    clip = f"clip{next(_ids)}"
    parts.append(
        f'<clipPath id="{clip}"><rect x="{LEFT}" y="{TOP - 2}" width="{WIDTH - LEFT - RIGHT}" '
        f'height="{height - TOP - BOTTOM + 4}"/></clipPath>'
    )
    parts.append(f'<g clip-path="url(#{clip})">')
    if filled and curves:
        parts += [_area(box, curves[0], sign) for sign in (1.0, -1.0)]
    parts += [_band(box, band) for band in bands]
    parts += [f'<path class="curve {c.look}" d="{_path(box, *_thin_out(c.x, c.y))}"/>' for c in curves]
    parts.append("</g>")
    parts += [_mark(box, mark) for mark in marks if math.isfinite(mark.x) and math.isfinite(mark.y)]
    if over_time:
        parts.append(f'<line class="cursor" x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{height - BOTTOM}"/>')
    span = f' data-t0="{x0!r}" data-t1="{x1!r}" data-x0="{LEFT}" data-x1="{WIDTH - RIGHT}"' if over_time else ""
    kind = "chart timed" if over_time else "chart"
    svg = f'<svg class="{kind}"{span} viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
    legend = "".join(_legend_entry(c) for c in curves if c.label)
    below = f'<p class="legend">{legend}</p>' if legend else ""
    return f"<figure><figcaption>{escape(title)}</figcaption>{svg}{''.join(parts)}</svg>{below}</figure>"


@dataclass(frozen=True)
class _Box:
    """The range of a plot, and the conversion of its numbers to pixels."""

    x0: float
    x1: float
    y0: float
    y1: float
    height: int

    def x(self, value: Numbers | float) -> Numbers | float:
        return LEFT + (value - self.x0) / ((self.x1 - self.x0) or 1.0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: Numbers | float) -> Numbers | float:
        return self.height - BOTTOM - (value - self.y0) / ((self.y1 - self.y0) or 1.0) * (self.height - TOP - BOTTOM)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers inside a range: multiples of 1, 2 or 5 times a power of ten."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(k * power for k in (1.0, 2.0, 5.0, 10.0) if k * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _span(values: Sequence[Numbers], pad: float) -> tuple[float, float]:
    low = min((float(x.min()) for x in values if len(x)), default=0.0)
    high = max((float(x.max()) for x in values if len(x)), default=1.0)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-300):
        return low - (0.5 * abs(low) or 1.0), high + (0.5 * abs(high) or 1.0)
    room = pad * (high - low)
    return low - (room if low < 0.0 else 0.0), high + (room if high > 0.0 else 0.0)


def _frame(box: _Box, xlabel: str, ylabel: str) -> str:
    """Return grid lines, ticks with their numbers, the zero line and the labels of the axes."""
    parts = []
    bottom = box.height - BOTTOM
    xs, ys = ticks(box.x0, box.x1, 7), ticks(box.y0, box.y1, 5)
    for value, text in zip(ys, _numbers(ys), strict=True):
        y = box.y(value)
        kind = "zero" if value == 0.0 and box.y0 < 0.0 else "grid"
        parts.append(f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick end" x="{LEFT - 6}" y="{y + 3.5:.1f}">{text}</text>')
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>')
    for value, text in zip(xs, _numbers(xs), strict=True):
        x = box.x(value)
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}"/>')
        parts.append(f'<text class="tick middle" x="{x:.1f}" y="{bottom + 15}">{text}</text>')
    parts.append(f'<text class="label end" x="{WIDTH - RIGHT}" y="{box.height - 4}">{escape(xlabel)}</text>')
    parts.append(f'<text class="label" x="4" y="12">{escape(ylabel)}</text>')
    return "".join(parts)


def _numbers(values: Sequence[float]) -> list[str]:
    """Return numbers of one axis with the same count of decimals."""
    step = values[1] - values[0] if len(values) > 1 else abs(values[0]) or 1.0
    largest = max(abs(x) for x in values)
    if largest >= 1e6 or step < 1e-4:
        return [f"{x:.3g}" for x in values]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{x + 0.0:.{decimals}f}" for x in values]


def _thin_out(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """Return few points of a curve that keep its extremes."""
    if len(x) <= POINTS:
        return x, y
    kept = {0, len(x) - 1}
    for part in np.array_split(np.arange(len(x)), POINTS // 2):
        kept |= {int(part[np.argmin(y[part])]), int(part[np.argmax(y[part])])}
    order = np.array(sorted(kept))
    return x[order], y[order]


def _path(box: _Box, x: Numbers, y: Numbers) -> str:
    points = np.stack([np.asarray(box.x(x)), np.asarray(box.y(y))], axis=-1)
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)


def _band(box: _Box, band: Band) -> str:
    x, low = _thin_out(band.x, band.low)
    back, high = _thin_out(band.x, band.high)
    return f'<path class="band" d="{_path(box, x, low)}L{_path(box, back[::-1], high[::-1])[1:]}Z"/>'


def _area(box: _Box, curve: Curve, sign: float) -> str:
    x, y = _thin_out(curve.x, curve.y)
    part = np.maximum(sign * y, 0.0) * sign
    if not part.any():
        return ""
    ends = f"M{box.x(float(x[0])):.1f} {box.y(0.0):.1f}L"
    back = f"L{box.x(float(x[-1])):.1f} {box.y(0.0):.1f}Z"
    return f'<path class="{"motoring" if sign > 0 else "braking"}" d="{ends}{_path(box, x, part)[1:]}{back}"/>'


def _mark(box: _Box, mark: Mark) -> str:
    """Return a dot with its label on the side that has room, and inside the plot."""
    x, y = float(box.x(mark.x)), float(box.y(mark.y))
    wide = 6.0 * len(mark.label)
    right = x + 8 + wide <= WIDTH - RIGHT
    above = y - 16 >= TOP and (mark.y >= 0.0 or y + 16 > box.height - BOTTOM)
    at = x + 8 if right else max(x - 8, LEFT + wide)
    low = y - 7 if above else y + 15
    side = "" if right else " end"
    text = f'<text class="note{side}" x="{at:.1f}" y="{low:.1f}">{escape(mark.label)}</text>' if mark.label else ""
    return f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>{text}'


def _legend_entry(curve: Curve) -> str:
    line = f'<svg class="swatch" viewBox="0 0 26 10"><path class="curve {curve.look}" d="M1 5H25"/></svg>'
    return f"<span>{line}{escape(curve.label)}</span>"


# --- Parts of reports as web pages: sections, tables, the stage of a replay, and the page around them ---


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
    """Return a report as a page; `data` describe its replay, None for a page without one, which has no script."""
    moving = data is not None
    script = bundle("page/report/report.js") if moving else ""
    style = texts([*(["js/stage.css"] if moving else []), "report/report.css"])
    return fill_template(
        "report/page.html",
        script,
        style,
        data or {},
        TITLE=escape(title),
        SUBTITLE=escape(subtitle),
        SUMMARY=summary,
        MOTION=motion,
        BODY=body,
    )


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
