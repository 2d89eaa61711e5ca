"""Columns of a trajectory: names, units and shapes, and those that are computed of its states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.scalars import Numbers
from ..analysis.loops.load_sharing import common_loads, same_geometry
from ..contact_geometry import labels
from ..errors import InputError, unknown_name
from ..model.axes import axis_labels, axis_names, rate_unit
from ..model.mechanism import Mechanism

if TYPE_CHECKING:
    from .trajectory import Trajectory

Index = tuple[int | slice, ...]

WRENCH = ("nx", "ny", "nz", "fx", "fy", "fz")
WRENCH_UNITS = ("N m", "N m", "N m", "N", "N", "N")
EFFORTS = {"rad": "N m", "m": "N", "C": "V"}
"""Units of torques and forces by the unit of the coordinate."""
POSE_UNITS = ("1", "1", "1", "m") * 3 + ("1",) * 4


@dataclass(frozen=True)
class Column:
    """A column: its name, the shape of one sample, and labels and units of its entries in the order of the array.

    `parts` maps the names after the dot, such as "joint2" or "base.x" in "q.base.x", to their indices in a sample.
    """

    name: str
    shape: tuple[int, ...]
    labels: tuple[str, ...] = field(repr=False)
    units: tuple[str, ...] = field(repr=False)
    parts: dict[str, Index] = field(repr=False, default_factory=dict)

    @property
    def unit(self) -> str:
        """The unit, or the units of the entries if they differ."""
        return ", ".join(dict.fromkeys(self.units))

    def __str__(self) -> str:
        """Return name, unit and shape on one line."""
        return f"{self.name} [{self.unit}] {self.shape}"


CONTACTS = ("contact_forces", "contact_gaps", "contact_residuals")
RESIDUALS = ("signorini", "cone", "dissipation")
GIVEN = ("control", "reference", "wrenches", *CONTACTS)
"""Fields that only some runs have, which are also the names of their columns."""


def columns(mechanism: Mechanism, *, given: Sequence[str] = ()) -> dict[str, Column]:
    """Return the columns of the runs of a mechanism by name, including the columns of the `given` fields."""
    bodies = [b.name for b in mechanism.bodies]
    listed = [
        _scalar("t", "s"),
        _of_joints(mechanism, "q", 0, lambda unit: unit),
        _of_joints(mechanism, "qd", 1, rate_unit),
        _of_joints(mechanism, "qdd", 1, lambda unit: "A/s" if unit == "C" else f"{unit}/s^2"),
        _of_joints(mechanism, "tau", 2, lambda unit: EFFORTS[unit]),
        _scalar("energy", "J"),
        _scalar("kinetic_energy", "J"),
        _scalar("potential_energy", "J"),
        _vector("momentum", ("lx", "ly", "lz", "px", "py", "pz"), ("N m s",) * 3 + ("N s",) * 3),
        _vector("center_of_mass", ("x", "y", "z"), ("m",) * 3),
        _wrenches("reactions", bodies),
        Column(
            "poses",
            (len(bodies), 4, 4),
            tuple(f"poses.{b}.{i}{k}" for b in bodies for i in range(1, 5) for k in range(1, 5)),
            POSE_UNITS * len(bodies),
            {b: (i, slice(None), slice(None)) for i, b in enumerate(bodies)},
        ),
    ]
    if mechanism.closures:
        units = [c.unit for c in mechanism.closures]
        listed += [
            _of_closures(mechanism, "gap", units),
            _of_closures(mechanism, "multipliers", [EFFORTS[unit] for unit in units]),
        ]
    if mechanism.loops:
        listed.append(_wrenches("loop_reactions", [loop.name for loop in mechanism.loops]))
    if "wrenches" in given:
        listed.append(_wrenches("wrenches", bodies))
    if mechanism.contacts:
        listed += [column for column in _contacts(mechanism) if column.name in given]
    if "control" in given:
        listed.append(_of_joints(mechanism, "control", 2, lambda unit: EFFORTS[unit]))
    if "reference" in given:
        listed += [_of_joints(mechanism, name, 0, lambda unit: unit) for name in ("reference", "tracking_error")]
    return {column.name: column for column in listed}


def find(known: dict[str, Column], name: str) -> tuple[str, Index]:
    """Return the column of a name such as "q.joint2", and the index of its entries in a sample."""
    base, dot, part = name.partition(".")
    if base not in known:
        raise unknown_name("column", name, known)
    if not dot:
        return base, ()
    parts = known[base].parts
    if part not in parts:
        raise unknown_name(f"part of column {base!r}", part, parts)
    return base, parts[part]


def _of_joints(mechanism: Mechanism, name: str, which: int, unit) -> Column:
    axes = list(axis_names(mechanism, which))
    joints: dict[str, list[int]] = {}
    for k, (joint, _, _) in enumerate(axes):
        joints.setdefault(joint, []).append(k)
    parts: dict[str, Index] = {
        joint: (at[0],) if len(at) == 1 else (slice(at[0], at[-1] + 1),) for joint, at in joints.items()
    }
    suffixes = axis_labels(mechanism, which)
    for k, suffix in enumerate(suffixes):
        parts.setdefault(suffix, (k,))
    units = tuple(unit(u) for _, _, u in axes)
    return Column(name, (len(axes),), tuple(f"{name}.{s}" for s in suffixes), units, parts)


def _wrenches(name: str, bodies: list[str]) -> Column:
    parts: dict[str, Index] = {b: (i, slice(None)) for i, b in enumerate(bodies)}
    for i, b in enumerate(bodies):
        for k, entry in enumerate(WRENCH):
            parts.setdefault(f"{b}.{entry}", (i, k))
    labels = tuple(f"{name}.{b}.{entry}" for b in bodies for entry in WRENCH)
    return Column(name, (len(bodies), 6), labels, WRENCH_UNITS * len(bodies), parts)


def contact_shapes(mechanism: Mechanism) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a sample of the fields of contacts."""
    count = len(contact_names(mechanism))
    return {"contact_forces": (count, 3), "contact_gaps": (count,), "contact_residuals": (3,)}


