"""Time histories as figures for print: one panel per quantity, or several curves in one panel."""

from __future__ import annotations

import io
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from math import floor, log10
from pathlib import Path
from typing import Any, Literal, cast
from weakref import ref

import numpy as np
from numpy.typing import ArrayLike

from .._support.atomic import replacing
from .._support.optional import missing
from ..errors import InputError
from .links import COLORS

try:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ImportError:
    raise missing("matplotlib", "Figures", "plots") from None

INK = "#1f3a5f"
DASHES = ("-", "--", "-.", ":")
"""Dash patterns of the curves in one panel, one after the other, beside their COLORS."""
ROUNDING = 1e-9
"""Variation, relative to comparable quantities, below which a curve is drawn as constant."""

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
    name: str = "",
    beside: Mapping[str, ArrayLike] | None = None,
) -> Path:
    """Draw each column of `values` [n, k] over the time t [s] in a panel of its own; return the file.

    Small quantities are drawn in thousandths or millionths of their unit, with the prefix in the label. A quantity that
    is zero but for rounding, compared with the others of its unit, is drawn as a flat line. Values `beside` them
    [n, k], by name, are drawn in the same panels; a legend has their names and the `name` of the values.
    """
    times, data = np.asarray(t), np.asarray(values)
    others = {key: np.asarray(x) for key, x in (beside or {}).items()}
    rows = -(-data.shape[1] // columns)
    peaks = np.abs(np.stack([data, *others.values()])).max(axis=(0, 1))
    with _style():
        figure = _figure((3.3 * columns, 1.75 * rows + 0.45))
        grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
        for k, axes in enumerate(grid.flat):
            if k >= data.shape[1]:
                axes.set_visible(False)
                continue
            scale = max(x for x, unit in zip(peaks.tolist(), units, strict=True) if unit == units[k])
            factor, prefix = _prefix(float(peaks[k])) if peaks[k] > ROUNDING * scale else (1.0, "")
            axes.plot(times, factor * data[:, k], color=INK, label=name)
            for n, (key, other) in enumerate(others.items(), 1):
                axes.plot(times, factor * other[:, k], color=COLORS[n % 8], linestyle=DASHES[n % 4], label=key)
            if others and k == 0:
                axes.legend(handlelength=2.6, fontsize=8.0, loc="best")
            axes.set_title(f"({chr(ord('a') + k)}) {titles[k]}", loc="left")
            axes.set_ylabel(f"{symbols[k]}  [{prefix}{units[k]}]")
            shown = np.concatenate([x[:, k] for x in (data, *others.values())])
            _frame(axes, times, factor * shown, scale=factor * scale)
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
    return matplotlib.rc_context(cast(Any, STYLE))


ORIGIN = {".png": "Software", ".svg": "Creator", ".pdf": "Creator", ".ps": "Creator", ".eps": "Creator"}
"""Metadata keys for the program's name in a picture, by suffix of its file; Matplotlib refuses other keys."""


def _figure(size: tuple[float, float], layout: Layout = "constrained") -> Picture:
    """Return an empty figure of a width and height [in]."""
    return Picture(size, layout)


def _frame(axes, times: np.ndarray, data: np.ndarray, *, ticks: int = 5, scale: float = 0.0) -> None:
    """Fit the axes, with room about a curve that is constant, and draw the zero line if the data cross it.

    Variations below rounding of the `scale` of comparable quantities count as none.
    """
    from matplotlib.ticker import MaxNLocator

    axes.set_xlim(times[0], times[-1])
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=ticks, steps=[1, 2, 5, 10]))
    low, high = float(data.min()), float(data.max())
    if high - low <= ROUNDING * max(abs(low), abs(high), scale):
        room = 0.1 * scale or 1.0
        axes.set_ylim(low - room, high + room)
    else:
        axes.margins(y=0.08)
    if low < 0 < high:
        axes.axhline(0.0, color="#808080", linewidth=0.6, zorder=1)


def _save(figure, path: str | Path, heading: str) -> Path:
    if heading:
        figure.suptitle(heading, x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    return save_picture(figure, path)


def finish_figure(figure: Picture, path: str | Path | None) -> Picture | Path:
    """Write a complete figure and return the path; without one, open the figure in pyplot, so that it appears."""
    if path is not None:
        with _style():
            return save_picture(figure, path)

    open_in_pyplot(figure)
    return figure


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


# --- Figures that appear like pyplot's: in a notebook, and in a script at plt.show() ---

MOST = 20
"""The most figures that stay open in pyplot, where its own number, above which it warns, is switched off."""

Layout = Literal["constrained"] | None

_opened: deque[ref[Picture]] = deque()


class Picture(Figure):
    """A figure without a window and without global state, until `open_in_pyplot`."""

    def __init__(self, size: tuple[float, float], layout: Layout) -> None:
        """Make an empty figure of a width and height [in]."""
        super().__init__(figsize=size, layout=layout)
        FigureCanvasAgg(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        """Close the figure in a notebook's pyplot, which would display it again at the end of the cell."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot and "inline" in matplotlib.get_backend():
            pyplot.close(self)
        return {}  # the picture has the notebook's own format, or of _repr_png_

    def _repr_png_(self) -> bytes:
        """Return the picture for notebooks that do not use pyplot."""
        written = io.BytesIO()
        self.savefig(written, format="png", dpi=self.dpi)
        return written.getvalue()


def open_in_pyplot(figure: Picture) -> None:
    """Add a figure to pyplot's, and close the oldest of ours above the number at which pyplot warns.

    Threads other than the main one must not open windows; their figures are only returned.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    import matplotlib.pyplot as plt

    most = plt.rcParams["figure.max_open_warning"] or MOST
    while _opened and len(plt.get_fignums()) >= most:
        oldest = _opened.popleft()()
        if oldest is not None:
            plt.close(oldest)
    plt.figure(FigureClass=lambda **_: figure)  # type: ignore[arg-type]
    _opened.append(ref(figure))
