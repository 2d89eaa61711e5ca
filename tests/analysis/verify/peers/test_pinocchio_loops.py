"""Forward dynamics of closed mechanisms against Pinocchio's constraint dynamics."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.analysis.verify.answers import NotRun
from kinetree.analysis.verify.peers.pinocchio_loops import closed_dynamics
from tolerance import assert_close


@pytest.mark.parametrize("name", ["four_bar", "three_rrr", "stewart", "five_bar", "parallelogram"])
def test_constraint_dynamics_of_pinocchio_agrees(name):
    """Agree to 1e-8 on closed states away from the guess, with torques on all joints."""
    system = kt.load(name)
    rng = np.random.default_rng(8)
    start = system.assemble()
    _, sizes, rows = np.linalg.svd(system.closure_jacobian(start))
    free = rows[int((sizes > 1e-9).sum()) :]
    peer = closed_dynamics(system.mechanism)
    for _ in range(6):
        q = system.assemble(system.integrate(start, 0.2 * rng.normal(size=len(free)) @ free))
        qd = system.closing_speed(q, 2.0 * rng.normal(size=system.nv))
        tau = rng.normal(size=system.nv)
        expected = peer(q, qd, tau)
        assert_close(system.forward_dynamics(q, qd, tau), expected, 1e-8 * np.abs(expected).max(), name)


def test_a_loop_that_pinocchio_lacks_is_named():
    """Name the loop that Pinocchio has no constraint for."""
    with pytest.raises(NotRun, match=r"no prismatic loop \('guide'\)"):
        closed_dynamics(sliding())


def sliding() -> kt.Mechanism:
    """Return a block on a turntable and a rail."""
    bodies = [kt.Body(n, 1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)) for n in ("table", "block")]
    joints = [kt.Joint("turn", "revolute", "ground", "table"), kt.Joint("slide", "planar", "ground", "block")]
    return kt.assemble("sliding", bodies, joints, loops=[kt.Loop("guide", "prismatic", "table", "block")])
