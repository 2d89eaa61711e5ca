"""Time steps with contact: the laws of every step by dense matrices, known motions, and runs from event to event."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everyday
import fake_cuda
import host_gpu
import kinetree as kt
from contacted import near, touching
from floating_states import Floating
from kinetree.compiler.lower.contacts import motion_program
from kinetree.errors import InputError
from kinetree.model.parameters import parse
from kinetree.simulation.contact import cone_solves
from kinetree.simulation.contact.rates import OPENING, SLOW
from kinetree.simulation.engines import time_stepping
from strategies import State, examples, moving_mechanisms
from tolerance import assert_close
from touching_bodies import ball

H = 2e-3
TILT = np.deg2rad(20.0)


def block(friction: float, *, restitution: float = 0.0, tilt: float = TILT) -> kt.System:
    """Return a box of 2 kg on a slope, which is the ground's xy plane, with a contact at every corner."""
    body = kt.Body("box", 2.0, (0.01, -0.02, 0.015), (0.02, 0.03, 0.04, 0.001, 0.0, 0.002))
    joint = kt.Joint("base", "free", "ground", "box")
    gravity = (9.81 * np.sin(tilt), 0.0, -9.81 * np.cos(tilt))
    mechanism = kt.build_mechanism("block", [body], [joint], gravity=gravity)
    contact = kt.Contact("box", "box", "box", (0.4, 0.3, 0.2), friction=friction, restitution=restitution)
    return kt.System(touching(mechanism, contact))


def standing(system: kt.System, height: float = 0.1) -> np.ndarray:
    """Return the position at a height above the plane."""
    q = system.neutral()
    q[2] = height
    return q


def test_a_box_holds_still_on_a_slope():
    """Stand a box on a slope below the angle of friction for a second, and find it where it was."""
    system = block(0.5)
    run = kt.simulate(system, standing(system), duration=1.0, method="moreau", dt=1e-3)
    assert_close(run.qd, np.zeros_like(run.qd), 1e-12, "velocities at rest")  # 6e-14 m/s
    assert_close(run.q - run.q[0], np.zeros_like(run.q), 1e-13, "displacement in a second")
    assert_close(run["contact_forces"][-1, :, 0].sum(), 2.0 * 9.81 * np.cos(TILT), 1e-9, "weight on the slope")
    assert_close(run["qdd"][1:], np.zeros_like(run.qd[1:]), 1e-8, "accelerations under the forces of the contacts")
    weight = 2.0 * np.array(system.mechanism.gravity)
    assert_close(run["wrenches"][-1, 0, 3:], -weight, 1e-9, "forces of the contacts on the body")


def test_a_contact_that_nothing_moves():
    """Let a ball land beside a body that is fixed above the ground, whose contact has no answer to impulses."""
    bodies = [kt.Body("post", 1.3), kt.Body("ball", 0.7, inertia=(0.01, 0.012, 0.013, 0.0, 0.0, 0.0))]
    joints = [
        kt.Joint("foot", "fixed", "ground", "post", kt.Placement((0.3, 0.1, 0.2))),
        kt.Joint("base", "free", "ground", "ball"),
    ]
    contacts = [kt.Contact(name, name, "sphere", (0.1,), friction=0.6) for name in ("post", "ball")]
    system = kt.System(touching(kt.build_mechanism("two", bodies, joints), *contacts))
    run = kt.simulate(system, standing(system, 0.15), duration=0.3, method="moreau", dt=1e-3)
    assert run.status == "finished"
    assert_close(run["contact_forces"][-1, :, 0], [0.0, 0.7 * 9.81], 1e-9, "the ball's weight, and nothing on the post")


