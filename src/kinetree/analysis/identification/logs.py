"""Logs of robots as text tables (.csv): columns recognized by names, units and order checked by the data."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...algebra.arrays import Numbers
from ...errors import InputError
from ...model.axes import axis_labels, axis_names
from ...runtime.compiled import CompiledMechanism
from .recordings import Recording

QUANTITIES = {
    "q": ("q", "pos", "position", "positions", "angle", "theta", "jointpos", "jointposition"),
    "qd": ("qd", "dq", "qdot", "vel", "velocity", "velocities", "speed", "omega"),
    "qdd": ("qdd", "ddq", "qddot", "acc", "accel", "acceleration", "accelerations"),
    "tau": ("tau", "torque", "torques", "effort", "efforts", "trq", "moment"),
    "current": ("current", "currents", "cur", "i", "amp", "amps", "ampere"),
}
"""The words by which columns are recognized, without underscores."""
TIMES = ("t", "time", "timestamp", "timestamps", "sec", "secs", "seconds", "clock")
IGNORED = ("target", "desired", "des", "cmd", "command", "commanded", "ref", "reference", "set", "setpoint", "goal")
"""Words of columns that are not measured."""
FILLERS = (
    "actual",
    "measured",
    "meas",
    "joint",
    "joints",
    "motor",
    "axis",
    "link",
    "state",
    "rad",
    "nm",
    "a",
    "s",
    "m",
)
TIME_UNITS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "msec": 1e-3, "usec": 1e-6, "nsec": 1e-9}
DEGREES = ("deg", "degs", "degree", "degrees", "degps")
LARGE_BYTES = 512 * 2**20
TURNS = 2.5 * 2.0 * math.pi
"""The largest position of a joint that is likely in radians: limits of arms are up to one revolution each way."""
ALIKE, UNLIKE = 0.7, 0.4
"""Correlations of a measured velocity with the derivative of a position: of the same joint, and of another one."""


def read_log(
    path: str | Path, system: CompiledMechanism, findings: list[str], *, degrees: bool | None = None
) -> Recording:
    """Return the recording in a text table with a header; what was assumed or left out is added to the findings.

    `degrees` tells the unit of angles; None decides by names and numbers. Columns are time, q, qd, and tau or current,
    numbered or named by joint: "q1", "velocity_elbow", "joint3.torque". Further columns are ignored.
    """
    path = Path(path)
    head, rows = _table(path)
    m, count = system.mechanism, system.nv
    if system.nq != count:
        raise InputError(f"{m.name!r} has joints with quaternions, for which logs have no columns; use kt.identify")
    labels = axis_labels(m, 1)
    places = _columns(head, labels, path)
    if "t" not in places:
        raise InputError(f"{path}: no column of times among {', '.join(head[:12])}; name one 'time', in seconds")
    lacking = [f"{labels[k]!r}" for k in range(count) if k not in places.get("q", {})]
    if lacking:
        raise InputError(
            f"{path}: no position of {', '.join(lacking[:6])} among the columns {', '.join(head[:12])}; name columns "
            f"q1 to q{count}, or after the joints, such as q_{labels[0]}"
        )
    arrays: dict[str, Numbers] = {}
    for quantity in QUANTITIES:
        at = places.get(quantity, {})
        if quantity in ("tau", "current") and at and len(at) < count:
            raise InputError(f"{path}: {quantity} of {len(at)} of {count} joints; give the columns of all joints")
        if len(at) == count:
            arrays[quantity] = rows[:, [at[k] for k in range(count)]]
    if "tau" not in arrays and "current" not in arrays:
        raise InputError(
            f"{path}: no torques and no currents among the columns {', '.join(head[:12])}; name columns tau1 to "
            f"tau{count}, or current1 to current{count}"
        )
    if "tau" in arrays and "current" in arrays:
        findings.append(f"{path.name}: torques and currents; the torques are used")
        del arrays["current"]
    arrays.pop("qdd", None)  # logged accelerations are differences, with the noise of all their derivatives
    t = _seconds(rows[:, places["t"][0]], head[places["t"][0]], path, findings)
    order = np.argsort(t, kind="stable")
    if (np.diff(order) < 0).any():
        findings.append(f"{path.name}: rows are not in the order of time; they are sorted")
    repeated = np.append(False, np.diff(t[order]) <= 0.0)
    if repeated.any():
        findings.append(f"{path.name}: {repeated.sum()} rows repeat the time of the row before; they are left out")
    kept = order[~repeated]
    t, arrays = t[kept], {name: x[kept] for name, x in arrays.items()}
    words = [_words(h) for k, h in enumerate(head) if k in places["q"].values()]
    named = any(set(w) & set(DEGREES) for w in words)
    _to_radians(system, arrays, t, degrees if degrees is not None else (True if named else None), path, findings)
    _check_velocities(system, t, arrays, path, findings)
    return Recording(t - t[0], arrays["q"], tau=arrays.get("tau"), current=arrays.get("current"), name=path.name)


def _table(path: Path) -> tuple[list[str], Numbers]:
    """Return the header and the numbers of a text table; cells that are no numbers are NaN."""
    try:
        if path.stat().st_size > LARGE_BYTES:
            raise InputError(f"{path} has more than {LARGE_BYTES // 2**20} MiB; thin it out, or split it")
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; give a text table (.csv)") from None
    lines = [x for x in lines if x.strip() and not x.lstrip().startswith(("#", "%"))]
    if len(lines) < 3:
        raise InputError(f"{path} has {len(lines)} lines; a log has a header and a row per time")
    mark = max((",", ";", "\t"), key=lines[0].count)
    comma = mark != "," and not any("." in x for x in lines[1:20])  # decimal commas
    split = (lambda x: x.split(mark)) if lines[0].count(mark) else str.split
    head = [x.strip().strip("\"'") for x in split(lines[0])]
    if all(_number(x, comma) is not None for x in head):
        raise InputError(
            f"{path} has no header: its first line is {lines[0][:60]!r}; name its columns, such as time,q1"
        )
    wide = len(head)
    rows = np.full((len(lines) - 1, wide), np.nan)
    for k, line in enumerate(lines[1:]):
        for n, cell in enumerate(split(line)[:wide]):
            value = _number(cell, comma)
            rows[k, n] = np.nan if value is None else value
    return head, rows


def _number(cell: str, comma: bool) -> float | None:
    try:
        return float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        return None


def _words(name: str) -> list[str]:
    """Return the words of a column's name in lower case, with numbers apart: "actualQ_3 [rad]" is actual, q, 3, rad."""
    name = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return re.findall(r"[a-z]+|\d+", name.lower())


