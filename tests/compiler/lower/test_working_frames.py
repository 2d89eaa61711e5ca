"""Working frames: the remaining rotations, and results that do not depend on the choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.algebra.rotations import Planar, from_rpy
from kinetree.compiler.lower import tree_records
from kinetree.compiler.lower.build import Request, build
from kinetree.compiler.lower.sweeps import Tree
from kinetree.compiler.lower.working_frames import chosen_frames, plain_frames, split_rotation
from strategies import random_mechanism
from tolerance import assert_close

EPS = np.finfo(float).eps


def rotations():
    """Yield general rotations, quarter rotations, and rotations almost about z."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        yield from_rpy(*rng.uniform(-3, 3, 3))
    for k in range(64):
        yield from_rpy(*(np.pi / 2 * (k // 4**j % 4) for j in range(3)))
    for tilt in (1e-15, 1e-12, 1e-9, 1e-6, 1e-3, np.pi - 1e-7):
        yield from_rpy(tilt, -0.7 * tilt, 1.1)


def test_a_rotation_is_its_factors_and_a_turn_about_z():
    """Factor rotations as F Rz(theta) and multiply them again."""
    for rotation in rotations():
        factors, (c, s) = split_rotation(rotation)
        product = np.array(factors.matrix()) @ np.array(Planar(2, c, s).matrix())
        assert_close(product, np.array(rotation), 24 * EPS, "F Rz(theta)")  # 16 eps are cleared, and rounding
        assert len(factors.factors) <= 2


def generic(n: int) -> kt.System:
    """Return a chain of revolute joints whose modified DH numbers are all general."""
    rng = np.random.default_rng(5)
    moments = rng.uniform(1, 2, 3)
    rows = [
        {"joint": "revolute", "a": a, "alpha": alpha, "b": b, "mass": 1.3, "com": tuple(rng.normal(size=3)),
         "inertia": (*moments, 0.1, 0.2, 0.3)}
        for a, alpha, b in rng.uniform(0.4, 1.4, (n, 3))
    ]  # fmt: skip
    return kt.from_dh(rows, convention="modified")


def test_a_chain_gets_the_frames_of_denavit_and_hartenberg():
    """Leave one planar rotation before each joint, and no y component in the position of its origin."""
    tree = Tree(generic(5).mechanism, {"q": [0.1, 0.2, 0.3, 0.4, 0.5]})
    for record in tree.records[1:]:
        assert len(record.stand.E.factors) == 1
        assert record.stand.E.factors[0].k == 0
        assert record.stand.r[1] == 0.0
        assert record.stand.r[0] != 0.0


@pytest.mark.parametrize("tilt", [0.0, 1e-15, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 0.1])
def test_almost_parallel_axes_lose_no_digits(tilt, monkeypatch):
    """Tilt the axes of a chain a little and find the torques of the joints' own frames."""
    rng = np.random.default_rng(8)
    made = random_mechanism(["revolute"] * 5, [-1, 0, 1, 2, 3], 8)
    joints = [
        kt.Joint(j.name, j.kind, j.parent, j.child,
                 kt.Placement(j.placement.translation, from_rpy(tilt, -0.6 * tilt, rng.uniform(-3, 3))))
        for j in made.joints
    ]  # fmt: skip
    mechanism = kt.build_mechanism("tilted", made.bodies, joints)
    q, qd, qdd = rng.normal(size=(3, 5))
    chosen = build(mechanism, Request("inverse_dynamics"))
    tau = chosen.interpret(q, qd, qdd)[0]
    monkeypatch.setattr(tree_records, "chosen_frames", lambda m: plain_frames(m, m.values()))
    plain = build(replace(mechanism), Request("inverse_dynamics"))  # a copy: frames are kept with a mechanism
    assert plain.hash != chosen.hash
    expected = plain.interpret(q, qd, qdd)[0]
    assert_close(tau / np.abs(expected).max(), expected / np.abs(expected).max(), 100 * EPS, "tau")


def test_joints_of_several_axes_keep_their_own_frames():
    """Choose frames along one-axis joints only."""
    mechanism = random_mechanism(["free", "spherical", "cylindrical", "revolute"], [-1, 0, 1, 2], 4)
    frames = chosen_frames(mechanism)
    plain = plain_frames(mechanism, mechanism.values())
    assert [f == p for f, p in zip(frames, plain, strict=True)] == [True, True, True, False]
