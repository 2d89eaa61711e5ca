"""Characteristic length and mass of a mechanism, and results that do not depend on them."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.errors import InputError
from kinetree.model.scales import characteristic_length, characteristic_mass, largest_length, loop_units
from scaled import scaled
from tolerance import assert_close

SIZES = [(1e-6, 1e-3), (1e6, 1e6)]
"""Scale factors of length and mass: micrometers and grams, thousands of kilometers and kilotons."""


def test_lengths_and_masses_are_means_of_those_above_zero():
    """Count the distances of joints, ends of loops and rods, and the masses of bodies that have one."""
    bodies = [kt.Body("a", 3.0, (0.1, 0.0, 0.0), (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)), kt.Body("b"), kt.Body("c", 1.0)]
    joints = [
        kt.Joint("a", "revolute", kt.GROUND, "a"),
        kt.Joint("b", "revolute", "a", "b", kt.Placement((0.3, 0.0, 0.4))),
        kt.Joint("c", "revolute", "b", "c"),
    ]
    rod = kt.Loop("rod", "rod", kt.GROUND, "c", kt.Placement((0.0, 2.0, 0.0)), length=1.1)
    mechanism = kt.build_mechanism("bars", bodies, joints, loops=[rod])
    assert_close(characteristic_length(mechanism), (0.5 + 2.0 + 1.1) / 3, 1e-15, "length")
    assert largest_length(mechanism) == 2.0 and characteristic_mass(mechanism) == 2.0
    bare = kt.build_mechanism("pendulum", bodies[:1], joints[:1])
    assert characteristic_length(bare) == 0.1
    assert characteristic_length(kt.build_mechanism("wheel", [kt.Body("a", 3.0)], joints[:1])) == 1.0


@pytest.mark.parametrize(("length", "mass"), everyday.some(SIZES))
@pytest.mark.parametrize(
    "name",
    ["four_bar", pytest.param("stewart", marks=pytest.mark.slow), pytest.param("gear_train", marks=pytest.mark.slow)],
)
def test_images_in_other_lengths_and_masses_get_the_same_answers(name, length, mass):
    """Assemble, diagnose, verify and simulate a scaled copy with the results of the original, with scaled times."""
    own = kt.load(name).mechanism
    system, image = kt.System(scaled(own, 1.0, 1.0)), kt.System(scaled(own, length, mass))
    q, there = system.assemble(), image.assemble()
    units, speeds = loop_units(image.mechanism)
    assert (np.abs(image.closure_residual(there) / units) <= 1e-12).all()
    expected, found = system.doctor(q), image.doctor(there)
    assert found.ok and found.verdict == expected.verdict and found.redundant == expected.redundant
    assert image.verify(1, routes=None)
    rate = np.linspace(1.0, 2.0, system.nv)
    qd = system.closing_speed(q, loop_units(system.mechanism)[1] * rate)
    moving = image.closing_speed(there, speeds * rate / np.sqrt(length))
    how = {"method": "rk4", "progress": False}
    run = kt.simulate(system, q, qd, duration=0.1, dt=1e-3, **how)
    same = kt.simulate(image, there, moving, duration=0.1 * np.sqrt(length), dt=1e-3 * np.sqrt(length), **how)
    assert run.status == same.status == "finished"
    assert_close(same.qd[-1] / speeds * np.sqrt(length), run.qd[-1] / loop_units(system.mechanism)[1], 1e-9, "qd")
    assert (np.abs(image.closure_residual(same.q) / units) <= 1e-11).all()


def test_a_start_is_refused_in_proportion_to_the_size():
    """Refuse a four-bar of micrometers whose rods miss each other by a hundredth of their length."""
    image = kt.System(scaled(kt.load("four_bar").mechanism, 1e-6, 1e-3))
    off = image.assemble()
    off[0] += 0.01
    with pytest.raises(InputError, match="q0 does not close loop"):
        kt.simulate(image, off, duration=1e-3, progress=False)


def test_kilometres_close_to_the_tolerance_of_metres():
    """Assemble a copy of 1000 km with the default tolerance, which rounding in meters would not allow."""
    image = kt.System(scaled(kt.load("four_bar").mechanism, 1e6, 1.0))
    q = image.assemble(hold={"crank": 0.7})
    assert np.abs(image.closure_residual(q)).max() < 1e-12 * largest_length(image.mechanism)
