"""Payloads and gears: the motion is that of a mechanism built with them."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from interpreted import compute, relative
from kinetree import Body, InputError, Joint, ModelError, Placement, System, build_mechanism, forces_of
from kinetree.model.mechanism import replace
from kinetree.model.parameters import parse
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
    built = build_mechanism("built", [*ARM.bodies, LOAD], [*ARM.joints, fixed], gravity=ARM.gravity)
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
        (lambda: with_payload(ARM, "b9", 1.0), "no frame 'b9'; available: tool, b0, b1, b2, ground"),
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


def test_a_payload_in_a_frame_with_a_parameter_as_its_mass():
    """Weld a load to a rotated frame, with a mass to be varied from nothing on, against the load on a fixed joint."""
    system = kt.load("puma560")
    m, tip = system.mechanism, system.bodies[-1].name
    grip = kt.Frame("grip", tip, Placement.from_euler("zyx", [0.4, -0.7, 1.1], (0.03, -0.05, 0.12)))
    system = System(replace(m, frames=(*m.frames, grip)))
    com, inertia = (0.02, 0.05, 0.11), (0.02, 0.017, 0.011, 0.003, -0.002, 0.001)
    loaded = with_payload(system, "grip", kt.Parameter("load", 2.3, free=True), com, inertia)
    assert isinstance(loaded, System) and [p.name for p in loaded.mechanism.free_parameters] == ["load"]
    q, qd, qdd = np.random.default_rng(3).normal(size=(3, 6))
    for mass in (0.0, 1.7):
        bodies = [*m.bodies, kt.Body("held", mass, com, inertia)]
        joints = [*m.joints, Joint("weld", "fixed", tip, "held", grip.placement)]
        welded = System(kt.build_mechanism("welded", bodies, joints, gravity=m.gravity))
        found = loaded.inverse_dynamics(q, qd, qdd, parameters={"load": mass})
        expected = welded.inverse_dynamics(q, qd, qdd)
        assert_close(found, expected, 1e-12 * np.abs(expected).max(), "torques with a load in a frame")
    twice = with_payload(loaded, tip, "load", (0.0, 0.0, 0.1))
    assert [p.name for p in twice.mechanism.free_parameters] == ["load"]
    for make, message in (
        (lambda: with_payload(loaded, "grip", "lead"), "no parameter 'lead'; did you mean"),
        (
            lambda: with_payload(loaded, "grip", kt.Parameter("load", 1.0)),
            "'puma560' has a parameter 'load' already",
        ),
        (
            lambda: with_payload(system, "ground", 1.0),
            "the frame 'ground' is fixed to the ground, which carries",
        ),
    ):
        with pytest.raises(kt.KinetreeError) as caught:
            make()
        assert str(caught.value).startswith(message)


def test_a_massless_body_takes_a_payload():
    """Fix a load to a body without mass, as a flange often is, and find the load alone."""
    m = kt.load("planar_2r").mechanism
    bare = replace(m, bodies=(m.bodies[0], replace(m.bodies[1], mass=0.0, inertia=(0.0,) * 6)))
    made = with_payload(bare, m.bodies[1].name, kt.Parameter("load", 0.8, free=True), (0.1, 0.2, 0.0))
    values = made.values()
    assert [x.value(values) if hasattr(x, "value") else x for x in made.bodies[1].com] == [0.1, 0.2, 0.0]
    assert made.bodies[1].mass.value(values) == 0.8


def test_systems_are_taken_for_their_mechanisms():
    """Give a System where a Mechanism is expected, and find the same result as a System; a name is refused."""
    system = System(ARM)
    heavy, geared = with_payload(system, "b2", 0.7, (0.1, 0.2, 0.3)), with_gear(system, "j1", -50.0, 2e-4)
    assert isinstance(heavy, System) and heavy.mechanism == with_payload(ARM, "b2", 0.7, (0.1, 0.2, 0.3))
    assert isinstance(geared, System) and geared.mechanism == with_gear(ARM, "j1", -50.0, 2e-4)
    assert isinstance(kt.with_parameters(system, k=1.0), System)
    assert System(heavy).mechanism is heavy.mechanism
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
