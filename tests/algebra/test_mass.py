"""Mass matrices of rigid and articulated bodies, and their propagation, against 6x6 matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetree.algebra.mass import ArticulatedMass, Coriolis, MassMatrix
from kinetree.algebra.propagation import Propagation
from kinetree.algebra.rotations import constant
from kinetree.algebra.spatial import Motion, Twist, TwistRate, Wrench, power, unit_index
from kinetree.algebra.vectors import from_moments, to_moments
from rigid_body import cross_matrix, mass_matrix
from strategies import body, examples, nested, rotation
from tolerance import assert_close

EPS = np.finfo(float).eps
SEEDS = st.integers(0, 2**32 - 1)


def of(b) -> MassMatrix:
    """Return the mass matrix of a body."""
    return MassMatrix.of_body(b.mass, b.com, from_moments(b.inertia))


def full(M: MassMatrix | ArticulatedMass | Coriolis) -> np.ndarray:
    """Return the 6x6 matrix, column by column."""
    return np.array([(M @ Twist(tuple(e[:3]), tuple(e[3:]))).entries() for e in np.eye(6).tolist()]).T


def propagation(rng: np.random.Generator) -> tuple[Propagation, np.ndarray]:
    """Return a propagation with displacements before and after its rotation, and its 6x6 matrix in twist order."""
    R, r, s = rotation(rng), rng.normal(size=3), rng.normal(size=3)
    E = np.array(R).T
    outward = np.block([[E, np.zeros((3, 3))], [-E @ cross_matrix(r + np.array(R) @ s), E]])
    return Propagation(nested(r), constant(R), nested(s)), outward


@given(SEEDS)
@examples(30)
def test_mass_matrix_is_the_textbook_one(seed):
    """Compare ten numbers with the 6x6 matrix: momentum, sum and difference."""
    rng = np.random.default_rng(seed)
    a, b = body("a", rng), body("b", rng)
    assert_close(full(of(a)), mass_matrix(a), 20 * EPS * a.mass, "M")
    assert_close(full(of(a) + of(b)), mass_matrix(a) + mass_matrix(b), 20 * EPS * (a.mass + b.mass), "sum")
    assert_close(full(of(a) - of(b)), mass_matrix(a) - mass_matrix(b), 20 * EPS * (a.mass + b.mass), "difference")
    assert_close(full(of(a).articulated()), mass_matrix(a), 20 * EPS * a.mass, "by blocks")


@given(SEEDS)
@examples(30)
def test_propagation_carries_twists_wrenches_and_masses(seed):
    """Propagate outward by A, inward by A^T, and a mass matrix by A^T M A."""
    rng = np.random.default_rng(seed)
    A, X = propagation(rng)
    t, w = rng.normal(size=(2, 6))
    carried = A @ Twist(nested(t[:3]), nested(t[3:]))
    assert_close(carried.entries(), X @ t, 100 * EPS, "A t")
    assert_close((A.T @ Wrench(nested(w[:3]), nested(w[3:]))).entries(), X.T @ w, 100 * EPS, "A^T w")
    b = body("b", rng)
    expected = X.T @ mass_matrix(b) @ X
    bound = 50 * EPS * np.abs(expected).max()
    assert_close(full(A.T @ of(b) @ A), expected, bound, "A^T M A")
    assert_close(full(A.T @ of(b).articulated() @ A), expected, bound, "A^T M A by blocks")
    x = rng.normal(size=3)
    place = np.array(A.r) + np.array(A.E.matrix()) @ (np.array(A.s) + x)
    assert_close(A.locate(nested(x)), place, 100 * EPS, "place")
    assert_close(A.offset, A.locate((0.0, 0.0, 0.0)), 100 * EPS, "offset")


def test_a_mass_is_carried_by_one_propagation():
    """Refuse A^T M B with two different propagations."""
    A, _ = propagation(np.random.default_rng(1))
    B, _ = propagation(np.random.default_rng(2))
    with pytest.raises(AssertionError, match="carried by one propagation"):
        A.T @ of(body("b", np.random.default_rng(3))) @ B


@given(SEEDS)
@examples(30)
def test_wrench_of_a_motion_is_newton_and_euler(seed):
    """Compare the wrench by second moments with I dw + w x I w about the origin."""
    rng = np.random.default_rng(seed)
    b = body("b", rng)
    w, dw, dv = rng.normal(size=(3, 3))
    M, c = mass_matrix(b), np.array(b.com)
    n = M[:3, :3] @ dw + np.cross(w, M[:3, :3] @ w) + b.mass * np.cross(c, dv)
    f = b.mass * (dv + np.cross(dw, c) + np.cross(w, np.cross(w, c)))
    got = of(b).wrench(TwistRate(nested(w), nested(dw), nested(dv)))
    assert_close(got.entries(), [*n, *f], 50 * EPS * (1 + np.abs([n, f]).max()), "Newton and Euler")


@given(SEEDS)
@examples(30)
def test_propagation_of_rates_is_the_acceleration_of_a_point(seed):
    """Propagate twist rates outward and find the acceleration of the child's origin."""
    rng = np.random.default_rng(seed)
    A, _ = propagation(rng)
    w, dw, dv = rng.normal(size=(3, 3))
    out = A @ TwistRate(nested(w), nested(dw), nested(dv))
    E, r = np.array(A.E.matrix()).T, np.array(A.offset)
    expected = E @ (dv + np.cross(dw, r) + np.cross(w, np.cross(w, r)))
    assert_close(out.dv, expected, 200 * EPS, "acceleration")
    assert_close((out.w, out.dw), (E @ w, E @ dw), 50 * EPS, "turned")


