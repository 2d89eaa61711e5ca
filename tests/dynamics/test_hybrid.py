"""Hybrid dynamics: against partitioned matrices, against other functions of closed mechanisms, and Pinocchio."""

# ruff: noqa: E741 - I is the papers' letter

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everyday
import kinetree as kt
from closed_mechanisms import DRIVES
from interpreted import compute, relative
from kinetree import Body, InputError, Joint, ModelError, System, UnknownNameError, build_mechanism
from kinetree.compiler.lower.build import Request, build
from planar_loops import free_rod
from strategies import State, examples, moving_mechanisms, random_mechanism
from tolerance import assert_close

EPS = np.finfo(float).eps


STEWART = pytest.param("stewart", marks=pytest.mark.slow)


def partitioned(I, h, qdd, tau, driven):
    """Return qdd and tau of all joints from dense matrices, sample by sample."""
    free = [k for k in range(I.shape[-1]) if k not in driven]
    qdd, out = qdd.copy(), tau.copy()
    known = np.zeros_like(qdd)
    known[:, driven] = qdd[:, driven]
    pushed = (tau - h - (I @ known[..., None])[..., 0])[:, free]
    qdd[:, free] = np.linalg.solve(I[:, free][..., free], pushed[..., None])[..., 0] if free else pushed
    out[:, driven] = ((I @ qdd[..., None])[..., 0] + h)[:, driven]
    return qdd, out


@given(moving_mechanisms(), st.randoms(use_true_random=False))
@examples(60)
def test_partitioned_matrices_give_the_same(mechanism, random):
    """Solve the rows of the free joints by dense matrices, and find the accelerations and torques of the page."""
    s = State(mechanism)
    driven = sorted(k for k in range(mechanism.nv) if random.random() < 0.5)
    I = compute(mechanism, "inertia_matrix", s.q)
    h = compute(mechanism, "bias_torque", s.q, s.qd, wrenches=s.wrenches)
    expected = partitioned(I, h, s.qdd, s.tau, driven)
    program = build(mechanism, Request("hybrid_dynamics", wrenches=True, driven=tuple(driven)).checked(mechanism))
    found = program.interpret(s.q, s.qd, s.qdd, s.tau, s.wrenches)
    bound = 40 * EPS * max(float(np.linalg.cond(I).max()), 8)
    assert_close(relative(found[0], expected[0]), 0.0, bound, "qdd of partitioned matrices")
    assert_close(relative(found[1], expected[1]), 0.0, bound, "tau of partitioned matrices")
    assert np.array_equal(found[0][:, driven], s.qdd[:, driven])


@pytest.mark.peers
@given(moving_mechanisms(("free", "revolute", "prismatic", "spherical"), most=6))
@examples(20)
def test_pinocchio_gives_the_same_on_a_floating_base(mechanism):
    """Prescribe all joints but the first by Pinocchio's inertia matrix and bias, and find the same to 1e-10."""
    pin = pytest.importorskip("pinocchio")
    from pinocchio_peer import peer

    s, m = State(mechanism, shape=3), mechanism
    driven = list(range(m.v_slices[0].stop, m.nv))
    p = peer(m)
    rest = np.zeros(m.nv)
    I = np.array([p.matrix(pin.crba(p.model, p.data, q).copy()) for q in s.q])
    h = np.array([p.speeds(pin.rnea(p.model, p.data, q, p.speeds(qd), rest)) for q, qd in zip(s.q, s.qd, strict=True)])
    expected = partitioned(I, h, s.qdd, s.tau, driven)
    program = build(m, Request("hybrid_dynamics", driven=tuple(driven)).checked(m))
    for found, want, label in zip(program.interpret(s.q, s.qd, s.qdd, s.tau), expected, ("qdd", "tau"), strict=True):
        assert_close(relative(found, want), 0.0, 1e-10, f"{label} of Pinocchio")


def test_all_driven_is_inverse_and_none_is_forward_dynamics():
    """Drive every joint, then none, natively in a batch, and find inverse and forward dynamics."""
    arm = System(random_mechanism(["free", "revolute", "universal"], [-1, 0, 1], 3))
    s = State(arm.mechanism, shape=(4, 3))
    names = [j.name for j in arm.joints]
    tau = arm.inverse_dynamics(s.q, s.qd, s.qdd)
    found = arm.hybrid_dynamics(s.q, s.qd, s.qdd, s.tau, driven=names)
    assert np.array_equal(found[0], s.qdd)
    assert_close(found[1], tau, 1e-13 * np.abs(tau).max(), "inverse dynamics")
    qdd = arm.forward_dynamics(s.q, s.qd, s.tau)
    free = arm.hybrid_dynamics(s.q, s.qd, s.qdd, s.tau)
    assert_close(free[0], qdd, 1e-13 * np.abs(qdd).max(), "forward dynamics")
    assert np.array_equal(free[1], s.tau)


