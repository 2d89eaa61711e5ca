"""The matrix of convective inertia terms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from interpreted import along, compute
from kinetree import Parameter, System, build_mechanism
from kinetree.model import parse
from rounding_scales import EPS, convective_scale, per_sample
from strategies import FLAT, State, examples, moving_mechanisms, random_mechanism
from tolerance import assert_close


@given(moving_mechanisms())
@examples(40)
def test_rate_of_inertia_less_twice_convective_is_skew(mechanism):
    """Differentiate I along the motion and find dI/dt - 2C without a symmetric part."""
    s = State(mechanism)
    C = compute(mechanism, "convective_matrix", s.q, s.qd)
    N = along(mechanism, "inertia_matrix", s.q, s.qd) - 2 * C
    # Relative to the terms that C is a sum of: where they cancel, C itself is all rounding.
    size = per_sample(convective_scale, mechanism, s.q, s.qd)[:, None, None]
    assert_close((N + np.swapaxes(N, 1, 2)) / size, np.zeros_like(C), 20 * EPS, "dI/dt - 2C")


@given(moving_mechanisms(FLAT, most=5))
@examples(20)
def test_entries_are_christoffels_symbols(mechanism):
    """Find C_ij = sum of (dI_ij/dq_k + dI_ik/dq_j - dI_jk/dq_i) qd_k / 2, where velocities are rates of coordinates."""
    s = State(mechanism)
    slopes = [along(mechanism, "inertia_matrix", s.q, e) for e in np.eye(mechanism.nv)]
    D = np.stack(slopes, axis=-1)  # D[n, i, j, k] = dI_ij / dq_k
    symbols = 0.5 * (D + np.swapaxes(D, 2, 3) - np.moveaxis(D, 3, 1))
    expected = np.einsum("nijk,nk->nij", symbols, s.qd)
    C = compute(mechanism, "convective_matrix", s.q, s.qd)
    size = 1.0 + np.abs(expected).max()
    assert_close(C / size, expected / size, 1e-13, "Christoffel")  # 4e-16


@given(moving_mechanisms())
@examples(20)
def test_matrix_is_linear_in_the_speeds(mechanism):
    """Double the velocities and find C doubled; find C = 0 at rest."""
    s = State(mechanism)
    C = compute(mechanism, "convective_matrix", s.q, s.qd)
    assert np.array_equal(compute(mechanism, "convective_matrix", s.q, 2 * s.qd), 2 * C)
    assert not compute(mechanism, "convective_matrix", s.q, 0 * s.qd).any()


def test_a_mass_parameter_of_zero_works():
    """Set a free mass to zero and find the same matrix as for a body built without mass."""
    made = random_mechanism(["revolute"] * 3, [-1, 0, 1], 3)
    first, middle, last = made.bodies
    free = build_mechanism(
        "free",
        [first, replace(middle, mass=parse("m")), last],
        made.joints,
        parameters=[Parameter("m", 1.0, free=True)],
    )
    baked = build_mechanism("baked", [first, replace(middle, mass=0.0), last], made.joints)
    s = State(made)
    C = System(free).convective_matrix(s.q, s.qd, parameters=[0.0])
    assert_close(C, compute(baked, "convective_matrix", s.q, s.qd), 1e-14, "C with m = 0")


@pytest.mark.parametrize("mass", [0.0, 1e-12])
def test_light_bodies_give_no_noise(mass):
    """Make a body (almost) massless and keep dI/dt - 2C skew."""
    made = random_mechanism(["prismatic", "revolute", "spherical"], [-1, 0, 1], 4)
    bodies = [made.bodies[0], replace(made.bodies[1], mass=mass), made.bodies[2]]
    light = build_mechanism("light", bodies, made.joints)
    s = State(light)
    N = along(light, "inertia_matrix", s.q, s.qd) - 2 * compute(light, "convective_matrix", s.q, s.qd)
    assert_close(N + np.swapaxes(N, 1, 2), np.zeros_like(N), 1e-12, "dI/dt - 2C")  # 4e-15
