"""The gradient of log det I: against dense matrices, for trees, and in time proportional to the number of links."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import everyday
import kinetree as kt
from kinetree import InputError, System
from strategies import examples, moving_mechanisms
from tolerance import assert_close

KINDS = ["revolute", "prismatic", "helical", "fixed"]


@given(moving_mechanisms(KINDS, most=6))
@examples(60)
def test_the_gradient_is_the_trace_of_dense_matrices(mechanism):
    """Compare random trees with tr(I^-1 dI/dq) of dense matrices."""
    arm = System(mechanism)
    q, _ = arm.random_state(3)
    I = arm.inertia_matrix(q)  # noqa: E741 - the papers' letter
    slopes = np.moveaxis(arm.function("inertia_matrix").jacobian()(q), -1, 0)
    expected = np.trace(np.linalg.solve(I, slopes), axis1=1, axis2=2)
    scale = np.linalg.cond(I) * max(np.abs(expected).max(), 1.0)
    assert_close(arm.inertia_logdet_gradient(q), expected, 4e-15 * scale, "gradient")


@given(moving_mechanisms([*KINDS, "free", "spherical"], most=6))
@examples(60)
def test_slopes_along_motions(mechanism):
    """Compare slopes along velocities, also of joints with quaternions, with central differences."""
    arm = System(mechanism)
    q, qd = arm.random_state(5)
    h = 1e-5
    ends = [arm.inertia_logdet(arm.integrate(q, s * h * qd)) for s in (1.0, -1.0)]
    slope = arm.inertia_logdet_gradient(q) @ qd
    assert_close(slope, (ends[0] - ends[1]) / (2 * h), 1e-6 * max(1.0, abs(slope)), "slope")


def polymer(n: int) -> System:
    """Return a backbone of n atoms in torsion angles: bonds of 0.153 nm, bond angles of 109.5 degrees, 14 u each."""
    angle = np.radians(180.0 - 109.5)
    com = (0.153 * np.sin(angle), 0.0, 0.153 * np.cos(angle))  # the next atom, off the bond that turns it
    row = {"joint": "revolute", "alpha": angle, "b": 0.153, "mass": 14.0, "com": com}
    return kt.from_dh([row] * n, convention="modified", gravity=(0.0, 0.0, 0.0))


@everyday.long
def test_a_polymer():
    """Compare backbones with dense matrices, and a longer one in a batch with the compiled derivative, to 1e-12."""
    short, q = polymer(12), np.linspace(-2.9, 2.7, 12)
    I = short.inertia_matrix(q)  # noqa: E741 - the papers' letter
    slopes = np.moveaxis(short.function("inertia_matrix").jacobian()(q), -1, 0)
    expected = np.trace(np.linalg.solve(I, slopes), axis1=1, axis2=2)
    assert_close(short.inertia_logdet_gradient(q), expected, 1e-12, "gradient against dense matrices")  # 3e-15
    chain = polymer(40)
    q = np.random.default_rng(2).uniform(-np.pi, np.pi, (2, 40))
    expected = np.array([chain.function("inertia_logdet").jacobian()(x) for x in q])
    assert_close(chain.inertia_logdet_gradient(q), expected, 1e-12, "gradient")  # 1.4e-14


@pytest.mark.slow
def test_ten_thousand_atoms():
    """Compute the gradient of ten thousand atoms, and compare entries with differences of log det I."""
    n = 10_000
    chain, q = polymer(n), np.random.default_rng(1).uniform(-np.pi, np.pi, n)
    gradient = chain.inertia_logdet_gradient(q)
    for k in (3, 5_000, 9_998):
        h = 1e-4 * np.eye(1, n, k)[0]
        ends = [float(chain.inertia_logdet(q + s * h)) for s in (1.0, -1.0)]
        assert_close(gradient[k], (ends[0] - ends[1]) / 2e-4, 1e-6, "slope")


def test_axes_that_move_in_the_child_are_refused():
    """Read what to use for joints whose axes move with their coordinates."""
    arm = kt.load("spatial_slider_crank")
    with pytest.raises(InputError, match=r"the axes of the universal joint '.*' move with its coordinates; use"):
        arm.inertia_logdet_gradient(np.full(arm.nq, 0.3))
    with pytest.raises(InputError, match=r"q has shape \(3,\); expected \[..., 2\]"):
        kt.load("planar_2r").inertia_logdet_gradient(np.zeros(3))
