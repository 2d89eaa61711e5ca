"""Denavit-Hartenberg tables of any mechanism, which make the same mechanism again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import everyday
import kinetree as kt
from kinetree import InputError, System
from strategies import examples, moving_mechanisms, random_mechanism
from tolerance import assert_close


def assert_same(arm: System, convention: str) -> None:
    """Compare torques, and poses of the frames of the table, with the mechanism of its rows."""
    table = arm.dh_table(convention)
    again = kt.from_dh(table.rows, convention=convention, gravity=arm.mechanism.gravity, lenient=True)
    q, qd = arm.tree.random_state(np.random.default_rng(3))
    qdd = np.linspace(-1.0, 2.0, arm.nv)
    tau = arm.tree.inverse_dynamics(q, qd, qdd)
    order = [j.child for j in arm.joints if j.kind != "fixed"]
    assert [j.child for j in again.joints if j.kind != "fixed"] == order
    assert_close(again.inverse_dynamics(q, qd, qdd), tau, 1e-12 * np.abs(tau).max(), "torques")
    for body, frame in table.frames.items():
        expected = np.asarray(arm.pose(q, body)) @ frame
        at = body if convention == "modified" else None
        if at is not None:
            assert_close(again.pose(q, at), expected, 1e-12 * max(1.0, np.abs(expected).max()), "frame")


@everyday.long
@given(moving_mechanisms(["revolute", "prismatic", "fixed"], most=6, armature=False))
@examples(60)
def test_any_tree_has_a_modified_table(mechanism):
    """Make random trees again from their tables, with gamma and epsilon only where a branch or the base needs them."""
    assert_same(System(mechanism), "modified")
    counts = [mechanism.parents.count(p) for p in mechanism.parents]
    for row, count, parent in zip(System(mechanism).dh_table().rows, counts, mechanism.parents, strict=True):
        assert parent < 0 or count > 1 or not ({"gamma", "epsilon"} & row.keys())


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_any_chain_has_a_standard_table(seed):
    """Make random chains again from standard tables, which begin with a fixed row for the base."""
    chain = System(random_mechanism(["revolute", "prismatic", "revolute", "revolute"], [-1, 0, 1, 2], seed))
    assert_same(chain, "standard")
    assert chain.dh_table("standard").rows[0]["joint"] == "fixed"


def test_known_tables():
    """Find the rows of arms that were given as tables, and print one with its variables."""
    table = kt.load("puma560").dh_table("standard")
    assert [row["a"] for row in table.rows] == [0.0, 0.4318, -0.0203, 0.0, 0.0, 0.0]
    assert_close(
        [row["alpha"] for row in table.rows], [-np.pi / 2, 0, np.pi / 2, -np.pi / 2, np.pi / 2, 0], 1e-15, "alpha"
    )
    text = str(kt.load("stanford").dh_table())
    assert "stanford: modified Denavit-Hartenberg parameters" in text
    assert "link3  prismatic  link2           -90      0  q      0" in text


def test_tables_that_do_not_exist_are_refused():
    """Read why a mechanism has no table."""
    with pytest.raises(
        InputError, match="joint 'base' is free; Denavit-Hartenberg tables are of revolute, prismatic and"
    ):
        kt.load("biped").dh_table()
    with pytest.raises(
        InputError, match=r'gripper has branches; give convention="modified", in which rows have parents'
    ):
        kt.load("gripper").dh_table("standard")
    with pytest.raises(InputError, match="convention must be one of standard, modified, not 'classic'"):
        kt.load("stanford").dh_table("classic")
