"""Tests of src/kinetree/analysis/loops/actuation.py: torques and loads of batches against the general route."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_mechanisms import DRIVES, closed_mechanisms, library_state, motion
from kinetree.analysis.loops.actuation import dofs, native_loads, native_torques
from kinetree.analysis.loops.constraints import ActingForces
from kinetree.formulations.closed_system import closed_equations
from tolerance import assert_close

FIELDS = ("tau", "multipliers", "unique_tau", "unique_multipliers", "achieved", "freedoms", "driven")


@pytest.mark.parametrize(
    "name", everyday.some(everyday.without(["slider_crank", "spatial_slider_crank", "five_bar"], ["slider_crank"]))
)
def test_batches_have_the_results_of_the_general_route(name):
    """Compare torques and all reactions of a batch in native code with those by singular values."""
    arm, q, qd, qdd = library_state(name)
    w = np.random.default_rng(4).normal(size=(2, len(arm.bodies), 6))
    native = native_torques(ActingForces(arm, w), q, qd, qdd, dofs(arm.mechanism, DRIVES[name]), 1e-6)
    assert native is not None, "native code applies"
    found = arm.actuation(q, qd, qdd, DRIVES[name], wrenches=w)
    general = arm.actuation(np.stack([q, q]), qd, qdd, DRIVES[name], wrenches=w, weights={})  # by singular values
    scale = max(1.0, np.abs(general.tau).max(), np.abs(general.multipliers).max())
    for field in FIELDS:
        a, e = getattr(found, field), getattr(general, field)
        assert_close(np.broadcast_to(a, e.shape), e, 1e-9 * scale, f"{field} of {name}")
    loads = arm.loads(q, qd, qdd=qdd, actuated=DRIVES[name], wrenches=w)
    for k in range(2):
        one = arm.loads(q, qd, qdd=qdd, actuated=DRIVES[name], wrenches=w[k])  # single states: by singular values
        scale = max(1.0, np.abs(one.joints).max())
        for field in ("joints", "cuts", "unique_joints", "unique_cuts", "multipliers"):
            assert_close(getattr(loads, field)[k], getattr(one, field), 1e-9 * scale, f"{field} of the loads of {name}")


def test_redundant_loops_take_the_general_route():
    """Check that equations that depend on others have torques by native code, and reactions by singular values."""
    arm, q, qd, qdd = library_state("parallelogram")
    many = (np.stack([x, x]) for x in (q, qd, qdd))
    q2, qd2, qdd2 = many
    native = native_torques(ActingForces(arm), q2, qd2, qdd2, dofs(arm.mechanism, DRIVES["parallelogram"]), 1e-6)
    assert native is not None and native_loads(ActingForces(arm), native) is None
    one = arm.loads(q, qd, qdd=qdd, actuated=DRIVES["parallelogram"])
    found = arm.loads(q2, qd2, qdd=qdd2, actuated=DRIVES["parallelogram"])
    assert_close(found.joints[1], one.joints, 1e-9 * np.abs(one.joints).max(), "reactions of redundant loops")


def test_a_state_that_opens_the_loops_is_refused():
    """Give a batch in which one velocity opens the loop, and read its place."""
    arm, q, qd, qdd = library_state("four_bar")
    bad = np.stack([qd, qd + np.array([0.0, 0.3, 0.0])])
    with pytest.raises(kt.InputError, match=r"qd opens the loops: 'pin' .* in state \[1\]"):
        arm.inverse_dynamics(q, bad, qdd, actuated="crank")
    two, q, qd, qdd = library_state("five_bar")
    with pytest.raises(kt.InputError, match="cannot make this motion in 2 of 2 states"):
        two.inverse_dynamics(np.stack([q, q]), qd, qdd, actuated="left_crank")


@pytest.mark.slow
@hypothesis.given(closed_mechanisms(("revolute", "spherical", "rod", "universal"), most=5, loops=1))
@hypothesis.settings(max_examples=12)
def test_random_mechanisms_have_the_torques_of_dense_equations(drawn):
    """Compare with I, J and a null space by NumPy: the torques of independent joints along the free motions."""
    mechanism, q = drawn
    arm = kt.System(mechanism)
    qd, qdd = motion(mechanism, q)
    J = closed_equations(mechanism, q).J
    _, sizes, rows = np.linalg.svd(J)
    free = rows[int((sizes > 1e-7 * sizes.max(initial=0.0)).sum()) :]
    hypothesis.assume(0 < len(free) < arm.nv)
    lead = arm.independent(q)
    driven = list(lead.at)
    N = free[:, driven]
    hypothesis.assume(np.linalg.cond(N) < 1e3)
    need = arm.tree.inverse_dynamics(q, qd, qdd)
    expected = np.zeros(arm.nv)
    expected[driven] = np.linalg.solve(N, free @ need)
    many = [np.stack([x, x]) for x in (q, qd, qdd)]
    found = native_torques(ActingForces(arm), *many, driven, 1e-6)
    if found is None:  # nearly singular, or weightless joints: left to the general route
        hypothesis.reject()
    scale = np.abs(need).max() * np.linalg.cond(N) * max(1.0, np.abs(np.linalg.pinv(J, rcond=1e-7)).max())
    assert_close(found.tau[1], expected, 1e-10 * max(scale, 1.0), "torques of a random mechanism")
