"""Rods by rigid segments: the elastica, order of convergence, rods that are curved, tapered or twisted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import everyday
import kinetree as kt
from tolerance import assert_close

THIN: dict[str, Any] = {"EI": 2.3, "mass_per_length": 1e-12}


def elastica(load: float) -> tuple[float, float]:
    """Return the tip (x / L, -z / L) of a cantilever under a force P across it, with P L^2 / EI = load."""

    def shoot(start: float):
        def rates(s: float, y: np.ndarray) -> list[float]:
            return [y[1], -load * math.cos(y[0]), math.cos(y[0]), math.sin(y[0])]

        return solve_ivp(rates, (0, 1), [0.0, start, 0.0, 0.0], method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]

    # The least curvature at the root: beyond the linear one, the rod would coil.
    start = brentq(lambda x: float(shoot(x)[1]), 0.0, load * 1.0001, xtol=1e-14, rtol=1e-14)
    return float(shoot(start)[2]), float(shoot(start)[3])


@everyday.long
@pytest.mark.parametrize(("load", "printed"), [(1.0, 0.30172), (5.0, 0.71379), (10.0, 0.81061)])
def test_elastica(load, printed):
    """Find the tip of the elastica with errors of the second order, and by extrapolation to 1e-6."""
    exact = np.array(elastica(load))
    assert_close(exact[1], printed, 1e-5, "printed deflection")
    tips = {}
    for n in (10, 20, 40):
        rod = kt.rod(1.4, n, **THIN, joint="revolute", tip_mass=load * 2.3 / 1.4**2 / 9.81)
        tip = rod.pose(kt.equilibrium(rod), "tip")[:3, 3] / 1.4
        tips[n] = np.array([tip[0], -tip[2]])
    errors = [np.abs(tips[n] - exact).max() for n in (10, 20, 40)]
    assert_close(np.log2(errors[1] / errors[2]), 2.0, 0.05, "order")
    richer = (4 * tips[40] - tips[20]) / 3
    assert_close(richer, exact, 1e-6, "extrapolated")


@everyday.long
def test_a_rod_hangs_as_a_beam():
    """Find the deflections of a stiff rod under its own weight, along y and z of a rectangle, and its twist."""
    section = ("rectangle", 0.02, 0.05)
    for gravity, axis, size in (((0.0, -9.81, 0.0), 1, 0.02), ((0.0, 0.0, -9.81), 2, 0.05)):
        rod = kt.rod(1.1, 20, E=7e10, G=2.6e10, rho=2700, section=section, joint="euler", gravity=gravity)
        tip = rod.pose(kt.equilibrium(rod), "tip")[:3, 3]
        exact = -2700 * 9.81 * 1.1**4 * 12 / (8 * 7e10 * size**2)
        assert_close(tip[axis], exact, 2e-3 * abs(exact), "deflection")


def test_curved_and_tapered_rods():
    """Find the circle of a curved rod at rest, and the deflection of a cone."""
    rod = kt.rod(1.3, 24, **THIN, curvature=(0.0, 0.9), gravity=(0.0, 0.0, 0.0))
    tip = rod.pose(kt.equilibrium(rod), "tip")[:3, 3]
    exact = [math.sin(1.17) / 0.9, (1 - math.cos(1.17)) / 0.9, 0.0]
    assert_close(tip, exact, 4e-4, "circle")
    cone = kt.rod(1.3, 32, **THIN, taper=0.6, joint="revolute", tip_mass=1e-3)
    depth = -cone.pose(kt.equilibrium(cone), "tip")[2, 3]
    x = (np.arange(20000) + 0.5) / 20000
    integral = np.mean((1 - x) ** 2 / (1 - 0.4 * x) ** 4) * 1.3**3
    assert_close(depth, 9.81e-3 / 2.3 * integral, 1e-3 * depth, "cone")


@everyday.long
def test_frequencies_of_a_rod():
    """Find the first frequency of a cantilever."""
    rod = kt.rod(1.1, 24, E=7e10, rho=2700, section=("circle", 0.01), joint="revolute", gravity=(0.0, 0.0, 0.0))
    found = np.sort(rod.modes(rod.neutral()).frequencies)[0]
    exact = 1.8751040687**2 / (2 * math.pi * 1.1**2) * math.sqrt(7e10 * 0.01**2 / 16 / 2700)
    assert_close(found, exact, 3e-3 * exact, "frequency")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"joint": "spherical"}, "joint is 'spherical'; expected one of revolute, universal, euler"),
        ({"EI": -1.0}, "rod: the EI is -1.0; give a number, more than 0"),
        ({"curvature": (1.0,)}, "the curvature has 1 numbers; give two, about y and about z"),
        ({"taper": 0.0}, "the taper is 0"),
        ({"joint": "euler"}, "rod: the beam has no GJ; give it, or G and a section"),
    ],
)
def test_bad_numbers_are_refused(options, text):
    """Refuse impossible rods."""
    with pytest.raises(kt.InputError) as error:
        kt.rod(1.0, 4, **{**THIN, **options})
    assert text in str(error.value)
