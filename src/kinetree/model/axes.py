"""Names of the single coordinates, velocities and generalized forces of joints."""

from __future__ import annotations

from collections.abc import Iterable

from .. import joints as joint_kinds
from ..errors import unknown_name
from .mechanism import Mechanism, kept_with_mechanism


def axis_names(mechanism: Mechanism, which: int) -> Iterable[tuple[str, str, str]]:
    """Yield (joint, name, unit of the displacement or "1") of each coordinate (0), velocity (1) or force (2)."""
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
    joints = [joint.name for joint in mechanism.joints]
    if name in joints:
        own = (mechanism.v_slices if which else mechanism.q_slices)[joints.index(name)]
        return list(range(own.start, own.stop))
    labels = axis_labels(mechanism, which)
    if name not in labels:
        raise unknown_name("joint", str(name), dict.fromkeys([*joints, *labels]))
    return [labels.index(name)]


@kept_with_mechanism
def quaternion_places(mechanism: Mechanism) -> tuple[int, ...]:
    """Return the indices in q at which quaternions start."""
    kinds = (joint_kinds.kind(j.kind) for j in mechanism.joints)
    at = zip(mechanism.q_slices, (kind.QUATERNION for kind in kinds), strict=True)
    return tuple(own.start + start for own, start in at if start is not None)