@pytest.mark.slow
@pytest.mark.parametrize("height", [0.2, 0.1])
def test_an_expansion_of_a_contact_that_nothing_moves(height):
    """Let a ball bounce beside a body that is fixed on or above the ground, both by Poisson's law, or the latter."""
    bodies = [kt.Body("post", 1.3), kt.Body("ball", 0.7, inertia=(0.01, 0.012, 0.013, 0.0, 0.0, 0.0))]
    joints = [
        kt.Joint("foot", "fixed", "ground", "post", kt.Placement((0.3, 0.1, height))),
        kt.Joint("base", "free", "ground", "ball"),
    ]
    made = kt.build_mechanism("two", bodies, joints)
    post, ball = (kt.Contact(x, x, "sphere", (0.1,), restitution=0.5, law="poisson") for x in ("post", "ball"))
    start = standing(kt.System(made), 0.15)
    for contacts in ((post, ball), (post,)):
        run = kt.simulate(made, start, duration=0.2, contacts=contacts, method="moreau", dt=1e-3)
        assert run.status == "finished"
        assert_close(run["contact_forces"][:, 0], np.zeros((len(run.t), 3)), 1e-12, "no force on the post")
        assert (run.q[-1, 2] > 0.1) == (len(contacts) == 2)


def test_a_box_slides_down_a_slope():
    """Let a box slide above the angle of friction, and find the acceleration g (sin - mu cos)."""
    system = block(0.3)
    run = kt.simulate(system, standing(system), duration=1.0, method="moreau", dt=1e-3)
    expected = 9.81 * (np.sin(TILT) - 0.3 * np.cos(TILT))
    assert_close(run.qd[-1, 3:], [expected, 0.0, 0.0], 1e-9, "velocity after a second")
    assert max(run.contact.residuals.values()) < 1e-10


def bounded(gap, arriving, free, restitution):
    """Return the velocities along the normals that a step allows, by the words of the module; -inf for all."""
    needed = -2.0 * gap / H
    pressing = np.maximum(arriving - free, 0.0)
    allowed = np.where(needed > 0.0, np.minimum(OPENING * needed, pressing), needed)
    bounce = -restitution * arriving
    bounces = (free < needed) & (bounce > allowed) & (restitution > 0.0)
    passes = (gap > 0.0) & (free < needed) & (arriving < -SLOW * pressing) & ~bounces
    return np.where(passes, -np.inf, np.where(bounces, bounce, allowed))


@given(moving_mechanisms(most=4), st.integers(0, 10**6))
@examples(8)
def test_every_step_satisfies_the_laws(mechanism, seed):
    """Take a step of a random mechanism with random contacts, and check all laws by dense matrices."""
    rng = np.random.default_rng(seed)
    s = State(mechanism, seed, ())
    bare = kt.System(mechanism)
    floating = Floating(bare)
    z, middle, qd, free = floating.halfway(s.q, s.qd, H)
    e, mu = rng.choice([0.0, 0.6], size=3), rng.uniform(0.1, 1.2, size=3)
    contacts = [near(bare, middle, rng, f"c{k}", friction=mu[k], restitution=e[k]) for k in range(3)]
    system = kt.System(touching(mechanism, *contacts))
    found = motion_program(system.mechanism).interpret(middle, qd)
    motion = dict(zip(("gap", "velocity", "bias", "J"), found[:4], strict=True))
    run = kt.simulate(system, s.q, s.qd, times=[0.0, H], method="moreau", dt=H)
    p = (run["contact_forces"][-1] * H).reshape(-1, 3)
    J = motion["J"].reshape(-1, mechanism.nv)
    inverse = system.inverse_inertia_matrix(middle)
    after = free + inverse @ J.T @ p.ravel()
    end = floating.ended(z, middle, after, H)
    scale = np.abs(after).max() + np.abs(free).max()
    assert_close(run.q[-1], end[0], 1e-9 * max(scale, 1.0), "coordinates after the step")
    assert_close(run.qd[-1] / scale, end[1] / scale, 1e-9, "velocities after the step")
    u, before = (J @ after).reshape(-1, 3), (J @ free).reshape(-1, 3)
    lowest = bounded(motion["gap"], motion["velocity"][:, 0], before[:, 0], e)
    size = np.abs(motion["velocity"]).max() + np.abs(before).max() + 1e-3
    tol = 1e-8 * size
    assert (p[:, 0] >= 0.0).all()
    assert (u[:, 0] - lowest >= -tol).all()
    closed = p[:, 0] > 0.0
    assert (np.abs((u[:, 0] - lowest)[closed]) <= tol).all()
    sideways, slip = np.linalg.norm(p[:, 1:], axis=1), np.linalg.norm(u[:, 1:], axis=1)
    assert (sideways <= mu * p[:, 0] * (1 + 1e-9) + 1e-12).all()
    sliding = closed & (slip > 1e-6 * size)
    opposite = -mu[:, None] * p[:, :1] * u[:, 1:] / np.where(slip > 0, slip, 1.0)[:, None]
    assert (np.abs(p[:, 1:] - opposite)[sliding] <= 1e-6 * (np.abs(p).max() + 1e-12)).all()


