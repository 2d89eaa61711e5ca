"""Logs of robots as text tables (.csv): columns recognized by names, units and order checked by the data.

Columns that differ by the number or the name of a joint alone are a family. For each quantity the complete family with
the fewest words that are not understood is read, so that "actual_q_0" wins over "actual_TCP_pose_0".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..._support.checks import positive
from ...algebra.scalars import Numbers
from ...errors import InputError
from ...model.axes import axis_labels, axis_names
from ...runtime.compiled import CompiledMechanism
from .log_tables import ANGLES, CURRENTS, PERCENT, SECONDS, TORQUES, UNIT_WORDS, read_table, words_of
from .recordings import Recording, repaired_rows, repaired_times, unwrapped

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUANTITIES = {
    "q": ("q", "pos", "position", "positions", "angle", "angles", "theta", "jointpos", "jointposition", "actpos"),
    "qd": ("qd", "dq", "qdot", "vel", "velocity", "velocities", "speed", "speeds", "omega", "actvel"),
    "qdd": ("qdd", "ddq", "qddot", "acc", "accel", "acceleration", "accelerations"),
    "tau": ("tau", "torque", "torques", "effort", "efforts", "trq", "moment", "force", "acttrq"),
    "current": ("current", "currents", "curr", "cur", "i", "iq", "amp", "amps", "ampere", "amperes"),
}
"""The words by which columns are recognized."""
WORDS = {"q": "positions", "tau": "torques", "current": "currents"}
TIMES = ("t", "time", "timestamp", "timestamps", "stamp", "sec", "secs", "seconds", "clock", "elapsed", "zeit")
COMMANDED = (*"target desired des cmd command commanded ref reference set setpoint goal".split(),)
"""Words of columns that are not measured: they are read where nothing else is there."""
IGNORED = (
    *"tcp tool ee flange cartesian temperature temperatures temp voltage robot main error ext external hat".split(),
)
"""Words of columns that are not of joints, or not what drives do."""
FILLERS = (
    *"actual act measured meas real joint joints motor drive axis axes link state states field j nm a s m per".split(),
    *"n rad rads log".split(),
)
"""Words that say nothing against a column."""
BLOCKS = {2: ("q", "tau"), 3: ("q", "qd", "tau"), 4: ("q", "qd", "qdd", "tau")}
"""What tables without a header have, by the number of columns per joint."""
FORWARD = 0.8
"""The least part of rows whose time is not before that of the row before."""
NOT_MEASURED, BY_UNIT, UNNAMED = 1000, 2000, 3000
"""Ranks of columns that are commanded, that only their unit tells, and that only have the name or number of a joint."""
RATES_OVER = 0.02
"""Half of the time [s] over which rates of positions are formed."""
SPEEDS = {1.0: "rad/s", 180.0 / math.pi: "degrees per second", 30.0 / math.pi: "revolutions per minute"}
"""Units of measured velocities, by what 1 rad/s is in them."""
TURNS = 2.5 * 2.0 * math.pi
"""The largest position of a joint that is likely in radians: limits of arms are up to one revolution each way."""
BEYOND = 1.2
"""The factor by which positions may exceed the limits of the model before they are taken as degrees."""
ALIKE, UNLIKE = 0.7, 0.4
"""Correlations of a measured velocity with the derivative of a position: of the same joint, and of another one."""


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
    table, labels = read_table(path, None if header is None else _expanded(header, count)), axis_labels(m, 1)
    rows = table.rows
    head = table.head or _assumed(table.first, rows.shape[1], count, rate, path, findings)
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
    del rows, table
    t, arrays = repaired_times(t, arrays, path.name, findings)
    words = [words_of(head[places["q"][k]]) for k in range(count)]
    to_radians(system, arrays, t, degrees, words, path, findings)
    turning = np.array([unit == "rad" for _, _, unit in axis_names(m, 1)])
    arrays["q"] = unwrapped(arrays["q"], turning, labels, path.name, findings)
    t, arrays = repaired_rows(t, arrays, labels, path.name, findings)
    check_velocities(system, t, arrays, path, findings)
    return Recording(t - t[0], arrays["q"], tau=arrays.get("tau"), current=arrays.get("current"), name=path.name)


# --- Columns


def _expanded(header: Sequence[str], count: int) -> list[str]:
    """Return names of columns, with a quantity of all joints as that of each."""
    known = {w for words in QUANTITIES.values() for w in words}
    out: list[str] = []
    for name in header:
        words = words_of(name)
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


def _columns(head: Sequence[str], labels: Sequence[str], path: Path, findings: list[str]) -> dict[str, dict[int, int]]:
    """Return the column of each quantity and joint."""
    families = _families(head, labels, path)
    measured = {of for of, (rank, _), _ in families if rank < NOT_MEASURED}
    found: dict[str, dict[int, int]] = {}
    for quantity in QUANTITIES:
        own = [(rank, joints) for (of, rank, joints) in families if of == quantity]
        if quantity in measured or (quantity in ("tau", "current") and measured & {"tau", "current"}):
            own = [(rank, joints) for rank, joints in own if rank[0] < NOT_MEASURED]
        own.sort(key=lambda x: (-len(x[1]), x[0]))
        if not own:
            continue
        (unknown, _), joints = own[0]
        found[quantity] = dict(joints)
        if unknown >= NOT_MEASURED and quantity in ("q", "tau", "current") and len(joints) == len(labels):
            why = {NOT_MEASURED: "nothing measured is there", BY_UNIT: "by their unit", UNNAMED: "no other name tells"}
            findings.append(
                f"{path.name}: {WORDS[quantity]} are read from {head[joints[0]]!r} and so on: "
                f"{why[unknown // NOT_MEASURED * NOT_MEASURED]}"
            )
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
        words = words_of(name)
        text = f" {' '.join(words)} "
        label, joint = next(((x, k) for x, k in named if f" {x} " in text), ("", -1))
        rest = words if joint < 0 else text.replace(f" {label} ", " ", 1).split()
        quantity = next((by_word[w] for w in rest if w in by_word), None)
        if set(rest) & set(IGNORED):
            continue
        unknown = len({w for w in rest if not w.isdigit()} - plain)
        if quantity is None:
            quantity, rank = _by_unit(rest, plain)
            if quantity is None:
                continue
            unknown += rank
        elif set(rest) & set(COMMANDED):
            unknown += NOT_MEASURED
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


def _by_unit(words: Sequence[str], plain: set[str]) -> tuple[str | None, int]:
    """Return the quantity of a column whose words name none, by its unit or by a joint alone, with its rank."""
    units = set(words)
    for quantity, own in (("tau", {"nm", *TORQUES}), ("current", {*CURRENTS})):
        if units & own:
            return quantity, BY_UNIT
    if {w for w in units if not w.isdigit()} <= plain - {"s", "per", "t"}:
        return "q", BY_UNIT if units & {*ANGLES} else UNNAMED
    return None, 0


def _named(labels: Sequence[str], by_word: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return the words by which joints are named in columns, with and without such as "joint", the longest first."""
    out: list[tuple[str, int]] = []
    for k, label in enumerate(labels):
        words = words_of(label)
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
        words = words_of(name)
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
    words = words_of(head[at])
    fine = next((k for k, x in enumerate(head) if words_of(x)[:-1] == words[:-1] and words[-1] in ("sec", "secs")
                 and words_of(x)[-1] in ("nsec", "nsecs", "nanosec", "nanosecs")), None)  # fmt: skip
    if fine is not None:
        whole = rows[:, at] - rows[np.isfinite(rows[:, at]).argmax(), at]
        return whole + 1e-9 * rows[:, fine]
    return _seconds(rows[:, at], head[at], path, findings)


