"""Logs of robots as text tables (.csv): columns recognized by names, units and order checked by the data.

Columns that differ by the number or the name of a joint alone are a family. For each quantity the complete family with
the fewest words that are not understood is read, so that "actual_q_0" wins over "actual_TCP_pose_0".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from ..._support.checks import positive
from ...algebra.arrays import Numbers
from ...errors import InputError
from ...model.axes import axis_labels, axis_names
from ...runtime.compiled import CompiledMechanism
from .log_checks import ANGLES, check_velocities, to_radians
from .recordings import Recording, repaired_rows, repaired_times, unwrapped

QUANTITIES = {
    "q": ("q", "pos", "position", "positions", "angle", "angles", "theta", "jointpos", "jointposition", "actpos"),
    "qd": ("qd", "dq", "qdot", "vel", "velocity", "velocities", "speed", "speeds", "omega", "actvel"),
    "qdd": ("qdd", "ddq", "qddot", "acc", "accel", "acceleration", "accelerations"),
    "tau": ("tau", "torque", "torques", "effort", "efforts", "trq", "moment", "force", "acttrq"),
    "current": ("current", "currents", "curr", "cur", "i", "iq", "amp", "amps", "ampere", "amperes"),
}
"""The words by which columns are recognized."""
TIMES = ("t", "time", "timestamp", "timestamps", "stamp", "sec", "secs", "seconds", "clock", "elapsed", "zeit")
IGNORED = (
    "target",
    "desired",
    "des",
    "cmd",
    "command",
    "commanded",
    "ref",
    "reference",
    "set",
    "setpoint",
    "goal",
    "tcp",
    "tool",
    "ee",
    "flange",
    "cartesian",
    "temperature",
    "temperatures",
    "temp",
    "voltage",
    "robot",
    "main",
    "error",
)
"""Words of columns that are not measured, or not of joints."""
FILLERS = (
    "actual",
    "act",
    "measured",
    "meas",
    "joint",
    "joints",
    "motor",
    "drive",
    "axis",
    "axes",
    "link",
    "state",
    "states",
    "field",
    "j",
    "nm",
    "a",
    "s",
    "m",
    "per",
    "n",
    "rad",
    "rads",
    "log",
)
"""Words that say nothing against a column."""
SECONDS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "msec": 1e-3, "usec": 1e-6, "nsec": 1e-9, "nsecs": 1e-9, "nanosec": 1e-9,
           "millis": 1e-3, "micros": 1e-6, "nanos": 1e-9, "milliseconds": 1e-3, "microseconds": 1e-6}  # fmt: skip
TORQUES = {"nmm": 1e-3, "mnm": 1e-3, "ncm": 1e-2, "knm": 1e3}
CURRENTS = {"ma": 1e-3, "milliamp": 1e-3, "milliamps": 1e-3}
UNIT_WORDS = {*SECONDS, *ANGLES, *TORQUES, *CURRENTS, "rpm", "min", "nm", "a", "s", "rad", "m", "sec", "amp", "amps"}
PERCENT = "percent"
"""The word for "%": torques in percent of their rating are currents, whose gains are to be found."""
BLOCKS = {2: ("q", "tau"), 3: ("q", "qd", "tau"), 4: ("q", "qd", "qdd", "tau")}
"""What tables without a header have, by the number of columns per joint."""
LARGE_BYTES = 1024 * 2**20
FORWARD = 0.8
"""The least part of rows whose time is not before that of the row before."""


def read_log(
    path: str | Path,
    system: CompiledMechanism,
    findings: list[str],
    *,
    degrees: bool | None = None,
    rate: float | None = None,
    header: Sequence[str] | None = None,
) -> Recording:
    """Return the recording in a text table; what was assumed or left out is added to the findings.

    `degrees` tells the unit of angles; None decides by names and numbers. Columns are time, q, qd, and tau or current,
    numbered or named by joint: "q1", "velocity_elbow", "joint3.torque". Further columns are ignored. `rate` [Hz] takes
    the place of a column of times. `header` names the columns of a table without names: "t", "q", "qd", "current", a
    word per column, or per quantity of all joints.
    """
    path = Path(path)
    m, count = system.mechanism, system.nv
    if system.nq != count:
        raise InputError(f"{m.name!r} has joints with quaternions, for which logs have no columns; use kt.identify")
    head, rows = _table(path, None if header is None else _expanded(header, count), count, rate, findings)
    labels = axis_labels(m, 1)
    places = _columns(head, labels, path, findings)
    t = _times(head, rows, rate, path, findings)
    lacking = [f"{labels[k]!r}" for k in range(count) if k not in places.get("q", {})]
    if lacking:
        raise InputError(
            f"{path}: no position of {', '.join(lacking[:6])} among the columns {', '.join(head[:12])}; name columns "
            f"q1 to q{count}, or after the joints, such as q_{labels[0]}; joints that stood still are named by --lock"
        )
    arrays: dict[str, Numbers] = {}
    for quantity in QUANTITIES:
        at = places.get(quantity, {})
        if quantity in ("tau", "current") and at and len(at) < count:
            raise InputError(f"{path}: {quantity} of {len(at)} of {count} joints; give the columns of all joints")
        if len(at) == count:
            arrays[quantity] = rows[:, [at[k] for k in range(count)]]
    _units(arrays, places, head, path, findings)
    if "tau" not in arrays and "current" not in arrays:
        raise InputError(
            f"{path}: no torques and no currents among the columns {', '.join(head[:12])}; name columns tau1 to "
            f"tau{count}, or current1 to current{count}"
        )
    if "tau" in arrays and "current" in arrays:
        findings.append(f"{path.name}: torques and currents; the torques are used")
        del arrays["current"]
    arrays.pop("qdd", None)  # logged accelerations are differences, with the noise of all their derivatives
    del rows
    t, arrays = repaired_times(t, arrays, path.name, findings)
    words = [_words(head[places["q"][k]]) for k in range(count)]
    to_radians(system, arrays, t, degrees, words, path, findings)
    turning = np.array([unit == "rad" for _, _, unit in axis_names(m, 1)])
    arrays["q"] = unwrapped(arrays["q"], turning, labels, path.name, findings)
    t, arrays = repaired_rows(t, arrays, labels, path.name, findings)
    check_velocities(system, t, arrays, path, findings)
    return Recording(t - t[0], arrays["q"], tau=arrays.get("tau"), current=arrays.get("current"), name=path.name)


# --- Text


def _table(
    path: Path, names: list[str] | None, count: int, rate: float | None, findings: list[str]
) -> tuple[list[str], Numbers]:
    """Return the header and the numbers of a text table; cells that are no numbers are NaN."""
    try:
        if path.stat().st_size > LARGE_BYTES:
            raise InputError(f"{path} has more than {LARGE_BYTES // 2**20} MiB; thin it out, or split it")
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; give a text table (.csv)") from None
    lines = [x for x in lines if x.strip()]
    if len(lines) < 3:
        raise InputError(f"{path} has {len(lines)} lines; a log has a header and a row per time")
    sample = lines[len(lines) // 2]
    mark = next((x for x in (";", "\t") if sample.count(x) > 1), ",")
    comma = mark != "," and not any("." in _without_dates(x) for x in lines[-20:])  # decimal commas
    split: Callable[[str], list[str]] = str.split
    if sample.count(mark):
        split = lambda x: x.split(mark)  # noqa: E731
    wide = len(split(sample.rstrip(mark)))
    first = next((k for k, x in enumerate(lines[:200]) if _is_row(split(x), wide, comma)), None)
    if first is None:
        raise InputError(f"{path} has no rows of numbers in its first 200 lines; give a text table with numbers")
    head = names or _header(lines[:first], split, wide)
    if head is None:
        head = _assumed(lines[first], wide, count, rate, path, findings)
    if len(head) < wide:
        head = [*head, *(f"column {k + 1}" for k in range(len(head), wide))]
    body = [x for x in lines[first:] if x.lstrip()[0] not in "#%"]
    return head[:wide], _numbers(body, mark if sample.count(mark) else None, split, wide, comma)


def _numbers(lines: list[str], mark: str | None, split: Callable[[str], list[str]], wide: int, comma: bool) -> Numbers:
    """Return the numbers of rows: by NumPy's reader where all cells are numbers, and cell by cell otherwise."""
    if comma:
        lines = [x.replace(",", ".") for x in lines]
    try:
        rows = np.loadtxt(lines, delimiter=mark, comments=None, ndmin=2)
        if rows.shape[1] == wide:
            return rows
    except ValueError:
        pass
    rows = np.full((len(lines), wide), np.nan)
    for k, line in enumerate(lines):
        for n, cell in enumerate(split(line)[:wide]):
            value = _number(cell)
            rows[k, n] = np.nan if value is None else value
    return rows


