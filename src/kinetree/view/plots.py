"""Time histories as figures for print: one panel per quantity, or several curves in one panel."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from math import floor, log10
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..results.files.atomic import replacing

INK = "#1f3a5f"
COLORS = ("#1f3a5f", "#c8553d", "#3a7d44", "#8d6a9f", "#b8860b", "#4a8fb0", "#6b6b6b", "#a03060")
"""Colors of curves in one panel, distinct also in gray and for color-blind readers; each has its own dash pattern."""
DASHES = ("-", "--", "-.", ":")

STYLE = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 10.0,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#404040",
    "axes.grid": True,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "axes.formatter.use_mathtext": True,
    "axes.formatter.limits": (-3, 4),
    "lines.linewidth": 1.4,
    "lines.solid_capstyle": "round",
    "xtick.color": "#404040",
    "ytick.color": "#404040",
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "xtick.direction": "out",
    "legend.frameon": False,
    "figure.dpi": 100.0,
    "savefig.dpi": 200.0,
}


def panels(
    path: str | Path,
    t: ArrayLike,
    values: ArrayLike,
    *,
    titles: Sequence[str],
    symbols: Sequence[str],
    units: Sequence[str],
    heading: str = "",
    columns: int = 2,
    beside: ArrayLike | None = None,
) -> Path:
    """Draw each column of `values` [n, k] over the time t [s] in a panel of its own; return the file.

    Small quantities are drawn in thousandths or millionths of their unit, with the prefix in the label. Values `beside`
    them [n, k] are drawn dashed in the same panels.
    """
    times, data = np.asarray(t), np.asarray(values)
    rows = -(-data.shape[1] // columns)
    with _style():
        figure = _figure((3.3 * columns, 1.75 * rows + 0.45))
        grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
        for k, axes in enumerate(grid.flat):
            if k >= data.shape[1]:
                axes.set_visible(False)
                continue
            factor, prefix = _prefix(float(np.abs(data[:, k]).max()))
            axes.plot(times, factor * data[:, k], color=INK)
            shown = [data[:, k]]
            if beside is not None:
                shown.append(np.asarray(beside)[:, k])
                axes.plot(times, factor * shown[1], color=COLORS[1], linestyle="--")
            axes.set_title(f"({chr(ord('a') + k)}) {titles[k]}", loc="left")
            axes.set_ylabel(f"{symbols[k]}  [{prefix}{units[k]}]")
            _frame(axes, times, factor * np.concatenate(shown))
            if k + columns >= data.shape[1]:
                axes.set_xlabel("time  [s]")
                axes.tick_params(labelbottom=True)
        figure.align_ylabels()
        return _save(figure, path, heading)


def curves(
    path: str | Path,
    t: ArrayLike,
    values: ArrayLike,
    *,
    names: Sequence[str],
    label: str,
    heading: str = "",
) -> Path:
    """Draw the columns of `values` [n, k] over the time t [s] as curves in one panel; return the file."""
    times, data = np.asarray(t), np.asarray(values)
    with _style():
        figure = _figure((5.2, 3.3))
        axes = figure.subplots()
        for k, name in enumerate(names):
            axes.plot(times, data[:, k], color=COLORS[k % 8], linestyle=DASHES[k % 4], label=name)
        axes.set_xlabel("time  [s]")
        axes.set_ylabel(label)
        axes.legend(ncols=1, handlelength=2.6, loc="best")
        _frame(axes, times, data, ticks=8)
        return _save(figure, path, heading)


def _prefix(peak: float) -> tuple[float, str]:
    """Return the factor and the symbol of the unit prefix that suits a peak: none, milli or micro."""
    if peak == 0 or peak >= 0.01:
        return 1.0, ""
    steps = min(2, -floor(log10(peak) / 3))
    return 1e3**steps, ("", "m", r"$\mu$")[steps]


def _style() -> AbstractContextManager[Any]:
    import matplotlib

    return matplotlib.rc_context(cast(Any, STYLE))


ORIGIN = {".png": "Software", ".svg": "Creator", ".pdf": "Creator", ".ps": "Creator", ".eps": "Creator"}
"""Metadata keys for the program's name in a picture, by suffix of its file; Matplotlib refuses other keys."""


def _figure(size: tuple[float, float]):
    """Return a figure that only writes files: no window, no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _frame(axes, times: np.ndarray, data: np.ndarray, ticks: int = 5) -> None:
    """Fit the axes, with room about a constant curve, and draw the zero line if the data cross it."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlim(times[0], times[-1])
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=ticks, steps=[1, 2, 5, 10]))
    low, high = float(data.min()), float(data.max())
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        axes.set_ylim(low - 1.0, high + 1.0)
    else:
        axes.margins(y=0.08)
    if low < 0 < high:
        axes.axhline(0.0, color="#808080", linewidth=0.6, zorder=1)


def _save(figure, path: str | Path, heading: str) -> Path:
    if heading:
        figure.suptitle(heading, x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    return save_picture(figure, path)


def save_picture(figure: Any, path: str | Path, **options: Any) -> Path:
    """Write a figure, in the format of the suffix, and return the path."""
    path = Path(path)
    known = figure.canvas.get_supported_filetypes()
    if path.suffix.lower()[1:] not in known:
        raise InputError(f"{path}: is not the name of a picture; use one that ends with .{', .'.join(sorted(known))}")
    with replacing(path) as written:
        figure.savefig(written, metadata=metadata(path), **options)
    return path


def metadata(path: Path) -> dict[str, str] | None:
    """Return the program's name under the metadata key of a picture's format, or None if the format has no key."""
    key = ORIGIN.get(path.suffix.lower())
    return None if key is None else {key: "Kinetree"}
