"""Runs with hard contact against closed forms: bounces, slopes, ladders, Painleve's rod."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import everyday
import kinetree as kt
from kinetree.errors import InputError, ModelError
from tolerance import assert_close
from touching_bodies import G, ball, box_on_slope, coin, free_body, ladder, planar_rod

FINE = {"rtol": 1e-11, "atol": 1e-12}


def times_of(run: kt.Trajectory, kind: str) -> list[float]:
    """Return the times of the events of a kind."""
    return [e.t for e in run.contact.events if e.kind == kind]


@pytest.mark.parametrize("law", everyday.only(["newton", "poisson"], ["newton"]))
def test_bouncing_ball_comes_to_rest_at_the_zeno_time(law) -> None:
    """Compare impacts, apexes and the end of infinitely many bounces with their geometric series."""
    e, fall = 0.6, math.sqrt(2 * 0.7 / G)
    system, q, ground = ball(0.7, restitution=e, law=law)
    apexes = [fall * (1 + 2 * sum(e**k for k in range(1, n)) + e**n) for n in range(1, 8)]
    zeno = fall * (1 + 2 * e / (1 - e))
    run = kt.simulate(system, q, times=[0.0, *apexes, zeno + 0.1], contacts=ground, **FINE)
    impacts = times_of(run, "impact")
    expected = [fall * (1 + 2 * sum(e**k for k in range(1, n))) for n in range(1, len(impacts) + 1)]
    assert len(impacts) > 15
    assert_close(impacts, expected, 1e-9, "times of impacts")
    assert_close(run.q[1:-1, 2] - 0.1, [0.7 * e ** (2 * n) for n in range(1, 8)], 1e-9, "heights of apexes")
    assert_close(times_of(run, "rest"), [zeno], 1e-9, "Zeno time")
    assert_close(run.qd[-1], np.zeros(6), 1e-12, "velocity at rest")
    assert_close(run.contact.forces("ground")[-1], [1.3 * G, 0.0, 0.0], 1e-9, "force at rest")


@pytest.mark.slow
def test_elastic_bounces_keep_the_energy() -> None:
    """Bounce 100 times without loss."""
    system, q, ground = ball(1.0, restitution=1.0)
    qd = [0.3, 0.2, 0.1, 0.5, 0.2, 0.0]
    run = kt.simulate(system, q, qd, duration=92.0, contacts=ground, **FINE)
    assert len(times_of(run, "impact")) > 100
    assert_close(run.energy_error, 0.0, 1e-9, "energy after 100 bounces")


@pytest.mark.parametrize("case", everyday.only([(20.0, 1.0), (20.0, 0.37), (44.0, 0.97)], [(20.0, 0.37)]))
def test_box_on_a_slope_holds_still(case) -> None:
    """Creep by less than 1e-12 m/s below the angle of the cone."""
    degrees, friction = case
    system, q, corners = box_on_slope(math.radians(degrees), friction)
    run = kt.simulate(system, q, times=np.linspace(0, 10, 6), contacts=corners)
    assert run.finished
    assert_close(run.qd, np.zeros((6, 6)), 1e-12, "creep")
    assert_close(run.q, np.tile(run.q[0], (6, 1)), 1e-12, "displacement")
    assert_close(run["contact_forces"][-1, :, 0].sum(), 2.0 * G * math.cos(math.radians(degrees)), 1e-9, "weight")


@pytest.mark.parametrize("case", everyday.only([(20.0, 0.3), (35.0, 0.0), (44.0, 0.95)], [(20.0, 0.3)]))
def test_box_on_a_slope_slides(case) -> None:
    """Slide with g (sin - mu cos) above the angle of the cone."""
    degrees, friction = case
    angle = math.radians(degrees)
    system, q, corners = box_on_slope(angle, friction)
    run = kt.simulate(system, q, times=np.linspace(0, 0.7, 4), contacts=corners, **FINE)
    expected = G * (math.sin(angle) - friction * math.cos(angle))
    assert_close(run["qdd"][:, 3], np.full(4, expected), 1e-9, "acceleration along the slope")
    assert_close(run.qd[-1, 3], 0.7 * expected, 1e-9, "velocity along the slope")
    assert max(run.contact.residuals.values()) < 1e-10


@pytest.mark.slow
def test_sliding_box_stops_and_stays() -> None:
    """Stop after v / (mu g), to rounding, and stay."""
    system, q, corners = box_on_slope(0.0, 0.4)
    run = kt.simulate(system, q, [0, 0, 0, 1.2, -0.9, 0], times=[0.0, 0.2, 1.0], contacts=corners, **FINE)
    sticks = [e.t for e in run.contact.events if e.kind == "stick"]
    assert_close(sticks, [1.5 / (0.4 * G)] * 4, 1e-9, "time of the stop")
    assert_close(run.qd[-1], np.zeros(6), 1e-12, "velocity after the stop")
    assert_close(np.hypot(*run.q[-1, :2]), 1.5**2 / (2 * 0.4 * G), 1e-9, "distance")


@pytest.mark.slow
def test_ladder_leaves_the_wall() -> None:
    """Leave a smooth wall where the top has come down to two thirds of its height, and stand under friction."""
    system, q, smooth = ladder(0.6, 0.0, 0.0)
    run = kt.simulate(system, q, duration=0.8, contacts=smooth, **FINE)
    (left,) = [e.t for e in run.contact.events if e.kind == "lift-off"]
    there = kt.simulate(system, q, times=[0.0, left], contacts=smooth, **FINE)
    assert_close(there.q[-1, 2], math.cos(0.6) * 2 / 3, 1e-9, "height of the center at lift-off")
    assert_close(run.energy_error, 0.0, 1e-9, "energy of the smooth ladder")
    system, q, rough = ladder(0.6, 0.5, 0.0)
    held = kt.simulate(system, q, times=[0.0, 3.0], contacts=rough)
    assert_close(held.qd[-1], np.zeros(6), 1e-12, "creep")
    assert_close(held.contact.forces("foot")[0, :2], [3 * G, -3 * G * math.tan(0.6) / 2], 1e-9, "forces on the foot")


@pytest.mark.parametrize("angle", everyday.only([0.3, 0.55], [0.55]))
def test_painleve_rod_is_recognized(angle) -> None:
    """Name the Painleve state of a rod that is pushed with much friction; pull it, and it moves."""
    system, tip = planar_rod(1.6)
    q = [0.0, math.cos(angle), angle]
    assert 1 + 3 * math.sin(angle) ** 2 - 3 * 1.6 * math.sin(angle) * math.cos(angle) < 0
    with pytest.raises(InputError, match="Painleve state of contact 'tip': it slides with friction 1.6"):
        kt.simulate(system, q, [-2.0, 0.0, 0.0], duration=0.5, contacts=tip)
    run = kt.simulate(system, q, [2.0, 0.0, 0.0], times=[0.0, 0.3], contacts=tip)
    assert run.finished and max(run.contact.residuals.values()) < 1e-10


@pytest.mark.slow
def test_painleve_state_in_a_batch_keeps_the_other_runs() -> None:
    """Name the run of a batch that starts in a Painleve state, and finish the others."""
    system, tip = planar_rod(1.6)
    q = [0.0, math.cos(0.5), 0.5]
    run = kt.simulate(system, [q, q], [[-2.0, 0, 0], [2.0, 0, 0]], times=[0.0, 0.1, 0.2], contacts=tip)
    assert run.status.startswith("stopped: Painleve state of contact 'tip'")
    assert list(run.failures) == [0] and np.isfinite(run.q[1]).all()
    assert np.isnan(run["contact_forces"][0]).all() and np.isfinite(run["contact_forces"][1]).all()


def test_impossible_starts_are_refused() -> None:
    """Refuse a start under the ground, unknown bodies and methods that know no contacts."""
    system, q, ground = ball(-0.03)
    with pytest.raises(InputError, match="q0 puts contact 'ground' 0.03 m under its surface; start with all gaps"):
        kt.simulate(system, q, duration=1.0, contacts=ground)
    with pytest.raises(ModelError, match="contact 'c': no body 'bal'; did you mean 'ball'"):
        kt.simulate(system, q, duration=1.0, contacts=[kt.Contact("c", "bal")])
    system, q, ground = ball(0.3)
    with pytest.raises(InputError, match="contacts are simulated event by event with .*, not with rk4; leave out"):
        kt.simulate(system, q, duration=1.0, dt=1e-3, method="rk4", contacts=ground)
    with pytest.raises(InputError, match="contacts and kt.Driven do not go together"):
        kt.simulate(
            *planar_rod(0.1)[:1], duration=1.0, contacts=planar_rod(0.1)[1], control=kt.Driven("y", kt.Hold(0.3))
        )
    with pytest.raises(InputError, match="the run has no contacts; give simulate"):
        _ = kt.simulate(system, q, duration=0.1).contact


@pytest.mark.slow
def test_results_of_contacts_are_saved(tmp_path) -> None:
    """Save and read forces, gaps, residuals and events, slice them, and take one run of a batch."""
    system, q, ground = ball(0.2, restitution=0.5, friction=0.3)
    starts = np.stack([q, q + np.array([0, 0, 0.1, 0, 0, 0, 0])])
    batch = kt.simulate(system, starts, [0, 0, 0, 0.3, 0.2, 0], duration=0.6, contacts=ground)
    assert batch.contact.forces("ground").shape == (2, 1001, 3)
    assert {e.run for e in batch.contact.events} == {0, 1}
    run = batch.run(0)
    again = kt.read_trajectory(run.save(tmp_path / "run.npz"))
    assert np.array_equal(again["contact_forces"], run["contact_forces"])
    assert again.contact.events == run.contact.events and again.contact.names == ("ground",)
    assert again.contact.residuals == run.contact.residuals
    assert np.array_equal(run[10:20]["contact_gaps.ground"], run.contact.gaps("ground")[10:20])
    with pytest.raises(kt.UnknownNameError, match="no contact 'floor'; available: ground"):
        run.contact.forces("floor")


@pytest.mark.slow
def test_reactions_include_contact_forces() -> None:
    """Balance the wrenches of contacts on the bodies with the accelerations of the run."""
    system, q, corners = box_on_slope(0.4, 0.2)
    run = kt.simulate(system, q, times=[0.0, 0.1, 0.3], contacts=corners, **FINE)
    tau = system.inverse_dynamics(run.q, run.qd, run["qdd"], wrenches=run["wrenches"])
    assert_close(tau, np.zeros((3, 6)), 1e-9, "torques of the free joint")


@pytest.mark.slow
def test_contacts_of_the_mechanism_act_by_default() -> None:
    """Let contacts of a mechanism act without naming them, and leave them out on request."""
    system, q, ground = ball(0.05, restitution=0.0)
    whole = kt.build_mechanism("ball", system.bodies, system.joints, contacts=[ground])
    held, free = kt.simulate(whole, q, duration=0.5), kt.simulate(whole, q, duration=0.5, contacts=())
    assert_close(held.q[-1, 2], 0.1, 1e-12, "on the ground")
    assert_close(free.q[-1, 2], 0.15 - G / 8, 1e-9, "through the ground")


@pytest.mark.slow
def test_user_events_between_contacts() -> None:
    """Locate a user's event on a flight between two bounces."""
    system, q, ground = ball(0.5, restitution=0.8)
    top = kt.Event(lambda now: now.qd[5], direction=-1, name="apex")
    run = kt.simulate(system, q, duration=0.9, contacts=ground, events=top, **FINE)
    fall = math.sqrt(1.0 / G)
    assert_close([h.t for h in kt.event_hits(run)], [fall * 1.8], 1e-9, "apex")


