"""The cone problem: exact solutions of one contact, and certified ones of several."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from kinetree.simulation.contact.cone_problem import ConeProblem, NoForces, solve
from kinetree.simulation.contact.records import Doubt
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


def planar(rng: np.random.Generator, inertia: float, feet: int) -> ConeProblem:
    """Return the problem of a body in a plane with a mass moment of inertia and feet some 1 m from its center."""
    angles = 0.3 * rng.normal(size=feet) + np.linspace(0.0, 0.8, feet)
    arms = rng.uniform(0.7, 1.2, feet)[:, None] * np.stack([np.sin(angles), -np.cos(angles)], axis=1)
    rows = [row for x, z in arms for row in ([0.0, 1.0, -x], [1.0, 0.0, z], [0.0, 0.0, 0.0])]
    J, free = np.array(rows), rng.normal(size=3) * [1.0, 1.0, 0.3] - [0.0, 3.0, 0.0]
    return ConeProblem.of(J @ np.diag([0.8, 0.8, 1 / inertia]) @ J.T, J @ free, rng.uniform(0.2, 1.1, feet))


def by_enumeration(problem: ConeProblem) -> list[np.ndarray]:
    """Return the velocities of all solutions of a planar problem, by solving the linear equations of all modes."""
    n, found = len(problem), []
    pick = [3 * k + j for k in range(n) for j in (0, 1)]
    W, b = problem.W[np.ix_(pick, pick)], problem.b.ravel()[pick]
    size = np.abs(np.linalg.lstsq(W, b, rcond=1e-13)[0]).max() + np.abs(b).max() / np.abs(W).max()
    for modes in product(("open", "stick", 1.0, -1.0), repeat=n):
        A, c = np.zeros((2 * n, 2 * n)), np.zeros(2 * n)
        for k, mode in enumerate(modes):
            i, j = 2 * k, 2 * k + 1
            if mode == "open":
                A[i, i] = A[j, j] = 1.0
                continue
            A[i], c[i] = W[i], -b[i]
            if mode == "stick":
                A[j], c[j] = W[j], -b[j]
            else:  # slip in the direction of the mode
                A[j, j], A[j, i] = 1.0, mode * problem.mu[k]
        f = np.linalg.lstsq(A, c, rcond=1e-14)[0]
        u, good = W @ f + b, True
        noise = 1e-12 * (np.abs(W) @ np.abs(f) + np.abs(b)).max() + 1e-11 * np.abs(b).max()
        for k, mode in enumerate(modes):
            (fn, ft), (un, ut) = f[2 * k : 2 * k + 2], u[2 * k : 2 * k + 2]
            good &= fn >= -1e-9 * size and un >= -noise and abs(ft) <= problem.mu[k] * fn + 1e-9 * size
            good &= mode == "open" or abs(un) <= noise
            good &= mode in ("open", 1.0, -1.0) or abs(ut) <= noise
            good &= mode in ("open", "stick") or mode * ut >= -noise
        if good:
            found.append(u)
    return found


@pytest.mark.parametrize("inertia", [1e-1, 1e-3, 1e-5, 1e-7])
def test_planar_problems_of_concentrated_masses_by_enumeration(inertia) -> None:
    """Solve all modes of feet of a body with a small inertia, and find the velocities of the solution among them."""
    rng = np.random.default_rng(17)
    for count in (1, 1, 1, 1, 1, 1, 2, 2, 2, 2):
        problem = planar(rng, inertia, count)
        known = by_enumeration(problem)
        try:
            found = solve(problem)
        except NoForces:
            assert not known, "a problem with a solution was refused"
            continue
        assert max(found.residuals) < 1e-12
        u = found.velocities[:, :2].ravel()
        away = min(np.abs(u - x).max() for x in known)
        assert_close(away, 0.0, 1e-9 * problem.speed_of(found.forces), "velocities against the nearest mode")


def test_words_for_steps_in_doubt() -> None:
    """Find the number of steps, the largest residual and its bound in the words for steps in doubt."""
    text = str(Doubt(1203, 0.9012, 0.0415, 1e-9))
    assert text == (
        "in 1,203 steps the contact forces violate Signorini's conditions or Coulomb's law, the most at t = 0.0415 s "
        "with a residual of 0.901, where 1e-09 is allowed"
    )
    assert str(Doubt(1, 0.9, 0.1, 1e-9)).startswith("in a step the contact forces")
