"""Derivatives at singular positions of loops: an error that names the sample, or NaN without checks."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InputError
from kinetree.model import GROUND
from planar_loops import at, bar, free_rod

ZERO = np.zeros(3)
FOLDED = np.array([np.pi, -np.pi, 0.0])
"""A position of the slider-crank with equal lengths at which its two branches of motion meet."""
TOLD = (
    "'slider_crank' is at a singular position of its loops (q = [3.14159, -3.14159, 0]): their equations have rank 1 "
    "there and 2 nearby, so there are no derivatives; move it away from there, or give check=False, which returns NaN "
    "there"
)


def test_singular_positions_are_refused():
    """Name the position and both ranks, for Jacobians and products, also with the forces of the mechanism."""
    system = kt.load("slider_crank")
    for options in ({}, {"forces": True}):
        with pytest.raises(InputError) as caught:
            system.forward_dynamics_derivatives(FOLDED, ZERO, ZERO, **options)
        assert str(caught.value) == f"jacobian of forward_dynamics: {TOLD}"
    function = system.function("forward_dynamics")
    with pytest.raises(InputError) as caught:
        function.vjp("q").checked((FOLDED, ZERO, ZERO, ZERO + 1.0))
    assert str(caught.value) == f"vjp of forward_dynamics: {TOLD}"
    assert np.isnan(function.jvp("q")(FOLDED, ZERO, ZERO, ZERO + 1.0)).all()
    assert np.isfinite(system.forward_dynamics(FOLDED, ZERO, ZERO)).all()


@pytest.mark.parametrize(
    ("name", "driven", "rank"),
    [
        ("closing_step", (), "rank 1 there and 2 nearby"),
        ("hybrid_dynamics", ("crank",), "rank 1 in the joints that are not driven there and 2 nearby"),
    ],
)
def test_other_functions_of_loops_are_checked(name, driven, rank):
    """Refuse derivatives of closing steps and of hybrid dynamics; at a regular position return numbers."""
    system = kt.load("slider_crank")
    function = system.function(name, driven=driven)
    given = [ZERO + 0.3] * (len(function.inputs) - 1)
    with pytest.raises(InputError, match=f"^jacobian of {name}: 'slider_crank' is at a singular .* have {rank}, so"):
        function.jacobian("q").checked((FOLDED, *given))
    for q, good in ((FOLDED, False), ([-0.9, 0.4, 1.0], True)):
        found = function.jacobian("q")(q, *given)
        for x in found if isinstance(found, tuple) else (found,):
            assert np.isfinite(x).all() == good


def test_dead_positions_of_driven_joints_are_refused():
    """Refuse derivatives where the driven slider does not determine the crank, at a regular position of the loops."""
    system = kt.load("slider_crank")
    stretched = system.assemble()
    assert np.isfinite(system.forward_dynamics_derivatives(stretched, ZERO, ZERO)[0]).all()
    hybrid = system.function("hybrid_dynamics", driven="slider").jacobian("q")
    with pytest.raises(InputError, match="have rank 1 in the joints that are not driven there and 2 nearby"):
        hybrid.checked((stretched, ZERO, ZERO, ZERO))


def test_a_sample_of_a_batch_is_named():
    """Name the sample of a batch; without checks only its derivatives are NaN."""
    system = kt.load("slider_crank")
    q = np.stack([[system.assemble()] * 3, [system.assemble(), FOLDED, FOLDED]])
    for out in (None, tuple(np.empty((2, 3, 3, 3)) for _ in range(3))):
        with pytest.raises(InputError, match=r"\(sample \[1, 1\], q = .* leave this sample out, or give check=False"):
            system.forward_dynamics_derivatives(q, ZERO, ZERO, out=out)
    found = system.forward_dynamics_derivatives(q, ZERO, ZERO, check=False)
    for x in found:
        assert np.isnan(x[1, 1:]).all() and np.isfinite(x[0]).all() and np.isfinite(x[1, 0]).all()


def test_parameters_decide():
    """Refuse the length of a rod at which its stretched position is a singular one."""
    system = free_rod()
    far = np.hypot(0.31, 0.12)
    q = np.stack([system.assemble(), [np.arctan2(0.12, 0.31), 0.0]])
    values = np.array([[0.6], [1.2 - far]])
    assert np.isfinite(system.forward_dynamics_derivatives(q[0], ZERO[:2], ZERO[:2], parameters=values[0])[0]).all()
    with pytest.raises(
        InputError, match=r"sample \[1\], q = \[0.369334, 0\]\): their equations have rank 0 there and 1"
    ):
        system.forward_dynamics_derivatives(q, ZERO[:2], ZERO[:2], parameters=values)


def folding_arm() -> kt.System:
    """Return two equal bars on a universal joint with the tip on a rail: folded, they move with one freedom more."""
    joints = [
        kt.Joint("base", "universal", GROUND, "b0", axis=(0.0, 0.0, 1.0), axis2=(0.0, 1.0, 0.0)),
        kt.Joint("elbow", "revolute", "b0", "b1", at(0.6)),
    ]
    rail = kt.Loop("rail", "point_on_line", GROUND, "b1", placement_b=at(0.6), axis=(1.0, 0.0, 0.0))
    guess = {"base": [0.4, 0.0], "elbow": -0.8}
    return kt.System(
        kt.build_mechanism("folding arm", [bar("b0", 0.6), bar("b1", 0.6)], joints, loops=[rail], guess=guess)
    )


@pytest.mark.slow
def test_branches_with_more_freedom_are_regular():
    """Return derivatives in a branch with a smaller rank, and refuse the position where the branches meet."""
    system = folding_arm()
    q, rng = np.stack([system.assemble(), [0.3, 0.2, np.pi]]), np.random.default_rng(5)
    qd = system.closing_speed(q, rng.normal(size=(2, 3)))
    tau = rng.normal(size=(2, 3))
    found = system.forward_dynamics_derivatives(q, qd, tau)
    assert all(np.isfinite(x).all() for x in found)
    alone = system.forward_dynamics_derivatives(q[1], qd[1], tau[1])
    assert all(np.array_equal(a[1], b) for a, b in zip(found, alone, strict=True))
    with pytest.raises(
        InputError, match=r"q = \[1.5708, 0, 3.14159\]\): their equations have rank 0 there and 2 nearby"
    ):
        system.forward_dynamics_derivatives([np.pi / 2, 0.0, np.pi], ZERO, ZERO)
