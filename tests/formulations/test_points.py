"""Equimomental systems: the numbers of [Gupta2013], conversion both ways, and bodies without such a system."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinetree as kt
from kinetree.errors import ModelError, UnknownNameError
from kinetree.formulations.points import (
    SYSTEMS,
    body_of,
    body_points,
    four_points,
    positive_points,
    seven_points,
    signed_points,
)
from kinetree.model.mechanism import resolve_parts
from rounding_scales import EPS
from strategies import body, examples
from tolerance import assert_close

PRINTED = (0.628, -0.543, 1.171, 0.0, 1.171, -0.543, 0.628)
"""The masses of the spatial pendulum in section V of [Gupta2013], cut off after three digits."""


def central(b: kt.Body) -> np.ndarray:
    """Return the inertia of a body about its center of mass."""
    xx, yy, zz, xy, yz, zx = b.inertia
    return np.array([[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]])


def about_origin(b: kt.Body) -> np.ndarray:
    """Return the inertia of a body about its origin."""
    c = np.array(b.com)
    return central(b) + b.mass * (c @ c * np.eye(3) - np.outer(c, c))


def test_the_masses_of_the_spatial_pendulum():
    """Get the seven masses that the paper prints, from the inertia about O_2 and the center of mass at -a/2."""
    m, a, d = 2.512, 1.0, 0.02
    across = m * d**2 / 16 + m * a**2 / 3
    points = seven_points(m, (-a / 2, 0, 0), (m * d**2 / 8, across, across, 0, 0, 0))
    assert_close(np.trunc(points.masses * 1000 + 1e-9) / 1000, PRINTED, 1e-12, "masses as printed")
    root = np.sqrt(3.0)
    exact = m * np.array([1 / 4, -root / 8, (2 + root) / 8, 0, (2 + root) / 8, -root / 8, 1 / 4])
    assert_close(points.masses, exact, 1e-14, "masses")
    assert_close(np.abs(points.positions[0]), np.sqrt([a**2 / 3, d**2 / 16, d**2 / 16]), 1e-12, "h")


def test_the_pendulum_of_the_library_gives_the_same_masses():
    """Place the box at the tip of the rod; its frame in the library is at the joint."""
    mechanism = kt.load("spatial_pendulum").mechanism
    rod = resolve_parts(mechanism.bodies[0], mechanism.values())
    points = body_points(rod, at=(1.0, 0.0, 0.0))
    assert_close(points.masses, PRINTED, 1e-3, "masses")
    assert_close(body_of(points)[1], rod.com, 1e-15, "center of mass")


@given(st.integers(0, 2**32 - 1), st.sampled_from(SYSTEMS))
@examples(100)
def test_points_lead_back_to_the_body(seed, system):
    """Replace a random body by points, and the points by a body."""
    b = body("b", np.random.default_rng(seed))
    points = body_points(b, system)
    m, com, inertia = body_of(points)
    size = np.abs(points.masses) @ (np.abs(points.positions) ** 2).sum(axis=1)
    assert_close(m, b.mass, 20 * EPS * np.abs(points.masses).sum(), "mass")
    assert_close(
        m * com, b.mass * np.array(b.com), 20 * EPS * np.sqrt(size * np.abs(points.masses).sum()), "first moment"
    )
    assert_close(inertia, central(b), 20 * EPS * size * np.abs(points.masses).sum() / m, "inertia")


def test_counts_and_signs():
    """Count the points of each system, and find negative masses only where they are allowed."""
    b = body("b", np.random.default_rng(3))
    made = {system: body_points(b, system).masses for system in SYSTEMS}
    assert {system: len(masses) for system, masses in made.items()} == {
        "seven": 7,
        "four": 4,
        "positive": 6,
        "signed": 7,
    }
    assert (made["positive"] > 0).all()
    assert_close(made["four"], np.full(4, b.mass / 4), 0.0, "four equal masses")


def test_seven_points_solve_the_equations_as_printed():
    """Insert masses and widths into (1)-(10), with products of inertia that are sums of m x y."""
    b = body("b", np.random.default_rng(7))
    inertia = about_origin(b)
    points = seven_points(b.mass, b.com, inertia)
    m1, m2, m3, m4, m5, m6, m7 = points.masses
    hx, hy, hz = points.positions[0]
    left = [
        m1 + m2 + m3 + m4 + m5 + m6 + m7,
        (m1 + m2 - m3 - m4 - m5 + m6 + m7) * hx,
        (m1 + m2 + m3 + m4 - m5 - m6 - m7) * hy,
        (m1 - m2 - m3 + m4 + m5 + m6 - m7) * hz,
        (m1 + m2 - m3 - m4 + m5 - m6 - m7) * hx * hy,
        (m1 - m2 - m3 + m4 - m5 - m6 + m7) * hy * hz,
        (m1 - m2 + m3 - m4 - m5 + m6 - m7) * hz * hx,
        *(points.masses.sum() * np.array([hy**2 + hz**2, hz**2 + hx**2, hx**2 + hy**2])),
    ]
    right = [b.mass, *(b.mass * np.array(b.com)), -inertia[0, 1], -inertia[1, 2], -inertia[2, 0], *np.diag(inertia)]
    assert_close(left, right, 1e-14, "(1)-(10)")


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_slender_rod_keeps_its_inertia(system):
    """Take a rod without thickness: two widths are zero, and their equations vanish."""
    rod = kt.Body("rod", 2.0, (0.3, 0.0, 0.0), (0.0, 0.06, 0.06, 0.0, 0.0, 0.0))
    points = body_points(rod, system)
    m, com, inertia = body_of(points)
    assert not points.positions[:, 1:].any()
    assert_close(m, 2.0, 1e-15, "mass")
    assert_close(com, rod.com, 1e-15, "center of mass")
    assert_close(inertia, central(rod), 1e-15, "inertia")
    if system == "seven":  # of all masses that solve (1) and (2), the smallest: equal at each end
        assert_close(points.masses[[0, 1, 5, 6]], np.full(4, points.masses[0]), 1e-15, "near end")
        assert_close(points.masses[2:5], np.full(3, points.masses[2]), 1e-15, "far end")


def test_a_flat_plate_off_its_plane_by_rounding():
    """Tilt a lamina out of its plane by less than its thickness resolves, and keep all its moments."""
    inertia = np.diag([0.2, 0.3, 0.5])
    inertia[0, 2] = inertia[2, 0] = 1e-12
    m, com, back = body_of(seven_points(1.0, (0.0, 0.0, 1e-12), inertia))
    assert_close(m, 1.0, 1e-14, "mass")
    assert_close(com[:2], (0.0, 0.0), 1e-14, "center of mass")
    assert_close(com[2], 1e-12, 1e-20, "height")
    assert_close(back, inertia, 1e-14, "inertia")
    assert_close(back[0, 2], 1e-12, 1e-19, "product")


def test_a_body_without_extent_is_a_point():
    """Take a point mass: one positive point, four at the same position."""
    dot = kt.Body("dot", 2.0, (0.1, 0.2, 0.3))
    assert len(body_points(dot, "positive").masses) == 1
    for system in SYSTEMS:
        m, com, inertia = body_of(body_points(dot, system))
        assert_close([m, *com], [2.0, 0.1, 0.2, 0.3], 1e-14, "mass and centre")
        assert_close(inertia, np.zeros((3, 3)), 1e-15, "inertia")


@pytest.mark.parametrize("system", SYSTEMS)
def test_inertia_without_mass(system):
    """Take link 1 of the PUMA, which has inertia but no mass: points of both signs, with zero total mass."""
    link = kt.load("puma560").mechanism.bodies[0]
    assert link.mass == 0
    points = body_points(link, system)
    assert_close(points.masses.sum(), 0.0, 1e-15, "mass")
    assert_close(points.masses @ points.positions, np.zeros(3), 1e-15, "first moment")
    assert_close(body_of(points)[2], central(link), 1e-15, "inertia")
    assert len(body_points(replace(link, inertia=(0.0,) * 6), system).masses) == 0


@pytest.mark.parametrize("make", [four_points, positive_points])
def test_impossible_inertia_is_refused(make):
    """Request real points of an inertia that violates the triangle inequality, and read which moment is too large."""
    with pytest.raises(ModelError) as caught:
        make(2.0, (0, 0, 0), np.diag([1.0, 0.2, 0.3]), where="body 'b'")
    assert str(caught.value) == (
        "body 'b': h_1^2 = -0.125 m^2 is negative: I_1 = 1 kg m^2 is too large compared with I_2 + I_3 = 0.5 kg m^2; "
        "no body can have this inertia: check units, signs and the point it is about; signed points represent any "
        "numbers"
    )


def test_imaginary_width_is_refused():
    """Request seven points and read which width of the box is imaginary."""
    with pytest.raises(ModelError, match=r"body 'b': h_y\^2 = -0\.25 m\^2 is negative: I_yy = 2 kg m\^2 is too large"):
        body_points(kt.Body("b", 2.0, (0, 0, 0), (0.5, 2.0, 0.5, 0, 0, 0)))


def test_signed_points_stand_for_impossible_bodies():
    """Represent an impossible inertia by points of both signs, at any distance."""
    impossible = np.diag([1.0, 0.2, 0.3])
    for length in (0.1, 1.0, 3.0):
        m, com, inertia = body_of(signed_points(2.0, (0.1, 0.2, 0.3), impossible, length=length))
        assert_close([m, *com], [2.0, 0.1, 0.2, 0.3], 1e-13, "mass and centre")
        assert_close(inertia, impossible, 1e-13, "inertia")


@pytest.mark.parametrize("make", [seven_points, four_points, positive_points])
def test_massless_bodies_are_refused(make):
    """Request the points of zero mass and read that h is not a number."""
    with pytest.raises(ModelError, match=r"mass 0 kg: h\^2 = J / m is not a number; give the body mass, or use signed"):
        make(0.0, (0, 0, 0), np.eye(3))


def test_unknown_systems_are_refused():
    """Mistype a system and read the available ones."""
    with pytest.raises(UnknownNameError, match="no system of points 'sevn'; did you mean 'seven'"):
        body_points(kt.Body("b", 1.0), "sevn")