@pytest.mark.slow
def test_spinning_coin_comes_to_rest() -> None:
    """Roll a coin without loss, then with friction until it lies still and flat."""
    system, q, qd, rim = coin(0.3, 0.0)
    rolls = kt.simulate(system, q, qd, times=np.linspace(0, 0.2, 11), contacts=rim, **FINE)
    assert_close(rolls.energy_error, 0.0, 1e-9, "energy of pure rolling")
    assert max(rolls.contact.residuals.values()) < 1e-10
    system, q, qd, rim = coin(0.1, 0.03)
    run = kt.simulate(system, q, qd, times=np.linspace(0, 0.4, 41), contacts=rim, rtol=1e-6, atol=1e-8)
    assert run.finished and (np.diff(run["energy"]) < 1e-9).all()
    assert_close(run["poses"][-1, 0, 2, 2], 1.0, 1e-12, "flat")
    assert_close(run.qd[-1], np.zeros(6), 1e-12, "velocity at rest")
    assert_close(run["contact_forces"][-1, 1:, 0].sum(), 0.4 * G, 1e-9, "weight on three points of the rim")


@pytest.mark.slow
def test_closed_mechanism_bounces_on_the_ground() -> None:
    """Let a bar of a four-bar fall on a plane and bounce to rest, with its loop closed at all samples."""
    system = kt.load("four_bar")
    q = system.assemble()
    T = system.pose(q, "coupler")
    point = T[:3, :3] @ [0.1, 0.0, 0.0] + T[:3, 3] - [0.0, 0.04, 0.0]
    ground = kt.Placement(tuple(point), ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)))
    knob = kt.Contact("knob", "coupler", "sphere", 0.02, (0.1, 0, 0), kt.Surface("plane", placement=ground), 0.3, 0.4)
    run = kt.simulate(system, q, times=np.linspace(0, 1, 21), contacts=knob)
    assert run.finished and times_of(run, "rest") and times_of(run, "stick")
    assert_close(run["gap"], np.zeros_like(run["gap"]), 1e-11, "loops")
    assert_close(run.qd[-1], np.zeros(3), 1e-12, "velocity at rest")
    assert max(*run.contact.residuals.values(), *run.contact.impact_residuals.values()) < 1e-10


