"""Smallest forces in cones against a conic solver, and against the conditions of least squares."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
from kinetree.analysis.ground.least_squares import smallest_forces
from kinetree.contact_geometry.cone import OPEN, SLIP, STICK, Cones, used_friction
from tolerance import assert_close


def random_problem(rng: np.random.Generator, count: int, n: int) -> tuple[np.ndarray, Cones]:
    """Return the wrenches [b, 6, n, 3] of unit forces at points near a plane, and cones of all modes."""
    points, normals = rng.uniform(-0.5, 0.5, (count, n, 3)), rng.normal(size=(count, n, 3)) * 0.3
    normals[..., 2] += 1.0
    axes = np.swapaxes(np.linalg.qr(np.stack([normals, *rng.normal(size=(2, count, n, 3))], axis=-1))[0], -1, -2)
    axes[..., 0, :] *= np.sign(axes[..., 0, 2:])
    wrenches = np.concatenate([np.cross(points[..., None, :], axes), axes], axis=-1)
    angle = rng.uniform(-np.pi, np.pi, (count, n))
    modes = rng.choice([OPEN, STICK, STICK, STICK, SLIP], (count, n))
    cones = Cones.of(modes, rng.uniform(0.2, 1.1, n), np.stack([np.cos(angle), np.sin(angle)], axis=-1))
    return np.moveaxis(wrenches, -1, 1), cones


def balanced(count: int, n: int) -> tuple[np.ndarray, np.ndarray, Cones]:
    """Return wrenches of unit forces, the wrench of some forces in their cones, and the cones."""
    rng = np.random.default_rng(1)
    A, cones = random_problem(rng, count, n)
    x = rng.normal(size=(count, n, 3)) * [1.0, 0.3, 0.3] * cones.mu[:, None] + [2.5, 0.0, 0.0]
    return A, np.einsum("bmnk,bnk->bm", A, cones.nearest(x)), cones


def referee(A: np.ndarray, b: np.ndarray, cones: Cones, k: int, *, exactly: bool):
    """Return the forces of one state by Clarabel: smallest with A f = b, or with the least residual."""
    cp = pytest.importorskip("cvxpy")
    n = A.shape[2]
    f = cp.Variable((n, 3))
    within = []
    for i in range(n):
        if cones.modes[k, i] == OPEN:
            within.append(f[i] == 0)
        elif cones.modes[k, i] == STICK:
            within.append(cp.norm(f[i, 1:]) <= cones.mu[i] * f[i, 0])
        else:
            within += [f[i, 0] >= 0, f[i, 1:] == f[i, 0] * cones.rays[k, i, 1:]]
    lack = b[k] - sum(A[k, :, i, :] @ f[i] for i in range(n))
    goal = cp.sum_squares(f) if exactly else cp.sum_squares(lack)
    cp.Problem(cp.Minimize(goal), [*within, *([lack == 0] if exactly else [])]).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
    )
    return f.value, lack.value


def test_forces_are_the_smallest_that_balance() -> None:
    """Balance wrenches of forces in their cones; no force that adds no wrench makes them smaller."""
    A, b, cones = balanced(12, 4)
    found = smallest_forces(A, b, cones)
    assert found.settled.all()
    assert_close(found.residual, np.zeros((12, 6)), 1e-11, "balance")
    assert_close(found.forces, cones.nearest(found.forces), 1e-12, "forces in their cones")
    sticks = Cones(np.full((12, 4), STICK), cones.mu, cones.rays)
    found = smallest_forces(A, b, sticks)
    free = np.flatnonzero(
        (used_friction(found.forces, cones.mu) < 0.99).all(axis=-1) & (found.forces[..., 0] > 0).all(axis=-1)
    )
    assert len(free) > 2
    for k in free:  # where no cone limits them, they are those of the pseudoinverse
        assert_close(found.forces[k].ravel(), np.linalg.pinv(A[k].reshape(6, -1)) @ b[k], 1e-11, "smallest forces")


@pytest.mark.parametrize("n", everyday.only([1, 3, 6], [3]))
def test_least_residuals_satisfy_their_conditions(n) -> None:
    """Meet, for wrenches that no forces balance, the conditions of least squares to rounding."""
    rng = np.random.default_rng(n)
    A, cones = random_problem(rng, 8, n)
    b = rng.normal(size=(8, 6)) * 3.0
    found = smallest_forces(A, b, cones)
    assert found.settled.all()
    p = np.einsum("bmnk,bm->bnk", A, found.residual)
    assert_close(cones.nearest(p), np.zeros_like(p), 1e-9, "A^T r in the polar cone")
    assert_close((p * found.forces).sum(axis=(1, 2)), np.zeros(8), 1e-9, "f . A^T r")


@pytest.mark.slow
def test_a_conic_solver_finds_the_same() -> None:
    """Compare smallest forces and least residuals with Clarabel's."""
    A, b, cones = balanced(8, 4)
    found = smallest_forces(A, b, cones)
    for k in range(8):
        forces, _ = referee(A, b, cones, k, exactly=True)
        assert_close(found.forces[k], forces, 1e-6, "forces against Clarabel")
        size, other = (float(np.linalg.norm(x)) for x in (found.forces[k], forces))
        assert_close(size, other, 1e-9 * other, "their size")
    b = np.random.default_rng(3).normal(size=(8, 6)) * 3.0
    found = smallest_forces(A, b, cones)
    for k in range(8):
        _, lack = referee(A, b, cones, k, exactly=False)
        size, other = (float(np.linalg.norm(x)) for x in (found.residual[k], lack))
        assert_close(size, other, 1e-9, "size of the residual against Clarabel")


def test_derivatives_of_the_nearest_points() -> None:
    """Compare the derivatives of projections on all kinds of cones with differences."""
    rng = np.random.default_rng(7)
    _, cones = random_problem(rng, 30, 5)
    x, d = rng.normal(size=(2, 30, 5, 3))
    _, slope = cones.nearest_and_slope(x)
    h = 1e-6
    change = (cones.nearest(x + h * d) - cones.nearest(x - h * d)) / (2 * h)
    assert_close(np.einsum("bnkl,bnl->bnk", slope, d), change, 1e-7, "derivative")


def test_states_without_forces() -> None:
    """Return zero forces where nothing is required, or where nothing touches."""
    A, cones = random_problem(np.random.default_rng(4), 2, 2)
    shut = Cones(np.array([[STICK, STICK], [OPEN, OPEN]]), cones.mu, cones.rays)
    b = np.array([np.zeros(6), np.arange(1.0, 7.0)])
    found = smallest_forces(A, b, shut)
    assert not found.forces.any() and found.settled.all()
    assert_close(found.residual, b, 0.0, "all of b is missing")