@everyday.long
def test_sweeps_find_the_same_impulses(monkeypatch):
    """Leave out Newton's method, and find the motion of two balls on a rod, which slip and stick, unchanged."""

    def moved() -> kt.Trajectory:
        body = kt.Body("rod", 0.8, (0.03, -0.01, 0.02), (0.011, 0.012, 0.007, 0.001, 0.0, 0.0))
        joint = kt.Joint("base", "free", "ground", "rod")
        gravity = (9.81 * np.sin(TILT), 0.4, -9.81 * np.cos(TILT))
        balls = [
            kt.Contact(f"ball{k}", "rod", "sphere", (0.1,), (0.2 * (2 * k - 1), 0.03, 0.0), friction=0.25 + 0.9 * k)
            for k in range(2)
        ]
        system = kt.System(touching(kt.build_mechanism("rod", [body], [joint], gravity=gravity), *balls))
        qd = np.array([0.7, -1.1, 2.0, 0.3, -0.9, -0.4])
        return kt.simulate(system, standing(system, 0.104), qd, duration=0.1, method="moreau", dt=1e-3)

    expected = moved()
    monkeypatch.setattr(time_stepping, "FEW", 0)
    monkeypatch.setattr(cone_solves, "STICKING", 0)
    monkeypatch.setattr(cone_solves, "NEWTON", 0)
    run = moved()
    assert expected["contact_forces"][:, :, 0].max() > 1.0
    assert_close(run.q, expected.q, 1e-9, "positions")
    assert_close(run.qd, expected.qd, 1e-8, "velocities")


@everyday.long
def test_two_contacts_alone_give_the_motion_of_all(monkeypatch):
    """Throw plates on four feet to the ground, with and without the smaller problem of two feet first."""
    rng, n = np.random.default_rng(5), 64
    body = kt.Body("plate", 0.9, (0.02, -0.01, 0.03), (0.011, 0.012, 0.017, 0.001, 0.0, 0.0))
    joint = kt.Joint("base", "free", "ground", "plate")
    gravity = (0.9, 0.4, -9.81)
    feet = [
        kt.Contact(f"foot{k}", "plate", "sphere", (0.03,), (0.2 * x, 0.17 * y, -0.1), friction=0.2 + 0.25 * k)
        for k, (x, y) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1)))
    ]
    q = np.concatenate([rng.uniform(-0.1, 0.1, (n, 2)), np.full((n, 1), 0.4), rng.normal(size=(n, 4))], axis=1)
    q[:, 3:6] *= 0.15
    q[:, 6] = 1.0
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    qd = rng.normal(size=(n, 6)) * np.array([2.0, 2.0, 2.0, 0.7, 0.7, 0.7])

    def moved() -> kt.Trajectory:
        system = kt.System(touching(kt.build_mechanism("plate", [body], [joint], gravity=gravity), *feet))
        return kt.simulate(system, q, qd, duration=0.26, method="moreau", dt=2e-3)

    run = moved()
    closed = (run["contact_forces"][..., 0] > 0.0).sum(axis=-1)
    assert [int((closed == k).sum() > 100) for k in range(4)] == [1, 1, 1, 1], np.bincount(closed.ravel())
    assert run["contact_residuals"].max() <= 1e-11
    monkeypatch.setattr(cone_solves, "PAIR", 99)
    expected = moved()
    near = np.abs(run.q - expected.q).max(axis=(1, 2)) < 1e-9
    assert near.all(), np.flatnonzero(~near)
    assert_close(run.qd, expected.qd, 1e-7, "velocities")


