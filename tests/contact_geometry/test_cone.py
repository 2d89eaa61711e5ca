"""Nearest points of cones, and residuals of contacts: their units, and forces along the stiff direction of a leg."""

from __future__ import annotations

import numpy as np
import pytest

from kinetree.contact_geometry.cone import (
    OPEN,
    SLIP,
    STICK,
    Cones,
    length,
    null_space,
    probe,
    residual,
    within_cones,
)
from kinetree.simulation.contact.cone_problem import ConeProblem, solve
from kinetree.simulation.contact.cone_programs import residual_program
from tolerance import assert_close

UNITS = [(1e-6, 1.0, 1.0), (1.0, 1e6, 1.0), (3.7e4, 2.3e-8, 0.013), (1e-6, 1e-9, 1e-3)]
"""The units of length, mass and time, in SI units, of mechanisms in micrometers or kilotons."""


def leg(inertia: float, angle: float = 0.2, mass: float = 1.3) -> tuple[np.ndarray, np.ndarray]:
    """Return W and b of the foot of a leg of 1 m, along normal and two tangents, with gravity at its upper end."""
    J = np.array([[0.0, 1.0, np.sin(angle)], [1.0, 0.0, -np.cos(angle)], [0.0, 0.0, 0.0]])
    return J @ np.diag([1 / mass, 1 / mass, 1 / inertia]) @ J.T, J @ np.array([0.03, -9.81, 0.0])


def random_problem(rng: np.random.Generator) -> ConeProblem:
    """Return a problem of three contacts of bodies whose masses differ by six orders."""
    J = rng.normal(size=(9, 11))
    W = J @ np.diag(10.0 ** rng.uniform(-3, 3, 11)) @ J.T
    return ConeProblem.of(W, J @ rng.normal(size=11), rng.uniform(0.1, 1.2, 3))


def by_kernel(problem: ConeProblem, f: np.ndarray) -> tuple[float, float]:
    """Return the residuals by the Program of time steps."""
    given = (problem.W, problem.b.ravel(), problem.mu, 1 / problem.compliances, f.ravel(), [problem.speed])
    normal, tangent, *_ = residual_program(len(problem)).interpret(*given)
    return float(normal[0]), float(tangent[0])


@pytest.mark.parametrize("grip", [None, 0.23])
def test_the_projection_is_the_nearest_point(grip) -> None:
    """Compare the nearest points of a disc with the nearest of many points of it."""
    rng = np.random.default_rng(4)
    angles, radii = np.meshgrid(np.linspace(-np.pi, np.pi, 721), np.linspace(0.0, 1.0, 201))
    for _ in range(8):
        p, u = rng.normal((1.5, 0.0, 0.0)), rng.normal(size=3)
        found = probe(p.tolist(), u.tolist(), 0.7, 0.6, grip)
        aim = p - np.array(found.lacks(p.tolist()))
        assert aim[0] == max(0.0, p[0] - 0.6 * u[0])
        radius = 0.7 * max(p[0], 0.0) * (aim[0] > 0.0 or grip is None) + (grip or 0.0)
        if aim[0] == 0.0 and grip is None:
            radius = 0.0
        disc = radius * radii * np.exp(1j * angles)
        best = np.abs(disc - complex(*(p - 0.6 * u)[1:])).min()
        assert_close(np.hypot(*(aim - p + 0.6 * u)[1:]), best, 0.01 * max(radius, 1e-9), "distance from the disc")


def test_solutions_leave_rounding_and_errors_their_size() -> None:
    """Insert forces that stick, slip and are open, then change each by parts of it."""
    problem = ConeProblem.of(
        np.diag([0.8, 1.3, 0.6] * 3), [-2, 0.1, 0.3, -1, 1.2, -1.7, 0.3, 0.5, -0.2], [0.7, 0.4, 0.9]
    )
    found = solve(problem)
    assert_close(found.residuals, (0.0, 0.0, 0.0), 1e-15, "residuals")
    for k, change in ((0, 1e-6), (1, -3e-5)):
        f = found.forces.copy()
        f[k, 0] *= 1 + change
        signorini, cone, coulomb = problem.residuals(f)
        assert 0.3 * abs(change) < signorini < abs(change) and max(cone, coulomb) <= abs(change)
    turned = found.forces.copy()
    turned[1, 1:] = np.array([[np.cos(1e-5), -np.sin(1e-5)], [np.sin(1e-5), np.cos(1e-5)]]) @ turned[1, 1:]
    assert_close(problem.residuals(turned)[2] / 1e-5, 0.3, 0.2, "a turned force of friction")  # power alone: 1e-10


@pytest.mark.parametrize("units", UNITS)
def test_units_do_not_change_residuals(units) -> None:
    """Write problems in other units, and find the residuals of solutions and of errors unchanged in both engines."""
    length_unit, mass, time = units
    rng = np.random.default_rng(9)
    speed, force = length_unit / time, mass * length_unit / time**2
    for _ in range(4):
        problem = random_problem(rng)
        f = np.abs(rng.normal(size=(3, 3))) / problem.compliances[:, None]
        other = ConeProblem.of(problem.W / speed * force, problem.b / speed, problem.mu)
        expected = problem.residuals(f)
        assert_close(np.array(other.residuals(f / force)) / expected, np.ones(3), 1e-12, "residuals in other units")
        assert_close(by_kernel(other, f / force), (expected[0], expected[2]), 1e-12 * max(expected), "in time steps")
        assert max(solve(other).residuals) < 1e-12
        assert_close(solve(other).forces * force, solve(problem).forces, 1e-9 * np.abs(f).max(), "forces")