def _columns(head: Sequence[str], labels: Sequence[str], path: Path) -> dict[str, dict[int, int]]:
    """Return the column of each quantity and joint; times are the quantity "t" of joint 0."""
    by_word = {word: quantity for quantity, words in QUANTITIES.items() for word in words}
    named = sorted(((" ".join(_words(x)), k) for k, x in enumerate(labels)), key=lambda x: -len(x[0]))
    found: dict[str, dict[int, int]] = {}
    numbered: dict[str, dict[int, int]] = {}
    for column, name in enumerate(head):
        words = _words(name)
        if set(words) & set(IGNORED) or not words:
            continue
        if words[0] in TIMES and "t" not in found and not any(w in by_word for w in words[1:]):
            found["t"] = {0: column}
            continue
        text = f" {' '.join(words)} "
        joint = next((k for label, k in named if f" {label} " in text), None)
        rest = words if joint is None else text.replace(f" {named_label(named, joint)} ", " ", 1).split()
        quantity = next((by_word[w] for w in rest if w in by_word), None)
        if quantity is None:
            continue
        if joint is not None:
            target, key = found.setdefault(quantity, {}), joint
        else:
            digits = [int(w) for w in rest if w.isdigit()]
            if not digits and len(labels) > 1:
                continue
            target, key = numbered.setdefault(quantity, {}), digits[-1] if digits else 1
        if key in target:
            raise InputError(
                f"{path}: columns {head[target[key]]!r} and {name!r} are both {quantity} of the same joint; rename one"
            )
        target[key] = column
    for quantity, at in numbered.items():
        first = 0 if 0 in at else 1
        for key, column in at.items():
            if 0 <= key - first < len(labels):
                found.setdefault(quantity, {}).setdefault(key - first, column)
    return found


def named_label(named: Sequence[tuple[str, int]], joint: int) -> str:
    """Return the words of a joint's name as one text."""
    return next(label for label, k in named if k == joint)