def contact_names(mechanism: Mechanism) -> list[str]:
    """Return the names of the candidates of all contacts."""
    return [label for contact in mechanism.contacts for label in labels(contact)]


def _contacts(mechanism: Mechanism) -> list[Column]:
    names = contact_names(mechanism)
    axes = ("n", "t1", "t2")
    parts: dict[str, Index] = {x: (i, slice(None)) for i, x in enumerate(names)}
    for i, x in enumerate(names):
        for k, axis in enumerate(axes):
            parts.setdefault(f"{x}.{axis}", (i, k))
    listed = tuple(f"contact_forces.{x}.{axis}" for x in names for axis in axes)
    return [
        Column("contact_forces", (len(names), 3), listed, ("N",) * len(listed), parts),
        _vector("contact_gaps", tuple(names), ("m",) * len(names)),
        _vector("contact_residuals", RESIDUALS, ("1",) * 3),
    ]


def _of_closures(mechanism: Mechanism, column: str, units: Sequence[str]) -> Column:
    """Return a column with an entry for each equation of the loops and couplings."""
    closures = mechanism.closures
    names = [c.name for c in closures]
    parts: dict[str, Index] = {}
    for name in dict.fromkeys(names):
        at, count = names.index(name), names.count(name)
        parts[name] = (at,) if count == 1 else (slice(at, at + count),)
    suffixes = [c.name if names.count(c.name) == 1 else f"{c.name}.{c.label.replace(' ', '_')}" for c in closures]
    for k, suffix in enumerate(suffixes):
        parts.setdefault(suffix, (k,))
    return Column(column, (len(closures),), tuple(f"{column}.{s}" for s in suffixes), tuple(units), parts)


def _scalar(name: str, unit: str) -> Column:
    return Column(name, (), (name,), (unit,))


def _vector(name: str, entries: tuple[str, ...], units: tuple[str, ...]) -> Column:
    parts: dict[str, Index] = {entry: (k,) for k, entry in enumerate(entries)}
    return Column(name, (len(entries),), tuple(f"{name}.{e}" for e in entries), units, parts)


# --- Columns computed from the states of a run, each by one call of a function of the System for all samples ---

# --- Arrays of a run that are given, or computed from its states at their first use ---

Source = Callable[[str, Any], Numbers]
"""A function (name of the field, run) -> array, for a run or any part of it."""


