"""Waterfalls of the ledger: files, steps and errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.apps.reproduce.saha2013 import counts
from kinetree.errors import InputError, UnknownNameError
from kinetree.plots import analysis_plots as module
from kinetree.plots.analysis_plots import waterfall


def ledger(**changes):
    """Return the ledger of a moving Stanford arm, with joints changed."""
    arm = kt.load("stanford")
    joints = tuple(replace(j, **changes) for j in arm.joints)
    system = kt.System(replace(arm.mechanism, joints=joints))
    return system.ledger(np.full(6, 0.4), np.ones(6), np.ones(6))


@pytest.mark.parametrize("by", everyday.only(["cause", "body"], ["cause"]))
def test_a_picture_is_written(tmp_path, by):
    """Draw every axis by cause and by body."""
    file = waterfall(tmp_path / "w.png", ledger(), by=by, heading="Stanford arm")
    assert file.read_bytes()[:4] == b"\x89PNG"
    assert file.stat().st_size > 20000


def test_steps_end_at_the_torque():
    """Add the steps that are drawn and find the torque with friction."""
    found = ledger(damping=(0.3,))
    shares = module._shares(found, "cause", list(range(6)))
    assert list(shares) == ["inertia", "convective", "gravity", "friction"], "what is zero everywhere is left out"
    total = sum(values for values, _ in shares.values())
    assert np.abs(total - found.with_friction).max() < 1e-12


@everyday.long
def test_axes_can_be_chosen(tmp_path):
    """Draw one axis by name, smaller than all of them; refuse a wrong one, and none."""
    one = waterfall(tmp_path / "one.png", ledger(), axes=["joint2"])
    assert one.stat().st_size < waterfall(tmp_path / "all.png", ledger()).stat().st_size
    with pytest.raises(UnknownNameError, match="no axis 'elbow'"):
        waterfall(tmp_path / "x.png", ledger(), axes=["elbow"])
    with pytest.raises(InputError, match="needs at least one axis"):
        waterfall(tmp_path / "x.png", ledger(), axes=[])
    with pytest.raises(InputError, match="by is 'day'; expected 'cause' or 'body'"):
        waterfall(tmp_path / "x.png", ledger(), by="day")


def test_a_batch_is_refused(tmp_path):
    """Refuse a ledger of several states, with their shape."""
    arm = kt.load("planar_2r")
    several = arm.ledger(np.zeros((3, 2)), np.ones(2), np.ones(2))
    with pytest.raises(InputError, match="states of shape \\(3,\\); a waterfall shows one of them"):
        waterfall(tmp_path / "x.png", several)


def test_counts_are_drawn(tmp_path):
    """Draw operation counts in two panels."""
    panels = {"(M)": {"ours": [1, 2, 3]}, "(A)": {"ours": [2, 3, 4]}}
    file = counts(tmp_path / "c.png", (6, 12, 18), panels, label="n", quantity="operations", heading="Counts")
    assert file.stat().st_size > 10000
