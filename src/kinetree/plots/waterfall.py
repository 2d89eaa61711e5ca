"""Waterfall charts of the ledger of torques: one step per cause, from zero to the torque."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from .figures import COLORS, INK, _figure, _prefix, _save, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..analysis.ledger import Ledger

CAUSE_COLORS = {
    "inertia": COLORS[5],
    "convective": COLORS[3],
    "gravity": COLORS[2],
    "external": COLORS[1],
    "armature": COLORS[6],
    "friction": COLORS[4],
}
PATCH = {"boxstyle": "square,pad=0.08", "facecolor": "white", "edgecolor": "none"}
SHADES = ("#4a8fb0", "#9cc3d5")
"""Colors of bodies, which alternate so that neighboring steps differ."""


def waterfall(
    path: str | Path,
    ledger: Ledger,
    *,
    axes: Sequence[int | str] | None = None,
    by: str = "cause",
    columns: int = 3,
    heading: str = "",
) -> Path:
    """Draw one panel per axis of a ledger of one state, with steps by "cause" or by "body"; return the file.

    Shares that are zero for every axis shown are left out. Friction is a separate step after the torque.
    """
    if ledger.torque.ndim != 1:
        raise InputError(f"the ledger holds states of shape {ledger.torque.shape[:-1]}; a waterfall shows one of them")
    if by not in ("cause", "body"):
        raise InputError(f"by is {by!r}; expected 'cause' or 'body'")
    shown = [ledger.index(a) for a in (range(len(ledger.axes)) if axes is None else axes)]
    if not shown:
        raise InputError("a waterfall needs at least one axis")
    shares = _shares(ledger, by, shown)
    columns = min(columns, len(shown))
    rows = -(-len(shown) // columns)
    with _style():
        width = max(2.6, 0.42 * (len(shares) + 2) + 0.9)
        figure = _figure((width * columns, 2.3 * rows + 0.5))
        grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
        for k, panel in enumerate(grid.flat):
            if k >= len(shown):
                panel.set_visible(False)
                continue
            _panel(panel, shown[k], shares, ledger)
            panel.tick_params(labelbottom=k + columns >= len(shown))
        return _save(figure, path, heading)


def _shares(ledger: Ledger, by: str, shown: list[int]) -> dict[str, tuple[np.ndarray, str]]:
    """Return the steps, each with its color; the last ones belong to the drives."""
    parts = ledger.by_cause if by == "cause" else {**ledger.by_body, "armature": ledger.armature}
    size = float(np.abs(ledger.parts).max(initial=0.0)) or 1.0
    out = {}
    for k, (name, values) in enumerate(parts.items()):
        if np.abs(values[shown]).max() > 1e-12 * size:
            color = CAUSE_COLORS.get(name) if by == "cause" or name == "armature" else SHADES[k % 2]
            out[name] = values, color
    if np.any(ledger.friction[shown]):
        out["friction"] = ledger.friction, CAUSE_COLORS["friction"]
    return out


def _panel(panel: Axes, axis: int, shares: dict[str, tuple[np.ndarray, str]], ledger: Ledger) -> None:
    """Draw the steps of one axis, each from the end of the one before it, then the sum."""
    steps = [float(values[axis]) for values, _ in shares.values()]
    factor, prefix = _prefix(float(np.abs(np.cumsum([*steps, 0.0])).max()))
    at, names, tops = 0.0, [], [0.0]
    for x, (name, (_, color)) in enumerate(shares.items()):
        step = factor * steps[x]
        panel.bar(x, step, 0.68, bottom=at, color=color, edgecolor="white", linewidth=0.5)
        end = at + step
        panel.plot([x - 0.34, x + 1.34], [end, end], color="#707070", linewidth=0.7)
        names.append(name)
        tops += [end]
        at = end
    total = factor * float(ledger.with_friction[axis])
    panel.bar(len(shares), total, 0.68, color=INK, edgecolor="white", linewidth=0.5)
    panel.axhline(0.0, color="#404040", linewidth=0.8)
    last = "with friction" if "friction" in names else "torque"
    panel.set_xticks(range(len(names) + 1), [*names, last], rotation=55, ha="right", rotation_mode="anchor")
    panel.set_xlim(-0.6, len(names) + 0.6)
    panel.grid(axis="x", visible=False)
    low, high = min(tops), max(tops)
    room = 0.16 * ((high - low) or 1.0)
    panel.set_ylim(low - (room if low < 0 else 0.0), high + (room if high > 0 else 0.0))
    _label(panel, len(shares), total, room)
    panel.set_title(ledger.axes[axis], loc="left")
    panel.set_ylabel(f"[{prefix}{ledger.units[axis]}]")


def _label(panel: Axes, x: float, total: float, room: float) -> None:
    """Write the sum at the end of its bar."""
    up = total >= 0
    y = total + (0.12 if up else -0.12) * room
    text = f"{total:.3g}" if total else "0"
    panel.text(x, y, text, ha="center", va="bottom" if up else "top", fontsize=9.0, color=INK, bbox=PATCH)
