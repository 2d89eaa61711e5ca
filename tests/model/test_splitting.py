"""Joints of several axes as chains of revolute joints: unique names, and couplings that refer to them."""

from __future__ import annotations

import numpy as np
import pytest

from kinetree import Body, Coupling, Joint, Placement, System, build_mechanism
from kinetree.model.topology import split_joints
from tolerance import assert_close


def coupled(first: str):
    """Return a universal joint "hip" between two coupled revolute joints, the first of which has the given name."""
    bodies = [Body(f"b{k}", 1.3, (0.1, -0.2, 0.3), (0.5, 0.6, 0.7, 0.05, -0.04, 0.03)) for k in range(3)]
    joints = [
        Joint(first, "revolute", "ground", "b0", Placement((0.1, 0.2, 0.3)), (0.3, 0.4, 1.0)),
        Joint("hip", "universal", "b0", "b1", Placement((0.4, 0.2, 0.3)), (1.0, 0.2, 0.0)),
        Joint("knee", "revolute", "b1", "b2", Placement((0.1, 0.7, 0.3)), (0.3, 1.4, 1.0)),
    ]
    return build_mechanism("leg", bodies, joints, couplings=[Coupling("gear", first, (("knee", 1.7),))])


@pytest.mark.parametrize("taken", ["hip_1", "hip_2"])
def test_a_joint_may_have_the_name_of_a_part(taken):
    """Couple a joint that has the name of a part of a split joint, and find it coupled instead of the part."""
    parts, origin = split_joints(coupled(taken))
    names = [j.name for j in parts.joints]
    assert len(set(names)) == len(names) == 4 and names[0] == taken
    assert origin == (0, None, 1, 2)
    q, qd, tau = [1.7 * 0.3, 0.2, 0.4, 0.3], [1.7 * 0.5, 0.7, -0.2, 0.5], np.array([0.3, -0.4, 0.2, 0.9])
    found, expected = (System(coupled(name)).forward_dynamics(q, qd, tau) for name in (taken, "ankle"))
    assert_close(found[0], 1.7 * found[3], 1e-12, "geared")
    assert_close(found, expected, 1e-12, "qdd")