@everyday.long
def test_a_bounce_has_its_restitution():
    """Drop a ball, and find apexes that shrink by the square of the restitution up to the error of a step."""
    body = kt.Body("ball", 0.7, (0.0, 0.0, 0.0), (0.01, 0.01, 0.01, 0.0, 0.0, 0.0))
    mechanism = kt.build_mechanism("ball", [body], [kt.Joint("z", "prismatic", "ground", "ball", axis=(0, 0, 1))])
    ball = kt.Contact("ball", "ball", "sphere", (0.1,), restitution=0.8)
    drop, g = 0.5, 9.81
    run = kt.simulate(mechanism, [0.6], duration=1.4, contacts=ball, method="moreau", dt=1e-4)
    first = np.sqrt(2 * drop / g)
    bounce = (run.t > first) & (run.t < first * (1 + 2 * 0.8))
    assert_close(run.q[bounce].max() - 0.1, 0.64 * drop, 1e-3, "height of the first bounce")
    assert run["contact_gaps"].min() > -1e-4 * np.sqrt(2 * g * drop)  # a step of the first impact


@pytest.mark.slow
def test_smaller_steps_approach_the_runs_from_event_to_event():
    """Halve the step three times for balls that land, slip and roll, and find errors of the first order."""
    body = kt.Body("ball", 1.3, inertia=(0.006, 0.006, 0.006, 0.0, 0.0, 0.0))
    mechanism = kt.build_mechanism("ball", [body], [kt.Joint("base", "free", "ground", "ball")])
    ball = kt.System(touching(mechanism, kt.Contact("ball", "ball", "sphere", (0.1,), friction=0.3)))
    q = np.stack([standing(ball, 0.21 + 0.0137 * k) for k in range(8)])
    qd, times = np.array([0.3, -2.0, 0.4, 0.9, 0.5, 0.2]), [0.0, 0.5]
    exact = kt.simulate(ball, q, qd, times=times, rtol=1e-10).q[:, -1]
    steps = np.array([8e-4, 4e-4, 2e-4, 1e-4])
    ends = [kt.simulate(ball, q, qd, times=times, method="moreau", dt=dt).q[:, -1] for dt in steps]
    errors = [np.abs(end - exact).max(axis=-1).mean() for end in ends]  # the phase of an impact in its step is random
    assert 0.8 < np.polyfit(np.log(steps), np.log(errors), 1)[0] < 1.5, errors
    assert errors[-1] < 2e-4


def test_a_plastic_impact_leaves_no_bounce():
    """Drop balls without restitution, and find upward velocities of no more than a step of gravity afterwards."""
    body = kt.Body("ball", 0.7, inertia=(0.01, 0.01, 0.01, 0.0, 0.0, 0.0))
    mechanism = kt.build_mechanism("ball", [body], [kt.Joint("z", "prismatic", "ground", "ball", axis="z")])
    q = 0.6 + 3.3e-4 * np.arange(5)[:, None]
    ball = kt.Contact("ball", "ball", "sphere", (0.1,))
    run = kt.simulate(mechanism, q, duration=0.8, contacts=ball, method="moreau", dt=1e-3)
    assert run.qd.max() < 9.81 * 1e-3 * (1 + 1e-9)
    assert_close(run.q[:, -1], np.full((5, 1), 0.1), 1e-12, "height at rest")


