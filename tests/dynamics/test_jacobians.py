"""Jacobians of frames and their rates, in the ground's axes and the frame's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreted import along, compute, relative
from kinetree.model.topology import path
from strategies import State, examples, moving_mechanisms, random_mechanism
from tolerance import assert_close

AXES = st.sampled_from(["body", "world"])


def size_of(x: np.ndarray) -> float:
    """Return one plus the largest entry."""
    return 1.0 + float(np.abs(x).max(initial=0.0))


@given(moving_mechanisms(), AXES)
@examples(40)
def test_twist_is_jacobian_times_speeds(mechanism, axes):
    """Multiply the Jacobian by the velocities."""
    s = State(mechanism)
    J = compute(mechanism, "jacobian", s.q, frame="tool", axes=axes)
    t = compute(mechanism, "twist", s.q, s.qd, frame="tool", axes=axes)
    assert_close(np.einsum("nij,nj->ni", J, s.qd) / size_of(t), t / size_of(t), 1e-14, "J qd")  # 2e-15


@given(moving_mechanisms(), AXES)
@examples(40)
def test_jacobian_rate_is_the_rate_of_the_jacobian(mechanism, axes):
    """Differentiate the Jacobian along the motion."""
    s = State(mechanism)
    dJ = compute(mechanism, "jacobian_rate", s.q, s.qd, frame="tool", axes=axes)
    expected = along(mechanism, "jacobian", s.q, s.qd, frame="tool", axes=axes)
    assert_close(dJ / size_of(dJ), expected / size_of(dJ), 1e-14, "dJ/dt")  # 4e-15


@given(moving_mechanisms())
@examples(30)
def test_twist_rate_is_made_of_both(mechanism):
    """Compose the accelerations of J qdd and dJ qd in the ground's axes."""
    s = State(mechanism)
    J = compute(mechanism, "jacobian", s.q, frame="tool")
    dJ = compute(mechanism, "jacobian_rate", s.q, s.qd, frame="tool")
    dt = compute(mechanism, "twist_rate", s.q, s.qd, s.qdd, frame="tool", axes="world")
    made = np.einsum("nij,nj->ni", J, s.qdd) + np.einsum("nij,nj->ni", dJ, s.qd)
    assert_close(made / size_of(dt), dt / size_of(dt), 1e-14, "J qdd + dJ qd")  # 1e-15


def test_columns_of_joints_beside_the_path_are_zero():
    """Find exact zeros for joints that do not carry the frame."""
    tree = random_mechanism(["revolute", "free", "spherical", "planar"], [-1, 0, 0, 2], 4)
    J = compute(tree, "jacobian", State(tree).q, frame="b3")
    carried = {tree.bodies[k].name for k in path(tree, [b.name for b in tree.bodies].index("b3"))}
    assert carried == {"b0", "b2", "b3"}
    assert not J[:, :, 1:7].any()
    assert J[:, :, [0, 7, 8, 9, 10, 11, 12]].any(axis=1).all()


@pytest.mark.parametrize("axes", ["body", "world"])
def test_both_axes_measure_the_same(axes):
    """Find the same singular values of the angular part in both axes."""
    arm = random_mechanism(["revolute"] * 6, range(-1, 5), 7)
    q = State(arm).q
    J, other = (compute(arm, "jacobian", q, frame="tool", axes=a) for a in (axes, "world"))
    values, others = (np.linalg.svd(x[:, 3:], compute_uv=False) for x in (J, other))
    assert_close(relative(values, others), 0.0, 1e-14, "singular values")  # 6e-16
