"""Random trees of hinges, slides, balls and free bodies against MuJoCo."""

# ruff: noqa: E741 - I is the papers' letter

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

mujoco = pytest.importorskip("mujoco")

from interpreted import compute  # noqa: E402
from mujoco_peer import peer  # noqa: E402
from rigid_body import cross_matrix  # noqa: E402
from strategies import State, examples, moving_mechanisms, random_mechanism  # noqa: E402
from tolerance import assert_close  # noqa: E402

pytestmark = pytest.mark.peers
INNER = ("fixed", "revolute", "prismatic", "spherical")


def floating_or_fixed():
    """Draw trees with a free root, or with several roots of other kinds."""
    return st.one_of(
        moving_mechanisms(INNER, most=6, armature=False),
        moving_mechanisms(INNER, most=6, root=("free",), armature=False),
    )


def inertia_matrix(m, d) -> np.ndarray:
    """Return the model's inertia matrix, column by column."""
    out = np.zeros((m.nv, m.nv))
    for k, unit in enumerate(np.eye(m.nv)):
        mujoco.mj_mulM(m, d, out[k], unit)
    return out


@given(floating_or_fixed())
@examples(50)
def test_torques_and_accelerations(mechanism):
    """Compare inverse dynamics, the inertia matrix, and forward dynamics under external wrenches."""
    s, p = State(mechanism, shape=2), peer(mechanism)
    m, d = p.model, p.data
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd)
    qdd = compute(mechanism, "forward_dynamics", s.q, s.qd, s.tau, wrenches=s.wrenches)
    I = compute(mechanism, "inertia_matrix", s.q)
    for k in range(2):
        p.set(s.q[k], s.qd[k])
        B, drift = p.map(), p.drift(s.qd[k])
        d.qacc[:] = B @ s.qdd[k] + drift
        mujoco.mj_inverse(m, d)
        size = np.abs(tau[k]).max()
        assert_close(B.T @ d.qfrc_inverse / size, tau[k] / size, 1e-9, "mj_inverse")  # 3e-15

        theirs = B.T @ inertia_matrix(m, d) @ B
        assert_close(theirs / np.abs(I[k]).max(), I[k] / np.abs(I[k]).max(), 1e-9, "mj_mulM")  # 6e-15

        d.qfrc_applied[:] = np.linalg.solve(B.T, s.tau[k])
        for body, w in zip(mechanism.bodies, s.wrenches[k], strict=True):
            there = d.body(body.name)
            R, arm = there.xmat.reshape(3, 3), np.array(body.com)
            there.xfrc_applied[:] = np.concatenate([R @ w[3:], R @ (w[:3] - cross_matrix(arm) @ w[3:])])
        mujoco.mj_forward(m, d)
        size = np.abs(qdd[k]).max()
        condition = np.linalg.cond(I[k])
        expected = np.linalg.solve(B, d.qacc - drift)
        assert_close(qdd[k] / size, expected / size, max(1e-9, 1e-12 * condition), "mj_forward")  # 2e-14


@given(moving_mechanisms(("revolute", "prismatic"), most=6))
@examples(15)
def test_armatures(mechanism):
    """Compare the inertia matrix of joints with armatures."""
    s, p = State(mechanism, shape=()), peer(mechanism)
    p.set(s.q, s.qd)
    mujoco.mj_forward(p.model, p.data)
    B, I = p.map(), compute(mechanism, "inertia_matrix", s.q)
    theirs = B.T @ inertia_matrix(p.model, p.data) @ B
    assert_close(theirs / np.abs(I).max(), I / np.abs(I).max(), 1e-9, "mj_mulM")  # 2e-15


@given(floating_or_fixed())
@examples(20)
def test_poses_and_energies(mechanism):
    """Compare the poses of all bodies and both energies."""
    s, p = State(mechanism, shape=()), peer(mechanism)
    p.model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    p.set(s.q, s.qd)
    mujoco.mj_forward(p.model, p.data)
    T = compute(mechanism, "poses", s.q)
    for k, body in enumerate(mechanism.bodies):
        there = p.data.body(body.name)
        assert_close(T[k, :3, :3], there.xmat.reshape(3, 3), 1e-13, "rotation")  # 1e-15
        assert_close(T[k, :3, 3], there.xpos, 1e-13 * (1 + np.abs(T).max()), "position")  # 1e-15
    ours = [compute(mechanism, "potential_energy", s.q), compute(mechanism, "kinetic_energy", s.q, s.qd)]
    size = 1 + np.abs(ours).max()
    assert_close(np.array(ours) / size, p.data.energy / size, 1e-9, "energies")  # 1e-15


def test_the_peer_knows_every_joint():
    """Build one joint of each kind in MuJoCo and count its degrees of freedom."""
    mechanism = random_mechanism(["free", "revolute", "prismatic", "spherical", "fixed"], [-1, 0, 1, 2, 3], 1)
    model = peer(mechanism).model
    assert (model.nq, model.nv) == (mechanism.nq, mechanism.nv) == (13, 11)