def test_a_batch_has_the_bits_of_single_runs():
    """Simulate three boxes at once, on two threads, and one alone over more output times, with equal bits."""
    system = block(0.3)
    q = np.stack([standing(system, 0.1 + 0.01 * k) for k in range(17)])
    qd = np.random.default_rng(5).normal(size=(17, 6))
    together = kt.simulate(system, q, qd, times=[0.0, 0.05, 0.1], method="moreau", dt=1e-3, threads=2)
    alone = kt.simulate(system, q[3], qd[3], times=[0.0, 0.05, 0.1], method="moreau", dt=1e-3)
    assert np.array_equal(together.q[3], alone.q)
    assert np.array_equal(together["contact_forces"][3], alone["contact_forces"])


def test_residuals_are_those_of_all_steps():
    """Let a ball bounce and fly on for many steps without output, and find the residual of its impact in the result."""
    body = kt.Body("ball", 1.3, (0.01, -0.02, 0.015), (0.006, 0.007, 0.005, 0.001, 0.0, 0.0))
    mechanism = kt.build_mechanism("ball", [body], [kt.Joint("base", "free", "ground", "ball")])
    contact = kt.Contact("ball", "ball", "sphere", (0.1,), friction=0.3, restitution=0.9)
    ball, h = kt.System(touching(mechanism, contact)), 2.0**-10
    q, qd = standing(ball, 0.12), np.array([0.6, -3.4, 0.3, 2.5, -0.2, -1.9])
    short, long = (
        kt.simulate(ball, q, qd, times=[0.0, n * h], method="moreau", dt=h)["contact_residuals"][-1] for n in (48, 192)
    )
    assert short.max() > 0.0
    assert np.array_equal(long, short)


@everyday.long
def test_short_steps_and_events_leave_a_rolling_ball_on_the_ground():
    """End a run at an event shortly after an output time, and find the weight as force and no velocity upward."""
    body = kt.Body("ball", 1.3, inertia=(0.01, 0.01, 0.01, 0.0, 0.0, 0.0))
    mechanism = kt.build_mechanism("ball", [body], [kt.Joint("base", "free", "ground", "ball")])
    ball = kt.System(touching(mechanism, kt.Contact("ball", "ball", "sphere", (0.1,), friction=0.4)))
    event = kt.Event(lambda now: now.t - 0.20001, stop=True)
    times = np.linspace(0.0, 0.3, 31)
    start = standing(ball), [0.0, 0.0, 0.0, 0.5, 0.0, 0.0]
    run = kt.simulate(ball, *start, times=times, method="moreau", dt=1e-3, events=event)
    assert_close(run.t[-1], 0.20001, 1e-12, "time of the event")
    assert_close(run["contact_forces"][-1, 0, 0], 1.3 * 9.81, 1e-3, "weight at the event")
    up = ball.poses(run.q)[-1, 0, 2, :3] @ run.qd[-1, 3:]
    assert_close(up, 0.0, 1e-3, "velocity upward")  # 0.4 of a gap of 1e-6 m per step of 1e-3 s


@everyday.long
def test_friction_may_be_a_free_parameter():
    """Vary the friction of a batch, and find boxes that hold and boxes that slide."""
    system = block(0.3)
    mechanism = system.mechanism
    parameter = kt.Parameter("mu", 0.3, free=True)
    contact = replace(mechanism.contacts[0], friction=parse("mu"))
    varied = kt.System(replace(mechanism, parameters=(parameter,), contacts=(contact,)))
    mu = np.array([[0.2], [0.5]])
    run = kt.simulate(varied, np.stack([standing(system)] * 2), duration=0.2, parameters=mu, method="moreau", dt=1e-3)
    expected = 0.2 * 9.81 * (np.sin(TILT) - 0.2 * np.cos(TILT))
    assert_close(run.qd[:, -1, 3], [expected, 0.0], 1e-9, "velocities along the slope")