def _seconds(t: Numbers, name: str, path: Path, findings: list[str]) -> Numbers:
    """Return times in seconds, by the unit in the name of their column or by the size of their steps."""
    good = t[np.isfinite(t)]
    step = float(np.median(np.abs(np.diff(good)))) if len(good) > 1 else 0.0
    unit = next((TIME_UNITS[w] for w in _words(name) if w in TIME_UNITS), None)
    if unit is None:
        unit = next(u for u, most in ((1.0, 0.5), (1e-3, 500.0), (1e-6, 5e5), (1e-9, math.inf)) if step <= most)
        if unit != 1.0:
            word = {1e-3: "milliseconds", 1e-6: "microseconds", 1e-9: "nanoseconds"}[unit]
            findings.append(f"{path.name}: steps of {step:.4g} are taken as {word}")
    keep = np.where(np.isfinite(t), t, np.nan)
    first = good[0] if len(good) else 0.0
    return (keep - first) * unit


def _to_radians(
    system: CompiledMechanism, arrays: dict[str, Numbers], t: Numbers, degrees: bool | None, path: Path,
    findings: list[str],
) -> None:  # fmt: skip
    """Convert angles and angular velocities to radians where they are given in degrees."""
    turning = np.array([unit == "rad" for _, _, unit in axis_names(system.mechanism, 1)])
    if not turning.any():
        return
    if degrees is None:
        largest = float(np.nanmax(np.abs(arrays["q"][:, turning]), initial=0.0))
        degrees = largest > TURNS
        if degrees:
            findings.append(
                f"{path.name}: positions of up to {largest:.4g} are taken as degrees; --radians if they are not"
            )
    if degrees:
        arrays["q"] = np.where(turning, np.radians(arrays["q"]), arrays["q"])
    if "qd" in arrays:
        slope = _slopes(t, arrays["q"], arrays["qd"])[turning]
        if np.nanmedian(np.abs(slope)) > math.sqrt(180.0 / math.pi):
            arrays["qd"] = np.where(turning, np.radians(arrays["qd"]), arrays["qd"])
            if not degrees:
                findings.append(f"{path.name}: velocities are in degrees per second, positions in radians")


def _rates(t: Numbers, q: Numbers) -> Numbers:
    """Return rough velocities, over steps in which noise is small."""
    apart = max(1, len(t) // 2000)
    out = np.full(q.shape, np.nan)
    out[apart:-apart] = (q[2 * apart :] - q[: -2 * apart]) / (t[2 * apart :] - t[: -2 * apart])[:, None]
    return out


def _slopes(t: Numbers, q: Numbers, qd: Numbers) -> Numbers:
    """Return measured velocities in parts of the rates of positions, by joint."""
    rates = _rates(t, q)
    return np.nansum(rates * qd, axis=0) / np.maximum(np.nansum(rates * rates, axis=0), 1e-300)


def _check_velocities(
    system: CompiledMechanism, t: Numbers, arrays: dict[str, Numbers], path: Path, findings: list[str]
) -> None:
    """Compare measured velocities with the rates of positions: swapped columns are refused, signs reported."""
    if "qd" not in arrays:
        return
    rates, qd = _rates(t, arrays["q"]), arrays["qd"]
    good = np.isfinite(rates).all(axis=1) & np.isfinite(qd).all(axis=1)
    labels = axis_labels(system.mechanism, 1)
    a, b = rates[good], qd[good]
    moving = (np.std(a, axis=0) > 1e-9) & (np.std(b, axis=0) > 1e-9)
    unit = [np.where(moving, (x - x.mean(axis=0)) / np.maximum(np.std(x, axis=0), 1e-300), 0.0) for x in (a, b)]
    alike = unit[0].T @ unit[1] / max(len(a), 1)
    for k, label in enumerate(labels):
        if not moving[k] or abs(alike[k, k]) >= ALIKE:
            continue
        other = int(np.argmax(np.abs(alike[k])))
        if other != k and abs(alike[k, other]) > ALIKE:
            raise InputError(
                f"{path}: the velocity of {labels[other]!r} is the rate of the position of {label!r}: columns are "
                "swapped; rename them in the header"
            )
        if abs(alike[k, k]) >= UNLIKE:
            continue
        raise InputError(
            f"{path}: the velocity of {label!r} is not the rate of its position (correlation {alike[k, k]:.2f}); look "
            "for swapped columns or wrong units, or leave the column of velocities out"
        )
    turned = [labels[k] for k in range(len(labels)) if moving[k] and alike[k, k] < 0.0]
    if turned:
        findings.append(f"{path.name}: velocities of {', '.join(turned)} have the opposite sign of positions; not used")
