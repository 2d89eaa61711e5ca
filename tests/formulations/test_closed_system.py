"""Closed mechanisms by explicit matrices, against the compiled functions and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import everyday
import strategies
from closed_mechanisms import KINDS, closed, closed_mechanisms, motion
from interpreted import compute
from kinetree.formulations.closed_system import closed_equations
from kinetree.model import GROUND
from rounding_scales import EPS, closure_scales, torque_scales
from strategies import examples, random_mechanism
from tolerance import assert_close


def check_closed_equations(mechanism, q, seed=0):
    """Compare residual, J, its rate and the accelerations of both routes at a closed position."""
    qd, _ = motion(mechanism, q, seed)
    rng = np.random.default_rng(seed)
    tau, w = rng.normal(size=mechanism.nv), rng.normal(size=(len(mechanism.bodies), 6))
    e = closed_equations(mechanism, q, qd, w)
    reach, pace = closure_scales(mechanism, q, qd)
    assert_close(e.residual, np.zeros(len(e.residual)), 20 * EPS * reach, "closed")
    assert_close(compute(mechanism, "closure_residual", q), e.residual, 20 * EPS * reach, "residual")
    assert_close(compute(mechanism, "closure_jacobian", q), e.J, 20 * EPS * reach, "J")
    assert_close(compute(mechanism, "closure_bias", q, qd), e.bias, 20 * EPS * pace, "bias")
    wanted, multipliers = e.solve(tau)
    found = compute(mechanism, "forward_dynamics", q, qd, tau, wrenches=w)
    scale = 1 / np.sqrt(np.diag(e.I))
    sizes = np.linalg.svd(e.J * scale, compute_uv=False)
    real = sizes[sizes > 1e-7 * sizes.max(initial=0.0)]
    cond = np.linalg.cond(scale[:, None] * e.I * scale) * (real.max(initial=1.0) / real.min(initial=1.0)) ** 2
    # The rounding is that of the terms summed in the torques, multiplied by I^-1.
    held = np.abs(tau) + np.abs(e.J.T) @ np.abs(multipliers)
    terms = torque_scales(mechanism, q, qd, wrenches=w) + held
    size = max(np.abs(wanted).max(), (np.abs(np.linalg.inv(e.I)) @ terms).max())
    assert_close(found, wanted, 20 * EPS * cond * size, "qdd")  # a fifth of it
    terms = np.abs(e.I) @ np.abs(wanted) + np.abs(e.h) + held
    left = e.I @ wanted + e.h - tau - e.J.T @ multipliers
    assert_close(left, np.zeros(len(tau)), 1e-12 * terms.max(), "balance")


@given(drawn=closed_mechanisms())
@examples(80)
def test_random_mechanisms_agree(drawn):
    """Close random trees by loops of any kind, with couplings and floating bases, and find the compiled results."""
    check_closed_equations(*drawn)


@pytest.mark.parametrize("kind", everyday.some(KINDS))
def test_every_kind_of_loop(kind):
    """Close a branched tree by a loop of one kind between its tips, then inside the tree, then to the ground."""
    tree = random_mechanism(
        ["revolute", "universal", "prismatic", "spherical", "revolute", "cylindrical"], [-1, 0, 1, 0, 3, 4], 7
    )
    for ends in ([(kind, "b2", "b5")], [(kind, "b1", "b3"), (kind, GROUND, "b5")]):
        check_closed_equations(*closed(tree, ends, 11))


def test_floating_bases():
    """Close a free body with two arms, hand to hand and hand to ground."""
    tree = random_mechanism(["free", "revolute", "revolute", "revolute", "revolute"], [-1, 0, 1, 0, 3], 3)
    check_closed_equations(*closed(tree, [("spherical", "b2", "b4")], 5))
    check_closed_equations(*closed(tree, [("revolute", "b2", "b4"), ("rod", GROUND, "b4")], 6, coupled=True))


@pytest.mark.parametrize("kind", everyday.some(KINDS))
def test_j_is_the_rate_of_the_residual(kind):
    """Displace a closed mechanism slightly and find J as the slope of the residual, and the bias as that of J qd."""
    tree = random_mechanism(strategies.FLAT[:1] * 3 + ("prismatic", "revolute"), [-1, 0, 1, -1, 3], 2)
    mechanism, q = closed(tree, [(kind, "b2", "b4")], 4)
    qd, _ = motion(mechanism, q, 1)
    e, h = closed_equations(mechanism, q, qd), 1e-6
    of_positions = [c.holonomic for c in mechanism.closures]
    for k, dq in enumerate(h * np.eye(mechanism.nv)):
        up, down = (closed_equations(mechanism, q + sign * dq).residual for sign in (1, -1))
        assert_close(((up - down) / (2 * h))[of_positions], e.J[of_positions, k], 1e-8, "J")
    up, down = (closed_equations(mechanism, q + sign * h * qd).J for sign in (1, -1))
    assert_close((up - down) @ qd / (2 * h), e.bias, 1e-7, "bias")


def test_redundant_equations_are_shared_least():
    """Weld two bodies twice and find half of the multipliers of one weld in each."""
    tree = random_mechanism(["revolute", "revolute", "prismatic"], [-1, 0, 1], 9)
    once, q = closed(tree, [("fixed", GROUND, "b2")], 1)
    twice, _ = closed(tree, [("fixed", GROUND, "b2"), ("fixed", GROUND, "b2")], 1)
    tau = np.array([0.3, -1.2, 2.1])
    (qdd, one), (same, two) = (closed_equations(m, q).solve(tau) for m in (once, twice))
    assert_close(qdd, np.zeros(3), 1e-12, "at rest")
    assert_close(same, np.zeros(3), 1e-12, "at rest, twice")
    J = closed_equations(twice, q).J
    assert_close(J.T @ two, closed_equations(once, q).J.T @ one, 1e-10, "torques")