def test_loops_stay_closed():
    """Let a four-bar strike the ground with its coupler, and find its loop closed and the coupler on the ground."""
    system = kt.load("four_bar")
    q = system.assemble()
    body = system.mechanism.bodies[2].name
    place = system.poses(q)[2][:3, 3]
    up = np.array(system.mechanism.gravity) / -np.linalg.norm(system.mechanism.gravity)
    axes = np.linalg.svd(up[None])[2]
    R = np.column_stack([axes[1], np.cross(up, axes[1]), up])
    floor = kt.Surface("plane", placement=kt.Placement(tuple(place - 0.01 * up), tuple(map(tuple, R))))
    contact = kt.Contact("knock", body, "point", surface=floor, friction=0.4)
    run = kt.simulate(system, q, duration=0.5, contacts=contact, method="moreau", dt=5e-4)
    assert np.abs(run["gap"]).max() < 1e-12
    fastest = np.abs(np.diff(run["contact_gaps"][:, 0]) / np.diff(run.t)).max()
    assert run["contact_gaps"].min() > -5e-4 * fastest  # a step of the impact
    assert run["contact_gaps"][-1, 0] > -1e-12
    assert run["contact_forces"][:, 0, 0].max() > 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"contacts": ()}, "moreau.*is the method of mechanisms with contacts"),
        ({"checkpoint": "run.bin"}, "keeps no checkpoints"),
        ({"dt": None}, "dt"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, words):
    """Name the option and the remedy."""
    system = block(0.3)
    with pytest.raises(InputError, match=words):
        kt.simulate(system, standing(system), **{"duration": 0.1, "method": "moreau", "dt": 1e-3} | options)


def test_starts_under_the_ground_are_refused():
    """Refuse a start deep under a surface, alone and in a batch, and take one that an impact leaves behind."""
    system, q, contact = ball(-0.25, friction=0.3)
    options = {"times": [0.0, 0.01], "contacts": contact, "method": "moreau", "dt": 1e-3}
    told = "steps of 0.001 s leave a body at most 0.012 m under it, so start with gaps of zero or above"
    high = q.copy()
    high[2] += 1.0
    for start, which in ((q, "q0"), (np.stack([high, high, q]), "q0[2]")):
        with pytest.raises(InputError) as caught:
            kt.simulate(system, start, **options)
        message = str(caught.value)
        assert message.startswith(f"{which} puts contact 'ground' 0.") and message.endswith(
            f"under its surface; {told}"
        )
    left = kt.simulate(system, high, [0.0, 0.0, 0.0, 0.0, 0.0, -7.0], **(options | {"times": [0.0, 0.3]}))
    assert -0.012 < left["contact_gaps"][-1].min() < -1e-4
    assert kt.simulate(system, left.q[-1], left.qd[-1], **options).status == "finished"


def landing(count: int) -> tuple[kt.System, np.ndarray, np.ndarray]:
    """Return a leg of two links on a slider with a foot, and states shortly before it lands with slip."""
    bodies = [
        kt.Body("trunk", 3.0, (0.01, 0.0, 0.02), (0.02, 0.02, 0.02, 0.0, 0.0, 0.0)),
        kt.Body("thigh", 0.8, (0.0, 0.01, -0.1), (0.004, 0.004, 0.001, 0.0, 0.0, 0.0)),
        kt.Body("shank", 0.4, (0.0, 0.0, -0.12), (0.002, 0.002, 0.0005, 0.0, 0.0, 0.0)),
    ]
    joints = [
        kt.Joint("base", "free", "ground", "trunk"),
        kt.Joint("hip", "revolute", "trunk", "thigh", axis="y"),
        kt.Joint("knee", "revolute", "thigh", "shank", axis="y", placement=kt.Placement((0.0, 0.0, -0.25))),
    ]
    feet = [
        kt.Contact("foot", "shank", "sphere", (0.03,), (0.0, 0.0, -0.25), friction=0.6, restitution=0.2),
        kt.Contact("heel", "trunk", "sphere", (0.05,), (-0.2, 0.03, -0.1), friction=0.3),
    ]
    leg = kt.System(touching(kt.build_mechanism("leg", bodies, joints), *feet))
    q = np.tile(leg.neutral(), (count, 1))
    q[:, 2], q[:, 7:] = 0.49 + 0.003 * np.arange(count), (0.6, -1.1)
    qd = np.tile([0.2, -0.4, 0.3, 0.5, 0.1, -0.6, 0.9, -0.7], (count, 1))
    return leg, q, qd * np.linspace(0.6, 1.1, count)[:, None]


