"""Closed mechanisms cut at another joint of a ring."""

from __future__ import annotations

import pytest

import kinetree as kt
from kinetree.errors import UnknownNameError
from kinetree.formats.pairs import recut


def test_a_joint_is_cut_instead_of_a_loop():
    """Cut the output link of a four-bar from the ground: the pin becomes a joint, and the tree is a chain."""
    made, report = recut(kt.load("four_bar").mechanism, "pin", "output")
    assert [j.name for j in made.joints] == ["crank", "pin", "coupler"]
    assert [x.name for x in made.loops] == ["output"]
    assert "output" in str(report) and len(made.closures) == 5


def test_what_cannot_be_cut_is_refused():
    """Name a loop or a joint that does not exist, a joint of another ring, and a loop that is no joint."""
    m = kt.load("three_rrr").mechanism
    with pytest.raises(UnknownNameError, match="no loop 'pin'; did you mean"):
        recut(m, "pin", "joint1")
    with pytest.raises(UnknownNameError, match="no joint of the ring of 'pin_a' 'joint6'"):
        recut(m, "pin_a", "joint6")
    with pytest.raises(kt.InputError, match="loop 'head_4d' is a point_on_line, which is no joint"):
        recut(kt.load("charmie_torso").mechanism, "head_4d", "joint_4")
    with pytest.raises(kt.InputError, match="'platform' is a free joint, which has no loop of its kind"):
        recut(kt.load("stewart").mechanism, "ball1", "platform")
