"""Beams: frequencies, static deflections, cross sections and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kinetree as kt
from kinetree.model.beam_shapes import bending_roots
from tolerance import assert_close

L, EI, MU = 1.7, 23.0, 0.61


def frequencies(beam: kt.Beam) -> np.ndarray:
    """Return the frequencies of a beam's modes [rad/s]."""
    modal = beam.modal
    return np.sqrt(np.array(modal.stiffness) / np.diag(np.array(modal.moments.K)))


def thin(**options) -> kt.Beam:
    """Return a thin beam."""
    return kt.Beam(L, EI=EI, mass_per_length=MU, **options)


def test_frequencies_of_eigenmodes_are_exact():
    """Find the first ten frequencies of a cantilever, as printed in tables of vibration."""
    beta = np.sqrt(frequencies(thin(modes=(10,), shapes="eigenmodes")) / math.sqrt(EI / (MU * L**4)))
    printed = [1.875104068711961, 4.694091132974175, 7.854757438237613, 10.995540734875467, 14.137168391046471]
    assert_close(beta[:5], printed, 1e-11, "beta")
    assert_close(np.cos(beta) * np.cosh(beta) / np.cosh(beta), -1 / np.cosh(beta), 1e-8, "cos cosh = -1")


@pytest.mark.parametrize("ends", ["clamped-free", "clamped-pinned", "clamped-clamped", "pinned-pinned"])
def test_polynomials_approach_the_eigenmodes(ends):
    """Find the first two frequencies of ten polynomials from above, for all ends."""
    exact = frequencies(thin(modes=(2,), ends=ends, shapes="eigenmodes"))
    found = frequencies(thin(modes=(10,), ends=ends))[:2]
    assert_close(found / exact, np.ones(2), 1e-8, "frequencies")
    coarse = frequencies(thin(modes=(2,), ends=ends))
    assert np.all(coarse > exact)


@pytest.mark.parametrize("ratio", [0.3, 2.0])
def test_tip_mass(ratio):
    """Find the frequencies of a cantilever with a point mass at its end, by polynomials and by eigenmodes."""
    for b in bending_roots(4, "clamped-free", ratio):
        left = 1 + 1 / (math.cos(b) * math.cosh(b))
        assert_close(left, ratio * b * (math.tan(b) - math.tanh(b)), 1e-9 * abs(left) + 1e-9, "1 + 1 / cos cosh")
    options = {"modes": (12,), "tip_mass": ratio * MU * L}
    exact = frequencies(thin(**options, shapes="eigenmodes"))[:4]
    assert_close(frequencies(thin(**options))[:4] / exact, np.ones(4), 1e-6, "frequencies")


def test_rods_in_torsion_and_extension():
    """Find the frequencies of a shaft and of a bar that are fixed at one end."""
    beam = kt.Beam(L, E=2.0e9, G=0.8e9, rho=1900, section=("circle", 0.03), modes=(0, 0, 12, 12))
    found = frequencies(beam)
    waves = (np.arange(3) + 0.5) * np.pi / L
    assert_close(found[:3], waves * math.sqrt(0.8e9 / 1900), 1e-6 * found[0], "torsion")
    assert_close(found[12:15], waves * math.sqrt(2.0e9 / 1900), 1e-6 * found[12], "extension")


@pytest.mark.parametrize("modes", [(3,), (4,)])
def test_static_deflections(modes):
    """Find the tip under a force and under the beam's own weight as in textbooks: three polynomials contain both."""
    joints = [kt.Joint("root", "fixed", "ground", "boom")]
    for gravity, end in (((0.0, -2.1, 0.0), 0.0), ((0.0, 0.0, 0.0), 0.37)):
        bodies, own = [kt.Body("boom", flexible=thin(modes=modes))], list(joints)
        system = kt.System(kt.build_mechanism("c", bodies, own, gravity=gravity))
        w = np.zeros((len(system.bodies), 6))
        w[[b.name for b in system.mechanism.bodies].index("boom.tip"), 4] = end
        stiffness = np.array(system.mechanism.body("boom.elastic").flexible.modal.stiffness)  # type: ignore[union-attr]
        q = np.zeros(system.nq)
        for _ in range(3):  # foreshortening turns the load a little, beyond the textbook
            tau = system.inverse_dynamics(0 * q, 0 * q, 0 * q, wrenches=w, forces=False)
            q = -tau / stiffness
        expected = end * L**3 / (3 * EI) - MU * (2.1 if not end else 0.0) * L**4 / (8 * EI)
        assert_close(system.pose(q, "boom.tip")[1, 3], expected, 1e-10 * abs(expected), "deflection")


