"""Names of the coordinates, speeds and torques of joints, down to the single one."""

from __future__ import annotations

from collections.abc import Iterable

from .. import joints as joint_kinds
from .mechanism import Mechanism

COORDINATES: dict[str, tuple[str, ...]] = {
    "cylindrical": ("angle shift",) * 3,
    "universal": ("angle1 angle2",) * 3,
    "planar": ("x y angle",) * 3,
    "euler": ("angle1 angle2 angle3",) * 3,
    "free_euler": ("x y z angle1 angle2 angle3",) * 3,
    "spherical": ("qx qy qz qw", "wx wy wz", "nx ny nz"),
    "free": ("x y z qx qy qz qw", "wx wy wz vx vy vz", "nx ny nz fx fy fz"),
}
"""Names of the coordinates, speeds and torques of joints with more than one."""

QUATERNION = ("qx", "qy", "qz", "qw")


def axis_names(mechanism: Mechanism, which: int) -> Iterable[tuple[str, str, str]]:
    """Yield (joint, coordinate, unit of its integral or "1") of each coordinate (0), speed (1) or torque (2)."""
    for joint in mechanism.joints:
        kind = joint_kinds.kind(joint.kind)
        count = kind.NQ if which == 0 else kind.NV
        names = COORDINATES[joint.kind][which].split() if joint.kind in COORDINATES else _numbers(count)
        units = dict(zip(names, kind.UNITS, strict=False))
        if kind.NQ != kind.NV and which == 0:
            units = {name: "1" if name in QUATERNION else "m" for name in names}
        for name in names:
            yield joint.name, name, units[name]


def axis_labels(mechanism: Mechanism, which: int) -> list[str]:
    """Return joint.coordinate of each coordinate (0), speed (1) or torque (2); the joint alone where it has one."""
    return [f"{joint}.{name}" if name else joint for joint, name, _ in axis_names(mechanism, which)]


def _numbers(count: int) -> list[str]:
    return [""] if count == 1 else [str(k + 1) for k in range(count)]
