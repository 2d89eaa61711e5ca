"""Trees of ropes and nets: their number, positions, knots, and rejected input."""

from __future__ import annotations

import math

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree import InputError
from kinetree.model.checks import check
from tolerance import assert_close

ROPE = {"mass_per_metre": 0.37, "radius": 0.004}


@pytest.mark.parametrize("joint", ["revolute", "universal", "spherical"])
def test_they_pass_all_checks(joint):
    """Build trees and nets of several joints and find no error."""
    check(kt.rope_tree(0.7, 3, levels=2, branches=3, joint=joint, **ROPE).mechanism)
    check(kt.net(3, 2, mesh=0.21, n=2, joint=joint, **ROPE).mechanism)


def test_a_tree_branches():
    """Count the ropes of a tree and find the tips of three levels at their angles."""
    tree = kt.rope_tree(0.7, 3, levels=2, branches=2, angle=0.8, joint="revolute", **ROPE)
    assert len(tree.bodies) == 7 * 3
    assert sum(b.mass for b in tree.bodies) == pytest.approx(7 * 0.7 * 0.37)
    tips = [tree.pose(tree.neutral(), f"tip{k}")[:3, 3] for k in (1, 2, 7)]
    assert_close(tips[0], (0.0, 0.0, -0.7), 1e-15, "trunk")
    assert_close(np.abs(tips[1]), (0.7 * math.sin(0.4), 0.0, 0.7 + 0.7 * math.cos(0.4)), 1e-15, "first level")
    expected = 0.7 * np.array([math.sin(0.4) + math.sin(0.8), 0.0, 1 + math.cos(0.4) + math.cos(0.8)])
    assert_close(np.abs(tips[2]), expected, 1e-15, "second level")
    assert tips[1][0] * tips[2][0] < 0
    assert len(kt.rope_tree(0.7, 3, levels=0, **ROPE).bodies) == 3


def test_a_net_is_tied():
    """Count ropes and loops of a net, find its knots, and both ends of every loop at the same position."""
    net = kt.net(3, 4, mesh=0.21, n=2, **ROPE)
    assert len(net.bodies) == 2 * (3 * 4 + 3 * 3)
    assert [p.name for p in net.mechanism.loops] == [f"knot{r}_{c}" for r in (1, 2, 3) for c in (2, 3, 4)]
    assert_close(net.pose(net.neutral(), "knot2_3")[:3, 3], (0.42, 0.0, -0.42), 1e-15, "knot")
    assert_close(net.closure_residual(net.neutral()), np.zeros(27), 1e-15, "gap")
    across = net.pose(net.neutral(), "across2_3_link1")
    assert_close(across[:3, 0], (1.0, 0.0, 0.0), 1e-15, "direction across")
    assert_close(across[:3, 3], (0.42, 0.0, -0.42), 1e-15, "start of a rope across")


@everyday.long
def test_the_order_of_bodies_makes_no_difference():
    """Make a net with its ropes in another order and find the same accelerations, body by body."""
    net = kt.net(2, 2, mesh=0.21, n=2, bending=0.01, joint="revolute", **ROPE)
    m = net.mechanism
    other = kt.System(kt.build_mechanism("again", m.bodies, m.joints[::-1], loops=m.loops, gravity=m.gravity))
    names = [j.name for j in net.joints]
    assert [j.name for j in other.joints] != names
    order = [names.index(j.name) for j in other.joints]
    rng = np.random.default_rng(5)
    q = net.assemble(0.2 * rng.normal(size=net.nq))
    qd, tau = net.closing_speed(q, rng.normal(size=net.nv)), 1e-3 * rng.normal(size=net.nv)
    expected = net.forward_dynamics(q, qd, tau, forces=False)[order]
    found = other.forward_dynamics(q[order], qd[order], tau[order], forces=False)
    assert_close(found / np.abs(expected).max(), expected / np.abs(expected).max(), 1e-12, "accelerations")


def test_only_joints_between_links_have_springs():
    """Find EI over the link's length inside ropes, and hinges where they begin."""
    tree = kt.rope_tree(0.6, 3, levels=1, bending=0.5, damping=0.01, joint="revolute", **ROPE)
    springs = [f for f in kt.forces_of(tree.mechanism) if isinstance(f, kt.JointSpring)]
    assert [f.joint for f in springs] == [f"rope{k}_joint{i}" for k in (1, 2, 3) for i in (2, 3)]
    assert springs[0].stiffness == pytest.approx((2.5,))
    assert tree.joints[0].damping == pytest.approx((0.05,))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kt.rope_tree(0.7, 3, levels=-1, **ROPE), "levels is -1; give 0 or more levels"),
        (lambda: kt.rope_tree(0.7, 3, levels=1.5, **ROPE), "levels is 1.5; give a whole number of levels"),
        (lambda: kt.rope_tree(0.7, 3, levels=1, branches=0, **ROPE), "branches is 0; give 1 or more ropes"),
        (lambda: kt.net(0, 2, mesh=0.2, **ROPE), "rows is 0; give 1 or more rows"),
        (lambda: kt.net(2, 2, mesh=-0.2, **ROPE), "the mesh is -0.2; give more than zero"),
        (lambda: kt.net(2, 2, mesh=0.2, n=0, **ROPE), "n is 0; give 1 or more links"),
        (lambda: kt.net(2, 2, mesh=0.2, joint="fixed", **ROPE), "joint is 'fixed'; expected one of revolute"),
    ],
)
def test_what_is_refused(call, message):
    """Request impossible trees and nets and read the expected input."""
    with pytest.raises(InputError) as error:
        call()
    assert message in str(error.value)


@everyday.long
@pytest.mark.parametrize("make", [
    lambda: kt.rope_tree(0.6, 2, levels=2, joint="revolute", **ROPE),
    lambda: kt.net(2, 2, mesh=0.2, joint="revolute", **ROPE),
], ids=["tree", "net"])  # fmt: skip
def test_all_routes_agree(make):
    """Compare a tree of ropes on ropes and a net with all formulations, and with the libraries that are installed."""
    found = make().verify(2)
    assert found, str(found)
