"""Forward dynamics of closed mechanisms against Pinocchio's constraint dynamics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.analysis.verify.comparisons import NotRun
from kinetree.analysis.verify.pinocchio import closed_dynamics
from tolerance import assert_close


@pytest.mark.parametrize("name", everyday.some(["four_bar", "three_rrr", "stewart", "five_bar", "parallelogram"]))
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
    return kt.build_mechanism("sliding", bodies, joints, loops=[kt.Loop("guide", "prismatic", "table", "block")])


@pytest.mark.parametrize("size", everyday.some([1e-5, 1e7]))
def test_the_comparison_is_independent_of_size(size):
    """Scale a four-bar to micrometers and to 1000 km, with densities unchanged, and find agreement."""
    found = kt.System(scaled(kt.load("four_bar").mechanism, size)).verify(3)
    assert found, str(found)
    assert not found.row("pin-loops").reason


def scaled(mechanism: kt.Mechanism, size: float) -> kt.Mechanism:
    """Return a mechanism with all lengths multiplied, of the same densities, in gravity that keeps its motion."""

    def moved(place: kt.Placement) -> kt.Placement:
        return replace(place, translation=tuple(size * x for x in place.translation))

    return replace(
        mechanism,
        bodies=tuple(
            replace(
                b,
                mass=b.mass * size**3,
                com=tuple(size * x for x in b.com),
                inertia=tuple(x * size**5 for x in b.inertia),
            )
            for b in mechanism.bodies
        ),
        joints=tuple(replace(j, placement=moved(j.placement)) for j in mechanism.joints),
        frames=tuple(replace(f, placement=moved(f.placement)) for f in mechanism.frames),
        loops=tuple(
            replace(x, placement_a=moved(x.placement_a), placement_b=moved(x.placement_b)) for x in mechanism.loops
        ),
        gravity=tuple(size * g for g in mechanism.gravity),
    )
