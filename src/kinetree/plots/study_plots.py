"""Figures of studies: curves over one quantity, maps over two, parallel coordinates, and Pareto fronts."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, unknown_name
from .figures import COLORS, DASHES, INK, _figure, _style, finish_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..studies.statistics.bands import Bands
    from ..studies.statistics.indices import Indices
    from ..studies.statistics.summary import Histogram
    from ..studies.study import Study


COLOR_MAP = "viridis"
"""The colors of measures, even in lightness and for color-blind readers."""
MOST_LINES = 2000
"""The most lines of parallel coordinates: more would cover each other. The best runs are among them."""
MOST_POINTS = 50_000
"""The most points of a scatter of runs; a Pareto front takes all runs."""
FRONT = "#c8553d"


def study_plot(
    study: Study,
    measures: Sequence[str] | str | None = None,
    path: str | Path | None = None,
    *,
    kind: str | None = None,
    heading: str | None = None,
):
    """Draw measures of a study and return the figure; write it to `path` if given.

    The `kind` is by default "curves" for one quantity, "map" for two, and "parallel" for more. "pareto" draws the first
    measure against the second, with the runs that no other run beats in both; a name with a minus sign, "-reach", is
    that of a measure to maximize. Runs that failed are left out and counted in the title.
    """
    names = [measures] if isinstance(measures, str) else list(measures or study.measures)
    for name in names:
        if name.removeprefix("-" if kind == "pareto" else "") not in study.measures:
            raise unknown_name("measure", str(name), study.measures)
    chosen = kind or {1: "curves", 2: "map"}.get(len(study.over), "parallel")
    if chosen not in KINDS:
        raise unknown_name("kind of picture", str(chosen), KINDS)
    if not study.finished.any():
        raise InputError("no run of the study finished, so there is nothing to draw; see study.failed")
    with _style():
        figure = KINDS[chosen](study, names)
        figure.suptitle(_heading(study, heading), x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    return finish_figure(figure, path)


def _heading(study: Study, heading: str | None) -> str:
    text = heading if heading is not None else f"{study.about.get('mechanism', 'study')}: {study.runs:,} runs"
    lost = study.runs - int(study.finished.sum())
    return text + (f" ({lost:,} without result)" if lost else "")


def _label(study: Study, name: str) -> str:
    unit = study.units.get(name, "")
    return f"{name}  [{unit}]" if unit else name


def _curves(study: Study, names: list[str]):
    """Return a panel per unit with the measures over the quantity; with several quantities, over the first."""
    quantity = next(iter(study.over))
    x, finished = study.column(quantity), study.finished
    units = dict.fromkeys(study.units.get(name, "") for name in names)
    figure = _figure((5.2, 2.6 * len(units) + 0.5))
    panels = np.atleast_1d(figure.subplots(len(units), 1, sharex=True))
    order = np.argsort(x, kind="stable")
    lined = len(study.over) == 1
    for axes, unit in zip(panels, units, strict=True):
        own = [name for name in names if study.units.get(name, "") == unit]
        for k, name in enumerate(own):
            y = np.where(finished, study.column(name), np.nan)[order]
            style = {"linestyle": DASHES[k % 4]} if lined else {"linestyle": "", "marker": ".", "markersize": 2.0}
            axes.plot(x[order], y, color=COLORS[k % 8], label=name, **style)
        axes.set_ylabel(_label(study, own[0]) if len(own) == 1 else f"[{unit}]")
        if len(own) > 1:
            axes.legend(loc="best", handlelength=2.6)
        axes.margins(x=0.0, y=0.08)
    panels[-1].set_xlabel(_label(study, quantity))
    return figure


def _map(study: Study, names: list[str]):
    """Return a panel per measure with its value as color over two quantities: a map of grids, points of samples."""
    if len(study.over) < 2:
        raise InputError('a map has two quantities, and the study has one; use kind="curves"')
    first, second = list(study.over)[:2]
    across = min(2, len(names))
    deep = ceil(len(names) / across)
    figure = _figure((4.4 * across, 3.4 * deep + 0.3))
    panels = figure.subplots(deep, across, squeeze=False)
    gridded = len(study.over) == 2 and len(study.dims) == 2
    for k, axes in enumerate(panels.flat):
        if k >= len(names):
            axes.set_visible(False)
            continue
        values = np.where(study.finished, study.column(names[k]), np.nan)
        axes.grid(visible=False)
        if gridded:
            drawn = _grid_map(axes, study, (first, second), values.reshape(study.shape))
        else:
            some = _some(study, MOST_POINTS)
            drawn = axes.scatter(
                study.column(first)[some],
                study.column(second)[some],
                c=values[some],
                s=6.0,
                cmap=COLOR_MAP,
                rasterized=True,
            )
        best = int(np.nanargmin(values))
        axes.plot(study.column(first)[best], study.column(second)[best], "o", mfc="none", mec=FRONT, ms=9.0, mew=1.6)
        axes.set_xlabel(_label(study, first))
        axes.set_ylabel(_label(study, second))
        axes.set_title("the circle is the smallest value", loc="left", fontsize=9.0, color="#404040")
        figure.colorbar(drawn, ax=axes, label=_label(study, names[k]))
    return figure


def _grid_map(axes: Axes, study: Study, names: tuple[str, str], values: np.ndarray) -> Any:
    x, y = (study.over[name][1] for name in names)
    if list(study.dims) != list(names):
        values = values.T
    axes.set_facecolor("#d9d9d9")  # runs that failed
    drawn = axes.pcolormesh(x, y, values.T, cmap=COLOR_MAP, shading="nearest", rasterized=True)
    if min(values.shape) > 3 and np.isfinite(values).all() and np.ptp(values) > 0:
        lines = axes.contour(x, y, values.T, levels=7, colors="white", linewidths=0.6)
        axes.clabel(lines, fontsize=7.0, fmt="%.3g")
    return drawn


def _parallel(study: Study, names: list[str]):
    """Return parallel coordinates: an axis per quantity and measure, a line per run, colored by the first measure."""
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection

    columns = [*study.over, *names]
    some = _some(study, MOST_LINES, names[0])
    data = np.stack([study.column(name)[some] for name in columns], axis=-1)
    low, high = data.min(axis=0), data.max(axis=0)
    constant = high - low <= 1e-9 * np.maximum(np.abs(low), np.abs(high))  # up to rounding
    parts = np.where(constant, 0.5, (data - low) / np.where(constant, 1.0, high - low))
    color = parts[:, columns.index(names[0])]
    order = np.argsort(-color)  # small values are drawn last, on top
    figure = _figure((max(6.0, 1.35 * len(columns)), 3.9))
    axes = figure.subplots()
    axes.grid(visible=False)
    points = np.stack(np.broadcast_arrays(np.arange(len(columns), dtype=float), parts), axis=-1)[order]
    shades = colormaps[COLOR_MAP](color[order])
    alpha = max(0.05, min(0.8, 60.0 / len(some)))
    shades[:, 3] = np.where(np.arange(len(order)) >= len(order) - 10, 1.0, alpha)
    axes.add_collection(LineCollection(list(points), colors=shades, linewidths=0.9))
    for k in range(len(columns)):
        axes.plot([k, k], [0.0, 1.0], color="#404040", linewidth=0.8)
        axes.text(k, 1.03, f"{high[k]:.4g}", ha="center", fontsize=8.0)
        axes.text(k, -0.03, f"{low[k]:.4g}", ha="center", va="top", fontsize=8.0)
    axes.set_xlim(-0.4, len(columns) - 0.6)
    axes.set_ylim(-0.1, 1.1)
    axes.set_xticks(range(len(columns)), [_label(study, name) for name in columns], rotation=20, ha="right")
    axes.set_yticks([])
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_title(f"color: {names[0]}, the ten smallest drawn in full", loc="left", fontsize=9.0, color="#404040")
    return figure


def _pareto(study: Study, names: list[str]):
    """Return the runs as points of two measures, with the Pareto front."""
    if len(names) < 2:
        raise InputError(f"a Pareto front has two measures; the study has {', '.join(study.measures)}: name two")
    some, front = _some(study, MOST_POINTS), study.pareto(*names[:2])
    a, b = (name.removeprefix("-") for name in names[:2])
    figure = _figure((5.2, 3.6))
    axes = figure.subplots()
    axes.plot(study.measures[a][some], study.measures[b][some], ".", color=INK, ms=2.5, alpha=0.35, rasterized=True)
    axes.plot(
        study.measures[a][front],
        study.measures[b][front],
        "-o",
        color=FRONT,
        ms=3.5,
        lw=1.2,
        label=f"Pareto front, {len(front)} runs",
    )
    axes.set_xlabel(_label(study, a))
    axes.set_ylabel(_label(study, b))
    axes.legend(loc="best")
    return figure


def _some(study: Study, most: int, best_by: str | None = None) -> np.ndarray:
    """Return finished runs, evenly chosen if there are many; those with the smallest of a measure are among them."""
    runs = np.flatnonzero(study.finished)
    if len(runs) <= most:
        return runs
    chosen = runs[np.linspace(0, len(runs) - 1, most).astype(int)]
    if best_by is None:
        return chosen
    lowest = runs[np.argsort(study.measures[best_by][runs])[:20]]
    return np.unique(np.concatenate([chosen, lowest]))


KINDS = {"curves": _curves, "map": _map, "parallel": _parallel, "pareto": _pareto}
"""The pictures by name."""

# --- Figures of statistics of studies: quantile bands over time, histograms, and sensitivity indices ---

WORDS = {
    "first": "first order: alone",
    "total": "total: with interactions",
    "effect": "mean magnitude of the effect",
    "spread": "standard deviation of the effect",
}
"""The meanings of indices in legends."""


def bands_plot(bands: Bands, path: str | Path | None = None, *, heading: str | None = None):
    """Draw a panel per entry and return the figure; write it to `path` if given."""
    count = len(bands.labels)
    across = min(2, count)
    with _style():
        figure = _figure((5.2 if across == 1 else 8.4, 2.3 * ceil(count / across) + 0.6))
        grid = figure.subplots(ceil(count / across), across, squeeze=False, sharex=True)
        for k, axes in enumerate(grid.flat):
            if k >= count:
                axes.set_visible(False)
                continue
            _band_panel(axes, bands, k)
        for axes in grid[-1]:
            axes.set_xlabel("time  [s]")
        text = heading if heading is not None else f"{bands.column}: {int(bands.counts.max(initial=0)):,} runs"
        figure.suptitle(text, x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    return finish_figure(figure, path)


def _band_panel(axes, bands: Bands, k: int) -> None:
    values, order = bands.values[:, :, k], np.argsort(bands.quantiles)
    pairs = len(order) // 2
    for j in range(pairs):
        low, high = order[j], order[len(order) - 1 - j]
        name = f"{100 * bands.quantiles[low]:g} to {100 * bands.quantiles[high]:g} %"
        axes.fill_between(
            bands.times, values[low], values[high], color=INK, alpha=0.12 + 0.13 * j, linewidth=0.0, label=name
        )
    if len(order) % 2:
        middle = order[pairs]
        name = "median" if bands.quantiles[middle] == 0.5 else f"{100 * bands.quantiles[middle]:g} %"
        axes.plot(bands.times, values[middle], color=INK, label=name)
    axes.set_title(bands.labels[k], loc="left")
    axes.set_ylabel(f"[{bands.unit}]" if bands.unit else "")
    axes.margins(x=0.0)
    if k == 0:
        axes.legend(loc="best", fontsize=8.0)


def histogram_plot(histogram: Histogram, path: str | Path | None = None, *, heading: str | None = None):
    """Draw a histogram with its median and return the figure; write it to `path` if given."""
    with _style():
        figure = _figure((5.2, 3.0))
        axes = figure.subplots()
        axes.stairs(histogram.counts, histogram.edges, fill=True, color=INK, alpha=0.35)
        axes.stairs(histogram.counts, histogram.edges, color=INK)
        axes.axvline(histogram.median, color=COLORS[1], linestyle="--", label=f"median {histogram.median:.4g}")
        axes.set_xlabel(f"{histogram.measure}  [{histogram.unit}]" if histogram.unit else histogram.measure)
        axes.set_ylabel("runs")
        axes.margins(x=0.0)
        axes.legend(loc="best")
        text = heading if heading is not None else f"{histogram.measure}: {histogram.finished:,} runs"
        figure.suptitle(text, x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    return finish_figure(figure, path)


def indices_plot(indices: Indices, path: str | Path | None = None, *, heading: str | None = None):
    """Draw the indices of all quantities as bars and return the figure; write it to `path` if given."""
    shown = [name for name in ("total", "first", "effect", "spread") if name in indices.values]
    order = indices.order[::-1]
    with _style():
        figure = _figure((5.6, 0.55 * len(order) + 1.5))
        axes = figure.subplots()
        axes.grid(visible=False, axis="y")
        at = np.arange(len(order))
        for j, name in enumerate(shown):
            margin = indices.margins[name][order] if name in indices.margins else None
            axes.barh(
                at + 0.19 - 0.38 * j,
                indices[name][order],
                0.34,
                xerr=margin,
                color=COLORS[(0, 5)[j]],
                label=WORDS[name],
                error_kw={"elinewidth": 1.0, "capsize": 2.5, "ecolor": "#404040"},
            )
        axes.set_yticks(at, [indices.names[k] for k in order])
        unit = f"effect over the whole interval  [{indices.unit}]" if indices.unit else "effect over the whole interval"
        axes.set_xlabel("share of the variance" if indices.method == "sobol" else unit)
        axes.legend(loc="best", fontsize=8.0)
        text = heading if heading is not None else f"Sensitivity of {indices.measure} ({indices.method})"
        figure.suptitle(text, x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    return finish_figure(figure, path)