@given(SEEDS)
@examples(30)
def test_coriolis_matrix_is_skew_with_the_rate(seed):
    """Find the angular part of dM/dt - 2B skew, and the gyroscopic wrench B t."""
    rng = np.random.default_rng(seed)
    b = body("b", rng)
    w, v = rng.normal(size=(2, 3))
    M, W = mass_matrix(b), np.kron(np.eye(2), cross_matrix(w))
    B = full(of(b).coriolis(Twist(nested(w))))
    N = (W @ M - M @ W) - 2 * B  # the rate of M in axes that do not turn
    bound = 50 * EPS * (1 + np.abs(M).max() * np.abs(w).max())
    assert_close(N[:3, :3] + N[:3, :3].T, np.zeros((3, 3)), bound, "skew")
    gyroscopic = of(b).wrench(TwistRate(nested(w)))
    assert_close((B @ np.concatenate([w, v])), gyroscopic.entries(), bound, "B t")
    t = Twist(nested(w), nested(v))
    assert_close(
        of(b).coriolis(Twist(nested(w))).transpose_times(t).entries(), B.T @ np.concatenate([w, v]), bound, "B^T t"
    )


@given(SEEDS, st.integers(0, 6))
@examples(30)
def test_elimination_leaves_nothing_along_the_joint(seed, k):
    """Eliminate a joint's direction from an articulated body and find no inertia along it."""
    rng = np.random.default_rng(seed)
    M = of(body("b", rng)).articulated()
    entries = nested(np.eye(6)[k]) if k < 6 else nested(rng.normal(size=6))
    p = Twist(entries[:3], entries[3:])
    psihat = M @ p
    out = M.without(p, psihat, psihat * (1.0 / power(psihat, p)), free=True)
    size = np.abs(full(M)).max()
    assert_close(full(out) @ entries / size, np.zeros(6), 50 * EPS, "M p")
    assert (unit_index(p) == k) == (k < 6)
    if k < 6:
        assert not full(out)[:, k].any()
        assert not full(out)[k].any()


def test_motion_of_several_columns():
    """Sum the columns of a joint's motion, project a wrench on them, and find their rate in the bias."""
    columns = (Twist((1.0, 2.0, 3.0), (0.5, 0.0, 0.0)), Twist((0.0, 0.0, 0.0), (1.0, -1.0, 2.0)))
    rates = (Twist((0.1, 0.2, 0.3)), Twist((0.0, 0.0, 0.0), (0.4, 0.5, 0.6)))
    P = Motion(columns, rates)
    assert (P @ (2.0, 3.0)).entries() == (2.0, 4.0, 6.0, 4.0, -3.0, 6.0)
    assert P.T @ Wrench((1.0, 0.0, 0.0), (2.0, 0.0, 0.0)) == (2.0, 2.0)
    t = Twist((0.3, -0.2, 0.7), (9.0, 9.0, 9.0))
    own = P @ (2.0, 3.0)
    bias = P.bias(t, (2.0, 3.0))
    w, wr, vr = np.array(t.w), np.array(own.w), np.array(own.v)
    assert_close(bias.dw, np.cross(w, wr) + np.array([0.2, 0.4, 0.6]), 8 * EPS, "angular bias")
    assert_close(bias.dv, np.cross(2 * w - wr, vr) + np.array([1.2, 1.5, 1.8]), 16 * EPS, "linear bias")


def test_moments_round_trip():
    """Write six moments into a matrix and read them back."""
    six = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    assert from_moments(six) == ((1.0, 4.0, 6.0), (4.0, 2.0, 5.0), (6.0, 5.0, 3.0))
    assert to_moments(from_moments(six)) == six
