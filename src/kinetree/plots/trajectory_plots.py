"""Figures of a run: columns over time with one panel per coordinate, and joint velocities over coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.scalars import Numbers
from ..errors import InputError, unknown_name
from ..model.parts import Joint
from ..results.columns import Column
from ..simulation.monitors import joints_of
from .figures import COLORS, DASHES, INK, _figure, _frame, _prefix, _style, finish_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
) -> list[list[ColumnEntry | None]]:
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
            rows.append([ColumnEntry(known[n], at[k], by_name[joint], k) if k < len(at) else None for n, at in pairs])
    return rows


def _draw_row(figure: Figure, grid: Any, at: tuple[int, int], run: Trajectory, row, known, *, last: bool) -> None:
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


def _time_axis(axes: Axes, *, last: bool) -> None:
    axes.tick_params(labelbottom=last)
    if last:
        axes.set_xlabel("time  [s]")


def _head(figure: Figure, run: Trajectory, heading: str | None) -> None:
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


# --- Panels of a run: one entry of a column with its reference and limits, or several curves of one unit ---


SYMBOLS = {
    "q": "$q$",
    "qd": r"$\dot q$",
    "qdd": r"$\ddot q$",
    "tau": r"$\tau$",
    "control": r"$\tau_c$",
    "tracking_error": "$q_d - q$",
}
"""Columns with one entry per coordinate or degree of freedom, drawn in one panel per entry."""

LIMITS = {"q": ("lower", "upper"), "qd": ("velocity",), "tau": ("effort",), "control": ("effort",)}
"""The fields of a joint with the limits of a column; a single field holds in both directions."""

ROUNDING = 1e-12
"""Fraction of the largest torque below which the rest of a torque beside the control is rounding, and is not drawn."""
BESIDE = {"q": "reference", "tau": "control"}
"""Columns that are drawn with another one if the run has them and they differ from it."""

STYLES = {
    "reference": {"color": COLORS[1], "linestyle": "--", "linewidth": 1.1},
    "control": {"color": COLORS[2], "linestyle": "-.", "linewidth": 1.1},
    "limit": {"color": "#a03060", "linestyle": ":", "linewidth": 1.1},
}

MOST_RUNS = 40
"""The most runs of a batch that are drawn, to keep curves distinguishable; of more, an even selection is drawn."""

REACH = 1.0
"""Distance of limits from the values, in ranges of the values, up to which they are lines; others are numbers."""


@dataclass(frozen=True)
class ColumnEntry:
    """An entry of a column: its index in the column, its joint, and its number among the coordinates of the joint."""

    column: Column
    at: int
    joint: Joint
    axis: int

    @property
    def title(self) -> str:
        """The name of the joint, with the coordinate if there are several."""
        return self.column.labels[self.at].removeprefix(f"{self.column.name}.")


@dataclass(frozen=True)
class Curves:
    """Curves of one unit: labels and values [..., nt]."""

    unit: str
    labels: list[str]
    values: list[Numbers]


def draw_entry(axes: Axes, run: Trajectory, entry: ColumnEntry, title: str) -> None:
    """Draw one entry of a column; rounding errors about zero are drawn as a flat line."""
    axes.set_title(plain(title), loc="left")
    name, unit = entry.column.name, entry.column.units[entry.at]
    values = run[name][..., entry.at]
    if np.isnan(values).all():
        axes.text(0.5, 0.5, "not driven", transform=axes.transAxes, ha="center", va="center", color="#707070")
    peak = float(np.nanmax(np.abs(values), initial=0.0))
    noise = peak <= 1e-12 * float(np.nanmax(np.abs(run[name]), initial=0.0))
    factor, prefix = (1.0, "") if noise or unit == "1" else _prefix(peak)
    for one in some_runs(values):
        axes.plot(run.t, factor * one, color=INK, alpha=alpha(values))
    drawn = [0.0 * values if noise else factor * values, *_beside(axes, run, entry, factor)]
    axes.set_ylabel(f"{SYMBOLS[name]}  [{prefix}{unit}]")
    everything = np.concatenate([x.reshape(-1) for x in drawn])
    within = _draw_limits(axes, entry, factor, everything)
    _fit(axes, run.t, np.concatenate([everything, within]))


def _beside(axes: Axes, run: Trajectory, entry: ColumnEntry, factor: float) -> list[Numbers]:
    """Draw the reference of a coordinate or the control part of a torque, and return the numbers drawn."""
    name = BESIDE.get(entry.column.name)
    if name is None or getattr(run, name) is None:
        return []
    values = factor * run[name][..., entry.at]
    whole = factor * run[entry.column.name][..., entry.at]
    rounding = ROUNDING * float(np.nanmax(np.abs(whole), initial=0.0))
    same = name == "control" and np.allclose(values, whole, rtol=0.0, atol=rounding, equal_nan=True)
    if same or np.isnan(values).all():
        return []
    for k, one in enumerate(some_runs(values)):
        axes.plot(run.t, one, label=name if k == 0 else None, alpha=alpha(values), **STYLES[name])
    return [values]


def _draw_limits(axes: Axes, entry: ColumnEntry, factor: float, values: Numbers) -> Numbers:
    """Draw near limits of an entry as lines and distant ones as a number; return those drawn as lines."""
    finite = values[np.isfinite(values)]
    bounds = _limits(entry)
    if not finite.size or not bounds:
        return np.zeros(0)
    low, high = float(finite.min()), float(finite.max())
    reach = REACH * max(high - low, 0.5 * max(abs(low), abs(high)))
    near = [factor * b for b in bounds if low - reach <= factor * b <= high + reach]
    far = [b for b in bounds if factor * b not in near]
    if near and bounds[0] == -bounds[-1]:
        far = []  # of symmetric limits, one line implies the other
    for k, bound in enumerate(near):
        axes.axhline(bound, label="limit" if k == 0 else None, **STYLES["limit"])
    if far:
        beyond = f"$\\pm${far[1]:.3g}" if len(far) == 2 and far[0] == -far[1] else ", ".join(f"{b:.3g}" for b in far)
        style = {"color": STYLES["limit"]["color"], "fontsize": 7.5}
        box = {"facecolor": "white", "alpha": 0.7, "linewidth": 0.0, "pad": 0.6}  # above, it would cover long names
        axes.text(0.99, 0.98, f"limit {beyond}", transform=axes.transAxes, ha="right", va="top", bbox=box, **style)
    return np.array(near)


def _limits(entry: ColumnEntry) -> list[float]:
    """Return the finite limits of an entry in ascending order."""
    names = LIMITS.get(entry.column.name, ())
    found = [float(b[entry.axis]) for name in names if entry.axis < len(b := getattr(entry.joint.limits, name))]
    found = [x for x in found if np.isfinite(x)]
    return [-found[0], found[0]] if len(names) == 1 and found else found


def split_by_unit(run: Trajectory, group: tuple[str, ...]) -> list[Curves]:
    """Return the curves of columns, or of parts of a column, grouped by unit."""
    found: dict[str, Curves] = {}
    for name in group:
        for label, values, unit in _label_entries(run, name):
            curves = found.setdefault(unit, Curves(unit, [], []))
            curves.labels.append(label)
            curves.values.append(values)
    return list(found.values())


def draw_curves(axes: Axes, run: Trajectory, curves: Curves, title: str) -> None:
    """Draw curves of one unit in a panel, with a legend if there are several."""
    for k, (label, values) in enumerate(zip(curves.labels, curves.values, strict=True)):
        for i, one in enumerate(some_runs(values)):
            style = {"color": COLORS[k % 8], "linestyle": DASHES[k % 4], "alpha": alpha(values)}
            axes.plot(run.t, one, label=plain(label) if i == 0 else None, **style)
    if len(curves.labels) > 1:
        count = -(-len(curves.labels) // 6)
        axes.legend(ncols=count, handlelength=2.2, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set_title(plain(title), loc="left")
    axes.set_ylabel(f"[{curves.unit}]")
    _fit(axes, run.t, np.stack(curves.values))


def _label_entries(run: Trajectory, name: str) -> list[tuple[str, Numbers, str]]:
    """Return label, values and unit of each entry of a column, or of a part of one."""
    values = run[name]
    lead = 1 if name.partition(".")[0] == "reference" else run.q.ndim - 1
    depth = values.ndim - lead
    flat = values.reshape(*values.shape[: values.ndim - depth], -1) if depth else values[..., None]
    column = next(c for c in run.columns if c.name == name.partition(".")[0])
    order = np.arange(len(column.labels)).reshape(column.shape)
    part = name.partition(".")[2]
    chosen = np.ravel(order[column.parts[part]] if part in column.parts else order)[: flat.shape[-1]]
    if flat.shape[-1] > 40:
        raise InputError(f"{name!r} has {flat.shape[-1]} entries, too many for a panel; name a part of it")
    labels = [column.labels[k].removeprefix(f"{name}.") for k in chosen]
    return list(zip(labels, np.moveaxis(flat, -1, 0), [column.units[k] for k in chosen], strict=True))


def marks(figure: Figure) -> list[Any]:
    """Return the legend handles of the reference, the control and the limits that are in a figure."""
    found = {}
    for axes in figure.axes:
        if axes.get_legend() is None:
            found |= {line.get_label(): line for line in axes.get_lines() if line.get_label() in STYLES}
    return [found[name] for name in STYLES if name in found]


def some_runs(values: Numbers) -> Numbers:
    """Return the runs to draw, [n, nt]: all, or MOST_RUNS of them."""
    flat = values.reshape(-1, values.shape[-1])
    return flat if len(flat) <= MOST_RUNS else flat[np.linspace(0, len(flat) - 1, MOST_RUNS).astype(int)]


def alpha(values: Numbers) -> float:
    """Return the opacity of the curves of one run, or of several."""
    return 1.0 if values.ndim == 1 else 0.45


def plain(text: str) -> str:
    """Return a name as literal text, with characters of mathematical notation escaped."""
    return text.replace("$", r"\$")


def _fit(axes: Axes, t: Numbers, values: Numbers) -> None:
    finite = values[np.isfinite(values)]
    if len(t) > 1 and finite.size:
        _frame(axes, t, finite, ticks=4)
