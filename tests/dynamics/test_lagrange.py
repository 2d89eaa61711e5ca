"""Lagrange's equations, by differentiation of the energies with CasADi: an independent route to the torques."""

from __future__ import annotations

import casadi
import numpy as np
import pytest

import everyday
from interpreted import compute, evaluate, program, relative
from strategies import FLAT, MOVING, State, random_mechanism
from tolerance import assert_close

MECHANISMS = {
    "arm": (["revolute"] * 6, [-1, 0, 1, 2, 3, 4]),
    "tree": (["prismatic", "helical", "cylindrical", "revolute"], [-1, 0, 0, 2]),
    "euler": (["euler", "fixed", "euler"], [-1, 0, 1]),
    "floating": (["free_euler", "universal", "planar"], [-1, 0, 0]),
}


def lagrange(mechanism, q, qd, qdd) -> np.ndarray:
    """Return d/dt (dL/dqd) - dL/dq of one state, where the generalized velocities are rates of the coordinates."""
    Q, D, A = (casadi.SX.sym(name, mechanism.nv) for name in ("q", "qd", "qdd"))
    entries = [casadi.vertsplit(x) for x in (Q, D)]
    (T,) = evaluate(program(mechanism, "kinetic_energy"), *entries)
    (U,) = evaluate(program(mechanism, "potential_energy"), entries[0])
    momentum = casadi.gradient(T, D)
    tau = casadi.jtimes(momentum, Q, D) + casadi.jtimes(momentum, D, A) - casadi.gradient(T - U, Q)
    return np.array(casadi.Function("tau", [Q, D, A], [tau])(q, qd, qdd)).ravel()


@pytest.mark.parametrize("name", everyday.some(MECHANISMS))
@pytest.mark.parametrize("armature", [False, True], ids=["bare", "armature"])
def test_lagrange_gives_the_torques(name, armature):
    """Differentiate the Lagrangian of a mechanism and find inverse dynamics."""
    mechanism = random_mechanism(*MECHANISMS[name], 11, armature=armature)
    s = State(mechanism, 3)
    expected = np.stack([lagrange(mechanism, s.q[k], s.qd[k], s.qdd[k]) for k in range(3)])
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd)
    assert_close(relative(tau, expected), 0.0, 1e-9, "Lagrange")  # 1e-15


def test_mechanisms_cover_every_flat_kind():
    """Check that the mechanisms above have all kinds whose velocities are the rates of coordinates."""
    assert {k for kinds, _ in MECHANISMS.values() for k in kinds} == set(FLAT)
    assert set(MOVING) - set(FLAT) == {"spherical", "free"}
