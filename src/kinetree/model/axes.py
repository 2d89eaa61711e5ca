"""Names of the single coordinates, velocities and generalized forces of joints."""

from __future__ import annotations

from collections.abc import Iterable

from .. import joints as joint_kinds
from ..errors import unknown_name
from .mechanism import Mechanism, kept_with_mechanism

RATES = {"C": "A"}
"""Units of rates with a name of their own."""


def rate_unit(unit: str) -> str:
    """Return the unit of the rate of a displacement: "rad/s", or "A" of a charge."""
    return RATES.get(unit, f"{unit}/s")


Axis = tuple[str, str, str]
"""A joint, the name of one of its axes, and the unit of its displacement or "1"."""


def axis_names(mechanism: Mechanism, which: int) -> tuple[Axis, ...]:
    """Return (joint, name, unit of the displacement or "1") of each coordinate (0), velocity (1) or force (2)."""
    return _axes(mechanism)[which]


@kept_with_mechanism
def _axes(mechanism: Mechanism) -> tuple[tuple[Axis, ...], ...]:
    return tuple(tuple(_axes_of(mechanism, which)) for which in range(3))


def _axes_of(mechanism: Mechanism, which: int) -> Iterable[Axis]:
    for joint in mechanism.joints:
        kind = joint_kinds.kind(joint.kind)
        names, units = kind.NAMES[which], kind.UNITS
        if kind.QUATERNION is not None and which == 0:  # a quaternion has no unit; the other coordinates are lengths
            units = ("m",) * kind.QUATERNION + ("1",) * 4
        for name, unit in zip(names, units, strict=True):
            yield joint.name, name, unit


def axis_labels(mechanism: Mechanism, which: int) -> list[str]:
    """Return "joint.name" of each coordinate (0), velocity (1) or force (2), or "joint" if the joint has only one."""
    return [f"{joint}.{name}" if name else joint for joint, name, _ in axis_names(mechanism, which)]


def entries(mechanism: Mechanism, name: str, which: int) -> list[int]:
    """Return the entries of a joint, or of one of its axes such as "rod.angle1", in q (0) or in qd (1)."""
    (found,) = entries_of(mechanism, (name,), which)
    return list(found)


def entries_of(mechanism: Mechanism, names: Iterable[str], which: int) -> list[tuple[int, ...]]:
    """Return the entries of several joints, or of axes of joints, in q (0) or in qd (1)."""
    named = _entries_by_name(mechanism)[1 if which else 0]
    names = tuple(names)
    try:
        return [named[name] for name in names]
    except (KeyError, TypeError):  # TypeError: not hashable
        pass
    name = next(name for name in names if not isinstance(name, str) or name not in named)
    labels = axis_labels(mechanism, which)
    raise unknown_name("joint", str(name), dict.fromkeys([*(j.name for j in mechanism.joints), *labels]))


@kept_with_mechanism
def _entries_by_name(mechanism: Mechanism) -> tuple[dict[str, tuple[int, ...]], ...]:
    """Return the entries of joints, and of their axes, by name: first those in q, then those in qd."""
    out = []
    for which, slices in enumerate((mechanism.q_slices, mechanism.v_slices)):
        labels = axis_labels(mechanism, which)
        named = {label: (k,) for k, label in reversed(list(enumerate(labels)))}
        joints = zip(mechanism.joints, slices, strict=True)
        out.append(named | {j.name: tuple(range(own.start, own.stop)) for j, own in joints})
    return tuple(out)


@kept_with_mechanism
def quaternion_places(mechanism: Mechanism) -> tuple[int, ...]:
    """Return the indices in q at which quaternions start."""
    kinds = (joint_kinds.kind(j.kind) for j in mechanism.joints)
    at = zip(mechanism.q_slices, (kind.QUATERNION for kind in kinds), strict=True)
    return tuple(own.start + start for own, start in at if start is not None)
