"""The DeNOC matrices by their definitions, by recursion, by hand, and against the compiled functions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import everyday
import flexible_mechanisms
import kinetree as kt
from interpreted import along, compute
from kinetree.formulations.denoc import denoc, equations
from kinetree.formulations.kinematics import body_states, skew
from kinetree.model import Mechanism
from rounding_scales import EPS, convective_scale, inertia_scale, torque_scale
from strategies import State, examples, mechanisms, moving_mechanisms, one_of_each, random_mechanism
from tolerance import assert_close

BOTH = pytest.mark.parametrize("about", ["origin", "centre"])
Q, QD = np.array([0.3, 0.5, -0.4]), np.array([1.0, -0.5, 0.7])


def assert_relatively_close(actual, expected, bound, label, size=None):
    """Compare relative to the largest expected entry, or to a given size."""
    size = float(np.abs(expected).max(initial=0.0)) if size is None else size
    scale = size if size > 0 else 1.0
    assert_close(np.asarray(actual) / scale, np.asarray(expected) / scale, bound, label)


def random_state(mechanism, seed=0):
    """Return one random state."""
    return State(mechanism, seed, ())


@BOTH
@given(mechanism=moving_mechanisms())
@examples(40)
def test_recursions_are_the_products_of_matrices(about, mechanism):
    """Find I, C and M~ of the recursions in the products of N_l, N_d, M and their rates."""
    s = random_state(mechanism)
    d = denoc(mechanism, s.q, s.qd, about=about)
    armature = np.diag(np.concatenate([b.armature for b in d.bodies]))
    assert_relatively_close(d.Mtilde, d.N_l.T @ d.M @ d.N_l, 20 * EPS, "M~")  # 2 eps
    assert_relatively_close(d.I, d.N.T @ d.M @ d.N + armature, 20 * EPS, "I")  # 3 eps
    size = convective_scale(mechanism, s.q, s.qd)
    assert_relatively_close(d.C, d.N.T @ (d.M @ d.dN + d.dM @ d.N), 20 * EPS, "C", size)
    assert_relatively_close(d.I, d.N_d.T @ d.Mtilde @ d.N_d + armature, 20 * EPS, "N_d^T M~ N_d")


@everyday.long
@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_matrices_of_flexible_bodies(about, seed):
    """Find blocks of 6 + m rows per deformed body, the products of the papers, and the compiled functions in them."""
    system = kt.System(flexible_mechanisms.random_tree(seed, base=("revolute", "free")[seed % 2], count=4))
    q, qd, qdd = flexible_mechanisms.state(system, seed)
    w = np.random.default_rng(seed).normal(size=(len(system.bodies), 6))
    d = system.denoc(q, qd, about=about)
    modes = sum(b.flexible is not None and len(b.flexible.modal.names) for b in system.bodies)
    rows = 6 * len(system.bodies) + modes
    assert d.N_l.shape == (rows, rows)
    assert d.N_d.shape == (rows, system.nv)
    outside = d.M.copy()
    for own in d.links.rows:
        outside[own, own] = 0.0
    assert not outside.any()  # M is block diagonal
    assert_relatively_close(d.N @ qd, d.t, 20 * EPS, "N qd")
    assert_relatively_close(d.Mtilde, d.N_l.T @ d.M @ d.N_l, 40 * EPS, "M~")
    assert_relatively_close(d.N.T @ d.M @ d.N, d.I, 40 * EPS, "N^T M N")  # 2 eps
    assert_relatively_close(d.N.T @ (d.M @ d.dN + d.dM @ d.N), d.C, 40 * EPS, "C")  # 7 eps
    assert_relatively_close(d.I, system.inertia_matrix(q), 100 * EPS, "I")  # 11 eps
    assert_relatively_close(d.C_christoffel, system.convective_matrix(q, qd), 400 * EPS, "C by Christoffel")  # 37 eps
    bias = system.bias_torque(q, qd, wrenches=w, forces=False)
    assert_relatively_close(d.C @ qd + d.g - d.external(w), bias, 200 * EPS, "bias")
    there = d.forward_dynamics(qdd, w).qdd
    back = system.forward_dynamics(q, qd, qdd, wrenches=w, forces=False)
    assert_relatively_close(there, back, EPS * np.linalg.cond(d.I), "qdd")
    assert_relatively_close(d.elimination.I_inverse @ d.I, np.eye(system.nv), EPS * np.linalg.cond(d.I), "I^-1")
    assert "b0.elastic" in d.table("N_l") and "e'1" in d.table("N_l")


@BOTH
@given(mechanism=moving_mechanisms())
@examples(40)
def test_matrices_are_those_of_the_compiled_functions(about, mechanism):
    """Find the compiled inertia, convective and gravity terms in the explicit matrices."""
    s = random_state(mechanism)
    d = denoc(mechanism, s.q, s.qd, about=about)
    assert_relatively_close(
        d.I, compute(mechanism, "inertia_matrix", s.q), 20 * EPS, "I", inertia_scale(mechanism, s.q)
    )  # 9 eps
    size = convective_scale(mechanism, s.q, s.qd)
    assert_relatively_close(
        d.C_christoffel, compute(mechanism, "convective_matrix", s.q, s.qd), 20 * EPS, "C", size
    )  # 3 eps
    weight = torque_scale(mechanism, s.q, 0 * s.qd)
    assert_relatively_close(d.g, compute(mechanism, "gravity_torque", s.q), 20 * EPS, "g", weight)
    assert_relatively_close(d.C @ s.qd, d.C_christoffel @ s.qd, 20 * EPS, "C qd", size * np.abs(s.qd).sum())


@BOTH
@given(mechanism=mechanisms())
@examples(30)
def test_equations_give_the_torques_of_inverse_dynamics(about, mechanism):
    """Load every body and find the same torques as the compiled recursion."""
    s = random_state(mechanism)
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd, wrenches=s.wrenches)
    e = equations(mechanism, s.q, s.qd, s.wrenches, about=about)
    assert_relatively_close(
        e.torque(s.qdd), tau, 20 * EPS, "tau", torque_scale(mechanism, s.q, s.qd, s.qdd, s.wrenches)
    )


@given(mechanism=moving_mechanisms())
@examples(30)
def test_rate_of_inertia_less_twice_either_convective_matrix_is_skew(mechanism):
    """Differentiate I along the motion and find dI/dt - 2 C skew for C of either kind."""
    s = random_state(mechanism)
    d = denoc(mechanism, s.q, s.qd)
    dI = along(mechanism, "inertia_matrix", s.q, s.qd)
    for C in (d.C, d.C_christoffel):
        rest = dI - 2 * C
        assert_close(rest + rest.T, np.zeros_like(C), 1e-12 * (1 + np.abs(dI).max() + np.abs(C).max()), "dI/dt - 2C")


def test_omega_m_e_gives_the_torques_but_no_skewness():
    """Take Omega M E of the paper about the joints: the same C qd, but dI/dt - 2C has a symmetric part."""
    mechanism = random_mechanism(["revolute", "revolute", "spherical"], [-1, 0, 1], 8)
    s = random_state(mechanism)
    d = denoc(mechanism, s.q, s.qd)
    C = d.N.T @ (d.M @ d.dN + d.Omega @ d.M @ d.E @ d.N)
    assert_relatively_close(C @ s.qd, d.C @ s.qd, 100 * EPS, "C qd")
    rest = along(mechanism, "inertia_matrix", s.q, s.qd) - 2 * C
    assert np.abs(rest + rest.T).max() > 0.01 * np.abs(rest).max()


def test_w_m_is_the_convective_matrix_about_mass_centres():
    """Find W M of [Saha2013] (12) and Omega N_d of [Saha1999] (26) where axes are fixed in the bodies."""
    mechanism = random_mechanism(["revolute", "prismatic", "helical", "revolute"], [-1, 0, 1, 0], 3)
    s = random_state(mechanism)
    d = denoc(mechanism, s.q, s.qd, about="centre")
    assert_close(d.dM, d.W @ d.M, 1e-14, "W M")
    assert_close(d.dN_d, d.Omega @ d.N_d, 1e-14, "Omega N_d")


@BOTH
@given(mechanism=moving_mechanisms())
@examples(30)
def test_twists_and_their_rates_follow_from_n(about, mechanism):
    """Find N qd and N qdd + dN qd in the compiled twists and twist rates, rotated to the ground's axes."""
    s = random_state(mechanism)
    d = denoc(mechanism, s.q, s.qd, about=about)
    states = body_states(mechanism, s.q, s.qd)
    t, dt = (
        compute(mechanism, name, *arguments)
        for name, arguments in (("twists", (s.q, s.qd)), ("twist_rates", (s.q, s.qd, s.qdd)))
    )
    expected, rates = [], []
    for b, (w, v), (dw, dv) in zip(states, t.reshape(-1, 2, 3), dt.reshape(-1, 2, 3), strict=True):
        r = b.d if about == "centre" else np.zeros(3)
        w, v, dw, dv = (b.R @ x for x in (w, v, dw, dv))
        expected += [*w, *(v + np.cross(w, r))]
        rates += [*dw, *(dv + np.cross(dw, r) + np.cross(w, np.cross(w, r)))]
    assert_relatively_close(d.N @ s.qd, expected, 40 * EPS, "t")
    assert_relatively_close(d.t, expected, 40 * EPS, "t of the bodies")
    size = (np.abs(d.N) @ np.abs(s.qdd) + np.abs(d.dN) @ np.abs(s.qd)).max()
    assert_relatively_close(d.N @ s.qdd + d.dN @ s.qd, rates, 100 * EPS, "t'", size)


