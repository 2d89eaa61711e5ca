"""Figures of a run: columns over time with one panel per coordinate, and joint velocities over coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, unknown_name
from ..results.columns import Column
from ..simulation.monitors import joints_of
from .figures import COLORS, INK, _figure, _style, finish_figure
from .trajectory_panels import (
    MOST_RUNS,
    SYMBOLS,
    Entry,
    alpha,
    draw_curves,
    draw_entry,
    marks,
    plain,
    some_runs,
    split_by_unit,
)

if TYPE_CHECKING:
    from ..results.trajectory import Trajectory

TOGETHER = ("energy", "kinetic_energy", "potential_energy")
"""Columns that share one panel."""
MOST_PANELS = 240
SIZE = (3.2, 1.55)
"""Width and height of a panel [in]."""
NARROW = 2.3
"""Width of a panel [in] in figures of more than four columns."""
WIDE = 4.4
"""Width of a panel of curves with its legend [in]."""
TALLEST = 8
"""The most rows of panels in a figure; with more, joints are drawn side by side."""


def plot(
    run: Trajectory,
    columns: Sequence[str] | str | None = None,
    path: str | Path | None = None,
    *,
    joints: Sequence[str] | None = None,
    heading: str | None = None,
):
    """Draw columns over time and return the figure; write it to `path` if given, else show it as pyplot does.

    Coordinates, velocities, accelerations, torques and tracking errors have one panel per coordinate, with one row per
    joint; many joints are drawn side by side. References, control and limits are drawn if the run has them. Energies
    share a panel. Other columns, or parts such as "reactions.link2", have one panel of curves per unit. The default is
    q and qd, tau if torques acted, and the tracking error if there is a reference. `joints` are the names of the joints
    to show. The runs of a batch are drawn over each other.
    """
    names = [columns] if isinstance(columns, str) else list(columns or _default(run))
    if not names:
        raise InputError("no columns to draw; name some of run.columns")
    known = {column.name: column for column in run.columns}
    per_joint = [name for name in names if name in SYMBOLS and name in known]
    rows = _rows(run, per_joint, joints, known)
    wide = [tuple(n for n in names if n in TOGETHER)] if any(n in TOGETHER for n in names) else []
    wide += [(name,) for name in names if name not in per_joint and name not in TOGETHER]
    curves = [split_by_unit(run, group) for group in wide]
    if len(rows) * len(per_joint) + len(wide) > MOST_PANELS:
        raise InputError(f"{len(rows) * len(per_joint)} panels are too many for one figure; choose joints= to show")
    blocks = _blocks(len(rows), len(per_joint))
    deep = ceil(len(rows) / blocks)
    across = max(blocks * len(per_joint), 2 if wide else 1)
    with _style():
        width = (SIZE[0] if across <= 4 else NARROW) * across
        width = max([width, *(WIDE * len(parts) for parts in curves)])
        figure = _figure((width, SIZE[1] * deep + 1.3 * SIZE[1] * len(wide) + 0.55))
        ratios = [1.0] * deep + [1.3] * len(wide)
        grid = figure.add_gridspec(len(ratios), across, height_ratios=ratios)
        for i, row in enumerate(rows):
            at, last = (i % deep, (i // deep) * len(per_joint)), i % deep == deep - 1 or i == len(rows) - 1
            _draw_row(figure, grid, at, run, row, known, last=last)
        for i, (group, parts) in enumerate(zip(wide, curves, strict=True), deep):
            cells = grid[i, :].subgridspec(1, len(parts))
            for k, curve in enumerate(parts):
                axes = figure.add_subplot(cells[0, k])
                draw_curves(axes, run, curve, ", ".join(group) if k == 0 else "")
                _time_axis(axes, last=True)
        figure.align_ylabels()
        _head(figure, run, heading)
    finish_figure(figure, path)
    return figure


def portraits(
    run: Trajectory,
    path: str | Path | None = None,
    *,
    joints: Sequence[str] | None = None,
    heading: str | None = None,
):
    """Draw velocity over coordinate for joints with one degree of freedom, with a dot at the start of the run."""
    known = {column.name: column for column in run.columns}
    single = [j.name for j in run.system.joints if _is_single(known, j.name)]
    names = single if joints is None else list(joints)
    for name in names:
        if name not in single:
            raise unknown_name("joint of one degree of freedom", name, single)
    if not 0 < len(names) <= MOST_PANELS:
        raise InputError(
            f"{len(names)} joints of one degree of freedom to draw; choose 1 to {MOST_PANELS} with joints="
        )
    width = max(min(3, len(names)), ceil(sqrt(len(names))))
    with _style():
        figure = _figure((2.7 * width, 2.4 * ceil(len(names) / width) + 0.5))
        for k, name in enumerate(names):
            axes = figure.add_subplot(ceil(len(names) / width), width, k + 1)
            at, speed = _places(known["q"], name)[0], _places(known["qd"], name)[0]
            q, qd = run[f"q.{name}"], run[f"qd.{name}"]
            for x, y in zip(some_runs(q), some_runs(qd), strict=True):
                axes.plot(x, y, color=INK, linewidth=1.0, alpha=alpha(q))
                axes.plot(x[:1], y[:1], "o", color=COLORS[1], markersize=3.5)
            axes.set_title(plain(name), loc="left")
            axes.set_xlabel(f"$q$  [{known['q'].units[at]}]")
            axes.set_ylabel(rf"$\dot q$  [{known['qd'].units[speed]}]")
        _head(figure, run, heading)
    finish_figure(figure, path)
    return figure


def _default(run: Trajectory) -> tuple[str, ...]:
    followed = ("tracking_error",) if run.reference is not None else ()
    acted = ("tau",) if run.torque is not None and run.torque.any() else ()
    return ("q", *followed, "qd", *acted)


def _blocks(rows: int, columns: int) -> int:
    """Return the number of joints side by side that makes a figure about as wide as it is tall."""
    if columns == 0:
        return 1
    if columns == 1 and 1 < rows <= TALLEST:
        return 2
    if rows <= TALLEST:
        return 1
    return min(range(1, rows + 1), key=lambda n: max(NARROW * n * columns, SIZE[1] * ceil(rows / n)))


def _rows(
    run: Trajectory, names: list[str], joints: Sequence[str] | None, known: dict[str, Column]
) -> list[list[Entry | None]]:
    """Return one row per coordinate of the joints: the entry of each column, or None if the joint has no more entries.

    A quaternion has one more coordinate than velocities.
    """
    moving = [j.name for j in run.system.joints if j.name in known["q"].parts]
    chosen = moving if joints is None else list(joints)
    for name in chosen:
        if name not in moving:
            raise unknown_name("joint that moves", name, moving)
    by_name = {joint.name: joint for joint in joints_of(run)}
    rows = []
    for joint in chosen if names else ():
        places = [_places(known[name], joint) for name in names]
        for k in range(max(map(len, places))):
            pairs = zip(names, places, strict=True)
            rows.append([Entry(known[n], at[k], by_name[joint], k) if k < len(at) else None for n, at in pairs])
    return rows


def _draw_row(figure: Any, grid: Any, at: tuple[int, int], run: Trajectory, row, known, *, last: bool) -> None:
    titled = ""
    for j, entry in enumerate(row):
        if entry is None:
            continue
        axes = figure.add_subplot(grid[at[0], at[1] + j])
        draw_entry(axes, run, entry, entry.title if entry.title != titled else "")
        _time_axis(axes, last=last)
        titled = entry.title


def _places(column: Column, joint: str) -> list[int]:
    at = column.parts[joint][0]
    return list(range(at.start, at.stop)) if isinstance(at, slice) else [at]


def _is_single(known: dict[str, Column], joint: str) -> bool:
    return joint in known["q"].parts and len(_places(known["q"], joint)) == len(_places(known["qd"], joint)) == 1


def _time_axis(axes: Any, *, last: bool) -> None:
    axes.tick_params(labelbottom=last)
    if last:
        axes.set_xlabel("time  [s]")


def _head(figure: Any, run: Trajectory, heading: str | None) -> None:
    """Add the heading and the legend of all panels."""
    text = run.system.mechanism.name if heading is None else heading
    count = prod(run.shape)
    if count > MOST_RUNS:
        text += f"{'   ' if text else ''}({MOST_RUNS} of {count:,} runs are drawn, evenly spread)"
    if text:
        figure.suptitle(plain(text), x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    handles = marks(figure)
    if handles:
        figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), fontsize=9.0, handlelength=2.2)
