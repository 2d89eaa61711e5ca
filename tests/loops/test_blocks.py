"""Equations of loops: finite differences, counts, and positions that are not solutions."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
from closed_mechanisms import OVALS, closed, free_coordinates, held_body
from kinetree import loops
from kinetree.algebra.rotations import about
from kinetree.joints import KINDS as JOINTS
from kinetree.joints import kind as joint_kind
from kinetree.model import GROUND, Body, Joint, Loop, build_mechanism
from kinetree.system import System
from tolerance import assert_close

COUNTS = {
    "revolute": 5, "prismatic": 5, "helical": 5, "cylindrical": 4, "universal": 4, "planar": 3, "spherical": 3,
    "euler": 3, "fixed": 6, "rod": 1, "point_on_line": 2, "point_on_plane": 1,
    "rolling_disc": 3, "rolling_ball": 3, "rolling_rollers": 2, "knife_edge": 1,
    "point_on_curve": 1, "roller_on_curve": 1, "rolling_on_curve": 2, "face_on_curve": 1, "curve_on_curve": 1,
}  # fmt: skip


SLOW = (
    "rolling_rollers", "rolling_ball", "knife_edge", "point_on_curve", "roller_on_curve", "face_on_curve",
)  # fmt: skip
"""Kinds whose blocks have much in common with those of others, and are left to long tests."""


def test_every_kind_has_its_equations():
    """Find six equations less the freedoms of each kind."""
    assert set(loops.KINDS) == set(COUNTS)
    for kind, count in COUNTS.items():
        data = {"length": 0.3, "pitch": 0.1, "radius": 0.2, "angle": 0.4, "axis2": (0.3, 0.5, 0.2)}
        data |= {"curve": OVALS[0], "curve_b": OVALS[1]}
        given = {key: x for key, x in data.items() if key in loops.kind(kind).data}
        assert len(loops.labels(Loop("l", kind, "a", "b", **given))) == count
        if kind in JOINTS:
            assert joint_kind(kind).NV + count == 6


@pytest.mark.parametrize("kind", everyday.some(everyday.without(list(loops.KINDS), SLOW)))
def test_jacobian_and_bias_are_the_rates_of_the_residual(kind):
    """Compare the Jacobian and bias with finite differences along a motion of a closed loop."""
    system, q, qd = between_two_free_bodies(kind)
    assert_close(system.closure_residual(q), np.zeros(COUNTS[kind]), 1e-14, "closed")
    h = 1e-4

    def after(t: float):
        return system.integrate(q, t * qd)

    J = system.closure_jacobian(q)
    rate = difference(lambda t: system.closure_residual(after(t)), h)
    of_positions = [e.holonomic for e in system.closures]
    assert_close((J @ qd)[of_positions], rate[of_positions], 1e-8, "J qd")
    # Along a motion that stays closed to first order, dJ/dt qd is the difference of J qd as well.
    qd = qd - np.linalg.pinv(J) @ (J @ qd)
    bias = difference(lambda t: system.closure_jacobian(after(t)) @ qd, h)
    assert_close(system.closure_bias(q, qd), bias, 1e-7, "dJ/dt qd")


def difference(f, h: float):
    """Return the derivative of f at 0 by differences of fourth order."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


@pytest.mark.parametrize("kind", everyday.some([k for k in COUNTS if k in JOINTS and k != "fixed"]))
def test_a_joint_moves_freely_in_its_own_cut(kind):
    """Find a zero residual for all displacements of the joint of the same kind."""
    on_tree, free = held_body(kind)
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, _ = on_tree.random_state(rng)
        pose = free_coordinates(on_tree.pose(q, "bob"))
        assert_close(free.closure_residual(pose), np.zeros(len(free.closures)), 1e-13, kind)


def test_an_axis_that_points_backward_is_no_solution():
    """Find a residual far from zero if b is rotated by half a revolution perpendicular to the axis."""
    for kind in ("revolute", "cylindrical", "planar", "prismatic", "fixed"):
        loop = Loop("l", kind, "a", "b")
        R = about(0, 3.1).matrix()
        gaps = [e.residual for e in loops.equations(loop, (0.0, 0.0, 0.0), R, (0.0,) * 3, (0.0,) * 3)]
        assert np.abs(gaps).max() > 10.0


def test_a_thread_is_the_same_after_every_turn():
    """Find a closed loop for a nut that is several revolutions further along its screw."""
    loop = Loop("l", "helical", "a", "b", pitch=0.25)
    for angle in (0.3, 0.3 + 6 * np.pi, 0.3 - 40 * np.pi):
        r, R = (0.0, 0.0, 0.25 * angle), about(2, angle).matrix()
        assert_close(
            [e.residual for e in loops.equations(loop, r, R, (0.0,) * 3, (0.0,) * 3)], np.zeros(5), 1e-13, "thread"
        )


def between_two_free_bodies(kind: str):
    """Return two free bodies connected by a loop, a position that closes it, and velocities."""
    bodies = [Body(n, 1.0 + k, (0.1, 0.2, 0.3), (0.5, 0.6, 0.7, 0.01, 0.02, 0.03)) for k, n in enumerate("ab")]
    tree = build_mechanism("two", bodies, [Joint(f"free_{n}", "free", GROUND, n) for n in "ab"])
    mechanism, q = closed(tree, [(kind, "a", "b")], 17)
    return System(mechanism), q, np.random.default_rng(3).normal(size=12)