def _seconds(t: Numbers, name: str, path: Path, findings: list[str]) -> Numbers:
    """Return times in seconds, by the unit in the name of their column or by the size of their steps."""
    good = t[np.isfinite(t)]
    steps = np.abs(np.diff(good))
    step = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0
    words = words_of(name)
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
            factor = next((table[w] for w in words_of(head[column]) if w in table), 1.0)
            if factor != 1.0:
                arrays[quantity][:, k] *= factor
    if "tau" in arrays and any(PERCENT in words_of(head[c]) for c in places["tau"].values()):
        percent = arrays.pop("tau")
        arrays.setdefault("current", percent)
        findings.append(f"{path.name}: torques in percent are read like currents: their gains are torques per percent")


def to_radians(
    system: CompiledMechanism,
    arrays: dict[str, Numbers],
    t: Numbers,
    degrees: bool | None,
    words: list[list[str]],
    path: Path,
    findings: list[str],
) -> None:
    """Convert angles to radians and lengths to meters where names, sizes or limits say that they are not."""
    turning = np.array([unit == "rad" for _, _, unit in axis_names(system.mechanism, 1)])
    factors = np.ones(len(turning))
    for k, own in enumerate(words):
        factors[k] = next((ANGLES[w] for w in own if w in ANGLES), 1.0)
    named = any(set(w) & (ANGLES.keys() - {"mm"}) for k, w in enumerate(words) if turning[k])
    if degrees is not None:
        factors = np.where(turning, math.pi / 180.0 if degrees else 1.0, factors)
    elif turning.any() and not named:
        why = _likely_degrees(system, arrays["q"], turning)
        if why:
            factors = np.where(turning, math.pi / 180.0, factors)
            findings.append(f"{path.name}: positions of up to {why} are taken as degrees; --radians if they are not")
    arrays["q"] = arrays["q"] * factors
    if "qd" in arrays and turning.any():
        slope = _slopes(t, arrays["q"], arrays["qd"])[turning]
        size = float(np.nanmedian(np.abs(slope)))
        unit = min(SPEEDS, key=lambda u: abs(math.log(max(size, 1e-300) / u)))
        if unit != 1.0 and abs(math.log(max(size, 1e-300) / unit)) < math.log(1.5):
            arrays["qd"] = np.where(turning, arrays["qd"] / unit, arrays["qd"])
            if (factors[turning] == 1.0).all():
                findings.append(f"{path.name}: velocities are in {SPEEDS[unit]}, positions in radians")