def _is_row(cells: Sequence[str], wide: int, comma: bool) -> bool:
    """Return whether cells are a row of numbers: at least two, and no words but empty cells and NaN."""
    known = [_number(x.replace(",", ".") if comma else x) is not None for x in cells if x.strip()]
    return len(cells) >= min(wide, 2) and len(known) > 1 and all(known)


def _header(lines: list[str], split: Callable[[str], list[str]], wide: int) -> list[str] | None:
    """Return the names of columns: the line before the numbers, or the one before its units, joined with them."""
    rows = [[x.strip().strip("\"'") for x in _cells(line.lstrip("#% "), split, wide)] for line in lines]
    rows = [row for row in rows if len(row) >= max(2, wide - 1)]
    if not rows:
        return None
    units = [set(_words(x)) for x in rows[-1]]
    if len(rows) > 1 and all(w <= UNIT_WORDS | {PERCENT} for w in units) and sum(map(bool, units)) > 1:
        return [f"{a} [{b}]" for a, b in zip(rows[-2], rows[-1], strict=False)]
    return rows[-1]


def _cells(line: str, split: Callable[[str], list[str]], wide: int) -> list[str]:
    """Return the names in a line of a header; where blanks separate, those before brackets belong to a name."""
    cells = split(line)
    if len(cells) != wide and split is str.split:
        cells = re.findall(r"\S+(?:\s+[\[(][^\])]*[\])])?", line)
    return cells


