"""Recordings of a motion with the torques that made it: checked, repaired, and cut at gaps into even pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import joints as joint_kinds
from ..._support.checks import real_array
from ..._support.tables import count_text
from ...algebra.scalars import Numbers
from ...errors import InputError
from ...model.mechanism import Mechanism
from ...model.parts import Body

if TYPE_CHECKING:
    from numpy.typing import NDArray

BRIDGED = 4.0
"""The longest gap that is bridged by interpolation, in time steps; longer ones cut a recording."""
SHORTEST = 40
"""The fewest samples of a piece; shorter ones are left out."""
UNEVEN = 0.01
"""The largest deviation of a time step from their median, relative to it, for steps that count as even."""

COARSE = 0.3
"""The part of repeated times above which times are coarse, and are spread evenly."""
JITTER, SMOOTHER = 0.02, 0.7
"""The deviation of time steps above which even ones are tried, and the roughness of positions that they need."""
PAUSE, TANGLED = 100.0, 3.0
"""The gap between runs of one log whose times begin anew, in steps; and how much rougher positions are if their rows
are sorted by time."""
HELD = 0.7
"""The part of intervals between changes of positions that have the usual length, in a log that repeats its rows."""
WINDOW, SPIKE, LEAST_SPIKE = 7, 15.0, {"q": 0.03, "tau": 0.25, "current": 0.25}
"""Rows of the running median; the distance from it of a spike, in deviations, and relative to the range of a signal:
friction makes steps of torques."""


@dataclass(frozen=True)
class Recording:
    """A motion with its torques: times t [n] in s, positions q [n, nq] in rad or m, and any of the others.

    `qd` and `qdd` [n, nv] are computed from q where they are not given. `tau` [n, nv] are the torques of the drives
    [N m, N], or `current` [n, nv] those of their motors in any unit; in a closed mechanism, only the columns of the
    actuated joints are read. `load` is a known load welded to the body of its name, in the axes of that body.
    """

    t: Any
    q: Any
    qd: Any = None
    qdd: Any = None
    tau: Any = None
    current: Any = None
    load: Body | None = None
    name: str = ""

    @property
    def effort(self) -> Any:
        """The measured torques, or currents."""
        return self.tau if self.tau is not None else self.current


Data = Recording | Mapping[str, object] | Iterable[object]
"""A recording, its fields by name, a run, or several of them."""


def recordings_of(data: Any) -> list[Recording]:
    """Return recordings from one, a mapping of its fields, a run, or several of them."""
    if isinstance(data, Recording):
        return [data]
    known = [f.name for f in fields(Recording)]
    if isinstance(data, Mapping):
        for key in data:
            if key not in known:
                raise InputError(f"data has {key!r}; a recording has {', '.join(known)}")
        if not {"t", "q"} <= data.keys():
            raise InputError("data has no t or no q; a recording needs times t [n] and positions q [n, nq]")
        return [Recording(**data)]
    if hasattr(data, "control") and hasattr(data, "system"):  # a Trajectory
        if data.control is None:
            raise InputError("the run has no torques of drives; simulate it with a control, or give t, q and tau")
        return [Recording(data.t, data.q, data.qd, data["qdd"], tau=data.control)]
    if isinstance(data, Iterable) and not isinstance(data, str | np.ndarray):
        out = [recording for part in data for recording in recordings_of(part)]
        if out:
            return out
    raise InputError(f"data is {repr(data)[:60]}; give a kt.Recording, a run, or a list of them")


def checked(mechanism: Mechanism, recording: Recording, which: str) -> Recording:
    """Return a recording whose arrays have the shapes of a mechanism; InputError with the remedy otherwise."""
    m = mechanism
    t = real_array(recording.t, f"{which}: t")
    if t.ndim != 1 or len(t) < SHORTEST:
        raise InputError(f"{which}: t has shape {t.shape}; give at least {SHORTEST} times [n]")
    if recording.effort is None:
        raise InputError(f"{which} has neither tau nor current; give the torques of the drives or the motor currents")
    if recording.tau is not None and recording.current is not None:
        raise InputError(f"{which} has both tau and current; give one of them")
    arrays: dict[str, Any] = {"t": t}
    for name, count in (("q", m.nq), ("qd", m.nv), ("qdd", m.nv), ("tau", m.nv), ("current", m.nv)):
        given = getattr(recording, name)
        if given is not None:
            array = real_array(given, f"{which}: {name}")
            if array.ndim == 1 and count == 1:
                array = array[:, None]
            if array.shape != (len(t), count):
                raise InputError(
                    f"{which}: {name} has shape {array.shape}; expected [{len(t)}, {count}], one row per time and one "
                    f"column per {'coordinate' if name == 'q' else 'degree of freedom'} of {m.name!r}"
                )
            arrays[name] = array
    if "qdd" in arrays and "qd" not in arrays:
        raise InputError(f"{which} has qdd without qd; give both, or q alone")
    if "qdd" not in arrays:
        for joint in m.joints:
            kind = joint_kinds.kind(joint.kind)
            if kind.NQ != kind.NV:
                raise InputError(
                    f"{which}: joint {joint.name!r} rotates by a quaternion, whose positions are not differentiated "
                    "here; give qd and qdd"
                )
    return replace(recording, **arrays)


def pieces(recording: Recording, which: str, findings: list[str]) -> list[Recording]:
    """Return the parts of a checked recording between gaps, with even time steps unless accelerations are given.

    Rows with NaN are left out; what was left out, bridged or cut is added to the findings.
    """
    names = [n for n in ("q", "qd", "qdd", "tau", "current") if getattr(recording, n) is not None]
    arrays = {n: getattr(recording, n) for n in names}
    t = recording.t
    good = np.isfinite(t) & np.all([np.isfinite(x).all(axis=1) for x in arrays.values()], axis=0)
    if not good.all():
        findings.append(
            f"{which}: {(~good).sum()} of {len(t)} rows have entries that are not finite; they are left out"
        )
        t, arrays = t[good], {n: x[good] for n, x in arrays.items()}
    steps = np.diff(t)
    if len(t) < SHORTEST:
        raise InputError(f"{which}: {len(t)} rows are finite; give at least {SHORTEST}")
    if (steps <= 0).any():
        k = int(np.argmax(steps <= 0))
        raise InputError(
            f"{which}: times do not increase: t = {t[k]:.6g} s is followed by {t[k + 1]:.6g} s (row {k + 1}); sort the "
            "rows and leave out repeated ones"
        )
    step = float(np.median(steps))
    cuts = np.flatnonzero(steps > BRIDGED * step) + 1
    if len(cuts):
        longest = float(steps.max())
        findings.append(f"{which}: {count_text(len(cuts), 'gap')} of up to {longest:.3g} s; the recording is cut there")
    out, lost = [], 0
    for first, last in pairwise([0, *cuts.tolist(), len(t)]):
        part, own = slice(first, last), t[first:last]
        if len(own) < SHORTEST:
            lost += len(own)
            continue
        values = {n: x[part] for n, x in arrays.items()}
        uneven = np.abs(np.diff(own) - step).max() > UNEVEN * step
        if uneven and "qdd" not in arrays:
            even = np.linspace(own[0], own[-1], round((own[-1] - own[0]) / step) + 1)
            values = {n: _interpolated(own, x, even) for n, x in values.items()}
            own = even
        out.append(replace(recording, t=own, **values))
    if lost:
        findings.append(f"{which}: {lost} rows between gaps are too few for filters; they are left out")
    if not out:
        raise InputError(f"{which}: no piece between gaps has {SHORTEST} rows; record at even steps without gaps")
    return out


def _interpolated(t: Numbers, x: Numbers, at: Numbers) -> Numbers:
    from scipy.interpolate import PchipInterpolator

    return PchipInterpolator(t, x, axis=0)(at)


# --- Repairs of logs: times that repeat, begin anew or tremble; rows that repeat; turns that wrap; spikes


def repaired_times(
    t: Numbers, arrays: dict[str, Numbers], name: str, findings: list[str]
) -> tuple[Numbers, dict[str, Numbers]]:
    """Return times that increase, with their rows; what was changed is added to the findings."""
    good = np.isfinite(t)
    if not good.all():
        findings.append(f"{name}: {(~good).sum()} rows have no time; they are left out")
        t, arrays = t[good], {n: x[good] for n, x in arrays.items()}
    if len(t) < SHORTEST:
        raise InputError(f"{name} has {len(t)} rows with a time; give at least {SHORTEST}")
    back = np.flatnonzero(np.diff(t) < 0.0) + 1
    if len(back):
        step = float(np.median(np.abs(np.diff(t))))
        runs = [t[a:b] for a, b in pairwise([0, *back.tolist(), len(t)])]
        shifts = np.cumsum([0.0, *(float(x[-1] + PAUSE * step - y[0]) for x, y in pairwise(runs))])
        after = np.concatenate([x + d for x, d in zip(runs, shifts, strict=True)])
        order = np.argsort(t, kind="stable")
        even = _fitted(t, np.flatnonzero(np.diff(t) > BRIDGED * step) + 1, lambda own: np.arange(len(own), dtype=float))
        near = (t[back - 1] - t[back]).max() < BRIDGED * step and (np.diff(even) > 0.0).all()
        if near and _roughness(even, arrays["q"]) < _roughness(t[order], arrays["q"][order]):
            findings.append(f"{name}: {len(back)} times are before those of the row before; times are spread evenly")
            return even, arrays
        if _roughness(t[order], arrays["q"][order]) > TANGLED * _roughness(after, arrays["q"]):
            findings.append(f"{name}: times begin anew {len(back)} times; the runs are read one after the other")
            t = after
        else:
            findings.append(f"{name}: rows are not in the order of time; they are sorted")
            t, arrays = t[order], {n: x[order] for n, x in arrays.items()}
    repeated = np.append(False, np.diff(t) <= 0.0)
    if not repeated.any():
        return _evened(t, arrays, name, findings), arrays
    same = np.append(False, (np.diff(arrays["q"], axis=0) == 0.0).all(axis=1)) & repeated
    if same.sum() < 0.5 * repeated.sum():  # new positions at an old time: times are rounded
        even, first = _spread(t), ~repeated
        smoother = _roughness(even, arrays["q"]) < SMOOTHER * _roughness(t[first], arrays["q"][first])
        if repeated.mean() > COARSE or smoother:
            findings.append(f"{name}: {repeated.sum()} rows repeat the time of the row before; times are spread evenly")
            return even, arrays
    findings.append(f"{name}: {repeated.sum()} rows repeat the time of the row before; they are left out")
    t, arrays = t[~repeated], {n: x[~repeated] for n, x in arrays.items()}
    return _evened(t, arrays, name, findings), arrays


def _spread(t: Numbers) -> Numbers:
    """Return times with even steps between gaps, from coarse times that repeat."""
    stamps, first = np.unique(t, return_index=True)
    step = float(np.median(np.diff(stamps)))
    cuts = first[1:][np.diff(stamps) > BRIDGED * max(step, float(np.mean(np.diff(t)))) + step]
    out = _fitted(t, cuts, lambda own: np.arange(len(own), dtype=float))
    late = np.diff(out) <= 0.0
    return np.interp(np.arange(len(t)), first, stamps) if late.any() else out


def _evened(t: Numbers, arrays: dict[str, Numbers], name: str, findings: list[str]) -> Numbers:
    """Return even times where stamps tremble and positions are smoother over even ones."""
    steps = np.diff(t)
    step = float(np.median(steps))
    short = steps[steps < BRIDGED * step]
    if np.std(short) <= JITTER * step:
        return t
    cuts = np.flatnonzero(steps > BRIDGED * step) + 1
    candidates = [
        _fitted(t, cuts, lambda own: np.arange(len(own), dtype=float)),
        _fitted(t, cuts, lambda own: np.append(0.0, np.cumsum(np.maximum(np.round(np.diff(own) / step), 1.0)))),
    ]
    rough = [_roughness(x, arrays["q"]) if (np.diff(x) > 0.0).all() else np.inf for x in candidates]  # fmt: skip
    even = candidates[int(np.argmin(rough))]
    if not min(rough) < SMOOTHER * _roughness(t, arrays["q"]):
        return t
    step = float(np.median(np.diff(even)))
    findings.append(
        f"{name}: time steps vary by {100.0 * np.std(short) / step:.0f} %, and positions are smoother over even steps "
        f"of {step:.4g} s, which are used"
    )
    return even


def _fitted(t: Numbers, cuts: NDArray, count: Callable[[Numbers], Numbers]) -> Numbers:
    """Return times between gaps as the straight lines through them over the number of steps."""
    out = t.copy()
    for a, b in pairwise([0, *cuts.tolist(), len(t)]):
        if b - a > 2:
            steps = count(t[a:b])
            slope, start = np.polyfit(steps, t[a:b], 1)
            out[a:b] = start + slope * steps
    return out


def _roughness(t: Numbers, q: Numbers) -> float:
    """Return the median distance of positions from lines between their neighbors, relative to the range."""
    part = ((t[1:-1] - t[:-2]) / np.maximum(t[2:] - t[:-2], 1e-300))[:, None]
    off = np.abs(q[1:-1] - (1.0 - part) * q[:-2] - part * q[2:])
    size = np.maximum(np.nanmax(q, axis=0) - np.nanmin(q, axis=0), 1e-300)
    return float(np.nanmean(np.minimum(off / size, 0.1)))


def unwrapped(q: Numbers, turning: NDArray[np.bool_], labels: Sequence[str], name: str, findings: list[str]) -> Numbers:
    """Return positions [rad] of joints that rotate without jumps of a revolution."""
    out, found = q.copy(), []
    for k in np.flatnonzero(turning).tolist():
        good = np.isfinite(q[:, k])
        values = q[good, k]
        jumps = np.abs(np.abs(np.diff(values)) - 2.0 * np.pi) < 0.3
        if jumps.any():
            turns = np.append(0.0, np.cumsum(np.where(jumps, -np.sign(np.diff(values)), 0.0)))
            out[good, k] = values + 2.0 * np.pi * turns
            found.append(labels[k])
    if found:
        findings.append(f"{name}: positions of {', '.join(found)} jump by a revolution; the jumps are removed")
    return out


def repaired_rows(
    t: Numbers, arrays: dict[str, Numbers], labels: Sequence[str], name: str, findings: list[str]
) -> tuple[Numbers, dict[str, Numbers]]:
    """Return rows without repetitions of older samples, and with NaN in place of spikes."""
    t, arrays = _fresh_rows(t, arrays, name, findings)
    for what in ("q", "tau", "current"):
        if what not in arrays:
            continue
        spikes = _spikes(arrays[what], LEAST_SPIKE[what])
        if spikes.any():
            arrays[what] = np.where(spikes, np.nan, arrays[what])
            who = ", ".join(labels[k] for k in np.flatnonzero(spikes.any(axis=0)).tolist())
            word = {"q": "positions", "tau": "torques", "current": "currents"}[what]
            findings.append(f"{name}: {spikes.any(axis=1).sum()} rows have spikes of {word} ({who})")
    return t, arrays


def _fresh_rows(
    t: Numbers, arrays: dict[str, Numbers], name: str, findings: list[str]
) -> tuple[Numbers, dict[str, Numbers]]:
    """Return the rows at which positions change, in a log that repeats each sample several times."""
    changed = np.flatnonzero(np.append(True, (np.diff(arrays["q"], axis=0) != 0.0).any(axis=1)))
    gaps = np.diff(changed)
    if len(gaps) < SHORTEST:
        return t, arrays
    usual = int(np.median(gaps))
    if usual < 2 or np.mean(np.abs(gaps - usual) <= max(1, usual // 4)) < HELD:
        return t, arrays
    kept = np.concatenate([np.arange(a, b, usual) if b - a > 2 * usual else [a]
                           for a, b in pairwise([*changed.tolist(), len(t)])]).astype(int)  # fmt: skip
    findings.append(f"{name}: positions change every {usual} rows; one row of each {usual} is used")
    arrays = {n: x[kept] for n, x in arrays.items()}
    return _evened(t[kept], arrays, name, findings), arrays


def _spikes(x: Numbers, least: float) -> NDArray[np.bool_]:
    """Return where signals [n, k] leave the running median of their neighbors for a few rows."""
    from scipy.ndimage import median_filter

    filled = np.where(np.isfinite(x), x, 0.0)
    off = np.abs(filled - median_filter(filled, size=(WINDOW, 1), mode="nearest"))
    off = np.where(np.isfinite(x), off, 0.0)
    low, high = np.nanquantile(x, [0.01, 0.99], axis=0)
    deviation = 1.4826 * np.median(off, axis=0)
    return off > np.maximum(SPIKE * deviation, least * (high - low)) + 1e-12
