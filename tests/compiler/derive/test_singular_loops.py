"""Singular positions of loops: the rank of their equations, and derivatives that do not exist there."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from scipy.spatial.transform import Rotation

import kinetree as kt
from closed_mechanisms import closed_mechanisms
from kinetree.compiler.derive.closed import Ranks
from kinetree.compiler.lower.build import Derivative, Request
from kinetree.formulations.closed_system import closed_equations
from kinetree.model import GROUND
from kinetree.runtime.derived import program_of
from planar_loops import at, chain
from strategies import examples

NONE = np.zeros(0)


@given(closed_mechanisms(most=4))
@examples(24)
def test_regular_positions_are_not_singular(drawn):
    """Find the usual rank at closed positions of random mechanisms at which no singular value of J is small."""
    mechanism, q = drawn
    known, sizes = Ranks(mechanism), np.linalg.svd(closed_equations(mechanism, q).J, compute_uv=False)
    sizes = sizes / sizes.max(initial=1e-300)
    hypothesis.assume(not ((sizes > 1e-9) & (sizes < 1e-2)).any())
    assert known.at(q, NONE) >= known.usual
    assert known.nearby(q, NONE) == known.at(q, NONE)


def test_a_flat_parallelogram_is_singular():
    """Find one equation less at the change point of a four-bar, by its doctor too, and not beside it."""
    system = chain(0.3, 0.8, 0.3, loops=[kt.Loop("pin", "revolute", GROUND, "b2", at(0.8), at(0.3))], guess={"j0": 1.0})
    known, flat = Ranks(system.mechanism), np.array([0.0, 0.0, np.pi])
    assert (known.usual, known.at(flat, NONE), known.nearby(flat, NONE)) == (2, 1.0, 2)
    assert (system.doctor(flat).mobility, system.doctor(flat).lasting) == (2, 1)
    beside = system.assemble(hold={"j0": 1e-2})
    assert known.at(beside, NONE) == 2.0


def test_redundant_rods_do_not_count():
    """Count each direction of a parallelogram with a third rod once, and one less where it is flat."""
    system = kt.load("parallelogram")
    known = Ranks(system.mechanism)
    tilted, flat = (system.assemble(hold={"rocker": x}) for x in (0.3, np.pi / 2))
    assert (known.usual, known.at(tilted, NONE), known.at(flat, NONE), known.nearby(flat, NONE)) == (3, 3.0, 2.0, 3)


@pytest.mark.slow
def test_a_stewart_platform_is_singular_by_its_legs_alone():
    """Keep the rank where the legs do not hold the platform: with free legs, that position is a regular one."""
    system = kt.load("stewart")
    start = system.assemble()
    turned = (Rotation.from_euler("z", np.pi / 2) * Rotation.from_quat(start[3:7])).as_quat()
    q = system.assemble(hold={"platform": np.concatenate([start[:3], turned])})
    legs = [6 + 3 * k + 2 for k in range(6)]
    held = np.delete(system.closure_jacobian(q), legs, axis=1)
    assert np.linalg.matrix_rank(held, tol=1e-9) == 17
    known = Ranks(system.mechanism)
    assert (known.usual, known.at(q, NONE)) == (18, 18.0)


@pytest.mark.parametrize("kind", ["jacobian", "jvp", "vjp", "hvp"])
@pytest.mark.parametrize("tangent", [True, False])
@pytest.mark.parametrize("name", ["forward_dynamics", "closing_step", "hybrid_dynamics"])
def test_derivatives_keep_their_bits(kind, tangent, name):
    """Return NaN at a singular position, and elsewhere the bits of the derivative without this check."""
    system = kt.load("slider_crank").mechanism
    by, driven = ("q",) if name == "closing_step" else ("q", "qd"), ("crank",) if name == "hybrid_dynamics" else ()
    both = [
        program_of(system, Request(name, driven=driven, derivative=Derivative(kind, by, tangent, x)).checked(system))
        for x in (False, True)
    ]
    rng = np.random.default_rng(4)
    q = np.array([[0.7, -1.4, 2.0 * np.sin(0.7)], [np.pi, -np.pi, 0.0]])
    given_ = [rng.normal(size=(2, *a.shape)) for a in both[0].inputs]
    given_[0] = q
    for found, plain in zip(*(p.interpret(*given_) for p in both), strict=True):
        assert np.array_equal(found[0], plain[0]) and np.isfinite(plain).all() and np.isnan(found[1]).any()
        given_zeros = (plain[1] == 0.0) if driven else False  # accelerations of driven joints, torques of the others
        assert (np.isnan(found[1]) | given_zeros).all()
