"""Figures of analyses: stick figures of solutions, workspaces, planned motions, balance, and ledgers of torques."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..algebra.scalars import Numbers
from ..errors import InputError
from ..model.axes import axis_labels, axis_names
from ..model.topology import path as path_of_body
from .figures import COLORS, INK, Picture, _figure, _prefix, _save, _style, finish_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from mpl_toolkits.mplot3d.axes3d import Axes3D

    from ..analysis.balance import Balance
    from ..analysis.beam_loads import BeamLoads
    from ..analysis.kinematics.all_solutions import AllSolutions
    from ..analysis.kinematics.workspace import Workspace
    from ..analysis.ledger import Ledger
    from ..planning.plan import Plan
    from ..planning.time_optimal import TimedMotion


MOST = 16
"""The most solutions in one figure."""
VIEWS = ((0, 1), (0, 2), (1, 2))
FLAT = 1e-6
"""The extent of a drawing along one axis, relative to the largest, below which the mechanism is planar."""


def solutions_plot(
    found: AllSolutions, path: str | Path | None = None, *, heading: str | None = None
) -> Picture | Path:
    """Draw each solution from the ground to the frame, the frame's axes in color; write the figure to `path` if given.

    A planar mechanism is drawn in its plane, any other in perspective.
    """
    if not len(found):
        raise InputError(f"there is no solution of {found.frame!r} to draw")
    lines = _chains(found)[:MOST]
    T = found.system.pose(found.q[0], found.frame)
    extent = np.ptp(lines.reshape(-1, 3), axis=0)
    flat = [k for k in range(3) if extent[k] <= FLAT * extent.max()]
    columns = min(4, len(lines))
    with _style():
        figure = _figure((2.3 * columns + 0.4, 2.4 * ceil(len(lines) / columns) + 0.5))
        for k, line in enumerate(lines):
            place = (ceil(len(lines) / columns), columns, k + 1)
            if flat:
                _planar(figure.add_subplot(*place), line, T, flat[0], lines)
            else:
                _spatial(figure.add_subplot(*place, projection="3d"), line, T, lines)
            figure.axes[-1].set_title(f"solution {k + 1}", loc="left", fontsize=9.0)
        name = found.system.mechanism.name
        text = heading if heading is not None else f"{name}: {len(found)} positions with one pose of {found.frame}"
        figure.suptitle(text, x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    return finish_figure(figure, path)


def _chains(found: AllSolutions) -> Numbers:
    """Return the origins of the bodies from the ground to the frame, [solutions, points, 3]."""
    m = found.system.mechanism
    at = path_of_body(m, m.body_indices[m.frame(found.frame).body])
    origins = found.system.poses(found.q)[:, at][..., :3, 3]
    tip = found.system.pose(found.q, found.frame)[:, None, :3, 3]
    return np.concatenate([np.zeros((len(found.q), 1, 3)), origins, tip], axis=1)


def _spatial(axes: Axes3D, line: Numbers, T: Numbers, lines: Numbers) -> None:
    low, high = lines.reshape(-1, 3).min(axis=0), lines.reshape(-1, 3).max(axis=0)
    size = 0.5 * float((high - low).max()) or 1.0
    axes.plot(*line.T, color=INK, linewidth=2.2, marker="o", markersize=3.2)
    for k, color in enumerate(("#c8553d", "#3a7d44", "#4a8fb0")):
        axes.plot(*np.stack([T[:3, 3], T[:3, 3] + 0.35 * size * T[:3, k]]).T, color=color, linewidth=1.5)
    for k, name in enumerate("xyz"):
        middle = 0.5 * (low[k] + high[k])
        getattr(axes, f"set_{name}lim")(middle - size, middle + size)
        getattr(axes, f"set_{name}ticklabels")([])
        getattr(axes, f"set_{name}label")(name, labelpad=-12)
    axes.set_box_aspect((1, 1, 1))
    axes.view_init(elev=24, azim=-58)


def _planar(axes: Axes, line: Numbers, T: Numbers, across: int, lines: Numbers) -> None:
    i, j = (k for k in range(3) if k != across)
    axes.plot(line[:, i], line[:, j], color=INK, linewidth=2.2, marker="o", markersize=3.5)
    axes.plot(T[i, 3], T[j, 3], "o", color=COLORS[1], markersize=5.0)
    size = 1.1 * float(np.abs(lines).max())
    axes.set_xlim(-size, size)
    axes.set_ylim(-size, size)
    axes.set_aspect("equal")
    axes.set_xlabel(f"{'xyz'[i]}  [m]")
    axes.set_ylabel(f"{'xyz'[j]}  [m]")


def workspace_plot(found: Workspace, path: str | Path | None = None, *, heading: str | None = None) -> Picture | Path:
    """Draw the points from the top, the front and the side, or in their plane, colored by their manipulability."""
    order = np.argsort(found.manipulability, kind="stable")
    points, shade = found.points[order], found.manipulability[order]
    with _style():
        extent = np.ptp(points, axis=0)
        flat = [k for k in range(3) if extent[k] <= FLAT * extent.max()]
        views = [view for view in VIEWS if flat[:1] not in ([view[0]], [view[1]])]
        figure = _figure((10.0, 3.7) if len(views) > 1 else (5.2, 4.4))
        grid, drawn = figure.subplots(1, len(views), squeeze=False)[0], None
        for axes, (i, j) in zip(grid, views, strict=True):
            drawn = axes.scatter(points[:, i], points[:, j], c=shade, s=0.8, cmap="viridis", linewidths=0)
            axes.set_aspect("equal")
            axes.set_xlabel(f"{'xyz'[i]}  [m]")
            axes.set_ylabel(f"{'xyz'[j]}  [m]")
        assert drawn is not None
        figure.colorbar(drawn, ax=list(grid), label="manipulability", pad=0.02)
        name = found.system.mechanism.name
        text = heading if heading is not None else f"{name}: {len(points):,} points that {found.frame} reaches"
        figure.suptitle(text, x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    return finish_figure(figure, path)


def beam_loads_plot(found: BeamLoads, path: str | Path | None = None, *, heading: str | None = None) -> Picture | Path:
    """Draw deflection, bending moment, shear and strain along a beam, a curve per direction and state."""
    rows = [("deflection  [m]", found.deflection), ("moment  [N m]", found.moment), ("shear  [N]", found.shear)]
    if found.strain is not None:
        rows.append(("strain  [1]", found.strain[..., None]))
    with _style():
        figure = _figure((6.4, 1.7 * len(rows)))
        for axes, (label, values) in zip(figure.subplots(len(rows), 1, sharex=True), rows, strict=True):
            for k in range(values.shape[-1]):
                curves = values[..., k].reshape(-1, len(found.x)).T
                name = f"along {'yz'[k]}" if values.shape[-1] == 2 else ""
                for c, curve in enumerate(curves.T):
                    axes.plot(found.x, curve, "-" if k == 0 else "--", color=f"C{k}", lw=1.2, label="" if c else name)
            axes.set_ylabel(label)
        figure.axes[0].legend(loc="best", fontsize=8)
        figure.axes[-1].set_xlabel("x  [m]")
        text = heading if heading is not None else f"loads along {found.body}"
        figure.suptitle(text, x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    return finish_figure(figure, path)


# --- Figures of static balance: torques at rest over one joint as curves, over two as maps ---

LARGEST = 6
"""The most joints in one figure, those with the largest torques without the forces."""
SAME = 1e-9
"""The largest relative change of a torque by the forces that is not shown."""
ROUNDING = 1e-14
"""The part of the largest torque below which an RMS is rounding error: some eps per operation."""
WORDS = {"N m": "torque", "N": "force"}
CURVES = (("with springs and other forces", "residual", "-"), ("gravity alone", "without", "--"))


def balance_plot(found: Balance, path: str | Path | None = None, *, heading: str | None = None) -> Picture | Path:
    """Draw the torques of joints that the forces act on, and return the figure; write it to `path` if given."""
    shown = _select_torques(found)
    with _style():
        figure = (_curves if len(found.over) == 1 else _maps)(found, shown)
        over = " and ".join(name for name, _ in found.over)
        text = heading if heading is not None else f"{found.mechanism}: torques at rest over {over}"
        figure.suptitle(text, x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    return finish_figure(figure, path)


def _select_torques(found: Balance) -> list[int]:
    """Return the joints to draw: those whose torques the forces change, or all if there are none."""
    largest = np.maximum(found.peak_without, found.peak)
    change = np.abs(found.residual - found.without).reshape(-1, len(found.axes)).max(axis=0)
    changed = np.flatnonzero(change > SAME * largest)
    chosen = changed if len(changed) else np.arange(len(found.axes))
    return sorted(chosen[np.argsort(-largest[chosen], kind="stable")[:LARGEST]].tolist())


def _size(found: Balance, torques: Numbers, k: int) -> str:
    """Return the RMS of torques with its unit; rounding errors of the largest torque are zero."""
    size = float(np.sqrt(np.mean(torques**2)))
    rounding = ROUNDING * max(float(found.peak[k]), float(found.peak_without[k]))
    return f"{size if size > rounding else 0.0:.4g} {found.units[k]}"


def _curves(found: Balance, shown: list[int]) -> Picture:
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


def _maps(found: Balance, shown: list[int]) -> Picture:
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


# --- Planned motions ---


def timing_plot(found: TimedMotion, path: str | Path | None = None, *, heading: str | None = None) -> Picture | Path:
    """Draw the speed along the path, and what is used of each limit over time, and return the figure."""
    with _style():
        figure = _figure((7.0, 5.0))
        upper, lower = figure.subplots(2, 1)
        upper.plot(found.s, found.speed, color=INK)
        upper.set_xlabel("parameter of the path, s")
        upper.set_ylabel("ds/dt  [1/s]")
        upper.set_xlim(found.s[0], found.s[-1])
        for k, label in enumerate(found.labels):
            color, dash = COLORS[k % len(COLORS)], ("-", "--", "-.", ":")[k // len(COLORS) % 4]
            lower.plot(found.t, found.usage[:, k], dash, color=color, linewidth=1.1, label=label)
        lower.axhline(1.0, color="#808080", linewidth=0.8, zorder=1)
        lower.set_xlabel("time  [s]")
        lower.set_ylabel("part of the limit")
        lower.set_xlim(found.t[0], found.t[-1])
        lower.set_ylim(0.0, 1.08)
        lower.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8.0)
        name = found.system.mechanism.name
        text = heading if heading is not None else f"{name}: along the path in {found.duration:.4g} s"
        figure.suptitle(text, x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    return finish_figure(figure, path)


def plan_plot(found: Plan, path: str | Path | None = None, *, heading: str | None = None) -> Picture | Path:
    """Draw positions, velocities and the torques of drives of a plan over time, and return the figure."""
    m = found.system.mechanism
    labels, units = axis_labels(m, 1), [unit for _, _, unit in axis_names(m, 1)]
    places = range(found.system.nv)
    rows = [("q", found.q, places, ""), ("qd", found.qd, places, "/s"), ("torque", found.tau, found.driven, None)]
    with _style():
        figure = _figure((6.4, 6.0))
        for axes, (name, values, shown, suffix) in zip(figure.subplots(3, 1, sharex=True), rows, strict=True):
            for k in shown:
                axes.plot(found.t, values[:, k], color=COLORS[k % len(COLORS)], label=labels[k])
            each = {("N" if units[k] == "m" else "N m") if suffix is None else units[k] + suffix for k in shown}
            axes.set_ylabel(f"{name}  [{', '.join(sorted(each))}]")
            axes.set_xlim(found.t[0], found.t[-1])
            axes.legend(loc="best", fontsize=8.0)
        figure.axes[-1].set_xlabel("time  [s]")
        text = heading if heading is not None else f"{m.name}: least {found.minimizes} in {found.duration:.4g} s"
        figure.suptitle(text, x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    return finish_figure(figure, path)


# --- Waterfall charts of the ledger of torques: one step per cause, from zero to the torque ---


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
