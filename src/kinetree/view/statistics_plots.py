"""Figures of statistics of studies: quantile bands over time, histograms, and sensitivity indices."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .plots import COLORS, INK, _figure, _style, save_picture

if TYPE_CHECKING:
    from ..studies.statistics.bands import Bands
    from ..studies.statistics.histograms import Histogram
    from ..studies.statistics.indices import Indices

WORDS = {
    "first": "first order: alone", "total": "total: with interactions", "effect": "mean magnitude of the effect",
    "spread": "standard deviation of the effect",
}  # fmt: skip
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
        return figure if path is None else save_picture(figure, path)


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
        return figure if path is None else save_picture(figure, path)


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
                at + 0.19 - 0.38 * j, indices[name][order], 0.34, xerr=margin, color=COLORS[(0, 5)[j]],
                label=WORDS[name], error_kw={"elinewidth": 1.0, "capsize": 2.5, "ecolor": "#404040"},
            )  # fmt: skip
        axes.set_yticks(at, [indices.names[k] for k in order])
        unit = f"effect over the whole interval  [{indices.unit}]" if indices.unit else "effect over the whole interval"
        axes.set_xlabel("share of the variance" if indices.method == "sobol" else unit)
        axes.legend(loc="best", fontsize=8.0)
        text = heading if heading is not None else f"Sensitivity of {indices.measure} ({indices.method})"
        figure.suptitle(text, x=0.01, ha="left", fontsize=11.0, fontweight="bold")
        return figure if path is None else save_picture(figure, path)
