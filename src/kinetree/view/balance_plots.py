"""Figures of static balance: torques at rest over one joint as curves, over two as maps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .plots import COLORS, _figure, _style, save_picture

if TYPE_CHECKING:
    from ..algebra.arrays import Numbers
    from ..analysis.balance import Balance

MOST = 6
"""The most joints in one figure, those with the largest torques without the forces."""
SAME = 1e-9
"""The largest change of a torque by the forces, in parts of it, that is not shown."""
ROUNDING = 1e-14
"""The part of the largest torque below which an RMS is rounding error: some eps per operation."""
WORDS = {"N m": "torque", "N": "force"}
CURVES = (("with springs and other forces", "residual", "-"), ("gravity alone", "without", "--"))


def balance_plot(found: Balance, path: str | Path | None = None, *, heading: str | None = None) -> Any:
    """Draw the torques of joints that the forces act on, and return the figure; write it to `path` if given."""
    shown = _shown(found)
    with _style():
        figure = (_curves if len(found.over) == 1 else _maps)(found, shown)
        over = " and ".join(name for name, _ in found.over)
        text = heading if heading is not None else f"{found.mechanism}: torques at rest over {over}"
        figure.suptitle(text, x=0.01, ha="left", fontsize=11.0, fontweight="bold")
        return figure if path is None else save_picture(figure, path)


def _shown(found: Balance) -> list[int]:
    """Return the joints to draw: those whose torques the forces change, or all if there are none."""
    largest = np.maximum(found.peak_without, found.peak)
    change = np.abs(found.residual - found.without).reshape(-1, len(found.axes)).max(axis=0)
    changed = np.flatnonzero(change > SAME * largest)
    chosen = changed if len(changed) else np.arange(len(found.axes))
    return sorted(chosen[np.argsort(-largest[chosen], kind="stable")[:MOST]].tolist())


def _size(found: Balance, torques: Numbers, k: int) -> str:
    """Return the RMS of torques with its unit; rounding errors of the largest torque are zero."""
    size = float(np.sqrt(np.mean(torques**2)))
    rounding = ROUNDING * max(float(found.peak[k]), float(found.peak_without[k]))
    return f"{size if size > rounding else 0.0:.4g} {found.units[k]}"


def _curves(found: Balance, shown: list[int]) -> Any:
    """Return one panel per joint, with the torque under the forces and without them."""
    figure = _figure((5.6, 2.2 * len(shown) + 0.6))
    (name, x), unit = found.over[0], found.over_units[0]
    for axes, k in zip(figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0], shown, strict=True):
        for (label, field, dash), color in zip(CURVES, COLORS, strict=False):
            y = getattr(found, field)[..., k]
            axes.plot(x, y, dash, color=color, label=f"{label}: RMS {_size(found, y, k)}")
        axes.axhline(0.0, color="#808080", linewidth=0.6, zorder=1)
        axes.set_ylabel(f"{found.axes[k]}  [{found.units[k]}]")
        axes.set_xlim(x[0], x[-1])
        axes.margins(y=0.12)
        axes.legend(loc="best", fontsize=8.5)
    figure.axes[-1].set_xlabel(f"{name}  [{unit}]")
    return figure


def _maps(found: Balance, shown: list[int]) -> Any:
    """Return two maps per joint with the same colors: under the forces, and without them."""
    figure = _figure((7.4, 2.9 * len(shown) + 0.4))
    (first, x), (second, y) = found.over
    grid = figure.subplots(len(shown), 2, sharex=True, sharey=True, squeeze=False)
    for row, k in zip(grid, shown, strict=True):
        drawn = None
        most = max(float(found.peak[k]), float(found.peak_without[k])) or 1.0
        for axes, (label, field, _) in zip(row, CURVES, strict=True):
            values = getattr(found, field)[..., k]
            drawn = axes.pcolormesh(x, y, values.T, cmap="RdBu_r", vmin=-most, vmax=most, shading="gouraud")
            axes.set_title(f"{found.axes[k]}, {label}\nRMS {_size(found, values, k)}", loc="left")
            axes.grid(False)
        row[0].set_ylabel(f"{second}  [{found.over_units[1]}]")
        assert drawn is not None
        figure.colorbar(drawn, ax=list(row), label=f"{WORDS[found.units[k]]}  [{found.units[k]}]", pad=0.02)
    for axes in grid[-1]:
        axes.set_xlabel(f"{first}  [{found.over_units[0]}]")
    return figure
