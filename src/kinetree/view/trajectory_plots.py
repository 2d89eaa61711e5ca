"""Figures of a run: columns over time with a panel for each coordinate, and speeds over coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, unknown_name
from ..results.columns import Column
from ..results.files.atomic import replacing
from .plots import COLORS, DASHES, INK, _figure, _frame, _prefix, _style

if TYPE_CHECKING:
    from ..results.trajectory import Trajectory

Numbers = NDArray[np.floating]

SYMBOLS = {"q": "$q$", "qd": r"$\dot q$", "qdd": r"$\ddot q$", "tau": r"$\tau$"}
"""Columns with an entry for each coordinate or degree of freedom: a panel an entry."""
TOGETHER = ("energy", "kinetic_energy", "potential_energy")
"""Columns that share one panel."""
MOST_RUNS = 40
"""Runs of a batch that are drawn; of more, as many are drawn evenly spread."""
MOST_PANELS = 240
SIZE = (3.2, 1.55)
"""Width and height of a panel [in]."""


def plot(
    run: Trajectory,
    columns: Sequence[str] | str | None = None,
    path: str | Path | None = None,
    *,
    joints: Sequence[str] | None = None,
    heading: str | None = None,
):
    """Draw columns over time and return the figure, which is also written to `path` where one is given.

    Coordinates, speeds, accelerations and torques get a panel a coordinate, in a row for each joint; energies share a
    panel; of other columns, or parts such as "reactions.link2", each is a panel of curves. By default q and qd, and tau
    where torques acted. `joints` are the names of those to show. The runs of a batch are drawn over each other.
    """
    names = [columns] if isinstance(columns, str) else list(columns or _default(run))
    if not names:
        raise InputError("no columns to draw; name some of run.columns")
    known = {column.name: column for column in run.columns}
    per_joint = [name for name in names if name in SYMBOLS]
    rows = _rows(run, per_joint, joints, known)
    wide = [tuple(n for n in names if n in TOGETHER)] if any(n in TOGETHER for n in names) else []
    wide += [(name,) for name in names if name not in SYMBOLS and name not in TOGETHER]
    width = max(len(per_joint), 2 if wide else 1)
    if len(rows) * len(per_joint) + len(wide) > MOST_PANELS:
        raise InputError(f"{len(rows) * len(per_joint)} panels are too many for one figure; choose joints= to show")
    with _style():
        height = SIZE[1] * len(rows) + 1.3 * SIZE[1] * len(wide) + 0.55
        figure = _figure((SIZE[0] * width, height))
        ratios = [1.0] * len(rows) + [1.3] * len(wide)
        grid = figure.add_gridspec(len(ratios), width, height_ratios=ratios)
        for i, row in enumerate(rows):
            titled = ""
            for j, (name, at) in enumerate(zip(per_joint, row, strict=True)):
                if at is None:
                    continue
                axes = figure.add_subplot(grid[i, j])
                title = known[name].labels[at].removeprefix(f"{name}.")
                _entry(axes, run, name, at, title if title != titled else "", known[name])
                _time_axis(axes, last=i == len(rows) - 1)
                titled = title
        for i, group in enumerate(wide, len(rows)):
            axes = figure.add_subplot(grid[i, :])
            _curves(axes, run, group)
            _time_axis(axes, last=True)
        figure.align_ylabels()
        return _finished(figure, run, path, heading)


def portraits(
    run: Trajectory,
    path: str | Path | None = None,
    *,
    joints: Sequence[str] | None = None,
    heading: str | None = None,
):
    """Draw the speed over the coordinate of joints with one degree of freedom, a dot where the run begins."""
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
    width = min(3, len(names))
    with _style():
        figure = _figure((2.7 * width, 2.4 * -(-len(names) // width) + 0.5))
        for k, name in enumerate(names):
            axes = figure.add_subplot(-(-len(names) // width), width, k + 1)
            at, speed = _places(known["q"], name)[0], _places(known["qd"], name)[0]
            q, qd = run[f"q.{name}"], run[f"qd.{name}"]
            for x, y in zip(_some_runs(q), _some_runs(qd), strict=True):
                axes.plot(x, y, color=INK, linewidth=1.0, alpha=_alpha(q))
                axes.plot(x[:1], y[:1], "o", color=COLORS[1], markersize=3.5)
            axes.set_title(_plain(name), loc="left")
            axes.set_xlabel(f"$q$  [{known['q'].units[at]}]")
            axes.set_ylabel(rf"$\dot q$  [{known['qd'].units[speed]}]")
        return _finished(figure, run, path, heading)


def _default(run: Trajectory) -> tuple[str, ...]:
    return ("q", "qd") if run.torque is None else ("q", "qd", "tau")


def _rows(
    run: Trajectory, names: list[str], joints: Sequence[str] | None, known: dict[str, Column]
) -> list[list[int | None]]:
    """Return a row for each coordinate of the joints: the entry of each column, None where a joint has no more.

    A quaternion has one coordinate more than speeds.
    """
    moving = [j.name for j in run.system.joints if j.name in known["q"].parts]
    chosen = moving if joints is None else list(joints)
    for name in chosen:
        if name not in moving:
            raise unknown_name("joint that moves", name, moving)
    rows = []
    for joint in chosen if names else ():
        places = [_places(known[name], joint) for name in names]
        rows += [[at[k] if k < len(at) else None for at in places] for k in range(max(map(len, places)))]
    return rows


def _places(column: Column, joint: str) -> list[int]:
    at = column.parts[joint][0]
    return list(range(at.start, at.stop)) if isinstance(at, slice) else [at]


def _is_single(known: dict[str, Column], joint: str) -> bool:
    return joint in known["q"].parts and len(_places(known["q"], joint)) == len(_places(known["qd"], joint)) == 1


def _entry(axes: Any, run: Trajectory, name: str, at: int, title: str, column: Column) -> None:
    """Draw one entry of a column; what is the rounding of zero is drawn as flat as it is."""
    axes.set_title(_plain(title), loc="left")
    values, unit = run[name][..., at], column.units[at]
    peak = float(np.nanmax(np.abs(values), initial=0.0))
    noise = peak <= 1e-12 * float(np.nanmax(np.abs(run[name]), initial=0.0))
    factor, prefix = (1.0, "") if noise or unit == "1" else _prefix(peak)
    for one in _some_runs(values):
        axes.plot(run.t, factor * one, color=INK, alpha=_alpha(values))
    axes.set_ylabel(f"{SYMBOLS[name]}  [{prefix}{unit}]")
    _fit(axes, run.t, 0.0 * values if noise else factor * values)


def _curves(axes: Any, run: Trajectory, group: tuple[str, ...]) -> None:
    """Draw every entry of some columns, or of parts of one, in a panel with a legend."""
    drawn, units = [], []
    for name in group:
        labels, entries, unit = _labelled(run, name)
        units += unit
        for label, values in zip(labels, entries, strict=True):
            k = len(drawn)
            for i, one in enumerate(_some_runs(values)):
                style = {"color": COLORS[k % 8], "linestyle": DASHES[k % 4], "alpha": _alpha(values)}
                axes.plot(run.t, one, label=_plain(label) if i == 0 else None, **style)
            drawn.append(values)
    if len(drawn) > 1:
        axes.legend(ncols=-(-len(drawn) // 6), handlelength=2.2, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set_title(_plain(", ".join(group)), loc="left")
    axes.set_ylabel(f"[{', '.join(dict.fromkeys(units))}]")
    _fit(axes, run.t, np.stack(drawn))


def _labelled(run: Trajectory, name: str) -> tuple[list[str], list[Numbers], list[str]]:
    """Return labels, values and units of the entries of a column, or of a part of one."""
    values = run[name]
    depth = values.ndim - run.q.ndim + 1
    flat = values.reshape(*values.shape[: values.ndim - depth], -1) if depth else values[..., None]
    column = next(c for c in run.columns if c.name == name.partition(".")[0])
    order = np.arange(len(column.labels)).reshape(column.shape)
    part = name.partition(".")[2]
    chosen = np.ravel(order[column.parts[part]] if part in column.parts else order)[: flat.shape[-1]]
    if flat.shape[-1] > 40:
        raise InputError(f"{name!r} has {flat.shape[-1]} entries, too many for a panel; name a part of it")
    labels = [column.labels[k].removeprefix(f"{name}.") for k in chosen]
    return labels, list(np.moveaxis(flat, -1, 0)), [column.units[k] for k in chosen]


def _some_runs(values: Numbers) -> Numbers:
    flat = values.reshape(-1, values.shape[-1])
    return flat if len(flat) <= MOST_RUNS else flat[np.linspace(0, len(flat) - 1, MOST_RUNS).astype(int)]


def _alpha(values: Numbers) -> float:
    return 1.0 if values.ndim == 1 else 0.45


def _fit(axes: Any, t: Numbers, values: Numbers) -> None:
    finite = values[np.isfinite(values)]
    if len(t) > 1 and finite.size:
        _frame(axes, t, finite, ticks=4)


def _time_axis(axes: Any, *, last: bool) -> None:
    axes.tick_params(labelbottom=last)
    if last:
        axes.set_xlabel("time  [s]")


def _plain(text: str) -> str:
    """Return a name as it is, with nothing of it read as mathematics."""
    return text.replace("$", r"\$")


def _finished(figure: Any, run: Trajectory, path: str | Path | None, heading: str | None):
    text = run.system.mechanism.name if heading is None else heading
    if text:
        figure.suptitle(_plain(text), x=0.01, ha="left", fontsize=11.0, fontweight="bold")
    if path is not None:
        with replacing(Path(path)) as written:
            figure.savefig(written)
    return figure
