"""Test for planar mechanisms: all rotations about one direction, all translations perpendicular to it."""

from __future__ import annotations

import numpy as np

from ... import joints as joint_kinds
from ...algebra.arrays import Numbers
from ...model.mechanism import resolved
from .kinematics import LoopKinematics

PARALLEL = 1e-9


def planar(loops: LoopKinematics) -> bool:
    """Return whether every joint rotates about one direction, or translates perpendicular to it, at any position."""
    mechanism = loops.mechanism
    q = np.asarray(loops.system.random_state(5)[0], dtype=float)
    normals: list[Numbers] = []
    shifts: list[Numbers] = []
    for joint, pose in zip(resolved(mechanism.joints, loops.values), loops.call("poses", q), strict=True):
        steps = joint_kinds.kind(joint.kind).steps(joint)
        if steps is None:
            return False
        for what, axis in steps:
            (normals if what == joint_kinds.ROTATION else shifts).append(pose[:3, :3] @ np.array(axis, dtype=float))
    if not normals:
        return False
    turns = all(np.linalg.norm(np.cross(n, normals[0])) < PARALLEL for n in normals)
    return turns and all(abs(s @ normals[0]) < PARALLEL for s in shifts)