@everyday.long
@pytest.mark.parametrize("dtype", everyday.some(["float64", "float32"]))
def test_a_gpu_computes_the_runs_of_the_cpu(dtype, monkeypatch):
    """Let legs land on a stand-in for a GPU, and find the motion and the forces of the CPU."""
    host_gpu.install(monkeypatch)
    leg, q, qd = landing(5)
    options: dict = {
        "times": [0.0, 0.05, 0.11],
        "method": "moreau",
        "dt": 1e-3,
        "control": kt.PD(30.0, 1.0, kt.Hold([0.6, -1.1]), joints=["hip", "knee"]),
    }
    expected = kt.simulate(leg, q, qd, **options)
    found = kt.simulate(leg.on("cuda"), q.astype(dtype), qd.astype(dtype), **options)
    assert (expected["contact_forces"][:, -1, 0, 0] > 0.0).any()
    tol = {"float64": 1e-12, "float32": 1e-4}[dtype]  # 2e-15 and 3e-6
    for name in ("q", "qd", "contact_forces"):
        assert_close(found[name], expected[name], tol * np.abs(expected[name]).max(), name)
    assert found.status == expected.status == "finished"
    assert max(found.contact.residuals.values()) < {"float64": 1e-10, "float32": 1e-4}[dtype]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "auto", "dt": None}, "on a GPU, contacts are simulated by time steps only; give method='moreau'"),
        ({"events": kt.Event(lambda now: now.t - 0.01)}, "events are located on the CPU only"),
        ({"threads": 2}, "threads is 2: it is for the CPU"),
        ({"keep": "device"}, "samples of runs with contacts are copied to the host; leave out keep"),
    ],
)
def test_options_that_a_gpu_does_not_have_are_refused(options, words, monkeypatch):
    """Name the option and the remedy."""
    host_gpu.install(monkeypatch)
    leg, q, qd = landing(2)
    if "keep" in options:
        fake_cuda.install_arrays(monkeypatch)
        q, qd = fake_cuda.on_gpu(q, qd)
    with pytest.raises(InputError, match=words):
        kt.simulate(leg.on("cuda"), q, qd, **{"duration": 0.1, "method": "moreau", "dt": 1e-3} | options)


@everyday.long
def test_a_body_on_an_inclined_slide_does_not_stick():
    """Let a body on a slide strike the ground, where no impulse can stop its contact in all directions."""
    body = kt.Body("slider", 1.4, inertia=(0.01, 0.01, 0.01, 0.0, 0.0, 0.0))
    slide = kt.Joint("slide", "prismatic", "ground", "slider", axis=(0.48, 0.36, -0.8))
    mechanism = kt.build_mechanism("slide", [body], [slide])
    ball = kt.Contact("ball", "slider", "sphere", (0.05,), friction=0.25)
    run = kt.simulate(mechanism, [-0.2], [0.3], duration=0.4, contacts=ball, method="moreau", dt=1e-3)
    assert run.finished
    assert_close(run.qd[-1], [0.0], 1e-9, "velocity after the impact")
    assert max(run.contact.residuals.values()) < 1e-10
