"""Bars as SVG elements inside a page: rows of bars with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ..reporting.tables import figure
from .svg_charts import ticks

WIDTH, LEFT, RIGHT, TOP = 540, 150, 118, 6
"""Size and margins of a chart [px], scaled with the width of the page; names are on the left, numbers on the right."""
THICK, GAP = 11, 10
"""The thickness of a bar, and the distance of rows [px]."""
LONGEST = 22
"""The most characters of a name beside its bars; the whole name is its title."""


@dataclass(frozen=True)
class Bar:
    """A bar: its value, the half width of its interval, and its class in the style sheet."""

    value: float
    margin: float = 0.0
    look: str = ""


def bar_chart(rows: Sequence[tuple[str, Sequence[Bar]]], *, title: str) -> str:
    """Return a chart as HTML: a row per name with its bars, from zero to the right."""
    ends = [bar.value + bar.margin for _, bars in rows for bar in bars]
    low = min(0.0, *(bar.value - bar.margin for _, bars in rows for bar in bars))
    high = max([*ends, low]) or 1.0
    scale = (WIDTH - LEFT - RIGHT) / (high - low)

    def x(value: float) -> float:
        return LEFT + (value - low) * scale

    y, parts = float(TOP), []
    for name, bars in rows:
        middle = y + 0.5 * THICK * len(bars) + 4
        short = name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
        parts.append(
            f'<text class="note end" x="{LEFT - 8}" y="{middle:.1f}">{escape(short)}'
            f"<title>{escape(name)}</title></text>"
        )
        for bar in bars:
            begin, wide = x(min(0.0, bar.value)), abs(bar.value) * scale
            parts.append(
                f'<rect class="bar {bar.look}" x="{begin:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{THICK - 2}"/>'
            )
            if bar.margin:
                a, b, at = x(bar.value - bar.margin), x(bar.value + bar.margin), y + 0.5 * THICK - 1
                parts.append(f'<path class="whisker" d="M{a:.1f} {at:.1f}H{b:.1f}"/>')
            parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{y + THICK - 2:.1f}">{escape(_number(bar))}</text>')
            y += THICK
        y += GAP
    grid = [
        f'<path class="{"axis" if value == 0.0 else "grid"}" d="M{x(value):.1f} 0V{y:.0f}"/>'
        f'<text class="tick middle" x="{x(value):.1f}" y="{y + 13:.1f}">{value:.3g}</text>'
        for value in ticks(low, high, 5)
    ]  # fmt: skip
    svg = f'<svg class="chart" viewBox="0 0 {WIDTH} {y + 18:.0f}" role="img" aria-label="{escape(title)}">'
    return f"<figure><figcaption>{escape(title)}</figcaption>{svg}{''.join([*grid, *parts])}</svg></figure>"


def _number(bar: Bar) -> str:
    return f"{figure(bar.value, 3)} +- {figure(bar.margin, 1)}" if bar.margin else figure(bar.value, 3)
