"""The cone problem: exact solutions of one contact, and certified ones of several."""

from __future__ import annotations

import numpy as np
import pytest

from kinetree.simulation.contact.cone_problem import ConeProblem, NoForces, solve
from tolerance import assert_close


def random_problem(rng: np.random.Generator, count: int, freedom: int) -> ConeProblem:
    """Return contacts of a body with some degrees of freedom: forces are not unique where these are fewer."""
    J = rng.normal(size=(3 * count, freedom))
    mu = rng.uniform(0.0, 1.3, count) * (rng.random(count) > 0.1)
    return ConeProblem.of(J @ J.T, J @ rng.normal(size=freedom), mu)


def test_point_mass_sticks_and_slips() -> None:
    """Stop a point mass inside of its cone, and let it slip against the velocity outside of it."""
    W = np.eye(3) / 1.7
    stick = solve(ConeProblem.of(W, [-2.0, 0.3, 0.4], [0.5]))
    assert_close(stick.forces, 1.7 * np.array([[2.0, -0.3, -0.4]]), 1e-15, "sticking force")
    slip = solve(ConeProblem.of(W, [-2.0, 1.2, -1.6], [0.5]))
    assert_close(slip.forces, 1.7 * np.array([[2.0, -0.6, 0.8]]), 1e-14, "slipping force")
    assert_close(slip.velocities, [[0.0, 0.6, -0.8]], 1e-14, "velocity left")
    leave = solve(ConeProblem.of(W, [0.1, 1.2, -1.6], [0.5]))
    assert not leave.forces.any()


def test_random_problems_are_certified() -> None:
    """Insert the solutions of random problems into all conditions, with redundant contacts among them."""
    rng = np.random.default_rng(5)
    for _ in range(12):
        problem = random_problem(rng, int(rng.integers(1, 6)), int(rng.integers(2, 20)))
        found = solve(problem)
        u = problem.b + (problem.W @ found.forces.ravel()).reshape(-1, 3)
        size, speed = np.hypot(*found.forces.T[1:]), np.hypot(*u.T[1:])
        scale = np.abs(problem.b).max() * max(1.0, 1 / np.diag(problem.W).max())
        assert_close(np.minimum(found.forces[:, 0], u[:, 0]), 0 * size, 1e-11 * scale, "Signorini")
        assert_close(np.maximum(size - problem.mu * found.forces[:, 0], 0), 0 * size, 1e-11 * scale, "cone")
        power = (found.forces[:, 1:] * u[:, 1:]).sum(axis=1) + problem.mu * found.forces[:, 0] * speed
        assert_close(power, 0 * size, 1e-11 * scale**2, "dissipation")


def test_floors_and_rays() -> None:
    """Keep a least normal force, and the direction of a contact that slides already."""
    W = np.array([[1.0, 0.2, 0.1], [0.2, 1.5, 0.3], [0.1, 0.3, 1.1]])
    pushed = solve(ConeProblem.of(W, [0.0, 0.4, 0.0], [0.3], floor=[0.7]))
    assert_close(pushed.forces[0, 0], 0.7, 1e-15, "least normal force")
    assert pushed.velocities[0, 0] > 0 and max(pushed.residuals) < 1e-12
    ray = np.array([[0.6, -0.8]])
    slides = solve(ConeProblem.of(W, [-1.0, 0.4, 0.0], [0.3], rays=ray))
    assert_close(slides.forces[0, 1:], -0.3 * slides.forces[0, 0] * ray[0], 1e-15, "friction against the slip")
    assert_close(slides.velocities[0, 0], 0.0, 1e-15, "normal acceleration")


def test_no_solution_is_named() -> None:
    """Refuse a sliding contact whose force pushes it into the surface."""
    W = np.array([[1.0, 2.0, 0.0], [2.0, 5.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(NoForces, match="no contact forces satisfy Signorini's conditions and Coulomb's law"):
        solve(ConeProblem.of(W, [-1.0, 0.0, 0.0], [0.9], rays=[[1.0, 0.0]]))


def test_floors_of_planar_motions() -> None:
    """Push a contact that cannot move along one tangent, and let it stick and slip along the other."""
    W = np.array([[1.3, 0.4, 0.0], [0.4, 0.9, 0.0], [0.0, 0.0, 0.0]])
    stick = solve(ConeProblem.of(W, [0.0, -0.2, 0.0], [0.3], floor=[0.7]))
    assert_close(stick.forces, [[0.7, -0.08 / 0.9, 0.0]], 1e-14, "sticking force")
    slip = solve(ConeProblem.of(W, [0.0, 0.4, 0.0], [0.3], floor=[0.7]))
    assert_close(slip.forces, [[0.7, -0.21, 0.0]], 1e-14, "slipping force")
