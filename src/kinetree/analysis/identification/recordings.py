"""Recordings of a motion with the torques that made it, checked, and cut at gaps into pieces of even steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ... import joints as joint_kinds
from ..._support.checks import real_array
from ...algebra.arrays import Numbers
from ...errors import InputError
from ...model.mechanism import Mechanism
from ...model.parts import Body

BRIDGED = 4.0
"""The longest gap that is bridged by interpolation, in time steps; longer ones cut a recording."""
SHORTEST = 40
"""The fewest samples of a piece; shorter ones are left out."""
UNEVEN = 0.01
"""The largest deviation of a time step from their median, in parts of it, for steps that count as even."""


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


Data = Recording | Mapping[str, Any] | Iterable[Any]
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
        findings.append(f"{which}: {len(cuts)} gaps of up to {longest:.3g} s; the recording is cut there")
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
