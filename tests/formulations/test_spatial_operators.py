"""Spatial operators of [Wolinski2015] against the compiled functions, and against the definitions of its appendix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import kinetree as kt
from interpreted import compute
from kinetree.errors import InputError
from kinetree.formulations.kinematics import body_states, skew
from kinetree.formulations.spatial_operators import equations, spatial_operators
from rounding_scales import EPS, convective_scale, inertia_scale, torque_scale
from strategies import State, examples, mechanisms, one_of_each, random_mechanism
from tolerance import assert_close


@given(mechanisms())
@examples(40)
def test_equations_are_those_of_the_sweeps(mechanism):
    """Find I, g and the torques of random trees with all joint kinds and external wrenches."""
    s = State(mechanism, shape=())
    e = equations(mechanism, s.q, s.qd, s.wrenches)
    scale = torque_scale(mechanism, s.q, s.qd, s.qdd, s.wrenches)
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd, wrenches=s.wrenches)
    inertia = compute(mechanism, "inertia_matrix", s.q)
    assert_close(e.I, inertia, 20 * EPS * inertia_scale(mechanism, s.q), "I")
    assert_close(e.g, compute(mechanism, "gravity_torque", s.q), 20 * EPS * scale, "g")
    assert_close(e.torque(s.qdd), tau, 20 * EPS * scale, "tau")
    if mechanism.nv:
        qdd = e.acceleration(tau)
        assert_close(qdd, s.qdd, 20 * EPS * np.linalg.cond(inertia) * (1 + scale / np.abs(inertia).max()), "qdd")


@given(mechanisms())
@examples(40)
def test_convective_matrix_is_that_of_the_sweeps_and_of_turning(mechanism):
    """Find C of the sweeps, which omit tr(J_c) N_w^T (w x) N_w of each body: skew, without effect on C qd."""
    s = State(mechanism, shape=())
    ops = spatial_operators(mechanism, s.q, s.qd)
    V = ops.Phi @ ops.H
    turning, terms = np.zeros_like(ops.C), np.zeros_like(ops.C)
    for j, body in enumerate(body_states(mechanism, s.q, s.qd)):
        N_w = V[6 * j + 3 : 6 * j + 6]
        turning += np.trace(body.I) / 2 * N_w.T @ skew(body.w) @ N_w
        terms += np.trace(body.I) / 2 * np.abs(N_w).T @ np.abs(skew(body.w)) @ np.abs(N_w)
    expected = compute(mechanism, "convective_matrix", s.q, s.qd) + turning
    scale = convective_scale(mechanism, s.q, s.qd) + terms.max(initial=0.0)
    assert_close(ops.C, expected, 20 * EPS * scale, "C")
    assert_close(turning @ s.qd, np.zeros(mechanism.nv), 20 * EPS * scale * (1 + np.abs(s.qd).sum()), "no torque")


def test_kuka_moves_as_in_the_sweeps():
    """Take the KUKA LWR 4+ along the motion of (28), (29) and find its torques."""
    arm = kt.load("kuka_lwr4")
    for time in np.linspace(0.0, 14.0, 8):
        q = np.full(7, np.pi / 2 * np.cos(np.pi / 7 * time))
        qd = np.full(7, -(np.pi**2) / 14 * np.sin(np.pi / 7 * time))
        qdd = np.full(7, -(np.pi**3) / 98 * np.cos(np.pi / 7 * time))
        tau = equations(arm.mechanism, q, qd).torque(qdd)
        bound = 20 * EPS * torque_scale(arm.mechanism, q, qd, qdd)
        assert_close(tau, arm.inverse_dynamics(q, qd, qdd), bound, "tau of the KUKA")


def test_operators_have_the_form_of_the_appendix():
    """Compare (36)-(47) block by block on a chain of revolute joints."""
    mechanism = random_mechanism(["revolute"] * 3, [-1, 0, 1], 8)
    s = State(mechanism, shape=())
    ops, states = spatial_operators(mechanism, s.q, s.qd), body_states(mechanism, s.q, s.qd)
    for j, body in enumerate(states):
        rows = slice(6 * j, 6 * j + 6)
        h, s_ji = body.P[:3, 0], -body.d
        H = np.concatenate([-np.cross(h, s_ji), h])  # (37)
        w = states[j - 1].w if j else np.zeros(3)
        turned = np.cross(w, s_ji) + np.cross(h, s_ji) * s.qd[j]
        dH = np.concatenate([-np.cross(np.cross(w, h), s_ji) - np.cross(h, turned), np.cross(w, h)])  # (39)
        assert_close(ops.H[rows, j], H, 1e-15, "H")
        assert_close(ops.dH[rows, j], dH, 1e-14, "dH")
        assert_close(
            ops.M[rows, rows], np.block([[body.m * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), body.I]]), 0
        )
        assert_close(ops.Omega[rows, rows][3:, 3:], -skew(body.w) @ body.I, 0.0, "Omega")
        if j:
            r = body.c - states[j - 1].c
            dr = np.cross(w, r) - np.cross(h, s_ji) * s.qd[j]  # the bracket of (38)
            before = slice(6 * j - 6, 6 * j)
            assert_close(ops.B[rows, before][:3, 3:], -skew(r), 1e-15, "B")
            assert_close(ops.dB[rows, before][:3, 3:], -skew(dr), 1e-14, "dB")


def test_phi_is_the_inverse_of_one_less_b():
    """Multiply Phi, computed by recursion on a tree, by 1 - B."""
    mechanism = one_of_each()
    s = State(mechanism, shape=())
    ops = spatial_operators(mechanism, s.q, s.qd)
    one = np.eye(len(ops.B))
    assert_close(ops.Phi @ (one - ops.B), one, 1e-14, "Phi (1 - B)")


def test_rates_are_derivatives():
    """Move a tree slightly along its velocities and find B and H change by their rates."""
    mechanism = one_of_each()
    system, s, step = kt.System(mechanism), State(mechanism, shape=()), 1e-5
    ahead, behind = (spatial_operators(mechanism, system.integrate(s.q, k * step * s.qd)) for k in (1, -1))
    ops = spatial_operators(mechanism, s.q, s.qd)
    for name in ("B", "H"):
        change = (getattr(ahead, name) - getattr(behind, name)) / (2 * step)
        assert_close(getattr(ops, "d" + name), change, 1e-7, "d" + name)


def test_the_misprint_of_22_gives_other_torques():
    """Put Omega behind M Phi, as (22) prints it, and miss the torques by far."""
    mechanism = random_mechanism(["revolute"] * 3, [-1, 0, 1], 8)
    s = State(mechanism, shape=())
    ops = spatial_operators(mechanism, s.q, s.qd)
    V = ops.Phi @ ops.H
    printed = V.T @ ops.M @ ops.Phi @ (ops.dB @ V + ops.dH - ops.Omega @ V)
    assert np.abs((printed - ops.C) @ s.qd).max() > 0.01 * np.abs(ops.C @ s.qd).max()


def test_an_empty_mechanism_has_empty_operators():
    """Take a mechanism without bodies and find matrices without entries."""
    empty = kt.build_mechanism("empty", [], [])
    assert spatial_operators(empty, []).D.shape == (0, 0)
    assert equations(empty, [], []).torque([]).shape == (0,)


def test_wrong_shapes_are_refused():
    """Give too few coordinates and read how many are required."""
    arm = kt.load("planar_3r").mechanism
    with pytest.raises(InputError, match=r"q has shape \(2,\); expected \(3,\): one state at a time"):
        spatial_operators(arm, [0.1, 0.2])