@everyday.long
def test_a_disc_that_claps_flat_stays_where_it_is() -> None:
    """Leave a disc in place, without new energy, while its lowest point and three points of its rim take turns."""
    body = kt.Body("disc", 1.3, inertia=(0.01, 0.01, 0.015, 0.0, 0.0, 0.0))
    system = kt.System(kt.build_mechanism("disc", [body], [kt.Joint("base", "free", kt.GROUND, "disc")]))
    q = [0.2, 0.1, 0.3, 5e-4, 1e-5, 0.0, 1.0]
    floor = kt.Contact("floor", "disc", "disc", (0.1,))
    run = kt.simulate(system, q, [0.1, 0.2, 0.3, 0.1, 0.0, 0.0], times=[0.0, 0.24, 0.2491, 0.26], contacts=floor)
    assert "end of surface" in {e.kind for e in run.contact.events}
    assert_close(run.q[:, :2], np.column_stack([0.2 + 0.1 * run.t, np.full(4, 0.1)]), 1e-7, "path without friction")
    assert_close(np.maximum(np.diff(run["energy"]), 0.0), np.zeros(3), 1e-7, "energy is lost, never gained")


@pytest.mark.parametrize("seed", [0, 3])
def test_forces_of_rounding_are_in_no_doubt(seed) -> None:
    """Let a box glide along a tilted plane without gravity, where contact forces are rounding, and find it finished."""
    rng, at = np.random.default_rng(seed), np.array([0.1, 0.2, 0.3])
    turn = Rotation.from_rotvec(rng.normal(size=3))
    R = turn.as_matrix()
    plane = kt.Surface(placement=kt.Placement(tuple(at), tuple(map(tuple, R))))
    box = kt.Contact("box", "box", "box", (0.3, 0.2, 0.1), surface=plane, friction=0.5)
    floating = replace(free_body("box", 2.0, (0.02, 0.03, 0.04)).mechanism, gravity=(0.0, 0.0, 0.0))
    q = [*(R[:, 2] * 0.05 + at), *turn.as_quat()]
    run = kt.simulate(floating, q, [0, 0, 6.7, 3.1, -4.3, 0], times=[0.0, 0.1, 0.5], contacts=box)
    assert run.status == "finished"
    assert max(run.contact.residuals.values()) < 1e-12
