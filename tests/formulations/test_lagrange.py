"""Lagrange's equations of the poses alone against the compiled functions."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from hypothesis import given

import everyday
import kinetree as kt
from interpreted import compute
from kinetree.errors import InputError
from kinetree.formulations import lagrange
from kinetree.formulations.lagrange import equations
from kinetree.joints import KINDS
from rounding_scales import EPS, inertia_scale, torque_scale
from strategies import MOTORS, MOVING, State, examples, mechanisms, one_of_each, random_mechanism
from tolerance import assert_close


@given(mechanisms())
@examples(40)
def test_equations_are_those_of_the_sweeps(mechanism):
    """Find I, g, motion and external torques of random trees with all joint kinds."""
    s = State(mechanism, shape=())
    check_equations(mechanism, s)


@pytest.mark.parametrize("what", everyday.some(MOVING))
def test_each_kind_of_joint(what):
    """Chain joints of one kind, so that no other kind can hide a fault."""
    mechanism = random_mechanism([what, what], [-1, 0], 12, armature=True)
    check_equations(mechanism, State(mechanism, 4, ()))


def test_kinds_are_all_there():
    """Check that every kind of joint except the fixed one is tested."""
    assert set(MOVING) == set(KINDS) - {"fixed", *MOTORS}


def check_equations(mechanism, s) -> None:
    """Compare every part of the equations with the sweeps."""
    e = equations(mechanism, s.q, s.qd, s.wrenches)
    scale = torque_scale(mechanism, s.q, s.qd, s.qdd, s.wrenches)
    zero = np.zeros(mechanism.nv)
    g = compute(mechanism, "gravity_torque", s.q)
    bare, tau = (
        compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd),
        compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd, wrenches=s.wrenches),
    )
    bound = 20 * EPS * scale
    assert e.C is None
    assert_close(e.I, compute(mechanism, "inertia_matrix", s.q), 20 * EPS * inertia_scale(mechanism, s.q), "I")
    assert_close(e.g, g, bound, "g")
    assert_close(e.convective, compute(mechanism, "inverse_dynamics", s.q, s.qd, zero) - g, bound, "C qd")
    assert_close(e.external, bare - tau, bound, "external")
    assert_close(e.torque(s.qdd), tau, bound, "tau")


def test_quaternions_need_not_be_of_unit_length():
    """Scale the quaternions of a spherical and a free joint and find the same equations."""
    mechanism = random_mechanism(["spherical", "free"], [-1, 0], 2)
    s = State(mechanism, shape=())
    stretched = s.q.copy()
    stretched[:4] *= 1.7
    stretched[7:] *= 0.6
    e, same = (equations(mechanism, q, s.qd) for q in (s.q, stretched))
    assert_close(same.I, e.I, 20 * EPS * inertia_scale(mechanism, s.q), "I")
    assert_close(same.convective, e.convective, 20 * EPS * torque_scale(mechanism, s.q, s.qd), "C qd")


def test_no_turn_is_no_singular_place():
    """Start quaternions at the identity rotation, at rest, and find finite equations."""
    mechanism = random_mechanism(["spherical", "free"], [-1, 0], 2)
    q = kt.System(mechanism).neutral()
    e = equations(mechanism, q)
    assert_close(e.convective, np.zeros(9), 0.0, "C qd")
    assert_close(e.I, compute(mechanism, "inertia_matrix", q), 20 * EPS * inertia_scale(mechanism, q), "I")


def test_local_coordinates_follow_integrate():
    """Compare the two terms kept of a unit of motion with the full motion, at a small step."""
    mechanism = one_of_each()
    s = State(mechanism, shape=())
    step = 1e-4 * s.qd
    q, delta = ca.SX.sym("q", mechanism.nq), ca.SX.sym("delta", mechanism.nv)
    moved = ca.vertcat(*(x for joint in lagrange._moved(mechanism, q, delta) for x in joint))
    near = np.array(ca.Function("moved", [q, delta], [moved])(s.q, step)).ravel()
    assert_close(near, kt.System(mechanism).integrate(s.q, step), 1e-11, "q(delta)")  # the third power of 1e-4


def test_functions_are_made_once():
    """Request a mechanism and a copy with another source note, and differentiate once."""
    mechanism = random_mechanism(["revolute", "spherical"], [-1, 0], 99)
    lagrange._functions.cache_clear()
    s = State(mechanism, shape=())
    first = equations(mechanism, s.q, s.qd)
    again = equations(replace(mechanism, source="elsewhere"), s.q, s.qd)
    assert lagrange._functions.cache_info().misses == 1
    assert np.array_equal(first.I, again.I)


def test_a_mechanism_that_cannot_move_has_no_equations():
    """Fix all joints and find matrices without entries."""
    fixed = random_mechanism(["fixed", "fixed"], [-1, 0], 1)
    assert equations(fixed, []).torque([]).shape == (0,)
    assert equations(kt.build_mechanism("empty", [], []), []).I.shape == (0, 0)


def test_wrong_input_is_refused():
    """Give wrong shapes and a NaN, and read the expected input."""
    arm = kt.load("planar_3r").mechanism
    with pytest.raises(InputError, match=r"qd has shape \(2,\); expected \(3,\): one state at a time"):
        equations(arm, [0.1, 0.2, 0.3], [0.0, 0.0])
    with pytest.raises(InputError, match="q has entries that are not finite"):
        equations(arm, [0.1, float("nan"), 0.3])
    with pytest.raises(InputError, match=r"wrenches has shape \(3, 5\); expected \(3, 6\)"):
        equations(arm, [0.1, 0.2, 0.3], wrenches=np.zeros((3, 5)))