def test_sections():
    """Compare areas, second moments and torsion constants with formulas and printed values."""
    E, G, rho = 2.0, 3.0, 5.0
    square = kt.Beam(1.0, E=E, G=G, rho=rho, section=("rectangle", 0.2, 0.2)).properties
    assert_close(square.GJ / G / 0.2**4, 0.140577, 1e-6, "torsion of a square")
    flat = kt.Beam(1.0, E=E, G=G, rho=rho, section=("rectangle", 0.4, 0.04)).properties
    assert_close(flat.GJ / G / (0.4 * 0.04**3), 0.312, 5e-4, "torsion of a strip")
    assert_close(flat.EI, (E * 0.04 * 0.4**3 / 12, E * 0.4 * 0.04**3 / 12), 1e-15, "bending along y and z")
    tube = kt.Beam(1.0, E=E, G=G, rho=rho, section=("tube", 0.3, 0.2)).properties
    assert_close(tube.EI[0], E * math.pi / 64 * (0.3**4 - 0.2**4), 1e-15, "bending of a tube")
    assert_close(tube.mass, rho * math.pi / 4 * (0.3**2 - 0.2**2), 1e-15, "mass of a tube")
    rigid = kt.Beam(1.5, E=E, rho=rho, section=("rectangle", 0.4, 0.2)).modal.rigid
    assert_close(rigid["inertia"][0], rigid["mass"] * (0.4**2 + 0.2**2) / 12, 1e-12, "inertia about the axis")
    assert_close(rigid["inertia"][1], rigid["mass"] * (1.5**2 + 0.2**2) / 12, 1e-12, "inertia across")


SOFT = {"EI": 1.0, "mass_per_length": 1.0}
SOLID = {"E": 1.0, "rho": 1.0}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"length": -1.0, **SOFT}, "beam: the length is -1.0; give a number, more than 0"),
        ({"length": math.nan, **SOFT}, "beam: the length is nan"),
        ({"length": 1e-300, **SOFT}, "beam: the length is 1e-300; give a number from 1e-30 to 1e+30 in SI units"),
        ({"nodes": (("a", 1.0, 2.0),), **SOFT}, "nodes is (('a', 1.0, 2.0),); give distances [m] by name"),
        ({"nodes": 5, **SOFT}, "beam: nodes is 5; give distances [m] by name, such as {'middle': 1.0}"),
        (
            {"section": ("rectangle", -0.1, 0.1), **SOLID},
            "the size of the rectangle is -0.1; give a number, more than 0",
        ),
        ({"section": ("tube", 0.1, 0.2), **SOLID}, "the tube's inner diameter is 0.2 m of 0.1 m"),
        ({"section": ("circle", 0.1, 0.2), **SOLID}, "a circle has 2 sizes; give 1"),
        ({"section": ("I", 0.1), **SOLID}, "no section 'I'; available: rectangle, circle, tube"),
        ({"modes": (21,), **SOFT}, "the number of modes 'y' is 21; give a whole number from 0 to 20"),
        ({"modes": (1, 1.5), **SOFT}, "the number of modes 'z' is 1.5"),
        ({"modes": 3, **SOFT}, "modes is 3; give the numbers of modes: y, z, torsion, axial"),
        ({"modes": (0, 0, 1), **SOFT}, "the beam has no GJ; give it, or G and a section"),
        ({"modes": (0, 0, 1), "GJ": 1.0, **SOFT}, "the beam has torsion modes and no polar"),
        ({"EI": 1.0}, "the beam has no mass_per_length; give it, or rho and a section"),
        ({"section": ("circle", 0.1), "EI": 1.0, **SOLID}, "EI and a section are given; give one of them"),
        ({"ends": "free", **SOFT}, "no ends 'free'; available: clamped-free"),
        ({"shapes": "sines", **SOFT}, "no shapes 'sines'; available: polynomials, eigenmodes"),
        ({"nodes": {"far": 1.5}, **SOFT}, "node 'far' is at 1.5 m of a beam of 1 m; give a distance on the beam"),
        ({"nodes": {"tip": 0.5}, **SOFT}, "a node has the name 'tip'; use letters, digits and _, and none of tip"),
        ({"damping": -0.1, **SOFT}, "the damping is -0.1; give a number, 0 or more"),
    ],
)
def test_bad_numbers_are_refused(given, text):
    """Refuse impossible beams with the value and a remedy."""
    with pytest.raises(kt.ModelError) as error:
        kt.Beam(**{"length": 1.0, **given})
    assert text in str(error.value)