@pytest.mark.parametrize("inertia", [1e-1, 1e-3, 1e-5, 1e-7, 1e-9])
def test_the_force_along_a_leg_is_held_to_its_size(inertia) -> None:
    """Change the force along a leg on a small inertia, which hardly moves the foot, and find it in the residual."""
    W, b = leg(inertia)
    problem = ConeProblem.of(W, b, [0.9])
    f = solve(problem).forces
    weak = np.array([np.cos(0.2), np.sin(0.2), 0.0])
    exact = np.linalg.lstsq(W[:2, :2], -b[:2], rcond=None)[0]
    assert_close(f[0, :2], exact, 1e-14 / inertia + 1e-13, "force of a foot that sticks [N]")
    assert max(problem.residuals(f)) < 1e-12
    for part in (1e-2, -1e-3):
        found = max(problem.residuals(f + part * f[0, 0] * weak))
        assert found > 1e-9, found  # relative to w |p|: 1e-11 at 1e-9 kg m^2
        assert max(by_kernel(problem, f + part * f[0, 0] * weak)) == pytest.approx(found, rel=1e-6)


def test_both_engines_share_the_residual() -> None:
    """Evaluate the residuals of wrong forces in Python and by the Program of time steps, and find the same numbers."""
    rng = np.random.default_rng(11)
    for _ in range(10):
        problem = random_problem(rng)
        f = rng.normal(size=(3, 3)) / problem.compliances[:, None]
        signorini, _, coulomb = problem.residuals(f)
        assert_close(by_kernel(problem, f), (signorini, coulomb), 1e-12 * (1 + signorini + coulomb), "residuals")


def test_lengths_and_residuals_of_scalars() -> None:
    """Find the length of a force, and the residuals of differences."""
    assert length([2.0, -3.0, 6.0]) == 7.0
    assert residual([-0.2, 0.3, -0.5], 2.0) == (0.1, 0.25)


def random_cones(rng: np.random.Generator, count: int, n: int) -> Cones:
    """Return cones of contacts of all modes, the first of them without friction."""
    angle = rng.uniform(-np.pi, np.pi, (count, n))
    slip = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return Cones.of(rng.choice([OPEN, STICK, SLIP], (count, n)), np.append(0.0, rng.uniform(0.2, 1.1, n - 1)), slip)


def test_points_are_divided_between_a_cone_and_its_polar() -> None:
    """Divide points into parts in the cone and in its polar cone, which are perpendicular."""
    rng = np.random.default_rng(21)
    cones = random_cones(rng, 200, 5)
    x = rng.normal(size=(200, 5, 3)) * [1.3, 0.7, 0.9]
    inside, off = cones.nearest(x), x - cones.nearest(x)
    assert_close((inside * off).sum(axis=-1), np.zeros((200, 5)), 1e-14, "perpendicular parts")
    assert_close(cones.nearest(inside), inside, 1e-14, "a point of the cone")
    assert_close(cones.nearest(off), np.zeros_like(off), 1e-14, "a point of the polar cone")
    sticks, slips = cones.modes == STICK, cones.modes == SLIP
    friction = np.hypot(inside[..., 1], inside[..., 2])
    assert (friction[sticks] <= (cones.mu * inside[..., 0] + 1e-14)[sticks]).all()
    assert_close(inside[slips], (inside[..., :1] * cones.rays)[slips], 1e-14, "a point of the ray")
    assert not inside[cones.modes == OPEN].any()
    unchanged, zero = (off == 0.0).all(axis=-1), ~inside.any(axis=-1)
    assert all((sticks & part).sum() > 20 for part in (unchanged, zero, ~unchanged & ~zero)), "points of all regions"


@pytest.mark.parametrize("sliding", [False, True])
def test_redundant_forces_are_shifted_into_their_cones(sliding) -> None:
    """Shift forces at six points of a body, of which some pull, into their cones without a change of their wrench."""
    rng = np.random.default_rng(6)
    points = np.column_stack([rng.uniform(-0.5, 0.5, (6, 2)), np.zeros(6)])
    axes = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    A = np.concatenate([np.concatenate([np.cross(r, axes), axes], axis=1) for r in points]).T
    modes = np.full((1, 6), STICK)
    modes[0, 2:4] = SLIP if sliding else STICK
    cones = Cones.of(modes, rng.uniform(0.3, 0.8, 6), np.tile([0.6, -0.8], (1, 6, 1)))
    good = cones.nearest(rng.normal(size=(1, 6, 3)) * 0.2 + [1.0, 0.0, 0.0])[0]
    basis = np.eye(18)
    if sliding:
        along = [np.where(np.arange(18) // 3 == k, np.tile(cones.rays[0, k], 6), 0.0) for k in (2, 3)]
        basis = np.column_stack([*np.delete(basis, range(6, 12), axis=1).T, *along])
    free = np.linalg.qr(basis @ null_space(A @ basis, 1e-11))[0]
    start = good + (free @ rng.normal(size=free.shape[1]) * 4.0).reshape(6, 3)
    assert start[:, 0].min() < -0.3
    found = within_cones(start, free, cones)
    assert found is not None
    assert_close(found, cones.nearest(found[None])[0], 1e-10, "forces in their cones")
    assert_close(A @ found.ravel(), A @ good.ravel(), 1e-12, "their wrench")
    assert within_cones(start - 50.0 * np.array([1.0, 0.0, 0.0]), free, cones) is None
