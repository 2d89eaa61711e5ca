"""The report of a study as one web page: summary, failures, histograms, bands, sensitivity, and worst cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.tables import figure
from ..errors import InputError
from ..studies.searching import Choice
from ..studies.statistics.bands import Bands
from ..studies.statistics.indices import Indices
from ..studies.statistics.summary import Histogram, Summary, summary_of
from .page_parts import (
    Band,
    Curve,
    Mark,
    chart,
    motion_data,
    motion_section,
    report_html,
    section,
    table,
    ticks,
    write_page,
)

if TYPE_CHECKING:
    from ..studies.study import Study


# --- Bars as SVG elements inside a page: rows of bars with confidence intervals ---

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
    ]
    svg = f'<svg class="chart" viewBox="0 0 {WIDTH} {y + 18:.0f}" role="img" aria-label="{escape(title)}">'
    return f"<figure><figcaption>{escape(title)}</figcaption>{svg}{''.join([*grid, *parts])}</svg></figure>"


def _number(bar: Bar) -> str:
    return f"{figure(bar.value, 3)} +- {figure(bar.margin, 1)}" if bar.margin else figure(bar.value, 3)


MOST_CHARTS = 48
"""The most bands that are drawn; a note counts the others."""


def study_report(
    study: Study, path: str | Path = "report.html", *, title: str | None = None, replay: bool = True, **options: Any
) -> Path:
    """Write the report of a study and return the file; `replay` shows the worst run if its mechanism is at hand."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: is not the name of a page; use one that ends with .html")
    found = summary_of(study, **options)
    name = str(study.about.get("mechanism", "study"))
    case = _choose_replay(study, found) if replay else None
    page = report_html(
        None if case is None else _motion_data(study, case),
        title=title or f"Study of {name}",
        subtitle=_subtitle(study),
        summary=_list(found.words),
        motion="" if case is None else _motion(study, found, case),
        body="".join(_sections(study, found, timed=case is not None)),
    )
    return write_page(path, page)


def _choose_replay(study: Study, found: Summary) -> Choice | None:
    """Return the worst run by the first measure, if it can be evaluated again."""
    return None if study.plan is None or not found.worst else next(iter(found.worst.values()))[0]


def _motion_data(study: Study, case: Choice) -> dict[str, object]:
    run = study.run(case.run)
    return motion_data(run, float(run.t[0]), None)


def _subtitle(study: Study) -> str:
    dims = ", ".join(f"{name} {count:,}" for name, count in study.dims.items() if name != "run")
    about = study.about
    seed = about.get("sensitivity", about).get("seed")  # a scheme has its own
    seed = "" if seed is None else f", seed {seed}"
    made = f", Kinetree {about['kinetree']}" if "kinetree" in about else ""
    return f"{study.evaluated:,} of {study.runs:,} runs{f' ({dims})' if dims else ''}{seed}{made}"


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _motion(study: Study, found: Summary, case: Choice) -> str:
    """Return the replay of the worst run, with its values beside it."""
    measure = next(iter(found.worst))
    cells = {**case.values, **case.measures}
    side = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(_with_unit(x, study.units.get(name, '')))}</dd>"
        for name, x in cells.items()
    )
    lead = f"Run {case.run:,}, the worst by {measure}, evaluated again with the same numbers."
    return motion_section("The worst case", lead, f"<dl>{side}</dl>")


def _with_unit(x: float, unit: str) -> str:
    return f"{figure(x)} {unit}".rstrip()


def _sections(study: Study, found: Summary, *, timed: bool) -> list[str]:
    out = [section("Varied quantities", "What differs between the runs.", _quantities(study))]
    if found.failures is not None and found.failures.reasons:
        out.append(section("Failures", f"{found.failures.summary()}.", _reasons(found)))
    if found.histograms:
        charts = "".join(_histogram(x) for x in found.histograms.values())
        lead = "Each measure over all runs that finished."
        content = _measures(study, found) + f'<div class="charts">{charts}</div>'
        out.append(section("Measures", lead, content))
    if found.bands:
        out.append(_bands(found.bands, timed))
    if found.indices:
        charts = "".join(_indices(x) for x in found.indices.values())
        out.append(section("Sensitivity", _about_indices(found), f'<div class="charts">{charts}</div>'))
    if found.worst:
        lead = "Runs by their numbers; study.run(number) evaluates one again."
        tables = "".join(_worst(study, name, runs) for name, runs in found.worst.items())
        out.append(section("Worst cases", lead, tables))
    return out


def _quantities(study: Study) -> str:
    rows = []
    for name, (_, values) in study.over.items():
        known = values[np.isfinite(values)]
        ends = [figure(float(f(known))) if known.size else "-" for f in (np.min, np.max)]
        rows.append([escape(name), escape(study.units.get(name, "")), *ends])
    return table(["quantity", "unit", "smallest", "largest"], rows, texts=2)