def test_n_l_inverts_the_tree():
    """Multiply N_l by 1 - A, with A from each body's parent, and find 1."""
    mechanism = one_of_each()
    s = random_state(mechanism)
    d = denoc(mechanism, s.q)
    A = np.zeros_like(d.N_l)
    for i, b in enumerate(d.bodies):
        if b.parent >= 0:
            A[6 * i : 6 * i + 6, 6 * b.parent : 6 * b.parent + 6] = d.links.propagation(i, b.parent)
    assert_close(d.N_l @ (np.eye(len(A)) - A), np.eye(len(A)), 1e-14, "N_l (1 - A)")
    assert not np.triu(d.N_l, 1).any()


@BOTH
def test_planar_arm_by_hand(about):
    """Find the closed form of the three-link arm: I, Christoffel's C and g in cosines and sines."""
    arm = kt.load("planar_3r").mechanism
    a, m, c = (0.3, 0.25), (0.5, 0.4, 0.3), (0.15, 0.125, 0.11)
    J = (0.0037499999999999994, 0.0020833333333333333, 0.00121)
    c2, c3, c23 = np.cos([Q[1], Q[2], Q[1] + Q[2]])
    s2, s3, s23 = np.sin([Q[1], Q[2], Q[1] + Q[2]])
    x, y, z = m[2] * a[1] * c[2], a[0] * (m[1] * c[1] + m[2] * a[1]), m[2] * a[0] * c[2]
    i33 = J[2] + m[2] * c[2] ** 2
    i23 = i33 + x * c3
    i22 = J[1] + m[1] * c[1] ** 2 + i33 + m[2] * a[1] ** 2 + 2 * x * c3
    i13 = i23 + z * c23
    i12 = i22 + y * c2 + z * c23
    i11 = J[0] + m[0] * c[0] ** 2 + (m[1] + m[2]) * a[0] ** 2 + i22 + 2 * y * c2 + 2 * z * c23
    d = denoc(arm, Q, QD, about=about)
    assert_close(d.I, [[i11, i12, i13], [i12, i22, i23], [i13, i23, i33]], 1e-16, "I")
    u2, u3 = -(y * s2 + z * s23), -(x * s3 + z * s23)  # d i11 / 2 d q2 and d q3
    e1, e2, e3 = QD
    C = [
        [u2 * e2 + u3 * e3, u2 * (e1 + e2) + u3 * e3, u3 * (e1 + e2 + e3)],
        [-u2 * e1 - x * s3 * e3, -x * s3 * e3, -x * s3 * (e1 + e2 + e3)],
        [-u3 * e1 + x * s3 * e2, x * s3 * (e1 + e2), 0.0],
    ]
    assert_close(d.C_christoffel, C, 1e-16, "C")
    k = [np.cos(Q[: n + 1].sum()) for n in range(3)]
    g3 = 9.81 * m[2] * c[2] * k[2]
    g2 = 9.81 * (m[1] * c[1] + m[2] * a[1]) * k[1] + g3
    g1 = 9.81 * (m[0] * c[0] + (m[1] + m[2]) * a[0]) * k[0] + g2
    assert_close(d.g, [g1, g2, g3], 2e-15, "g")
    e = [0.0, 0.0, 1.0]
    shift = np.cross(e, d.bodies[2].shift)
    assert_close(d.N_d[12:, 2], [*e, *shift], 1e-16, "p_3 = [e; e x d]")


