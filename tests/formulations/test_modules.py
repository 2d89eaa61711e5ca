"""Kinematic modules: matrices by module blocks and recursions between modules, against those of bodies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import everyday
import kinetree as kt
from interpreted import compute
from kinetree.formulations import module_recursion
from kinetree.formulations.denoc import denoc
from kinetree.formulations.modules import module_denoc
from kinetree.model import Body, Joint, Mechanism, build_mechanism
from rounding_scales import EPS, convective_scale, inertia_scale, torque_scale
from strategies import State, examples, mechanisms, moving_mechanisms, one_of_each, random_mechanism
from tolerance import assert_close


def state(mechanism):
    """Return one random state."""
    return State(mechanism, 0, ())


@given(mechanisms())
@examples(40)
def test_module_blocks_make_the_matrices_of_bodies(mechanism):
    """Multiply N_l and N_d of modules and find N of bodies; find I and C in module blocks."""
    s = state(mechanism)
    d, m = denoc(mechanism, s.q, s.qd), module_denoc(mechanism, s.q, s.qd)
    assert_close(m.N_l @ m.N_d, d.N, 20 * EPS * (1 + np.abs(d.N).max(initial=0.0)), "N")
    assert_close(m.I, d.I, 20 * EPS * inertia_scale(mechanism, s.q), "I")
    assert_close(m.C, d.C, 20 * EPS * convective_scale(mechanism, s.q, s.qd), "C")


@given(moving_mechanisms())
@examples(40)
def test_twists_pass_from_module_to_module(mechanism):
    """Propagate each module's twists from its parent's and find those of the bodies."""
    s = state(mechanism)
    m = module_denoc(mechanism, s.q, s.qd)
    for i, module in enumerate(m.modules):
        t = m.N_bar(i) @ s.qd[module.dofs]
        if module.parent >= 0:
            t = t + m.A_bar(i, module.parent) @ m.t_bar(module.parent)
        assert_close(t, m.t_bar(i), 40 * EPS * (1 + np.abs(m.t_bar(i)).max()), "t_bar")


@given(moving_mechanisms())
@examples(40)
def test_block_elimination_makes_the_inertia_matrix(mechanism):
    """Eliminate I module by module and find U D U^T = I, with articulated modules in D."""
    s = state(mechanism)
    m = module_denoc(mechanism, s.q)
    e = m.elimination
    cond = max(np.linalg.cond(x) for x in e.mhat if x.size)
    assert_close(e.U @ e.D @ e.U.T, m.I, 20 * EPS * cond * inertia_scale(mechanism, s.q), "U D U^T")


@given(mechanisms())
@examples(40)
def test_recursive_inverse_dynamics_is_the_compiled_one(mechanism):
    """Use the recursion inside and between modules, with every body loaded, and find the compiled torques."""
    s = state(mechanism)
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd, wrenches=s.wrenches)
    bound = 20 * EPS * torque_scale(mechanism, s.q, s.qd, s.qdd, s.wrenches)
    assert_close(module_recursion.inverse_dynamics(mechanism, s.q, s.qd, s.qdd, s.wrenches), tau, bound, "recursion")
    equations = module_recursion.equations(mechanism, s.q, s.qd, s.wrenches)
    assert_close(equations.torque(s.qdd), tau, bound, "matrices")


@given(moving_mechanisms())
@examples(40)
def test_recursive_forward_dynamics_is_the_compiled_one(mechanism):
    """Eliminate inside and between modules, with every body loaded, and find the compiled accelerations."""
    s = state(mechanism)
    qdd = compute(mechanism, "forward_dynamics", s.q, s.qd, s.tau, wrenches=s.wrenches)
    gim = compute(mechanism, "inertia_matrix", s.q)
    scale = torque_scale(mechanism, s.q, s.qd, wrenches=s.wrenches) + np.abs(s.tau).max()
    bound = 20 * EPS * (np.linalg.cond(gim) * np.abs(qdd).max() + np.abs(np.linalg.inv(gim)).max() * scale)
    assert_close(module_recursion.forward_dynamics(mechanism, s.q, s.qd, s.tau, s.wrenches), qdd, bound, "qdd")


@everyday.long
def test_a_long_chain_is_one_module_and_needs_no_large_matrix():
    """Accelerate 300 links by the recursion of one module, then recover the torques."""
    mechanism = random_mechanism(["revolute", "prismatic", "spherical"] * 100, list(range(-1, 299)), 3)
    s = state(mechanism)
    qd, tau = 0.1 * s.qd, s.tau
    qdd = module_recursion.forward_dynamics(mechanism, s.q, qd, tau)
    again = module_recursion.inverse_dynamics(mechanism, s.q, qd, qdd)
    terms = np.abs(denoc(mechanism, s.q).I) @ np.abs(qdd)
    assert_close(again, tau, 100 * EPS * terms.max(), "tau")


@pytest.mark.parametrize(
    ("name", "labels", "parents"),
    [
        ("biped", ["M_0", "M_1", "M_2"], [-1, 0, 0]),
        ("charmie", [f"M_{k}" for k in range(1, 9)], [-1, 0, 1, 1, 0, 4, 4, 0]),
        ("planar_3r", ["M_1"], [-1]),
    ],
)
def test_modules_are_numbered_as_in_the_paper(name, labels, parents):
    """Name a floating base M_0 and number other modules from 1, children after parents."""
    arm = kt.load(name)
    m = module_denoc(arm.mechanism, arm.neutral())
    assert [module.label for module in m.modules] == labels
    assert [module.parent for module in m.modules] == parents
    assert sum(len(module.links) for module in m.modules) == len(arm.bodies)


def test_modules_are_listed_with_their_links():
    """Read the modules of the biped, one per line."""
    arm = kt.load("biped")
    m = module_denoc(arm.mechanism, arm.neutral())
    assert repr(m).splitlines() == [
        "modules of 'biped': 3",
        "  M_0   on ground   6 dofs  base",
        "  M_1   on M_0      3 dofs  thigh_a - shank_a - foot_a",
        "  M_2   on M_0      3 dofs  thigh_b - shank_b - foot_b",
    ]
    assert repr(m.modules[1]) == "<module M_1: thigh_a - shank_a - foot_a>"


def test_propagations_of_modules_compose():
    """Find A_bar_ij A_bar_jk = A_bar_ik on the path to a tip, and zero between branches."""
    mechanism = one_of_each()
    m = module_denoc(mechanism, state(mechanism).q)
    i, j, k = 3, 2, 0  # M_4 on M_3 on M_1
    assert_close(m.A_bar(i, j) @ m.A_bar(j, k), m.A_bar(i, k), 1e-14, "A_bar A_bar")
    assert not m.A_bar(1, 2).any() and not m.A_bar(i, j)[:, :-6].any()


def test_a_module_bears_others_at_its_last_link():
    """Find the mass of child modules only in the last block of the composite module."""
    mechanism = random_mechanism(["revolute", "revolute", "revolute", "prismatic"], [-1, 0, 1, 1], 5)
    m = module_denoc(mechanism, state(mechanism).q)
    d = denoc(mechanism, state(mechanism).q)
    added = m.composites[0] - np.kron(np.diag([1, 0]), d.bodies[0].M) - np.kron(np.diag([0, 1]), d.bodies[1].M)
    assert not added[:6].any() and not added[:, :6].any()
    assert_close(m.composites[0][6:, 6:], d.composites[1].M, 1e-14, "M~ of the last link")


def test_fixed_joints_have_no_columns():
    """Fix a link inside a module and find N_bar one column narrower than its links."""
    mechanism = random_mechanism(["revolute", "fixed", "revolute"], [-1, 0, 1], 5)
    m = module_denoc(mechanism, state(mechanism).q)
    assert m.N_bar(0).shape == (18, 2) and m.N_bar_d(0)[6:12].any() == np.False_
    assert module_denoc(Mechanism("empty"), []).I.shape == (0, 0)


def test_wrong_arguments_and_joints_without_inertia_are_named():
    """Give wrong shapes and a massless tip, and read the errors."""
    arm = kt.load("planar_3r").mechanism
    with pytest.raises(kt.InputError, match="qdd has shape \\(2,\\); expected \\(3,\\)"):
        module_recursion.inverse_dynamics(arm, np.zeros(3), np.zeros(3), np.zeros(2))
    with pytest.raises(kt.InputError, match="wrenches have shape \\(3,\\); expected \\(3, 6\\)"):
        module_recursion.forward_dynamics(arm, np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3))
    bodies = [Body("arm", 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1, 0, 0, 0)), Body("tip")]
    joints = [Joint("shoulder", "revolute", "ground", "arm"), Joint("wrist", "revolute", "arm", "tip")]
    light = build_mechanism("light", bodies, joints)
    with pytest.raises(kt.InputError, match="joint 'wrist' moves nothing that has inertia"):
        module_recursion.forward_dynamics(light, np.zeros(2), np.zeros(2), np.zeros(2))