def _expanded(header: Sequence[str], count: int) -> list[str]:
    """Return names of columns, with a quantity of all joints as that of each."""
    known = {w for words in QUANTITIES.values() for w in words}
    out: list[str] = []
    for name in header:
        words = _words(name)
        alone = bool(words) and not any(w.isdigit() for w in words) and any(w in known for w in words)
        out += [f"{name} {k + 1}" for k in range(count)] if alone and len(header) < count + 1 else [name]
    return out


def _assumed(line: str, wide: int, count: int, rate: float | None, path: Path, findings: list[str]) -> list[str]:
    """Return names for a table without any, by the number of its columns."""
    times = 0 if rate is not None else 1
    blocks = BLOCKS.get((wide - times) // count) if (wide - times) % count == 0 else None
    if blocks is None:
        raise InputError(
            f"{path} has no header: its first line is {line[:60]!r}; name its columns, such as time,q1, or by "
            "header= (--header t,q,qd,current)"
        )
    names = ", ".join(["t"] * times + [f"{b}1 to {b}{count}" for b in blocks])
    findings.append(f"{path.name}: no header; columns are taken as {names}; --header t,q,current says otherwise")
    return ["t"] * times + [f"{b}{k + 1}" for b in blocks for k in range(count)]


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return _clock(cell.strip().strip("\"'"))


def _clock(text: str) -> float | None:
    """Return the seconds of a date with a time, or of a time of day."""
    if text.count(":") not in (2, 3):
        return None
    try:
        if re.fullmatch(r"\d+:\d\d:\d\d([.,]\d+)?", text):
            hours, minutes, seconds = text.replace(",", ".").split(":")
            return 3600.0 * int(hours) + 60.0 * int(minutes) + float(seconds)
        return (
            datetime.fromisoformat(text.replace(",", ".")).replace(tzinfo=None) - datetime(2000, 1, 1)
        ).total_seconds()
    except ValueError:
        return None


def _without_dates(line: str) -> str:
    return re.sub(r"\d+:\d\d:\d\d[.,]\d+", "", line)


# --- Columns


def _words(name: str) -> list[str]:
    """Return the words of a column's name in lower case, with numbers apart: "actualQ_3 [rad]" is actual, q, 3, rad."""
    name = re.sub(r"\bmA\b", "ma", name.replace("%", f" {PERCENT} "))
    name = re.sub(r"\b([kcm]?N) ?[.*]? ?(mm?)\b", lambda x: (x[1] + x[2]).lower(), name)  # "N m", "N.m"
    name = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return re.findall(r"[a-z]+|\d+", name.lower())


def _columns(head: Sequence[str], labels: Sequence[str], path: Path, findings: list[str]) -> dict[str, dict[int, int]]:
    """Return the column of each quantity and joint."""
    families = _families(head, labels, path)
    found: dict[str, dict[int, int]] = {}
    for quantity in QUANTITIES:
        own = [(rank, joints) for (of, rank, joints) in families if of == quantity]
        own.sort(key=lambda x: (-len(x[1]), x[0]))
        if not own:
            continue
        (unknown, _), joints = own[0]
        found[quantity] = dict(joints)
        if len(joints) < len(labels):  # names that are not alike
            for _, more in own[1:]:
                found[quantity] = more | found[quantity]
        elif unknown and (
            other := [j for r, j in own[1:] if r[0] == unknown and not set(j.values()) & set(joints.values())]
        ):
            first, second = (head[j[min(j)]] for j in (joints, other[0]))
            findings.append(f"{path.name}: {quantity} is read from {first!r} and so on, not from {second!r}")
    return found


def _families(
    head: Sequence[str], labels: Sequence[str], path: Path
) -> list[tuple[str, tuple[int, int], dict[int, int]]]:
    """Return (quantity, rank, column of each joint) of columns that differ by a joint's name or a number alone.

    The rank is the number of words that are not understood, and the first column.
    """
    by_word = {word: quantity for quantity, words in QUANTITIES.items() for word in words}
    plain = {*FILLERS, *UNIT_WORDS, *by_word}
    named = _named(labels, by_word)
    families: dict[tuple, tuple[str, int, int, dict[int, int]]] = {}
    for column, name in enumerate(head):
        words = _words(name)
        text = f" {' '.join(words)} "
        label, joint = next(((x, k) for x, k in named if f" {x} " in text), ("", -1))
        rest = words if joint < 0 else text.replace(f" {label} ", " ", 1).split()
        quantity = next((by_word[w] for w in rest if w in by_word), None)
        if quantity is None or set(rest) & set(IGNORED):
            continue
        unknown = len({w for w in rest if not w.isdigit()} - plain)
        readings: list[tuple[tuple, int]] = [] if joint < 0 else [((joint >= 0, *rest), joint)]
        digits = [k for k, w in enumerate(words) if w.isdigit()]
        readings += [((k, *words[:k], *words[k + 1 :]), int(words[k])) for k in reversed(digits)]
        if not readings and len(labels) == 1:
            readings = [(tuple(words), 1)]
        for pattern, key in readings:
            of, _, _, columns = families.setdefault(pattern, (quantity, unknown, column, {}))
            if key in columns and pattern is readings[0][0]:
                raise InputError(
                    f"{path}: columns {head[columns[key]]!r} and {name!r} are both {of} of the same joint; rename one"
                )
            columns.setdefault(key, column)
    out = []
    for pattern, (quantity, unknown, first, columns) in families.items():
        start = 0 if pattern[0] is True or 0 in columns else 1
        joints = {k - start: c for k, c in columns.items() if 0 <= k - start < len(labels)}
        if joints:
            out.append((quantity, (unknown, first), joints))
    return out


def _named(labels: Sequence[str], by_word: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return the words by which joints are named in columns, with and without such as "joint", the longest first."""
    out: list[tuple[str, int]] = []
    for k, label in enumerate(labels):
        words = _words(label)
        short = [w for w in words if w not in FILLERS]
        out.append((" ".join(words), k))
        if short and not all(w.isdigit() or w in by_word for w in short):
            out.append((" ".join(short), k))
    return sorted(out, key=lambda x: -len(x[0]))


def _times(head: list[str], rows: Numbers, rate: float | None, path: Path, findings: list[str]) -> Numbers:
    """Return the times of rows [s]: from a column, from two of seconds and nanoseconds, or by the rate."""
    if rate is not None:
        return np.arange(len(rows)) / positive(rate, "rate")
    by_word = {word for words in QUANTITIES.values() for word in words}
    known = {*TIMES, *SECONDS, *FILLERS, "header", "ros", "rosbag", "unix", "utc", "epoch", "system"}
    ranked = []
    for k, name in enumerate(head):
        words = _words(name)
        if set(words) & set(TIMES) and not set(words) & by_word and not any(w.isdigit() for w in words):
            with np.errstate(invalid="ignore"):
                forward = float(np.mean(np.diff(rows[: 10**4, k]) >= 0.0)) if len(rows) > 1 else 1.0
            if forward > FORWARD and np.nanmax(rows[:, k]) > np.nanmin(rows[:, k]):
                ranked.append((len(set(words) - known), k))
    if not ranked:
        raise InputError(
            f"{path}: no column of times among {', '.join(head[:12])}; name one 'time', in seconds, or give rate= "
            "(--rate 500), the samples per second"
        )
    at = min(ranked)[1]
    words = _words(head[at])
    fine = next((k for k, x in enumerate(head) if _words(x)[:-1] == words[:-1] and words[-1] in ("sec", "secs")
                 and _words(x)[-1] in ("nsec", "nsecs", "nanosec", "nanosecs")), None)  # fmt: skip
    if fine is not None:
        whole = rows[:, at] - rows[np.isfinite(rows[:, at]).argmax(), at]
        return whole + 1e-9 * rows[:, fine]
    return _seconds(rows[:, at], head[at], path, findings)


def _seconds(t: Numbers, name: str, path: Path, findings: list[str]) -> Numbers:
    """Return times in seconds, by the unit in the name of their column or by the size of their steps."""
    good = t[np.isfinite(t)]
    steps = np.abs(np.diff(good))
    step = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0
    words = _words(name)
    unit = next((SECONDS[w] for w in words if w in SECONDS), None)
    if unit is None and set(words) & {"s", "sec", "secs", "seconds"} and step <= 0.5:
        unit = 1.0
    if unit is None:
        unit = next(u for u, most in ((1.0, 0.5), (1e-3, 500.0), (1e-6, 5e5), (1e-9, math.inf)) if step <= most)
        if unit != 1.0:
            word = {1e-3: "milliseconds", 1e-6: "microseconds", 1e-9: "nanoseconds"}[unit]
            findings.append(f"{path.name}: steps of {step:.4g} are taken as {word}")
    first = good[0] if len(good) else 0.0
    return (t - first) * unit


# --- Units


def _units(
    arrays: dict[str, Numbers], places: dict[str, dict[int, int]], head: Sequence[str], path: Path, findings: list[str]
) -> None:
    """Convert torques and currents to N m and A by the units in their names; torques in percent are currents."""
    for quantity, table in (("tau", TORQUES), ("current", CURRENTS)):
        if quantity not in arrays:
            continue
        for k, column in places[quantity].items():
            factor = next((table[w] for w in _words(head[column]) if w in table), 1.0)
            if factor != 1.0:
                arrays[quantity][:, k] *= factor
    if "tau" in arrays and any(PERCENT in _words(head[c]) for c in places["tau"].values()):
        percent = arrays.pop("tau")
        arrays.setdefault("current", percent)
        findings.append(f"{path.name}: torques in percent are read like currents: their gains are torques per percent")
