"""Figures of operation counts over the size of a mechanism, one panel per letter (M and A)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from .plots import COLORS, DASHES, _figure, _save, _style

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


def counts(
    path: str | Path,
    sizes: Sequence[int],
    panels: Mapping[str, Mapping[str, Sequence[int]]],
    *,
    label: str,
    legend: str = "",
    heading: str = "",
) -> Path:
    """Draw curves by name over `sizes`, one panel per title; return the file."""
    with _style():
        figure = _figure((3.4 * len(panels), 3.3))
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)
        for axes, (title, curves) in zip(grid.flat, panels.items(), strict=True):
            for k, (name, values) in enumerate(curves.items()):
                style = {"color": COLORS[k % 8], "linestyle": DASHES[k % 4], "marker": MARKS[k % 8]}
                axes.plot(sizes, values, label=name, markersize=3.5, **style)
            axes.set_title(title, loc="left")
            axes.set_xlabel(label)
            axes.set_xticks(list(sizes))
            axes.set_ylim(bottom=0)
        grid.flat[0].legend(title=legend or None, handlelength=2.8, loc="upper left", alignment="left")
        return _save(figure, path, heading)
