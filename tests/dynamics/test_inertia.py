"""The generalized inertia matrix and its inverse."""

# ruff: noqa: E741 - I is the papers' letter

from __future__ import annotations

import numpy as np
from hypothesis import given

from interpreted import along, compute, relative
from kinetree.joints import kind
from rigid_body import mass_matrix
from strategies import State, examples, moving_mechanisms
from tolerance import assert_close

EPS = np.finfo(float).eps


@given(moving_mechanisms())
@examples(40)
def test_columns_are_inverse_dynamics_of_unit_accelerations(mechanism):
    """Accelerate one degree of freedom at a time, at rest and without gravity."""
    s = State(mechanism)
    I = compute(mechanism, "inertia_matrix", s.q)
    g = compute(mechanism, "gravity_torque", s.q)
    rest = np.zeros(mechanism.nv)
    columns = [compute(mechanism, "inverse_dynamics", s.q, rest, e) - g for e in np.eye(mechanism.nv)]
    rms = np.sqrt((I**2).mean(axis=(1, 2))) + np.abs(g).max(axis=1)
    residual = (np.stack(columns, axis=-1) - I) / rms[:, None, None]
    assert_close(residual, np.zeros_like(I), 20 * EPS, "columns of I")  # 8e-16


@given(moving_mechanisms())
@examples(40)
def test_matrix_is_symmetric_to_the_bit_and_positive(mechanism):
    """Find the same bits on both sides of the diagonal, and positive eigenvalues."""
    I = compute(mechanism, "inertia_matrix", State(mechanism).q)
    assert np.array_equal(I, np.swapaxes(I, 1, 2))
    assert np.linalg.eigvalsh(I).min() > 0


@given(moving_mechanisms())
@examples(40)
def test_inverse_times_matrix_is_one(mechanism):
    """Multiply the inverse, computed from the factors, by the matrix."""
    q = State(mechanism).q
    I, inverse = compute(mechanism, "inertia_matrix", q), compute(mechanism, "inverse_inertia_matrix", q)
    bound = 4 * EPS * max(float(np.linalg.cond(I).max()), 8)  # a seventh of it
    assert_close(inverse @ I, np.broadcast_to(np.eye(mechanism.nv), I.shape), bound, "I^-1 I")
    assert np.array_equal(inverse, np.swapaxes(inverse, 1, 2))


@given(moving_mechanisms())
@examples(40)
def test_logarithm_of_the_determinant(mechanism):
    """Compare the sum over the pivots with the determinant of the whole matrix, and slopes with tr(I^-1 dI)."""
    s = State(mechanism)
    I = compute(mechanism, "inertia_matrix", s.q)
    sign, logdet = np.linalg.slogdet(I)
    assert (sign == 1).all()
    bound = 4 * EPS * max(float(np.linalg.cond(I).max()), 8)
    assert_close(compute(mechanism, "inertia_logdet", s.q), logdet, bound, "log det I")
    slope = np.linalg.solve(I, along(mechanism, "inertia_matrix", s.q, s.qd)).trace(axis1=1, axis2=2)
    scale = np.abs(np.linalg.solve(I, along(mechanism, "inertia_matrix", s.q, s.qd))).max(initial=1.0)
    assert_close(along(mechanism, "inertia_logdet", s.q, s.qd), slope, bound * scale, "d log det I / dt")


@given(moving_mechanisms())
@examples(30)
def test_matrix_is_the_sum_over_bodies(mechanism):
    """Sum J^T M J over the bodies, the explicit N^T M N, and the inertias of the drives."""
    q = State(mechanism).q
    total = np.zeros((len(q), mechanism.nv, mechanism.nv))
    for body in mechanism.bodies:
        J = compute(mechanism, "jacobian", q, frame=body.name, axes="body")
        total += np.swapaxes(J, 1, 2) @ mass_matrix(body) @ J
    armature = [x for j in mechanism.joints for x in j.armature or (0.0,) * kind(j.kind).NV]
    total += np.diag(armature)
    assert_close(relative(compute(mechanism, "inertia_matrix", q), total), 0.0, 100 * EPS, "N^T M N")  # 6e-15
