"""Names, units and shapes of the columns of a trajectory and of their entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..contact_geometry import labels
from ..errors import unknown_name
from ..model.axes import axis_labels, axis_names, rate_unit
from ..model.mechanism import Mechanism

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
