"""Curves on logarithmic axes as SVG files, in the style of the project's other figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinetree.plots.figures import COLORS, STYLE

MARKERS = "osD^vP*Xh<"
HUES = (*COLORS, "#009e8e", "#d98cb3")


@dataclass(frozen=True)
class Curve:
    """Points of one contender."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """Curves on the same axes."""

    title: str
    x: str
    y: str
    curves: Sequence[Curve]


def draw(path: Path, panels: Sequence[Panel]) -> None:
    """Draw panels side by side with one legend; a curve has the same color in all panels."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    # A fixed salt makes equal curves give equal files.
    style: Any = {**STYLE, "svg.hashsalt": "kinetree", "svg.fonttype": "path", "legend.fontsize": 8.5}
    names = list(dict.fromkeys(c.name for p in panels for c in p.curves))
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(4.3 * len(panels), 3.4 + 0.2 * (-(-len(names) // 3))), layout="constrained")
        FigureCanvasSVG(figure)
        handles = {}
        for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            for curve in panel.curves:
                k = names.index(curve.name)
                (handles[curve.name],) = axes.loglog(
                    curve.x, curve.y, color=HUES[k % 10], marker=MARKERS[k % 10], markersize=4,
                    linestyle="--" if curve.dashed else "-", label=curve.name,
                )  # fmt: skip
            axes.set_title(panel.title, loc="left")
            axes.set_xlabel(panel.x)
            axes.set_ylabel(panel.y)
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=3 if len(panels) > 1 else 2)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None, "Creator": "Kinetree"}, facecolor="white")
