"""Merging of fixed joints."""

from __future__ import annotations

import numpy as np
import pytest

from kinetree.algebra.rotations import from_rpy
from kinetree.algebra.vectors import from_moments
from kinetree.formats.merging import combine_bodies, merge_fixed
from kinetree.model import GROUND, Body, Joint, Placement, Shape
from kinetree.model.parts import compose

A = Body("a", 2.3, (0.1, -0.2, 0.37), (0.11, 0.13, 0.17, 0.011, -0.013, 0.007))
B = Body("b", 0.7, (-0.31, 0.05, 0.2), (0.021, 0.019, 0.033, 0.002, 0.001, -0.003))
P = Placement((0.5, -0.7, 1.1), from_rpy(0.3, -0.8, 1.9))


def about_origin(body: Body, placement: Placement = Placement()) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, first moment and inertia about the origin of the frame in which the placement is given."""
    R, p = np.array(placement.rotation), np.array(placement.translation)
    c = p + R @ np.array(body.com)
    inertia = R @ np.array(from_moments(body.inertia)) @ R.T
    return body.mass, body.mass * c, inertia + body.mass * (c @ c * np.eye(3) - np.outer(c, c))


def test_two_bodies_become_one():
    """Add masses, first moments and inertias about a common origin."""
    one = about_origin(combine_bodies([(Placement(), A), (P, B)]))
    for got, first, second in zip(one, about_origin(A), about_origin(B, P), strict=True):
        np.testing.assert_allclose(got, first + second, rtol=1e-14, atol=1e-15)  # measured 2e-16


def test_a_massless_body_changes_no_bit():
    """Keep the numbers of a body exactly if the bodies merged into it are massless."""
    assert combine_bodies([(Placement(), A), (P, Body("tool", com=(1.0, 2.0, 3.0)))]) == A


def test_bodies_without_mass():
    """Keep inertia without mass, and the center of mass, without dividing by zero."""
    one = combine_bodies(
        [(Placement(), Body("a", 0.0, (1.0, 2.0, 3.0))), (Placement(), Body("b", 0.0, inertia=B.inertia))]
    )
    assert (one.mass, one.com, one.inertia) == (0.0, (1.0, 2.0, 3.0), B.inertia)


def test_tiny_masses_stay_finite():
    """Average the centers of subnormal masses without overflow."""
    one = combine_bodies([(Placement(), Body("a", 5e-324)), (Placement((1.0, 0.0, 0.0)), Body("b", 5e-324))])
    assert one.com == (0.5, 0.0, 0.0)


def test_a_chain_of_welds():
    """Transfer placements, shapes and names along a chain of fixed joints to the next moving body."""
    ball = Shape("sphere", (0.1,), Placement((0.0, 0.0, 0.2)))
    bodies = [Body("tip"), Body("arm", 1.0), Body("flange", shapes=(ball,)), Body("tool", 1.0, shapes=(ball,))]
    joints = [
        Joint("swing", "revolute", GROUND, "arm"),
        Joint("flange", "fixed", "arm", "flange", P),
        Joint("tool_mount", "fixed", "flange", "tool", P),
        Joint("last", "prismatic", "tool", "tip", P),
    ]
    merged = merge_fixed(bodies, joints)
    assert [b.name for b in merged.bodies] == ["tip", "arm"]
    assert [j.name for j in merged.joints] == ["swing", "last"]
    assert merged.hidden == ("flange",)
    frames = {f.name: f for f in merged.frames}
    assert set(frames) == {"flange", "tool", "tool_mount"}
    assert all(f.body == "arm" for f in merged.frames)
    assert frames["flange"].placement == compose(Placement(), P)
    assert frames["tool"].placement == frames["tool_mount"].placement == compose(P, P)
    last = merged.joints[1]
    assert (last.parent, last.placement) == ("arm", compose(compose(P, P), P))
    assert merged.bodies[1].shapes[1].placement == compose(compose(P, P), ball.placement)
    assert merged.bodies[1].mass == 2.0


def test_bodies_on_the_ground():
    """Merge bodies without a joint, and those welded to them, into the ground."""
    box = Shape("box", (1.0, 1.0, 1.0))
    merged = merge_fixed(
        [Body("base", 3.0, shapes=(box,)), Body("plate", 1.0)], [Joint("weld", "fixed", "base", "plate", P)]
    )
    assert (merged.bodies, merged.joints) == ((), ())
    assert [(f.name, f.body) for f in merged.frames] == [("base", GROUND), ("plate", GROUND), ("weld", GROUND)]
    assert merged.ground_shapes == (box,)
    assert [(w.body, w.carrier, w.joint, w.mass) for w in merged.welds] == [
        ("base", GROUND, "", 3.0),
        ("plate", GROUND, "weld", 1.0),
    ]


@pytest.mark.parametrize("count", [3000])
def test_long_chains_need_no_recursion(count):
    """Merge a chain that is longer than Python's recursion limit."""
    bodies = [Body(f"b{i}", 1.0) for i in range(count)]
    joints = [Joint(f"j{i}", "fixed", f"b{i - 1}", f"b{i}", Placement((0.0, 0.0, 1.0))) for i in range(1, count)]
    merged = merge_fixed(bodies, [Joint("root", "free", GROUND, "b0"), *joints])
    assert merged.bodies[0].mass == count
    assert merged.bodies[0].com[2] == pytest.approx((count - 1) / 2, rel=1e-12)
