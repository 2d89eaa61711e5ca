"""Wrenches at joints by the multipliers, for every kind of loop."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import strategies
from closed_mechanisms import KINDS, closed
from interpreted import compute
from kinetree.analysis.loops.load_sharing import transmission
from kinetree.formulations.closed_system import closed_equations
from kinetree.formulations.kinematics import body_states
from kinetree.model import GROUND
from tolerance import assert_close


@pytest.mark.parametrize("kind", everyday.some(KINDS))
def test_joints_feel_what_j_says(kind):
    """Project the wrenches at joints on the joints' motions and find J, for loops in the tree and to the ground."""
    kinds = ["revolute", "universal", "prismatic", "spherical", "revolute", "cylindrical"]
    tree = strategies.random_mechanism(kinds, [-1, 0, 1, 0, 3, 4], 7)
    mechanism, q = closed(tree, [(kind, "b2", "b5"), (kind, "b0", "b4"), (kind, GROUND, "b5")], 11)
    T, J = transmission(mechanism, compute(mechanism, "poses", q)), closed_equations(mechanism, q).J
    for i, s in enumerate(body_states(mechanism, q)):
        world = np.vstack([s.R @ T[i, :3], s.R @ T[i, 3:]])
        assert_close(s.P.T @ world, -J.T[s.dofs], 1e-13 * max(1.0, np.abs(J).max()), "J")


@pytest.mark.parametrize("kind", KINDS)
def test_many_states_are_as_one(kind):
    """Find the same wrenches for a state in a batch and alone, and a free joint in balance with the loop."""
    tree = strategies.random_mechanism(["free", "spherical"], [-1, -1], 5)
    mechanism, q = closed(tree, [(kind, "b0", "b1")], 3)
    poses = compute(mechanism, "poses", np.array([q, q]))
    many = transmission(mechanism, np.stack([poses, poses]))
    one = transmission(mechanism, poses[0])
    assert many.shape == (2, 2, 3, 6, len(mechanism.closures))
    assert_close(many[1, 0], one, 1e-15, "batch")
    a, b = (np.linalg.norm(one[k, 3:], axis=0) for k in (0, 2))
    assert_close(a, b, 1e-14, "forces")
