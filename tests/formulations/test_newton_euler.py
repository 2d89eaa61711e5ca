"""The recursion of [Goncalves2023] against compiled dynamics and against rotation matrices."""

from __future__ import annotations

import numpy as np

import kinetree as kt
from kinetree.formulations.newton_euler import at_origin, forward, links, onto_parent, single, zxz
from kinetree.model.axes import axis_labels
from pose_products import about
from tolerance import assert_close


def test_reactions_are_those_of_compiled_dynamics():
    """Find poses and reactions of the main tree of CHARMIE in random states, with prismatic and fixed joints."""
    robot = kt.load("charmie")
    q, qd = robot.random_state(3, 5)
    qdd = np.random.default_rng(4).normal(size=qd.shape)
    names = axis_labels(robot.mechanism, 0)
    tree = links(robot.mechanism, [j.name for j in robot.joints])
    at = forward(tree, {n: (q[:, k], qd[:, k], qdd[:, k]) for k, n in enumerate(names)}, robot.mechanism.gravity)
    expected, poses = robot.reactions(q, qd, qdd), robot.poses(q)
    loads = [[] for _ in tree]
    scale = np.abs(expected).max()
    for k in reversed(range(len(tree))):
        f, mu = single(tree[k], at[k], loads[k])
        assert_close(at_origin(at[k], f, mu), expected[:, k], 1e-13 * scale, "reactions")
        assert_close(at[k].R0, poses[:, k, :3, :3], 1e-14, "rotations")
        assert_close(at[k].O, poses[:, k, :3, 3], 1e-14, "positions")
        if tree[k].parent >= 0:
            loads[tree[k].parent].append(onto_parent(tree[k], at[k], f, mu))


def test_17_has_s1_s2_in_its_corner():
    """Find the product of three rotations, which the printed corner s1 s3 is not."""
    angles = (0.4, -1.1, 2.3)
    expected = (about((0, 0, 1), 0.4) @ about((1, 0, 0), -1.1) @ about((0, 0, 1), 2.3))[:3, :3]
    assert_close(zxz(*angles), expected, 1e-15, "(17)")
    assert abs(np.sin(0.4) * np.sin(2.3) - expected[0, 2]) > 0.1
