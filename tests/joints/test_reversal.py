"""Reversed joints: parent and child exchanged, with the same relative motions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kinetree import joints
from kinetree.model import Joint
from strategies import ALL, nested
from strategies import joint as random_joint
from tolerance import assert_close


def pose(joint: Joint, q) -> np.ndarray:
    """Return the pose of the child in the joint's frame in the parent as a 4 x 4 matrix."""
    kind = joints.kind(joint.kind)
    axes = np.array(kind.frame(joint))
    before, turn, after = kind.displacement(joint, q)
    R = np.array(turn.matrix(), dtype=float)
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = axes @ R @ axes.T, axes @ (np.array(before) + R @ np.array(after))
    return out


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_reversed_joint_has_the_inverse_displacement(name, seed):
    """Invert the displacement of every kind by the reversed joint at its coordinates."""
    rng = np.random.default_rng(seed)
    joint, kind = random_joint("j", name, "a", "b", rng), joints.kind(name)
    found = kind.reverse(joint)
    assert found is not None
    back, q = replace(joint, **found.data), nested(kind.random(joint, rng))
    expected = np.linalg.inv(pose(joint, q))
    assert_close(pose(back, found.coordinates(q)), expected, 4e-15, "pose")  # measured: 8.9e-16
    again = kind.reverse(back)
    assert again is not None
    assert_close(again.coordinates(found.coordinates(q)), q, 4e-15, "coordinates")


@pytest.mark.parametrize(
    "name", [name for name in ALL if not joints.kind(name).reverse(Joint("j", name, "a", "b")).mixed]
)
def test_velocities_are_those_of_the_given_joint(name):
    """Move the reversed joint by the same velocities, with sign and order, and get the opposite relative twist."""
    rng = np.random.default_rng(7)
    joint, kind = random_joint("j", name, "a", "b", rng), joints.kind(name)
    found = kind.reverse(joint)
    assert found is not None
    back, q, qd = replace(joint, **found.data), nested(kind.random(joint, rng)), nested(rng.normal(size=kind.NV))
    h = 1e-5

    def along(which: Joint, start, speeds, to: float) -> np.ndarray:
        return pose(which, [x + to * v for x, v in zip(start, speeds, strict=True)])

    speeds = [found.sign * v for v in found.order(qd)]
    ahead = along(back, found.coordinates(q), speeds, h)
    assert_close(ahead, np.linalg.inv(along(joint, q, qd, h)), 4e-15, "pose after a step")
