"""Placements composed and inverted, and bodies in other frames."""

from __future__ import annotations

import numpy as np

from kinetree.algebra.rotations import from_rpy
from kinetree.algebra.vectors import from_moments
from kinetree.model import Body, Placement, Shape
from kinetree.model.parts import compose, inverse, place_body
from tolerance import assert_close

P = Placement((0.1, -0.3, 0.7), from_rpy(0.3, -0.8, 1.9))
Q = Placement((-0.2, 0.4, 0.9), from_rpy(-1.2, 0.4, 2.2))


def matrix(p: Placement) -> np.ndarray:
    """Return a placement as a 4 x 4 matrix."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = p.rotation, p.translation
    return out


def test_placements_are_matrices():
    """Compose and invert placements like 4 x 4 matrices."""
    assert_close(matrix(compose(P, Q)), matrix(P) @ matrix(Q), 1e-15, "composed")
    assert_close(matrix(compose(P, inverse(P))), np.eye(4), 1e-15, "inverse")
    assert compose(Placement(), Q) == Q


def test_a_body_in_another_frame():
    """Move the center of mass, the inertia and the shapes of a body; its mass stays."""
    body = Body("b", 1.7, (0.2, -0.1, 0.4), (0.5, 0.6, 0.7, 0.05, -0.04, 0.03), (Shape("box", (1.0, 2.0, 3.0), Q),))
    moved, R = place_body(P, body), np.array(P.rotation)
    assert moved.mass == 1.7
    assert_close(moved.com, P.translation + R @ np.array(body.com), 1e-15, "center of mass")
    assert_close(from_moments(moved.inertia), R @ np.array(from_moments(body.inertia)) @ R.T, 1e-15, "inertia")
    assert moved.shapes[0].placement == compose(P, Q)
    assert place_body(Placement(), body) == body
