"""Tables of rolled code: segments, lean placements, and numbers that are constants of the code."""

from __future__ import annotations

import numpy as np

import kinetree as kt
from kinetree.compiler.lower.sweeps import Tree
from kinetree.compiler.rolled.program import CLASS, COUNT, PARENT
from kinetree.compiler.rolled.tables import bodies_of, class_numbers, known_numbers
from strategies import random_mechanism


def test_a_chain_is_one_segment():
    """Find the first link of a chain, which is on the ground, in its own segment, and all others in another."""
    b = bodies_of(kt.chain(50).mechanism)
    assert b.segments[:, COUNT].tolist() == [1, 49]
    assert b.segments[:, PARENT].tolist() == [0, 1]
    assert [c.lean for c in b.classes] == [False, True]


def test_branches_end_segments():
    """Find that segments end where a body has a child in another segment, and that parents are the ends of segments."""
    made = random_mechanism(["spherical"] * 8, [-1, 0, 1, 2, 1, 4, 5, -1], 3)
    b = bodies_of(made)
    assert b.segments[:, COUNT].tolist() == [2, 2, 3, 1]
    assert b.segments[:, PARENT].tolist() == [0, 1, 1, 0]
    assert set(b.segments[:, CLASS]) == {0}


def test_bodies_of_a_frame():
    """Keep only the bodies between the ground and a frame."""
    made = random_mechanism(["revolute"] * 6, [-1, 0, 1, 1, 3, 0], 3)
    assert bodies_of(made, frame="b4").index.tolist() == [0, 1, 3, 4]
    assert bodies_of(made, frame="ground").index.tolist() == []


def test_lean_joints_stand_where_unrolled_ones_do():
    """Rebuild the propagations of lean joints from their four angles and offsets, and find the bodies' masses."""
    made = random_mechanism(["revolute", "prismatic"] * 8, range(-1, 15), 5)
    b = bodies_of(made)
    total = 0.0
    for c, what in enumerate(b.classes):
        x = class_numbers(b, c)
        total += x["m"].sum()
        if what.lean:
            assert np.abs(x["ca"] ** 2 + x["sa"] ** 2 - 1).max() < 1e-15 * 4
            assert np.abs(x["ct"] ** 2 + x["st"] ** 2 - 1).max() < 1e-15 * 4
            assert (x["r1"] == 0).all() or np.abs(x["r1"]).max() < 1e-14
    assert sum(bool(b.classes[c].lean) for c in b.of_class) == 15
    assert abs(total - sum(body.mass for body in made.bodies)) < 1e-13
    plain = sum(i.M.m for i in Tree(made, {"q": [0.0] * 16}).records)
    assert abs(total - plain) < 1e-13


def test_almost_parallel_axes_are_not_lean():
    """Let axes cross by a small angle and find the joint's placement complete."""
    tilt = 1e-5
    turn = ((1.0, 0.0, 0.0), (0.0, np.cos(tilt), -np.sin(tilt)), (0.0, np.sin(tilt), np.cos(tilt)))
    links = [kt.Body(name, 1.0, (0.1, 0.2, 0.3), (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)) for name in "abc"]
    joints = [
        kt.Joint("1", "revolute", "ground", "a"),
        kt.Joint("2", "revolute", "a", "b", kt.Placement((0.3, 0.2, 0.1), turn)),
        kt.Joint("3", "revolute", "b", "c", kt.Placement((0.3, 0.2, 0.1))),
    ]
    b = bodies_of(kt.build_mechanism("tilted", links, joints))
    assert [b.classes[c].lean for c in b.of_class] == [False, False, True]


def test_known_numbers():
    """Find the zeros and ones that all bodies of a class share, and no other numbers."""
    x = {"a": np.zeros(3), "b": np.array([0.0, 1.0, 0.0]), "c": -np.ones(3), "d": np.full(3, 0.5), "e": [1.0, "x"]}
    assert known_numbers(x) == {"a": 0.0, "c": -1.0}