def test_a_planar_arm_has_one_convective_matrix():
    """Find C of the papers equal to Christoffel's in planar motion, where all axes are parallel."""
    d = denoc(kt.load("planar_3r").mechanism, Q, QD)
    assert_close(d.C, d.C_christoffel, 1e-17, "C")


@BOTH
def test_composite_bodies_add_up(about):
    """Sum mass, first moment and inertia of the bodies behind each joint, and find its composite body."""
    mechanism = one_of_each()
    s = random_state(mechanism)
    d = denoc(mechanism, s.q, about=about)
    states = {b.name: b for b in body_states(mechanism, s.q)}
    for body in d.composites:
        parts = [states[name] for name in body.members]
        m = sum(b.m for b in parts)
        centre = sum(b.m * b.c for b in parts) / m
        inertia = sum(b.I - b.m * skew(b.c - centre) @ skew(b.c - centre) for b in parts)
        assert_close(body.mass, m, 1e-14 * m, "mass")
        assert_close(body.centre, centre, 1e-14, "centre")
        assert_close(body.inertia, inertia, 1e-13 * np.abs(inertia).max(), "inertia")


def test_composite_body_of_the_whole_has_the_mass_centre_of_the_system():
    """Find the compiled center of mass in the first composite body, and in its text."""
    arm = kt.load("planar_3r")
    whole = denoc(arm.mechanism, Q).composite("link1")
    assert_close(whole.centre, compute(arm.mechanism, "center_of_mass", Q), 1e-15, "centre")
    assert whole.felt([0, 0, 1, 0, 0, 0]) == pytest.approx(compute(arm.mechanism, "inertia_matrix", Q)[0, 0], rel=1e-14)
    assert repr(whole) == (
        "<composite body 'link1' of 3 bodies: 1.2 kg at (0.3248, 0.1556, 0) m, "
        "principal moments 0.0004295, 0.05457, 0.05499 kg m^2>"
    )


