"""Poses of bodies and frames by plain matrix products, a reference for mechanisms read from files and tables."""

from __future__ import annotations

import math

import numpy as np

from kinetree.joints import kind
from kinetree.model import Mechanism, Placement
from kinetree.model.mechanism import resolve_parts


def transform(rotation, translation) -> np.ndarray:
    """Return a 4x4 transform."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = rotation, translation
    return out


def about(axis, angle: float) -> np.ndarray:
    """Return the rotation about an axis, by Rodrigues' formula."""
    x, y, z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return transform(np.eye(3) + math.sin(angle) * k + (1 - math.cos(angle)) * k @ k, np.zeros(3))


def shift(x: float, y: float, z: float) -> np.ndarray:
    """Return a translation."""
    return transform(np.eye(3), (x, y, z))


def placed(placement: Placement) -> np.ndarray:
    """Return the transform of a placement."""
    return transform(np.array(placement.rotation, dtype=float), np.array(placement.translation, dtype=float))


def poses(mechanism: Mechanism, q) -> dict[str, np.ndarray]:
    """Return the pose of the ground, every body and every frame, for revolute, prismatic and fixed joints."""
    values = mechanism.values()
    out, at = {"ground": np.eye(4)}, 0
    for joint in (resolve_parts(j, values) for j in mechanism.joints):
        moved = np.eye(4)
        if joint.kind == "revolute":
            moved = about(joint.axis, q[at])
        elif joint.kind == "prismatic":
            moved = shift(*(q[at] * np.asarray(joint.axis, dtype=float) / np.linalg.norm(joint.axis)))
        else:
            assert joint.kind == "fixed", joint.kind
        at += kind(joint.kind).NQ
        out[joint.child] = out[joint.parent] @ placed(joint.placement) @ moved
    for frame in mechanism.frames:
        out[frame.name] = out[frame.body] @ placed(resolve_parts(frame.placement, values))
    return out
