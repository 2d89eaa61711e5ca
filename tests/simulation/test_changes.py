"""Payloads and gears: the motion is that of a mechanism built with them."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from interpreted import compute, relative
from kinetree import Body, InputError, Joint, ModelError, Placement, System, assemble, forces_of
from kinetree.model.formulas import parse
from kinetree.model.mechanism import replace
from kinetree.simulation.changes import with_gear, with_payload
from rigid_body import moments, tensor, welded
from strategies import State, body, random_mechanism
from tolerance import assert_close

ARM = random_mechanism(["revolute", "prismatic", "universal"], [-1, 0, 1], 4)
S = State(ARM)
LOAD = body("load", np.random.default_rng(8))


def loaded(arm):
    """Return the arm with the load on its last body."""
    return with_payload(arm, "b2", LOAD.mass, LOAD.com, LOAD.inertia)


def test_payload_is_a_body_welded_on():
    """Compare the torques with those of the load on a fixed joint, and the body with the parallel-axis theorem."""
    fixed = Joint("weld", "fixed", "b2", "load", Placement())
    built = assemble("built", [*ARM.bodies, LOAD], [*ARM.joints, fixed], gravity=ARM.gravity)
    expected = compute(built, "inverse_dynamics", S.q, S.qd, S.qdd)
    assert_close(relative(compute(loaded(ARM), "inverse_dynamics", S.q, S.qd, S.qdd), expected), 0.0, 1e-13, "torques")
    one, other = welded("b2", ARM.bodies[2], LOAD), loaded(ARM).bodies[2]
    assert_close([one.mass, *one.com, *one.inertia], [other.mass, *other.com, *other.inertia], 1e-14, "body")


def test_payload_on_a_massless_body():
    """Add a load to a body without mass and find the load; add a load without mass and find no change."""
    arm = replace(ARM, bodies=(*ARM.bodies[:2], Body("b2")))
    got = loaded(arm).bodies[2]
    assert_close([got.mass, *got.com, *got.inertia], [LOAD.mass, *LOAD.com, *LOAD.inertia], 1e-15)
    assert with_payload(ARM, "b2", 0.0, (1.0, 2.0, 3.0)).bodies == ARM.bodies


def test_payload_on_a_mass_that_is_a_parameter():
    """Keep the parameter in the mass, the center of mass and the inertia of the whole."""
    arm = replace(ARM, bodies=(*ARM.bodies[:2], replace(ARM.bodies[2], mass=parse("2 * m"))))
    got = loaded(arm).bodies[2]
    plain = welded("b2", replace(ARM.bodies[2], mass=3.0), LOAD)
    values = {"m": 1.5}
    assert_close(got.mass.value(values), plain.mass, 1e-15, "mass")
    assert_close([x.value(values) for x in got.com], plain.com, 1e-15, "centre")
    assert_close([x.value(values) for x in got.inertia], moments(tensor(plain)), 1e-14, "inertia")


def test_gear_adds_the_rotor_to_the_diagonal():
    """Find ratio^2 times the rotor inertia at the entry of its joint in the inertia matrix, and nowhere else."""
    geared = with_gear(ARM, "j1", -50.0, 2e-4)
    difference = compute(geared, "inertia_matrix", S.q) - compute(ARM, "inertia_matrix", S.q)
    assert_close(difference, np.broadcast_to(np.diag([0.0, 0.5, 0.0, 0.0]), (3, 4, 4)), 1e-13)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: with_payload(ARM, "b9", 1.0), "no body 'b9'; available: b0, b1, b2"),
        (lambda: with_payload(ARM, "b2", -1.0), "body 'payload of b2': the mass is -1 kg; give a mass of zero or more"),
        (lambda: with_payload(ARM, "b2", 1.0, (0, 0)), "com of the payload of 'b2' has 2 numbers; give 3"),
        (
            lambda: with_payload(ARM, "b2", 1.0, inertia=(1.0,)),
            "body 'payload of b2': the inertia has 1 numbers; give xx",
        ),
        (lambda: with_payload(ARM, "b2", 1.0, inertia=(1, 1, 9, 0, 0, 0)), "no body can have this inertia"),
        (
            lambda: with_gear(ARM, "j2", 10.0, 1.0),
            "one degree of freedom; the joint 'j2' is universal and has 2: give its",
        ),
        (lambda: with_gear(ARM, "j0", 10.0, -1.0), "the rotor inertia of 'j0' is -1; give 0 or more"),
        (lambda: with_gear(ARM, "j0", "10", 1.0), "the ratio of the gear of 'j0' is '10'; give a number"),
    ],
)
def test_faults_are_named(change, message):
    """Request an impossible change, and read the reason."""
    with pytest.raises((InputError, ModelError)) as caught:
        change()
    assert message in str(caught.value)


def test_systems_are_taken_for_their_mechanisms():
    """Give a System where a Mechanism is expected, and find the same result; a name is refused."""
    system = System(ARM)
    assert with_payload(system, "b2", 0.7, (0.1, 0.2, 0.3)) == with_payload(ARM, "b2", 0.7, (0.1, 0.2, 0.3))
    assert with_gear(system, "j1", -50.0, 2e-4) == with_gear(ARM, "j1", -50.0, 2e-4)
    assert forces_of(system) == forces_of(ARM)
    with pytest.raises(InputError, match="mechanism is 'stanford'; give a System or a Mechanism, such as kt.load"):
        with_payload("stanford", "b2", 0.7)  # type: ignore[arg-type]


def test_parameters_are_added():
    """Add free parameters, which controllers and events read by name; refuse names that exist."""
    arm = kt.System(kt.with_parameters(kt.load("planar_2r"), k=7.0, level=0.2))
    assert [(p.name, p.value, p.free) for p in arm.mechanism.parameters] == [("k", 7.0, True), ("level", 0.2, True)]
    hit = kt.Event(lambda now: now.q[0] - now.parameter("level"), name="level", stop=True)
    run = kt.simulate(arm, [0.3, 0.0], times=[0.0, 0.1, 0.5], events=hit, method="rk4", dt=0.01)
    assert abs(run.q[-1, 0] - 0.2) < 1e-9
    with pytest.raises(kt.KinetreeError, match="'planar_2r' has a parameter 'k' already; choose another name"):
        kt.with_parameters(arm, k=1.0)
    with pytest.raises(kt.KinetreeError, match="no parameter 'high'; available: k, level"):
        kt.simulate(arm, duration=0.1, dt=0.1, events=kt.Event(lambda now: now.parameter("high")))