def test_mechanisms_without_motion_work():
    """Take no body, then only fixed bodies, and find matrices without entries."""
    empty = denoc(Mechanism("empty"), [])
    assert empty.I.shape == (0, 0) and empty.N.shape == (0, 0) and empty.t.shape == (0,)
    assert "0 bodies" in repr(empty) and "I qdd" in str(empty)
    still = denoc(random_mechanism(["fixed", "fixed"], [-1, 0], 1), [])
    assert still.N.shape == (12, 0) and still.g.shape == (0,) and still.forward_dynamics([]).qdd.shape == (0,)


def test_matrices_are_found_by_name():
    """Request a matrix by its name, then by a wrong one, and read the suggestion."""
    d = denoc(kt.load("planar_3r").mechanism, Q, QD)
    assert d["N_l"] is d.N_l
    with pytest.raises(kt.UnknownNameError, match="no matrix 'Nl'; did you mean 'N_l'\\? available: t, N_l, N_d"):
        d["Nl"]
    with pytest.raises(kt.UnknownNameError, match="no body 'link4'; did you mean 'link"):
        d.composite("link4")
    with pytest.raises(kt.UnknownNameError, match="no pattern 'C'; available: N_l, N_d, N, Mtilde"):
        d.pattern("C")


def test_wrong_arguments_are_named():
    """Give a wrong reference point and wrong shapes, and read the expected ones."""
    arm = kt.load("planar_3r").mechanism
    with pytest.raises(kt.UnknownNameError, match="about: no reference point 'center'; did you mean 'centre'"):
        denoc(arm, Q, about="center")
    with pytest.raises(kt.InputError, match="q has shape \\(2,\\); expected \\(3,\\)"):
        denoc(arm, [0.0, 0.0])
    with pytest.raises(kt.InputError, match="wrenches have shape \\(2, 6\\); expected \\(3, 6\\)"):
        denoc(arm, Q).external(np.zeros((2, 6)))
    with pytest.raises(kt.InputError, match="tau has shape \\(1,\\); expected \\(3,\\)"):
        denoc(arm, Q).forward_dynamics([0.0])


def test_tables_name_their_blocks():
    """Read the table of I, the pattern of N_l, and the list of all matrices."""
    d = denoc(kt.load("planar_3r").mechanism, Q, QD)
    assert d.table("I").splitlines() == [
        "I: generalized inertia matrix (GIM), 3 x 3  [Saha2013] (21)",
        "          joint1   joint2   joint3",
        "joint1    0.2106  0.08988  0.02229",
        "joint2   0.08988  0.04712  0.01244",
        "joint3   0.02229  0.01244  0.00484",
    ]
    assert d.pattern("N_l").splitlines() == ["1      .      .", "A_2,1  1      .", "A_3,1  A_3,2  1"]
    lines = d.table("N_d").splitlines()
    assert lines[1].split() == ["joint1", "joint2", "joint3"] and lines[2].split() == ["link1", "wx", ".", ".", "."]
    assert "  N_l           18 x 18   propagations" in repr(d)
    assert "<th>joint2</th>" in d._repr_html_() and r"\text{joint3}" in d._repr_latex_()


def test_branches_leave_blocks_empty():
    """Take a tree and find no propagation between its branches."""
    mechanism = random_mechanism(["free", "revolute", "spherical"], [-1, 0, 0], 2)
    d = denoc(mechanism, random_state(mechanism).q)
    assert d.pattern("N").splitlines()[2] == "A_3,1 p_1  .    p_3"
    assert not d.N_l[12:, 6:12].any()
    assert "j2" in d.table("I") and d.table("I").count("\n") >= 10
