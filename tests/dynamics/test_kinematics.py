"""Poses, twists and twist rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from interpreted import along, compute, derivative, program
from rigid_body import cross_matrix, transform
from strategies import State, examples, mechanisms, one_of_each
from tolerance import assert_close

EPS = np.finfo(float).eps


@given(mechanisms())
@examples(30)
def test_rotations_are_orthonormal(mechanism):
    """Multiply every body's rotation by its transpose."""
    T = compute(mechanism, "poses", State(mechanism).q)
    R = T[..., :3, :3]
    bound = 20 * EPS * len(mechanism.bodies)  # a seventh of it
    assert_close(R @ np.swapaxes(R, -1, -2), np.broadcast_to(np.eye(3), R.shape), bound, "R R^T")
    assert np.linalg.det(R).min() > 0
    assert np.array_equal(T[..., 3, :], np.broadcast_to([0.0, 0.0, 0.0, 1.0], T[..., 3, :].shape))


@given(mechanisms())
@examples(20)
def test_pose_of_a_frame_is_that_of_its_body_and_its_placement(mechanism):
    """Compose the tool's pose of its body's pose and its placement."""
    q = State(mechanism).q
    frame = mechanism.frame("tool")
    body = compute(mechanism, "pose", q, frame=frame.body)
    tool = compute(mechanism, "pose", q, frame="tool")
    assert_close(tool, body @ transform(frame.placement), 20 * EPS * np.abs(tool).max(), "tool in body")  # 4e-16
    index = [b.name for b in mechanism.bodies].index(frame.body)
    assert_close(compute(mechanism, "poses", q)[:, index], body, 20 * EPS * np.abs(body).max(), "poses = pose")


@given(mechanisms())
@examples(30)
def test_twist_is_the_rate_of_the_pose(mechanism):
    """Differentiate the pose along the motion and find omega x R and v."""
    s = State(mechanism)
    T, dT = compute(mechanism, "pose", s.q, frame="tool"), along(mechanism, "pose", s.q, s.qd, frame="tool")
    t = compute(mechanism, "twist", s.q, s.qd, frame="tool", axes="world")
    expected = np.stack([cross_matrix(w) for w in t[:, :3]]) @ T[:, :3, :3]
    size = 1.0 + np.abs(t).max()
    assert_close(dT[:, :3, :3] / size, expected / size, 1e-14, "dR/dt = omega x R")  # 2e-15
    assert_close(dT[:, :3, 3] / size, t[:, 3:] / size, 1e-14, "dr/dt = v")  # 8e-16


@given(mechanisms())
@examples(30)
def test_twist_rate_is_the_rate_of_the_twist(mechanism):
    """Differentiate the twist in the ground's axes along the motion."""
    s = State(mechanism)
    rate = compute(mechanism, "coordinate_rate", s.q, s.qd)
    dt = compute(mechanism, "twist_rate", s.q, s.qd, s.qdd, frame="tool", axes="world")
    expected = derivative(program(mechanism, "twist", "tool", "world"), [s.q, s.qd], [rate, s.qdd])
    size = 1.0 + np.abs(expected).max()
    assert_close(dt / size, expected / size, 1e-14, "d(omega, v)/dt")  # 9e-16


@pytest.mark.parametrize("name", ["twist", "twist_rate"])
def test_axes_turn_with_the_frame(name):
    """Transform a twist from the tool's axes to the ground's."""
    mechanism = one_of_each()
    s = State(mechanism)
    arguments = [s.q, s.qd, s.qdd][: 2 if name == "twist" else 3]
    R = compute(mechanism, "pose", s.q, frame="tool")[:, :3, :3]
    own = compute(mechanism, name, *arguments, frame="tool", axes="body")
    ground = compute(mechanism, name, *arguments, frame="tool", axes="world")
    expected = np.einsum("nij,nkj->nki", R, own.reshape(-1, 2, 3)).reshape(-1, 6)
    assert_close(ground, expected, 1e-13, "R t")


@pytest.mark.parametrize("name", ["twist", "twist_rate"])
def test_all_bodies_agree_with_each(name):
    """Compare the list of all bodies with each body alone."""
    mechanism = one_of_each()
    s = State(mechanism)
    arguments = [s.q, s.qd, s.qdd][: 2 if name == "twist" else 3]
    every = compute(mechanism, name + "s", *arguments)
    for k, body in enumerate(mechanism.bodies):
        alone = compute(mechanism, name, *arguments, frame=body.name)
        assert_close(every[:, k], alone, 1e-13, body.name)


@pytest.mark.parametrize("name", ["pose", "twist", "twist_rate", "jacobian", "jacobian_rate"])
def test_the_ground_never_moves(name):
    """Request the ground itself and get the identity, or zeros."""
    mechanism = one_of_each()
    s = State(mechanism)
    p = program(mechanism, name, "ground")
    out = p.interpret(*[{"q": s.q, "qd": s.qd, "qdd": s.qdd}[a.name] for a in p.inputs])[0]
    expected = np.eye(4) if name == "pose" else np.zeros(p.outputs[0].shape)
    assert np.array_equal(out, np.broadcast_to(expected, out.shape))