class Recorded:
    """A field of a Trajectory that holds an array, None, or the Source of an array.

    Batches of runs are large: an array with a Source takes no memory until it is used.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, run: None, owner: type) -> None: ...
    @overload
    def __get__(self, run: object, owner: type) -> Numbers | None: ...
    def __get__(self, run, owner):
        """Return the array, computed at its first use; for the class None, the default of the field."""
        if run is None:
            return None
        value = vars(run)[self._name]
        if callable(value):
            value = vars(run)[self._name] = array(self._name, value(self._name, run))
        return value

    def __set__(self, run: object, value: ArrayLike | Source | None) -> None:
        """Keep an array or a Source."""
        vars(run)[self._name] = value


def array(name: str, values: object, shape: tuple[int, ...] | None = None) -> Numbers:
    """Return real numbers as a read-only view, or raise an InputError."""
    try:
        found = np.asarray(values, dtype=np.float64).view()
    except (TypeError, ValueError):
        raise InputError(f"{name} is not an array of real numbers") from None
    if shape is not None and found.shape != shape:
        raise InputError(f"{name} has shape {found.shape}; expected {shape}")
    found.flags.writeable = False
    return found


def is_zeros(values: Numbers) -> bool:
    """Return whether an array is a single zero repeated by broadcasting, without reading all entries."""
    return values.size > 0 and not any(values.strides) and not values.flat[0]


def derive(run: Trajectory, name: str) -> dict[str, Numbers]:
    """Return a column of a run by its full name, and those that are computed with it; samples that are NaN stay NaN."""
    if run.system.closures and name in ("reactions", "loop_reactions"):
        return _loads(run)
    return {name: _single(run, name)}


def _single(run: Trajectory, name: str) -> Numbers:
    if name in ("t", "q", "qd", *GIVEN):
        return getattr(run, name)
    if name == "tracking_error":
        return run["reference"] - run.q
    if name == "tau":
        return np.zeros(run.qd.shape) if run.torque is None else run.torque
    if name == "energy":
        return run["kinetic_energy"] + run["potential_energy"]
    if name == "qdd":
        if run.accelerations is not None:
            return run.accelerations
        return run.system.forward_dynamics(run.q, run.qd, run["tau"], **call_options(run, wrenches=True))
    if name == "gap":
        return run.system.closure_residual(run.q, **call_options(run))
    if name == "multipliers":
        return run.system.multipliers(run.q, run.qd, run["tau"], **call_options(run, wrenches=True))
    if name == "reactions":
        return run.system.reactions(run.q, run.qd, run["qdd"], **call_options(run, wrenches=True))
    states = (run.q, run.qd) if name in ("kinetic_energy", "momentum") else (run.q,)
    return getattr(run.system, name)(*states, **call_options(run))


def _loads(run: Trajectory) -> dict[str, Numbers]:
    """Return the reactions at the joints and at the loops of a closed mechanism."""
    values = run.parameters
    if values is not None and run.shape and values.ndim == 2 and not run.q.strides[0] and not run.qd.strides[0]:
        if same_geometry(run.system, values):  # designs that make one motion
            joints, loops = common_loads(
                run.system,
                run.q[0],
                run.qd[0],
                run["qdd"][0],
                tau=run["tau"],
                wrenches=acting_wrenches(run),
                parameters=values,
            )
            return {"reactions": joints, "loop_reactions": loops}
    found = run.system.loads(
        run.q,
        run.qd,
        tau=run["tau"],
        wrenches=acting_wrenches(run),
        forces=False,
        parameters=run.parameters_at_samples,
    )
    return {"reactions": found.joints, "loop_reactions": found.cuts}


def acting_wrenches(run: Trajectory) -> Numbers | None:
    """Return the wrenches on the bodies, or None if all are zero: functions of long mechanisms accept none."""
    wrenches = run.wrenches
    if wrenches is None or is_zeros(wrenches) or not np.nan_to_num(wrenches).any():
        return None
    return wrenches


def call_options(run: Trajectory, *, wrenches: bool = False) -> dict[str, Any]:
    """Return the options that a run passes to functions of its System: parameters, and wrenches that acted."""
    options: dict[str, object] = {"check": False}
    if run.parameters is not None:
        options["parameters"] = run.parameters_at_samples
    if wrenches:
        options["forces"] = False  # torque and wrenches of the run contain them
        if run.wrenches is not None:
            options["wrenches"] = run.wrenches
    return options


def energy_error(run: Trajectory) -> Numbers:
    """Return the largest change of the total energy relative to the energy in motion, for each run of a batch.

    The energy in motion is the largest kinetic energy or the span of the potential energy, whichever is larger. Both
    are independent of the height at which the potential energy is zero.
    """
    _ = run.constant_parameters  # refuses runs in which masses come and go with their energy
    energy, kinetic, potential = run["energy"], run["kinetic_energy"], run["potential_energy"]
    with np.errstate(invalid="ignore"):
        span = np.fmax.reduce(potential, axis=-1) - np.fmin.reduce(potential, axis=-1)
        scale = np.fmax(np.fmax.reduce(kinetic, axis=-1), span)
        drift = np.fmax.reduce(np.abs(energy - energy[..., :1]), axis=-1)
        return np.where(drift > 0, drift / np.where(scale > 0, scale, 1.0), drift)
