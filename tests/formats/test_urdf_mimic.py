"""URDF joints that mimic others as couplings: the reduced dynamics of public robots compared with Pinocchio."""

# ruff: noqa: E741 - I is the papers' letter

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest

import everyday

pin = pytest.importorskip("pinocchio")

from interpreted import compute  # noqa: E402
from kinetree.formats.urdf import read_urdf  # noqa: E402
from strategies import State  # noqa: E402
from tolerance import assert_close  # noqa: E402

pytestmark = pytest.mark.peers

ROBOTS = {"panda_description/urdf/panda.urdf": 1, "baxter_description/urdf/baxter.urdf": 2}
ROBOTS |= {"pr2_description/urdf/pr2.urdf": 10, "tiago_pro_description/robots/tiago_pro.urdf": 10}
"""The files, with the number of joints that mimic others."""


def find(name: str) -> Path:
    """Return the path of a public robot."""
    try:
        files = importlib.metadata.files("example-robot-data") or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()
    for file in files:
        if str(file).endswith(name):
            return Path(str(file.locate())).resolve()
    pytest.skip(f"{name} is not installed")


def reduction(mechanism) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the leading joints, and S and c of the couplings with q = S q_lead + c."""
    names = [j.name for j in mechanism.joints]
    follows = {c.joint: c for c in mechanism.couplings}
    lead = [name for name in names if name not in follows]
    S, c = np.zeros((len(names), len(lead))), np.zeros(len(names))

    def row(name):
        if name not in follows:
            return np.eye(len(lead))[lead.index(name)], 0.0
        out, offset = np.zeros(len(lead)), follows[name].offset
        for other, ratio in follows[name].terms:
            there, shift = row(other)
            out, offset = out + ratio * there, offset + ratio * shift
        return out, offset

    for k, name in enumerate(names):
        S[k], c[k] = row(name)
    return lead, S, c


@pytest.mark.parametrize("name", everyday.some(ROBOTS))
def test_reduced_motion_is_pinocchios(name):
    """Couple the joints of a robot that mimic others and find Pinocchio's inertia matrix and bias torques."""
    path = find(name)
    mechanism, report = read_urdf(path)
    assert (len(mechanism.couplings), mechanism.nq) == (ROBOTS[name], mechanism.nv)
    assert not [entry for entry in report.of("dropped") if "mimic" in str(entry)]
    model = pin.buildModelFromUrdf(str(path), mimic=True)
    data = model.createData()
    lead, S, c = reduction(mechanism)
    assert model.nv == len(lead)
    state = State(mechanism, 8, shape=())
    q, qd = np.array(state.q), np.array(state.qd)
    leading = [k for k, j in enumerate(mechanism.joints) if j.name in lead]
    order = [model.joints[model.getJointId(name)].idx_v for name in lead]
    theirs_q, theirs_v = pin.neutral(model), np.zeros(model.nv)
    for k, label in zip(leading, lead, strict=True):
        joint = model.joints[model.getJointId(label)]
        theirs_v[joint.idx_v] = qd[k]
        theirs_q[joint.idx_q : joint.idx_q + joint.nq] = (q[k],) if joint.nq == 1 else (np.cos(q[k]), np.sin(q[k]))
    q, qd = S @ q[leading] + c, S @ qd[leading]
    M = pin.crba(model, data, theirs_q)
    M = np.triu(M) + np.triu(M, 1).T
    I = S.T @ compute(mechanism, "inertia_matrix", q) @ S
    assert_close(I, M[np.ix_(order, order)], 1e-12 * np.abs(I).max(), "inertia matrix")
    bias = S.T @ compute(mechanism, "bias_torque", q, qd)
    expected = pin.rnea(model, data, theirs_q, theirs_v, np.zeros(model.nv))[order]
    assert_close(bias, expected, 1e-12 * np.abs(expected).max(), "bias")