@pytest.mark.parametrize(
    "name", everyday.some(["four_bar", "slider_crank", "five_bar", "parallelogram", "gear_train", STEWART])
)
def test_driven_loops_need_the_torques_of_actuation(name):
    """Drive every degree of freedom of a closed mechanism, and find the torques of actuated inverse dynamics."""
    arm, drives = kt.load(name), DRIVES[name]
    rng = np.random.default_rng(7)
    q = arm.assemble()
    rate, gain = ({joint: float(rng.normal()) * 0.1 for joint in drives} for _ in range(2))
    qd = arm.consistent_speeds(q, rate)
    qdd = arm.consistent_accelerations(q, qd, gain)
    known = np.zeros(arm.nv)
    for joint, x in gain.items():
        known[[j.name for j in arm.joints].index(joint) if arm.nv == len(arm.joints) else _at(arm, joint)] = x
    found = arm.hybrid_dynamics(q, qd, known, np.zeros(arm.nv), driven=drives)
    tau = arm.inverse_dynamics(q, qd, qdd, actuated=drives)
    assert_close(found[0], qdd, 1e-10 * max(1.0, np.abs(qdd).max()), "accelerations of the loops")
    assert_close(found[1], tau, 1e-10 * np.abs(tau).max(), "torques of the drives")


def _at(arm: System, joint: str) -> int:
    """Return the entry of a joint in qd."""
    return arm.mechanism.v_slices[[j.name for j in arm.joints].index(joint)].start


def test_partly_driven_loops_move_as_under_the_torques_found():
    """Drive one of two cranks and load the other; forward dynamics under the torques found gives the same motion."""
    arm = kt.load("five_bar")
    q = arm.assemble()
    qd = arm.consistent_speeds(q, {"left_crank": 1.3, "right_crank": -0.7})
    rng = np.random.default_rng(2)
    qdd, tau = rng.normal(size=(6, arm.nv)), rng.normal(size=(6, arm.nv))
    found = arm.hybrid_dynamics(q, qd, qdd, tau, driven="left_crank")
    again = arm.forward_dynamics(q, qd, found[1])
    assert_close(found[0], again, 1e-10 * np.abs(again).max(), "forward dynamics under the torques found")
    assert np.array_equal(found[0][:, _at(arm, "left_crank")], qdd[:, _at(arm, "left_crank")])


def test_free_parameters_come_in_batches():
    """Give a rod several lengths at once, and find the results of each length fixed."""
    arm = free_rod()
    lengths = np.array([[0.58], [0.6], [0.63]])
    rows = [(q := arm.assemble([0.4, 0.9], parameters=x), arm.consistent_speeds(q, {"j0": 0.8}, parameters=x))
            for x in lengths]  # fmt: skip
    q, qd = (np.array(x) for x in zip(*rows, strict=True))
    qdd, tau = np.array([0.7, 0.0]), np.array([0.0, 0.3])
    together = arm.hybrid_dynamics(q, qd, qdd, tau, driven="j0", parameters=lengths)
    for k, x in enumerate(lengths):
        alone = arm.fixed(x).hybrid_dynamics(q[k], qd[k], qdd, tau, driven="j0")
        for found, expected in zip(together, alone, strict=True):
            assert_close(found[k], expected, 1e-12 * max(1.0, np.abs(expected).max()), "one length")


def weightless() -> System:
    """Return an arm with a tip that has neither mass nor inertia."""
    joints = [Joint("j0", "revolute", "ground", "arm"), Joint("j1", "revolute", "arm", "tip")]
    bodies = [Body("arm", 1.3, (0.4, 0.1, 0.0), (0.1, 0.2, 0.15, 0.0, 0.0, 0.0)), Body("tip", 0.0)]
    return System(build_mechanism("light", bodies, joints, gravity=(0.3, -9.81, 0.0)))


def test_a_weightless_body_may_be_driven():
    """Drive a joint without inertia, whose free motion would be refused by name."""
    arm, x = weightless(), np.array([0.3, -0.2])
    qdd, tau = arm.hybrid_dynamics(x, x, x, x, driven="j1")
    expected = compute(arm.mechanism, "inverse_dynamics", x, x, np.array([qdd[0], x[1]]))
    assert_close(tau, [x[0], 0.0], 1e-14, "torques")
    assert_close(expected[0], x[0], 1e-14, "the free joint")
    with pytest.raises(ModelError, match="no inertia resists the motion of joint 'j1'"):
        arm.hybrid_dynamics(x, x, x, x, driven="j0")


def test_refuses_names_that_are_no_joints():
    """Name an unknown joint, a number, and driven joints of another function."""
    arm, x = weightless(), np.zeros(2)
    with pytest.raises(UnknownNameError, match="no joint 'j9'; available: j0, j1"):
        arm.hybrid_dynamics(x, x, x, x, driven="j9")
    with pytest.raises(InputError, match=r"driven is 3; give the names of joints"):
        arm.hybrid_dynamics(x, x, x, x, driven=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="inverse_dynamics takes no driven joints; hybrid_dynamics does"):
        arm.function("inverse_dynamics", driven="j0")
    with pytest.raises(InputError, match=r"hybrid_dynamics: tau\[0\] is nan"):
        arm.hybrid_dynamics(x, x, x, [np.nan, 0.0], driven="j1")