def _likely_degrees(system: CompiledMechanism, q: Numbers, turning: NDArray[np.bool_]) -> str:
    """Return the largest position that joints in radians are not likely to have, as text, or nothing."""
    largest = np.nanmax(np.abs(q), axis=0, initial=0.0)
    if float(largest[turning].max()) > TURNS:
        return f"{largest[turning].max():.4g}"
    for k, joint in enumerate(system.mechanism.joints):
        low, high = joint.limits.lower, joint.limits.upper
        if len(system.mechanism.joints) == len(largest) and turning[k] and len(low) and len(high):
            most = max(abs(float(low[0])), abs(float(high[0])))  # pyright: ignore
            if math.isfinite(most) and largest[k] > BEYOND * max(most, math.pi):
                return f"{largest[k]:.4g}, beyond the limits of {joint.name},"
    return ""


def _rates(t: Numbers, q: Numbers) -> Numbers:
    """Return rough velocities, over steps in which noise is small."""
    apart = max(1, int(RATES_OVER / max(float(np.median(np.diff(t))), 1e-9)))
    out = np.full(q.shape, np.nan)
    out[apart:-apart] = (q[2 * apart :] - q[: -2 * apart]) / (t[2 * apart :] - t[: -2 * apart])[:, None]
    return out


def _slopes(t: Numbers, q: Numbers, qd: Numbers) -> Numbers:
    """Return measured velocities relative to the rates of positions, by joint."""
    rates = _rates(t, q)
    return np.nansum(rates * qd, axis=0) / np.maximum(np.nansum(rates * rates, axis=0), 1e-300)


def check_velocities(
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
