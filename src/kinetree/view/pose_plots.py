"""Figures of poses: the solutions of inverse kinematics as stick figures, and the points of a workspace."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.arrays import Numbers
from ..errors import InputError
from ..model.topology import path as path_of_body
from .plots import COLORS, INK, _figure, _style, save_picture

if TYPE_CHECKING:
    from ..analysis.kinematics.all_solutions import AllSolutions
    from ..analysis.kinematics.workspace import Workspace

MOST = 16
"""The most solutions in one figure."""
VIEWS = ((0, 1), (0, 2), (1, 2))
FLAT = 1e-6
"""The extent of a drawing along one axis, in parts of the largest, below which the mechanism is planar."""


def solutions_plot(found: AllSolutions, path: str | Path | None = None, *, heading: str | None = None) -> Any:
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
        return figure if path is None else save_picture(figure, path)


def _chains(found: AllSolutions) -> Numbers:
    """Return the origins of the bodies from the ground to the frame, [solutions, points, 3]."""
    m = found.system.mechanism
    at = path_of_body(m, m.body_indices[m.frame(found.frame).body])
    origins = found.system.poses(found.q)[:, at][..., :3, 3]
    tip = found.system.pose(found.q, found.frame)[:, None, :3, 3]
    return np.concatenate([np.zeros((len(found.q), 1, 3)), origins, tip], axis=1)


def _spatial(axes: Any, line: Numbers, T: Numbers, lines: Numbers) -> None:
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


def _planar(axes: Any, line: Numbers, T: Numbers, across: int, lines: Numbers) -> None:
    i, j = (k for k in range(3) if k != across)
    axes.plot(line[:, i], line[:, j], color=INK, linewidth=2.2, marker="o", markersize=3.5)
    axes.plot(T[i, 3], T[j, 3], "o", color=COLORS[1], markersize=5.0)
    size = 1.1 * float(np.abs(lines).max())
    axes.set_xlim(-size, size)
    axes.set_ylim(-size, size)
    axes.set_aspect("equal")
    axes.set_xlabel(f"{'xyz'[i]}  [m]")
    axes.set_ylabel(f"{'xyz'[j]}  [m]")


def workspace_plot(found: Workspace, path: str | Path | None = None, *, heading: str | None = None) -> Any:
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
        return figure if path is None else save_picture(figure, path)
