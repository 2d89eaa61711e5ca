"""Lengths of loops as free parameters of a page."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.page.table import free_lengths, length_table, placements_program
from tolerance import assert_close


def test_lengths_are_named_by_their_links():
    """Free the four lengths of a four-bar: labels are links, values are those of the model."""
    bars = kt.load("four_bar")
    made, lengths = free_lengths(bars.mechanism)
    table = length_table(made, lengths)
    assert [row["label"] for row in table] == ["ground", "output", "crank", "coupler"]
    assert [made.free_parameters[row["parameter"]].value for row in table] == [0.0895, 0.1152, 0.038, 0.1152]
    assert all(row["made"] for row in table)
    q = bars.assemble(hold={"crank": 0.7})
    free = kt.System(made)
    assert_close(free.closure_residual(q), bars.closure_residual(q), 1e-15, "residual")
    longer = free.assemble(hold={"crank": 0.7}, parameters=[0.0895, 0.1152, 0.041, 0.1152])
    assert np.abs(longer - q).max() > 1e-3


def test_named_lengths_become_free():
    """Free the named lengths of a five-bar and those that were free already; masses stay formulas of them."""
    made, lengths = free_lengths(kt.load("five_bar").mechanism)
    assert [p.name for p in made.free_parameters] == ["base", "l1", "l2"]
    assert [row["label"] for row in length_table(made, lengths)] == ["base", "l1", "l2"]
    press = kt.load("press").mechanism
    made, lengths = free_lengths(press)
    assert made.free_parameters == press.free_parameters
    assert [(x.parameter, x.made) for x in lengths] == [("r", False), ("l", False)]


@pytest.mark.parametrize("name", ["planar_2r", "stewart", "differential_drive"])
def test_other_mechanisms_keep_their_numbers(name):
    """Leave open mechanisms, those with many lengths and those that roll as they are."""
    m = kt.load(name).mechanism
    assert free_lengths(m) == (m, ())


def test_placements_follow_parameters():
    """Compute ends of loops and frames for other lengths."""
    made, _ = free_lengths(kt.load("four_bar").mechanism)
    program = placements_program(made)
    assert program is not None
    frames, ends = program.interpret(np.array([0.09, 0.12, 0.05, 0.13]))
    assert_close(np.reshape(ends, (2, 4, 4))[:, :3, 3], [[0.05, 0, 0], [0.13, 0, 0]], 1e-16, "ends of the pin")
    assert_close(np.reshape(frames, (4, 4))[:3, 3], [-0.1152, 0, 0], 1e-16, "tracer")
    assert placements_program(kt.load("planar_2r").mechanism) is None
