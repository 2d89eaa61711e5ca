"""Steps in the space of coordinates: integrate, difference and coordinate rates of whole mechanisms."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from interpreted import along, compute, derivative, program
from kinetree.joints import kind
from strategies import State, examples, moving_mechanisms, one_of_each
from tolerance import assert_close


@given(moving_mechanisms())
@examples(30)
def test_integrate_leads_where_difference_says(mechanism):
    """Integrate the difference of two states from the first and find the poses of the second."""
    a, b = State(mechanism, 1), State(mechanism, 2)
    there = compute(mechanism, "integrate", a.q, compute(mechanism, "difference", a.q, b.q))
    T = compute(mechanism, "poses", there)
    assert_close(T, compute(mechanism, "poses", b.q), 1e-12 * (1 + np.abs(T).max()), "poses")  # 3e-15
    none = compute(mechanism, "difference", b.q, there)
    assert_close(none, np.zeros_like(none), 1e-13 * (1 + np.abs(b.q).max()), "difference")  # 3e-15


@given(moving_mechanisms())
@examples(30)
def test_coordinate_rate_is_the_slope_of_integrate(mechanism):
    """Take small steps in both directions along the velocities and find dq/dt by their difference."""
    s = State(mechanism)
    h = 1e-4
    ahead, behind = (compute(mechanism, "integrate", s.q, step * s.qd) for step in (h, -h))
    rate = compute(mechanism, "coordinate_rate", s.q, s.qd)
    scale = (1 + np.abs(s.qd).max()) ** 3
    assert_close((ahead - behind) / (2 * h), rate, 1e-8 * scale, "dq/dt")  # h^2 |qd|^3 / 6: 1e-9


def test_a_step_of_one_joint_moves_no_other():
    """Move one degree of freedom after the other and find the bits of all other coordinates unchanged."""
    mechanism = one_of_each()
    q = State(mechanism, shape=()).q
    moved = compute(mechanism, "integrate", q, 0.3 * np.eye(mechanism.nv))
    same = compute(mechanism, "integrate", q, np.zeros(mechanism.nv))
    touched = (moved != same).sum(axis=1)
    assert touched.min() >= 1
    assert touched.max() <= 7


def test_energy_sees_only_the_direction_of_a_quaternion():
    """Scale quaternions and find the same energies, momenta and torques."""
    mechanism = one_of_each()
    s = State(mechanism)
    stretched = s.q.copy()
    at = 0
    for joint in mechanism.joints:
        n = kind(joint.kind).NQ
        if joint.kind in ("spherical", "free"):
            stretched[:, at + n - 4 : at + n] *= 1.7
        at += n
    assert not np.array_equal(stretched, s.q)
    for name in ("kinetic_energy", "momentum", "bias_torque"):
        a, b = (compute(mechanism, name, q, s.qd) for q in (stretched, s.q))
        assert_close(a / np.abs(b).max(), b / np.abs(b).max(), 1e-14, name)
    assert_close(along(mechanism, "potential_energy", stretched, s.qd), along(mechanism, "potential_energy", s.q, s.qd),
                 1e-12, "dU/dt")  # fmt: skip


def test_quaternions_keep_their_length():
    """Find no rate of a quaternion along itself."""
    mechanism = one_of_each()
    s = State(mechanism)
    rate = compute(mechanism, "coordinate_rate", s.q, s.qd)
    at = next(k for k, j in enumerate(mechanism.joints) if j.kind == "spherical")
    start = sum(kind(j.kind).NQ for j in mechanism.joints[:at])
    q, dq = s.q[:, start : start + 4], rate[:, start : start + 4]
    assert_close((q * dq).sum(axis=1), np.zeros(len(q)), 1e-15, "q . dq")
    assert derivative(program(mechanism, "poses"), [s.q], [rate]).shape == (3, len(mechanism.bodies), 4, 4)
