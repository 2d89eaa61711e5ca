"""The recursions shown step by step: against the other compiled functions and against the matrices of the DeNOC."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from interpreted import compute, program, relative
from kinetree.formulations.denoc import denoc
from kinetree.formulations.kinematics import body_states
from strategies import State, examples, mechanisms, moving_mechanisms
from tolerance import assert_close

EPS = np.finfo(float).eps


@given(mechanisms())
@examples(20)
def test_the_recursion_of_inverse_dynamics_has_the_compiled_quantities(mechanism):
    """Find twists, twist rates with gravity, reactions and torques of the other functions in the recursion."""
    s = State(mechanism)
    found = program(mechanism, "inverse_recursion").interpret(s.q, s.qd, s.qdd)
    t, dt, _, collected, tau = found
    upward = np.zeros_like(dt)
    R = compute(mechanism, "poses", s.q)[..., :3, :3]
    upward[..., 3:] = -np.einsum("...ji,j->...i", R, np.array(mechanism.gravity))
    expected = compute(mechanism, "twist_rates", s.q, s.qd, s.qdd) + upward
    assert_close(relative(t, compute(mechanism, "twists", s.q, s.qd)), 0.0, 20 * EPS, "t")
    assert_close(relative(dt, expected), 0.0, 100 * EPS, "dt")
    reactions = compute(mechanism, "reactions", s.q, s.qd, s.qdd)
    assert_close(relative(collected, reactions), 0.0, 20 * EPS, "w~")
    torques = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd)
    size = np.abs(reactions).max() + np.abs(torques).max(initial=0.0)
    assert_close((tau - torques) / size, np.zeros_like(tau), 200 * EPS, "tau")


@given(mechanisms())
@examples(20)
def test_the_collected_wrench_is_that_of_all_bodies_outward(mechanism):
    """Add the wrenches w of a body and of all bodies outward of it about its origin, and find w~."""
    s = State(mechanism)
    _, _, w, collected, _ = program(mechanism, "inverse_recursion").interpret(s.q, s.qd, s.qdd)
    T = compute(mechanism, "poses", s.q)
    total = w.copy()
    for k, parent in reversed(list(enumerate(mechanism.parents))):
        if parent >= 0:
            step = np.linalg.inv(T[:, parent]) @ T[:, k]
            f = np.einsum("nij,nj->ni", step[:, :3, :3], total[:, k, 3:])
            n = np.einsum("nij,nj->ni", step[:, :3, :3], total[:, k, :3]) + np.cross(step[:, :3, 3], f)
            total[:, parent] += np.concatenate([n, f], axis=-1)
    assert_close(relative(collected, total), 0.0, 200 * EPS, "w~")


@given(moving_mechanisms())
@examples(20)
def test_the_recursion_of_forward_dynamics_eliminates_the_inertia_matrix(mechanism):
    """Find the articulated bodies, pivots and columns psi of the DeNOC's elimination, rotated to the bodies' axes."""
    s = State(mechanism, 0, ())
    found = program(mechanism, "forward_recursion").interpret(s.q, s.qd, s.tau)
    Mhat, psi, mhat, _, mu, qdd = found
    d = denoc(mechanism, s.q, s.qd, about="origin")
    condition = max(float(np.linalg.cond(d.I)), 8.0)
    turns = [_twice(b.R) for b in body_states(mechanism, s.q, s.qd)]
    of = [k for k, own in enumerate(mechanism.v_slices) for _ in range(own.stop - own.start)]
    expected = np.array([R.T @ M @ R for R, M in zip(turns, d.elimination.Mhat, strict=True)])
    columns = np.array([turns[k].T @ x for k, x in zip(of, d.elimination.psi.T, strict=True)])
    bound = 40 * EPS * condition
    assert_close(relative(Mhat, expected), 0.0, bound, "M^")
    assert_close(relative(psi, columns), 0.0, bound, "psi")
    assert_close(relative(mhat, d.elimination.mhat), 0.0, bound, "m^")
    moved = (d.N @ qdd).reshape(-1, 6)
    assert_close(relative(mu, np.array([R.T @ x for R, x in zip(turns, moved, strict=True)])), 0.0, 100 * EPS, "mu")
    assert_close(relative(qdd, compute(mechanism, "forward_dynamics", s.q, s.qd, s.tau)), 0.0, bound, "qdd")


@given(moving_mechanisms())
@examples(10)
def test_remaining_torques_solve_the_upper_triangle(mechanism):
    """Multiply U by tauhat and find the torques without the bias, (28) and (29)."""
    s = State(mechanism, 0, ())
    tauhat = program(mechanism, "forward_recursion").interpret(s.q, s.qd, s.tau)[3]
    d = denoc(mechanism, s.q, s.qd, about="origin")
    phi = s.tau - compute(mechanism, "bias_torque", s.q, s.qd)
    size = (np.abs(d.elimination.U) @ np.abs(tauhat)).max() + np.abs(phi).max()
    bound = 40 * EPS * max(float(np.linalg.cond(d.I)), 8.0)
    assert_close((d.elimination.U @ tauhat - phi) / size, np.zeros_like(phi), bound, "U tau^")


def _twice(R):
    """Return the rotation of the six entries of a twist or wrench."""
    return np.kron(np.eye(2), R)
