"""Numbers of beams as parameters: the same equations as those of the beams with these numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.formats.toml import read_toml_text
from kinetree.formats.toml_writer import write_toml
from tolerance import assert_close

TUBE = kt.Beam(
    2.0, E=70e9, G=26e9, rho=2700, section=("tube", 0.05, 0.046), modes=(2, 2, 1, 1), damping=0.01, nodes={"mid": 0.9}
)  # fmt: skip
BAR = kt.Beam(1.5, E=70e9, rho=2700, section=("rectangle", 0.03, 0.04), modes=(2, 1), tip_mass=0.3)
GIVEN = kt.Beam(1.2, EI=(30.0, 50.0), GJ=9.0, mass_per_length=0.8, polar=0.001, modes=(1, 1, 1), damping=0.02)


def arm(*beams: kt.Beam) -> kt.System:
    """Return a chain of beams."""
    bodies = [kt.Body(f"b{k}", 0.1, flexible=x) for k, x in enumerate(beams)]
    above = ["ground", *(f"b{k}.tip" for k in range(len(beams)))]
    joints = [kt.Joint(f"j{k}", "revolute", above[k], f"b{k}", axis=(0.2, 1.0, 0.1 * k)) for k in range(len(beams))]
    return kt.System(kt.build_mechanism("chain", bodies, joints))


def compare(free: kt.System, values: dict[str, float], expected: kt.System) -> None:
    """Compare the dynamics and the place of a node at a random state."""
    rng = np.random.default_rng(2)
    q, qd = expected.random_state(rng)
    qdd = rng.normal(size=expected.nv)
    tau = expected.inverse_dynamics(q, qd, qdd)
    assert_close(
        free.inverse_dynamics(q, qd, qdd, parameters=values), tau, 1e-13 * np.abs(tau).max(), "inverse dynamics"
    )
    back = free.forward_dynamics(q, qd, tau, parameters=values)
    assert_close(back, qdd, 1e-8 * np.abs(qdd).max(), "forward dynamics")
    for node in (b.name for b in expected.mechanism.bodies if b.name.endswith(("mid", "tip"))):
        assert_close(free.pose(q, node, parameters=values), expected.pose(q, node), 1e-14, "node")


def test_formulas_at_the_own_numbers():
    """Free all numbers of beams, one with a tip mass, and find their own equations."""
    free = kt.with_free(arm(TUBE, BAR, GIVEN), "beam.b0.*", "beam.b1.*", "beam.b2.*")
    assert [p.name.split(".")[2] for p in free.mechanism.free_parameters if ".b2." in p.name] == [
        "length", "EI_y", "EI_z", "GJ", "mass_per_length", "polar", "tip_mass", "damping",
    ]  # fmt: skip
    compare(free, {}, arm(TUBE, BAR, GIVEN))


@everyday.long
def test_formulas_at_other_numbers():
    """Change length, section, material and damping of beams, whose shapes stay the same functions of x / L."""
    free = kt.with_free(arm(TUBE, replace(BAR, tip_mass=0.0), GIVEN), "beam.b0.*", "beam.b1.*", "beam.b2.*")
    values = {
        "beam.b0.length": 2.7, "beam.b0.E": 6e10, "beam.b0.G": 2.2e10, "beam.b0.rho": 2500.0, "beam.b0.outer": 0.062,
        "beam.b0.inner": 0.051, "beam.b0.damping": 0.03, "beam.b1.length": 1.1, "beam.b1.size_z": 0.033,
        "beam.b2.EI_z": 70.0, "beam.b2.polar": 0.002, "beam.b2.mass_per_length": 0.9,
    }  # fmt: skip
    tube = replace(
        TUBE, length=2.7, E=6e10, G=2.2e10, rho=2500, section=("tube", 0.062, 0.051), damping=0.03, nodes={"mid": 1.215}
    )  # fmt: skip
    bar = replace(BAR, length=1.1, section=("rectangle", 0.03, 0.033), tip_mass=0.0)
    compare(free, values, arm(tube, bar, replace(GIVEN, EI=(30.0, 70.0), polar=0.002, mass_per_length=0.9)))


@everyday.long
def test_a_tip_mass_as_parameter():
    """Change a tip mass: with enough polynomials, the first frequencies are those of the beam with that mass."""
    bar = replace(BAR, modes=(6,), tip_mass=0.0)
    free = kt.with_free(arm(bar), "beam.b0.tip_mass")
    exact = arm(replace(bar, tip_mass=2.0))
    still, squares = np.zeros(7), []
    for system, values in ((free, {"parameters": [2.0]}), (exact, {})):
        K = system.inverse_dynamics_derivatives(still, still, still, forces=True, **values)[0]
        M = system.inertia_matrix(still, **values)
        squares.append(np.sort(np.linalg.eigvals(np.linalg.solve(M[1:, 1:], K[1:, 1:])).real)[:3])
    assert_close(squares[0] / squares[1], np.ones(3), 1e-9, "squares of frequencies")


def test_derivatives_with_respect_to_numbers_of_beams():
    """Compare derivatives by thickness and length with central differences."""
    system = arm(TUBE)
    free = kt.with_free(system, "beam.b0.length", "beam.b0.outer")
    q, qd = system.random_state(np.random.default_rng(5))
    values, none = np.array([2.0, 0.05]), np.zeros(system.nv)
    found = free.function("forward_dynamics").jacobian(wrt="parameters")(q, qd, none, values)
    for k, h in enumerate((1e-5, 1e-6)):
        sides = [free.forward_dynamics(q, qd, none, parameters=values + s * h * np.eye(2)[k]) for s in (1, -1)]
        slope = (sides[0] - sides[1]) / (2 * h)
        assert_close(found[:, k], slope, 1e-6 * np.abs(slope).max(), "derivative")


def test_files_keep_formulas():
    """Write a beam with formulas, read it again, and refuse formulas of numbers that it does not have."""
    mechanism = kt.with_free(arm(TUBE), "beam.b0.outer", "beam.b0.E").mechanism
    text = write_toml(mechanism)
    assert 'formulas = { outer = "beam.b0.outer", E = "beam.b0.E" }' in text
    assert read_toml_text(text)[0].hash == mechanism.hash
    with pytest.raises(
        kt.ModelError, match=r"<text>:\d+: body 'b0', flexible: no number of the beam 'diameter'; available: leng"
    ):
        read_toml_text(text.replace('outer = "beam.b0.outer"', 'diameter = "beam.b0.outer"'))


def test_a_study_of_thickness():
    """Vary the outer diameter of a beam in one study: the tip sags less, as E I grows and more mass pulls."""
    beam = replace(TUBE, modes=(0, 3))
    joint = kt.Joint("root", "fixed", "ground", "b0")
    held = kt.System(kt.build_mechanism("cantilever", [kt.Body("b0", flexible=beam)], [joint]))
    free, outer = kt.with_free(held, "beam.b0.outer"), np.array([0.048, 0.052, 0.06])
    q = kt.equilibrium(free, np.zeros((3, 3)), parameters=outer[:, None])
    sag = -free.pose(q, "b0.tip", parameters=outer[:, None])[:, 2, 3]
    area, second = np.pi / 4 * (outer**2 - 0.046**2), np.pi / 64 * (outer**4 - 0.046**4)
    exact = 2700 * area * 9.81 * 2.0**4 / (8 * 70e9 * second)
    assert_close(sag / exact, np.ones(3), 1e-4, "own weight")
