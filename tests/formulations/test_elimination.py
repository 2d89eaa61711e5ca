"""Reverse Gaussian elimination by the bodies against elimination on the matrix itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import kinetree as kt
from interpreted import compute
from kinetree.formulations.denoc import denoc
from kinetree.formulations.kinematics import body_states
from kinetree.model import Body, Joint, build_mechanism
from rounding_scales import EPS, torque_scale
from strategies import State, examples, moving_mechanisms, one_of_each, random_mechanism
from tolerance import assert_close

BOTH = pytest.mark.parametrize("about", ["origin", "centre"])


def eliminate(matrix):
    """Return the steps of plain reverse Gaussian elimination: (k, multipliers, remaining matrix) for k = n ... 2."""
    left, out = matrix.copy(), []
    for k in range(len(matrix), 1, -1):
        alpha = np.zeros(len(matrix))
        alpha[: k - 1] = left[: k - 1, k - 1] / left[k - 1, k - 1]
        left = left - np.outer(alpha, left[k - 1])
        left[: k - 1, k - 1] = 0.0
        out.append((k, alpha, left))
    return out


@BOTH
@given(mechanism=moving_mechanisms(most=5))
@examples(25)
def test_every_step_is_that_of_the_matrix(about, mechanism):
    """Eliminate I column by column and find every alpha_k, E_k and L_k of the recursions."""
    s = State(mechanism, 0, ())
    d = denoc(mechanism, s.q, about=about)
    e, size, cond = d.elimination, np.abs(d.I).max(), np.linalg.cond(d.I)
    assert_close(e.L(len(d.I) + 1), d.I, 20 * EPS * size, "L_{n+1}")
    before = d.I
    for k, alpha, left in eliminate(d.I):
        assert_close(e.alpha[:, k - 1], alpha, 20 * EPS * cond * np.abs(alpha).max(initial=1.0), "alpha")
        assert_close(e.L(k), left, 20 * EPS * cond * size, "L")
        assert_close(e.E(k) @ before, e.L(k), 20 * EPS * cond * size, "E L")
        before = e.L(k)
    assert_close(np.diag(before), e.mhat, 40 * EPS * size, "pivots")


@BOTH
@given(mechanism=moving_mechanisms())
@examples(40)
def test_factors_make_the_inertia_matrix(about, mechanism):
    """Multiply U D U^T and find I; find its inverse from the elementary matrices alone."""
    s = State(mechanism, 0, ())
    d = denoc(mechanism, s.q, about=about)
    e = d.elimination
    size = np.abs(e.U) @ e.D @ np.abs(e.U).T
    assert_close(e.U @ e.D @ e.U.T, d.I, 40 * EPS * size.max(), "U D U^T")
    assert np.array_equal(np.tril(e.U), np.eye(len(d.I))) and (e.mhat > 0).all()
    cond = np.linalg.cond(e.U)
    assert_close(e.U_inverse @ e.U, np.eye(len(d.I)), 20 * EPS * cond * np.abs(e.U_inverse).max(), "U^-1 U")
    inverse = np.linalg.inv(d.I)
    assert_close(e.I_inverse, inverse, 20 * EPS * np.linalg.cond(d.I) * np.abs(inverse).max(), "I^-1")


@BOTH
@given(mechanism=moving_mechanisms())
@examples(40)
def test_forward_dynamics_is_that_of_the_compiled_recursion(about, mechanism):
    """Load every body and find the compiled accelerations, and each step by U and D."""
    s = State(mechanism, 0, ())
    d = denoc(mechanism, s.q, s.qd, about=about)
    x = d.forward_dynamics(s.tau, s.wrenches)
    qdd = compute(mechanism, "forward_dynamics", s.q, s.qd, s.tau, wrenches=s.wrenches)
    e, scale = d.elimination, torque_scale(mechanism, s.q, s.qd, wrenches=s.wrenches) + np.abs(s.tau).max()
    cond = np.linalg.cond(d.I)
    assert_close(x.qdd, qdd, 20 * EPS * (cond * np.abs(qdd).max() + np.abs(e.I_inverse).max() * scale), "qdd")
    size = np.abs(e.U_inverse) @ np.abs(e.U) @ np.abs(e.U_inverse) @ np.abs(x.phi)
    assert_close(x.tauhat, e.U_inverse @ x.phi, 20 * EPS * size.max(), "tauhat")
    assert np.array_equal(x.tautilde, x.tauhat / e.mhat)
    reach = (np.abs(d.N) @ np.abs(x.qdd)).max()
    assert_close(x.mu.ravel(), d.N @ x.qdd, 100 * EPS * reach, "mu")


def test_eta_of_each_body_is_the_wrench_that_its_parent_needs():
    """Propagate eta inward by hand on a tree and find eta_{i,i+1} and tauhat of every body."""
    mechanism = random_mechanism(["revolute", "prismatic", "revolute", "helical"], [-1, 0, 0, 2], 4)
    s = State(mechanism, 0, ())
    d = denoc(mechanism, s.q, s.qd)
    x = d.forward_dynamics(s.tau)
    for i, b in enumerate(d.bodies):
        children = [c for c, child in enumerate(d.bodies) if child.parent == i]
        behind = sum((d.links.propagation(c, i).T @ x.eta[c] for c in children), np.zeros(6))
        assert_close(x.eta_behind[i], behind, 1e-12, "eta_i,i+1")
        assert_close(x.tauhat[i], x.phi[i] - b.p[:, 0] @ behind, 1e-12, "tauhat")
        assert_close(x.eta[i], behind + d.elimination.psi[:, i] * x.tauhat[i], 1e-12, "eta_i")


@pytest.mark.parametrize("seed", range(5))
def test_articulated_body_is_what_a_floating_base_feels(seed):
    """Let the first body float, eliminate all other joints from I, and find its articulated mass."""
    kinds = ["free", "revolute", "universal", "prismatic", "spherical"]
    mechanism = random_mechanism(kinds, [-1, 0, 1, 0, 3], seed, armature=True)
    s = State(mechanism, seed, ())
    gim = compute(mechanism, "inertia_matrix", s.q)
    a = mechanism.joints[0].armature or (0.0,) * 6
    felt = gim[:6, :6] - np.diag(a) - gim[:6, 6:] @ np.linalg.solve(gim[6:, 6:], gim[6:, :6])  # in body axes
    R = np.kron(np.eye(2), body_states(mechanism, s.q)[0].R)
    body = denoc(mechanism, s.q).articulated_body("b0")
    assert_close(body.M, R @ felt @ R.T, 1e-12, "M^")
    assert body.rigid is None and "not a rigid body" in repr(body)
    values, axes = body.masses
    assert_close([body.mass_along(e) for e in axes.T], values, 1e-12, "principal masses")
    assert 0 < values[0] < values[2] < denoc(mechanism, s.q).composites[0].mass


def test_a_tip_is_a_rigid_body_and_feels_its_pivot():
    """Find the last body's own mass in its articulated body, and m^ about every joint's axis."""
    arm = kt.load("planar_3r").mechanism
    d = denoc(arm, [0.3, 0.5, -0.4])
    tip = d.articulated_body("link3")
    assert tip.rigid is not None and tip.rigid.mass == pytest.approx(0.3) and "as a rigid body" in repr(tip)
    assert tip.mass_along((1, 2, 3)) == pytest.approx(0.3)
    for k, (body, b) in enumerate(zip(d.articulated, d.bodies, strict=True)):
        assert body.felt(b.p[:, 0]) == pytest.approx(d.elimination.mhat[k], rel=1e-14)
        assert body.inertia_about((0, 0, 2)) == pytest.approx(d.elimination.mhat[k], rel=1e-14)


def test_articulated_bodies_refuse_what_has_no_meaning():
    """Give a zero axis and a twist of the wrong length, and read the expected ones."""
    body = denoc(kt.load("planar_3r").mechanism, [0.0, 0.0, 0.0]).articulated[0]
    with pytest.raises(kt.InputError, match="the axis \\(0, 0, 0\\) has no direction"):
        body.mass_along((0, 0, 0))
    with pytest.raises(kt.InputError, match="the twist has shape \\(3,\\); expected \\(6,\\)"):
        body.felt([0.0, 0.0, 1.0])


def test_a_joint_without_inertia_is_named():
    """Attach a massless body to a joint and read which joint moves no inertia."""
    bodies = [Body("arm", 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1, 0, 0, 0)), Body("tip")]
    joints = [Joint("shoulder", "revolute", "ground", "arm"), Joint("wrist", "revolute", "arm", "tip")]
    d = denoc(build_mechanism("light", bodies, joints), [0.1, 0.2])
    with pytest.raises(kt.InputError, match="joint 'wrist' moves nothing that has inertia .*; give the bodies behind"):
        d.forward_dynamics([0.0, 0.0])
    assert d.I.shape == (2, 2)


def test_euler_angles_are_named_at_their_singular_position():
    """Set the middle angle at which two axes coincide and read the joint's name."""
    mechanism = random_mechanism(["euler"], [-1], 3)
    middle = np.pi / 2 if mechanism.joints[0].sequence[0] != mechanism.joints[0].sequence[2] else 0.0
    with pytest.raises(kt.InputError, match="joint 'j0' moves nothing that has inertia \\(degree of freedom 1"):
        _ = denoc(mechanism, [0.3, middle, 0.4]).elimination


def test_steps_are_numbered_as_in_the_paper():
    """Request steps that do not exist, and find E_1 to be 1."""
    e = denoc(kt.load("planar_3r").mechanism, [0.1, 0.2, 0.3]).elimination
    assert np.array_equal(e.E(1), np.eye(3))
    with pytest.raises(kt.InputError, match="there is no step 4; steps run from 3 down to 1"):
        e.E(4)
    with pytest.raises(kt.InputError, match="there is no step 0; steps run from 4 down to 1"):
        e.L(0)


def test_steps_are_printed_by_name():
    """Read the names of all intermediate values in the tables."""
    mechanism = one_of_each()
    s = State(mechanism, 0, ())
    d = denoc(mechanism, s.q, s.qd)
    text = repr(d.forward_dynamics(s.tau))
    for name in ("phi", "mhat", "tauhat", "tautilde", "qdd", "eta_i,i+1", "mu_i,i-1"):
        assert name in text
    assert "psihat" in d.elimination.table() and "28 columns" in repr(d.elimination)
