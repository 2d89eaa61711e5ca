"""Programs of cone problems: against NumPy, on problems whose solution is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kinetree.simulation.contact.cone_programs import (
    newton_program,
    pair_program,
    residual_program,
    solve_small,
    sticking_program,
)
from tolerance import assert_close

COUNT = 3


def problem(seed: int = 2):
    """Return W, friction, reach, and impulses with velocities of contacts: one sticks, one slips, one is open."""
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(3 * COUNT, 14))
    W = J @ J.T / 7.3
    mu = np.array([0.7, 0.4, 0.9])
    p = np.array([1.3, 0.2, -0.3, 2.1, 0.0, 0.0, 0.0, 0.0, 0.0])
    u = np.array([0.0, 0.0, 0.0, 0.0, 0.6, -0.8, 0.5, 0.3, -0.7])
    p[4:6] = -mu[1] * p[3] * u[4:6] / np.linalg.norm(u[4:6])
    reach = 3.0 / np.diag(W).reshape(-1, 3).sum(axis=1)
    return W, u - W @ p, mu, reach, p, u


def test_a_solution_leaves_no_residual():
    """Insert impulses that satisfy all laws, and find no residual, then a change of one along its normal."""
    W, b, mu, reach, p, u = problem()
    normal, tangent, found, _ = residual_program(COUNT).interpret(W, b, mu, reach, p, [1.1])
    assert_close(found, u, 1e-13, "velocities")
    assert_close([normal[0], tangent[0]], [0.0, 0.0], 1e-13, "residuals")
    p[0] += 0.01
    normal, _, moved, lack = residual_program(COUNT).interpret(W, b, mu, reach, p, [1.1])
    assert_close(lack[0], reach[0] * W[0, 0] * 0.01, 1e-13, "residual impulse")
    loads = np.linalg.norm(p.reshape(-1, 3), axis=1) / reach
    speed = 1.1 + 1e-3 * loads.max()
    assert_close(normal[0], np.abs(moved[[0, 3]]).max() / speed, 1e-13, "largest residual along a normal")


def test_sticking_contacts_take_one_step():
    """Start from other impulses, and find those of contacts that stick, with the open one at zero."""
    W, b, mu, reach, p, u = problem()
    target = p.copy()
    target[4:6] = 0.1, -0.2
    b = np.where(np.arange(9) < 6, 0.0, u) - W @ target
    guess = target + 0.02 * np.array([1, -1, 2, 1, 2, -1, 0, 0, 0])
    guess, slides = sticking_program(COUNT, "float64").interpret(W, b, mu, reach, guess, [1.1])
    assert slides[0] == 0.0
    assert_close(guess, target, 1e-13, "impulses")


def test_a_contact_that_leaves_its_cone_is_reported():
    """Push a closed contact sideways beyond its friction, and find it sliding."""
    W, b, mu, reach, p, _ = problem()
    _, slides = sticking_program(COUNT, "float64").interpret(W, b, mu, reach, p, [1.1])
    assert slides[0] == 1.0


def test_newtons_steps_converge_to_the_solution():
    """Start near a solution with a contact that slips, and find it within four steps."""
    W, b, mu, reach, p, _ = problem()
    guess = p * 1.03 + 0.01 * np.array([1, 2, -1, 1, -2, 1, 0, 0, 0])
    for _ in range(4):
        (guess,) = newton_program(COUNT, "float64").interpret(W, b, mu, reach, guess, [1.1])
    assert_close(guess, p, 1e-12, "impulses")


def test_linear_equations_are_solved():
    """Solve a system of numbers, and compare with NumPy."""
    rng = np.random.default_rng(8)
    A, b = rng.normal(size=(5, 5)) + 4.0 * np.eye(5), rng.normal(size=5)
    assert_close(solve_small([list(row) for row in A], list(b)), np.linalg.solve(A, b), 1e-13, "solution")


def test_grips_hold_open_contacts():
    """Give contacts that stick, slip and are open a grip, and find their impulses by each Program."""
    W, _, mu, reach, p, u = problem()
    grip = np.array([0.31, 0.17, 0.23])
    p[4:6] = -(mu[1] * p[3] + grip[1]) * u[4:6] / np.linalg.norm(u[4:6])
    p[7:9] = -grip[2] * u[7:9] / np.linalg.norm(u[7:9])
    more = ([1.1], grip)
    normal, tangent, _, _ = residual_program(COUNT, grips=True).interpret(W, u - W @ p, mu, reach, p, *more)
    assert_close([normal[0], tangent[0]], [0.0, 0.0], 1e-13, "residuals")
    guess = p * 1.03 + 0.01 * np.array([1, 2, -1, 1, -2, 1, 0, 1, -1])
    for _ in range(5):
        (guess,) = newton_program(COUNT, "float64", grips=True).interpret(W, u - W @ p, mu, reach, guess, *more)
    assert_close(guess, p, 1e-12, "impulses by Newton's method")
    sticking = np.array([1.3, 0.2, -0.3, 2.1, 0.1, -0.2, 0.0, 0.09, -0.05])
    b = np.where(np.arange(9) == 6, u, 0.0) - W @ sticking
    guess = sticking + 0.01 * np.array([1, -1, 2, 1, 2, -1, 0, 1, -1])
    found, slides = sticking_program(COUNT, "float64", grips=True).interpret(W, b, mu, reach, guess, *more)
    assert slides[0] == 0.0
    assert_close(found, sticking, 1e-13, "impulses that stick")
    grip[2] = 0.01
    _, slides = sticking_program(COUNT, "float64", grips=True).interpret(W, b, mu, reach, sticking, [1.1], grip)
    assert slides[0] == 1.0


@pytest.mark.parametrize("count", [3, 4, 5])
def test_two_contacts_make_a_smaller_problem(count):
    """Let none to three of some contacts close or carry, and find the rows of the first two, or of a neighbor."""
    rng = np.random.default_rng(count)
    J = rng.normal(size=(3 * count, 14))
    W, mu, reach, size = J @ J.T / 7.3, rng.uniform(0.1, 1.2, count), rng.uniform(0.3, 2.0, count), [1.1]
    for some in range(4):
        for closed in itertools.combinations(range(count), min(some, count)):
            b, p = rng.normal(size=(count, 3)), np.zeros((count, 3))
            b[:, 0] = np.abs(b[:, 0]) + 0.1
            for c in closed:
                if rng.random() < 0.5:
                    b[c, 0] = -0.2
                else:
                    p[c] = 0.7, 0.1, -0.3
            found = pair_program(count, "float64").interpret(W, b.ravel(), mu, reach, p.ravel(), size)
            few, (first, second) = found[-1][0], found[-3:-1]
            assert few == (len(closed) <= 2)
            assert first.sum() == second.sum() == 1.0 or not closed
            if not closed:
                continue
            pair = [int(np.argmax(first)), int(np.argmax(second))]
            assert pair[0] < pair[1]
            assert set(closed[:2]) <= set(pair)
            rows = [3 * c + j for c in pair for j in range(3)]
            wanted = (W[np.ix_(rows, rows)], b[pair].ravel(), mu[pair], reach[pair], p[pair].ravel(), size)
            for x, y in zip(found, wanted, strict=False):
                assert (np.ravel(x) == np.ravel(y)).all()