def _reasons(found: Summary) -> str:
    failures = found.failures
    assert failures is not None
    rows = [
        [escape(reason), f"{count:,}", f"{100 * count / failures.evaluated:.3g} %"]
        for reason, count in sorted(failures.reasons.items(), key=lambda pair: -pair[1])
    ]
    return table(["reason", "runs", "share of the runs"], rows)


def _measures(study: Study, found: Summary) -> str:
    rows = []
    for name, x in found.histograms.items():
        text = str(study.about.get("measures", {}).get(name, ""))
        numbers = (x.mean, x.deviation, float(x.edges[0]), x.median, float(x.edges[-1]))
        rows.append([f"<b>{escape(name)}</b>", escape(text), escape(x.unit), *map(figure, numbers)])
    heads = ["measure", "of", "unit", "mean", "standard deviation", "smallest", "median", "largest"]
    return table(heads, rows, texts=3)


def _histogram(x: Histogram) -> str:
    edges = np.repeat(x.edges, 2)
    counts = np.concatenate([[0.0], np.repeat(x.counts, 2), [0.0]])
    label = f"{x.measure} [{x.unit}]" if x.unit else x.measure
    at = min(int(np.searchsorted(x.edges, x.median, side="right")) - 1, len(x.counts) - 1)
    return chart(
        [Curve(edges, counts)],
        title=x.measure,
        xlabel=label,
        ylabel="runs",
        filled=True,
        over_time=False,
        marks=[Mark(x.median, float(x.counts[at]), f"median {figure(x.median, 3)}")],
    )


def _bands(all_bands: Sequence[Bands], timed: bool) -> str:
    drawn = [(bands, k) for bands in all_bands for k in range(len(bands.labels))]
    charts = "".join(_band_chart(bands, k, timed) for bands, k in drawn[:MOST_CHARTS])
    levels = [f"{100 * q:g}" for q in all_bands[0].quantiles]
    pairs = ", ".join(f"{levels[j]} to {levels[-1 - j]} %" for j in range(len(levels) // 2))
    count = int(max(bands.counts.max(initial=0) for bands in all_bands))
    lead = f"Exact quantiles of {count:,} runs at every time. The line is the median, shades are {pairs} of the runs."
    more = len(drawn) - MOST_CHARTS
    note = f'<p class="small">{more} more columns are not drawn; choose columns to see them.</p>' if more > 0 else ""
    return section("Bands over time", lead, f'<div class="charts">{charts}</div>{note}')


def _band_chart(bands: Bands, k: int, timed: bool) -> str:
    values, count = bands.values[:, :, k], len(bands.quantiles)
    name = bands.labels[k] if bands.labels == (bands.column,) else f"{bands.column.partition('.')[0]}.{bands.labels[k]}"
    return chart(
        [Curve(bands.times, values[count // 2])],
        title=name,
        over_time=timed,
        ylabel=f"{name} [{bands.unit}]" if bands.unit else name,
        bands=[Band(bands.times, values[j], values[count - 1 - j]) for j in range(count // 2)],
    )


def _about_indices(found: Summary) -> str:
    one = next(iter(found.indices.values()))
    end = f"Lines are {100 * one.confidence:g} % confidence intervals, from {one.used:,} of {one.planned:,} samples."
    if one.method == "sobol":
        return f"Sobol indices: the shares of the variance of a measure that quantities cause. {end}"
    return f"Morris' method: the mean magnitude of the effect of a quantity over its whole interval. {end}"


def _indices(x: Indices) -> str:
    main, second = ("total", "first") if x.method == "sobol" else ("effect", "spread")
    words = {"total": "with interactions", "first": "alone", "effect": "mean effect", "spread": "spread of the effect"}
    rows = [
        (
            x.names[k],
            [
                Bar(float(x[name][k]), float(x.margins[name][k]) if name in x.margins else 0.0, look)
                for name, look in ((main, ""), (second, "light"))
            ],
        )
        for k in x.order
    ]
    return bar_chart(rows, title=f"{x.measure}: {words[main]} (dark), {words[second]} (light)")


def _worst(study: Study, measure: str, runs: Sequence[Choice]) -> str:
    heads = ["run", measure, *study.over, *(name for name in study.measures if name != measure)]
    units = [study.units.get(name, "") for name in heads[1:]]
    rows = [[f"{c.run:,}", *(figure({**c.values, **c.measures}[name]) for name in heads[1:])] for c in runs]
    labels = ["run", *(f"{name} [{unit}]" if unit else name for name, unit in zip(heads[1:], units, strict=True))]
    return f"<h3>By {escape(measure)}</h3>{table(labels, rows)}"
