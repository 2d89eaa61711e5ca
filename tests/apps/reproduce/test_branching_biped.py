"""The biped as a tree with its trunk as the root: recursion between modules against the chain from foot to foot."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.apps.reproduce.saha2013_biped import TREE_FOOT, branching_biped, joint_order, standing_motion, walk
from kinetree.formulations import module_recursion
from kinetree.formulations.links import links
from kinetree.formulations.modules import chains
from tolerance import assert_close

eps = np.finfo(float).eps


@pytest.fixture(scope="module")
def walking():
    """Return the tree, the chain, three instants of the walk as q, qd, qdd of the chain, and the same of the tree."""
    tree, chain = branching_biped(), kt.load("spatial_biped")
    motion = walk(chain, np.array([0.0137, 0.211, 0.43]))
    return tree, chain, motion, standing_motion(tree, chain, *motion)


def test_the_tree_has_three_modules(walking):
    """Find the trunk M_0 and two legs on it."""
    tree, _, _, made = walking
    modules = chains(links(tree.mechanism, made.q[0], made.qd[0]), tree.mechanism)
    assert [(m.label, m.parent, len(m.links)) for m in modules] == [("M_0", -1, 1), ("M_1", 0, 6), ("M_2", 0, 6)]


def test_both_roots_are_one_robot(walking):
    """Find all bodies of the chain at the same places, and its standing foot on the ground at rest."""
    tree, chain, (q, *_), made = walking
    places = {b.name: k for k, b in enumerate(tree.bodies)}
    foot = np.asarray(tree.poses(made.q))[:, places[TREE_FOOT]]
    assert_close(foot, np.broadcast_to(np.eye(4), foot.shape), 1e-14, "standing foot")
    there = np.asarray(tree.poses(made.q))[:, places["link12"]]
    assert_close(there, np.asarray(chain.poses(q))[:, 11], 1e-14, "swinging foot")
    still = np.asarray(tree.twists(made.q, made.qd))[:, places[TREE_FOOT]]
    assert_close(still, np.zeros((3, 6)), 1e-13, "velocity of the standing foot")


def test_torques_between_modules_are_those_of_the_chain(walking):
    """Compute torques by modules with the ground's wrench, and find those of the chain and none at the trunk."""
    tree, chain, motion, made = walking
    tau = chain.inverse_dynamics(*motion)
    assert np.abs(tau).max() > 10.0
    assert_close(made.tau[:, joint_order(tree)], tau, 1e-11, "torques of the twelve joints")
    assert_close(made.tau[:, :6], np.zeros((3, 6)), 1e-11, "forces at the free trunk")
    compiled = tree.inverse_dynamics(made.q, made.qd, made.qdd, wrenches=made.wrench)
    assert_close(made.tau, compiled, 1e-11, "modules against the compiled tree")


def test_accelerations_between_modules_return(walking):
    """Compute accelerations of the tree by modules from its torques and the ground's wrench."""
    tree, _, _, made = walking
    for q, qd, qdd, tau, wrench in zip(made.q, made.qd, made.qdd, made.tau, made.wrench, strict=True):
        found = module_recursion.forward_dynamics(tree.mechanism, q, qd, tau, wrench)
        assert_close(found, qdd, 1e-11 * np.abs(qdd).max(), "accelerations")
