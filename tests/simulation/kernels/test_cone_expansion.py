"""Poisson's law of impact in time steps: exact solutions, enumerated problems, and runs from event to event."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest

import host_gpu
import kinetree as kt
from contacted import near, touching
from floating_states import Floating
from kinetree.compiler.lower.contacts import motion_program
from kinetree.model.parameters import parse
from kinetree.simulation.contact import cone_solves
from kinetree.simulation.contact.cone_problem import ConeProblem, solve
from kinetree.simulation.contact.rates import OPENING, RESTING, TOUCH
from kinetree.simulation.engines import time_stepping
from strategies import random_mechanism
from tolerance import assert_close
from touching_bodies import planar_rod

MASSES = (5.3, 0.37, 7.1)
"""Masses of three balls in a row: a light one between heavy ones."""
H = 2e-3


def row() -> kt.System:
    """Return three balls on a line, the last two of which touch; restitutions are free parameters."""
    bodies = [kt.Body(f"b{k}", m, inertia=(0.01, 0.01, 0.01, 0.0, 0.0, 0.0)) for k, m in enumerate(MASSES)]
    joints = [
        kt.Joint(f"x{k}", "prismatic", "ground", f"b{k}", axis="x", placement=kt.Placement((0.25 * k, 0.0, 0.0)))
        for k in range(3)
    ]
    face = replace(kt.Placement.from_euler("y", (np.pi / 2,)), translation=(0.125, 0.0, 0.0))
    contacts = [
        kt.Contact(
            f"c{k}", f"b{k + 1}", "point", (), (-0.125, 0.0, 0.0), kt.Surface("plane", f"b{k}", face),
            restitution=parse(f"e{k}"), law="poisson",
        )
        for k in range(2)
    ]  # fmt: skip
    parameters = tuple(kt.Parameter(f"e{k}", 0.5, free=True) for k in range(2))
    made = kt.build_mechanism("row", bodies, joints)
    return kt.System(replace(made, parameters=parameters, contacts=tuple(contacts)))


def enumerated(W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return p with 0 <= p, 0 <= W p + b and p (W p + b) = 0, by trying all sets of closed contacts."""
    every = range(len(b))
    for closed in chain.from_iterable(combinations(every, n) for n in range(len(b) + 1)):
        p, at = np.zeros(len(b)), list(closed)
        p[at] = np.linalg.solve(W[np.ix_(at, at)], -b[at])
        if p.min() >= 0.0 and (W @ p + b).min() >= -1e-13 * np.abs(b).max():
            return p
    raise AssertionError("no solution of the complementarity problem")


def impact_of_row(v: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Return the velocities of the balls after an impact by Poisson's law."""
    J, inverse = np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]]), np.diag(1.0 / np.array(MASSES))
    W = J @ inverse @ J.T
    first = enumerated(W, J @ v)
    floor = e * first
    more = enumerated(W, J @ v + W @ (first + floor))
    return v + inverse @ J.T @ (first + floor + more)


def test_balls_in_a_row():
    """Strike a ball that touches another, with many restitutions, and find the velocities by enumeration."""
    rng = np.random.default_rng(3)
    e = np.concatenate([[(1.0, 1.0), (0.31, 0.31), (0.0, 0.6), (0.9, 1.0)], rng.uniform(size=(12, 2))])
    system, count, start = row(), len(e), np.array([1.7, 0.0, 0.0])
    q, qd = np.tile([-0.0413, 0.0, 0.0], (count, 1)), np.tile(start, (count, 1))
    run = kt.simulate(system, q, qd, times=[0.0, 0.026], parameters=e, method="moreau", dt=1e-3)
    expected = np.array([impact_of_row(start, x) for x in e])
    assert_close(run.qd[:, -1], expected, 1e-11, "velocities after the impact")
    assert np.ptp(expected[:, 2] - expected[:, 1]) > 0.1  # by Newton's law, the last two would stay together
    energy = run["energy"][:, -1] / run["energy"][:, 0]
    assert energy.max() < 1 + 1e-12
    assert_close(energy[0], 1.0, 1e-12, "energy after an elastic impact")
    assert max(run.contact.residuals.values()) < 1e-10


def dropped(restitution, **options) -> kt.Trajectory:
    """Return runs of a ball that falls by 0.5 m, with restitutions by Poisson's law."""
    body = kt.Body("ball", 0.7, inertia=(0.01, 0.01, 0.01, 0.0, 0.0, 0.0))
    made = kt.build_mechanism("ball", [body], [kt.Joint("z", "prismatic", "ground", "ball", axis=(0, 0, 1))])
    ball = kt.Contact("ball", "ball", "sphere", (0.1,), restitution=parse("e"), law="poisson")
    system = kt.System(replace(made, parameters=(kt.Parameter("e", 0.5, free=True),), contacts=(ball,)))
    e = np.asarray(restitution)[:, None]
    return kt.simulate(system, np.full_like(e, 0.6), parameters=e, method="moreau", **options)


def test_a_bounce_has_its_restitution():
    """Drop balls, and find apexes that shrink by the square of the restitution, and none without restitution."""
    e, drop, g, dt = np.array([0.8, 0.5, 0.0, 1.0]), 0.5, 9.81, 1e-4
    run = dropped(e, duration=1.4, dt=dt)
    fall = np.sqrt(2 * drop / g)
    for k, x in enumerate(e[:2]):
        bounce = (run.t > fall) & (run.t < fall * (1 + 2 * x))
        assert_close(run.q[k, bounce].max() - 0.1, x * x * drop, 1e-3, "height of the first bounce")
    assert run.qd[2].max() < g * dt * (1 + 1e-9)
    assert_close(run["energy"][3, -1], run["energy"][3, 0], 1e-11, "energy after elastic bounces [J]")
    assert_close(run.q[:3, -1], np.full((3, 1), 0.1), 0.3, "heights at the end")
    assert max(run.contact.residuals.values()) < 1e-10


@pytest.mark.slow
def test_a_ball_comes_to_rest():
    """Let balls bounce until they lie still, and find their weight as force."""
    run = dropped([0.2, 0.5, 0.8], times=[0.0, 3.5, 4.0], dt=1e-3)
    assert_close(run.qd[:, -1], np.zeros((3, 1)), 1e-9, "velocities at rest")
    assert_close(run.q[:, -1], np.full((3, 1), 0.1), 1e-9, "heights at rest")
    assert_close(run["contact_forces"][:, -1, 0, 0], np.full(3, 0.7 * 9.81), 1e-6, "weights")


ROD = np.array([[0.9, 0.4, 0.6], [0.5, 0.9, 0.8], [0.7, 0.0, 1.0]])
"""Angles [rad], frictions and restitutions of rods that strike with one end."""


@pytest.mark.slow
@pytest.mark.parametrize(("angle", "friction", "restitution"), ROD)
def test_a_rod_strikes_with_one_end(angle, friction, restitution):
    """Let a rod strike and slip, and approach the run from event to event; without friction, energy is kept."""
    rod, tip = planar_rod(friction)
    contact = replace(tip, restitution=restitution, law="poisson")
    q, qd = np.array([0.0, np.cos(angle) + 0.0137, angle]), np.array([-0.8 if angle < 0.6 else 0.3, -1.3, 0.4])
    options = {"times": [0.0, 0.1], "contacts": contact}
    exact = kt.simulate(rod, q, qd, rtol=1e-10, atol=1e-12, **options)
    run = kt.simulate(rod, q, qd, method="moreau", dt=5e-5, **options)
    assert_close(run.q[-1], exact.q[-1], 1e-4, "position")  # 5e-5 s of 1.7 m/s
    assert_close(run.qd[-1], exact.qd[-1], 2e-3, "velocity")
    assert max(run.contact.residuals.values()) < 1e-10
    if friction == 0.0:
        assert_close(run["energy"][-1], run["energy"][0], 1e-10, "energy of an elastic impact")
    else:
        assert run["energy"][-1] < run["energy"][0] - 0.1
    if angle == 0.5:  # the slip reverses in the impact: the laws differ
        newton = kt.simulate(
            rod, q, qd, rtol=1e-10, atol=1e-12, **options | {"contacts": replace(contact, law="newton")}
        )
        assert np.abs(newton.qd[-1] - exact.qd[-1]).max() > 0.1


def phases(W, arrival, free, gap, e, mu) -> tuple[np.ndarray, bool]:
    """Return the impulses of a step by Poisson's law, and whether a contact arrives, by NumPy's cone problems."""
    v, b, size = arrival[:, 0], free[:, 0], (np.abs(arrival) + np.abs(free - arrival)).max()
    needed, pressing = -2.0 * gap / H, np.maximum(arrival[:, 0] - free[:, 0], 0.0)
    allowed = np.where(needed > 0.0, np.minimum(OPENING * needed, pressing), needed)
    arrives = (b < needed) & (v < -RESTING * pressing)
    touches = (b < needed) | (needed > -TOUCH * size)
    least = np.where(arrives, np.maximum(allowed, 0.0), allowed)

    def solved(start, lowest, floor):
        bounded = start.copy()
        bounded[:, 0] -= lowest
        return solve(ConeProblem.of(W, bounded, mu, floor=floor)).forces

    none = np.zeros(len(gap))
    if not arrives.any():
        return solved(free, least, none), False
    stopping = solved(arrival, np.minimum(least, 0.0), none)
    first = solved(free, np.minimum(least, 0.0), none)
    after = free + (W @ first.ravel()).reshape(-1, 3)
    return first + solved(after, least, np.where(touches, e, 0.0) * stopping[:, 0]), True


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [("free", "revolute"), ("cylindrical", "planar")], ids="-".join)
def test_every_step_has_both_phases(kinds):
    """Take a step of random mechanisms with random contacts, and find the velocities of phases solved by NumPy."""
    struck = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        mechanism = random_mechanism(list(kinds), [-1, 0], rng)
        bare = kt.System(mechanism)
        q, qd = bare.random_state(rng)
        z, middle, speeds, free = Floating(bare).halfway(q, qd, H)
        e, mu = rng.uniform(0.2, 1.0, size=3), rng.choice([0.0, 0.3], size=3)
        contacts = [near(bare, middle, rng, f"c{k}", friction=mu[k], restitution=e[k], law="poisson") for k in range(3)]
        system = kt.System(touching(mechanism, *contacts))
        gap, arrival, _, J = (np.asarray(x) for x in motion_program(system.mechanism).interpret(middle, speeds)[:4])
        J, inverse = J.reshape(-1, mechanism.nv), system.inverse_inertia_matrix(middle)
        W, before = J @ inverse @ J.T, (J @ free).reshape(-1, 3)
        p, strikes = phases(W, arrival.reshape(-1, 3), before, gap, e, mu)
        u = before + (W @ p.ravel()).reshape(-1, 3)
        run = kt.simulate(system, q, qd, times=[0.0, H], method="moreau", dt=H)
        size, end = np.abs(before).max(), Floating(bare).centered(run.q[-1], run.qd[-1])[1]
        after = Floating(bare).uncentered(z, end)[1]
        assert_close((J @ after).reshape(-1, 3) / size, u / size, 1e-9, f"velocities of mechanism {seed}")
        struck += strikes
    assert struck > 5


@pytest.mark.slow
def test_sweeps_find_the_same_expansions(monkeypatch):
    """Leave out Newton's method, and find the motion of a rod on two balls, which slip and stick, unchanged."""

    def moved() -> kt.Trajectory:
        body = kt.Body("rod", 0.8, (0.03, -0.01, 0.02), (0.011, 0.012, 0.007, 0.001, 0.0, 0.0))
        joint = kt.Joint("base", "free", "ground", "rod")
        balls = [
            kt.Contact(
                f"ball{k}", "rod", "sphere", (0.1,), (0.2 * (2 * k - 1), 0.03, 0.0),
                friction=0.25 + 0.9 * k, restitution=0.7 - 0.3 * k, law="poisson",
            )
            for k in range(2)
        ]  # fmt: skip
        system = kt.System(touching(kt.build_mechanism("rod", [body], [joint]), *balls))
        q = system.neutral()
        q[2] = 0.104
        qd = np.array([0.7, -0.1, 2.0, 0.3, -0.9, -0.9])
        return kt.simulate(system, q, qd, times=np.arange(101) * 1e-3, method="moreau", dt=1e-3)

    expected = moved()
    monkeypatch.setattr(time_stepping, "FEW", 0)
    large = moved()
    monkeypatch.setattr(cone_solves, "STICKING", 0)
    monkeypatch.setattr(cone_solves, "NEWTON", 0)
    monkeypatch.setattr(cone_solves, "PROXIMAL", 0)
    swept = moved()
    assert (expected["contact_forces"][:, :, 0] > 1.0).sum() > 2
    for name, run in (("large matrices", large), ("sweeps", swept)):
        assert_close(run.q, expected.q, 1e-9, f"positions by {name}")
        assert_close(run.qd, expected.qd, 1e-7, f"velocities by {name}")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_gpu_and_a_batch_compute_the_runs_of_the_cpu(dtype, monkeypatch):
    """Let boxes bounce alone, in a batch, and on a stand-in for a GPU, with the same motion."""
    host_gpu.install(monkeypatch)
    body = kt.Body("box", 2.0, (0.01, -0.02, 0.015), (0.02, 0.03, 0.04, 0.001, 0.0, 0.002))
    made = kt.build_mechanism("box", [body], [kt.Joint("base", "free", "ground", "box")])
    places = [(x, y, -0.1) for y in (-0.15, 0.15) for x in (-0.2, 0.2)]
    laws = {"friction": 0.5, "restitution": 0.6, "law": "poisson"}
    box = kt.System(touching(made, *(kt.Contact(f"c{k}", "box", "point", (), x, **laws) for k, x in enumerate(places))))
    rng = np.random.default_rng(11)
    q, qd = np.tile(box.neutral(), (6, 1)), rng.normal(size=(6, 6))
    q[:, 2] = rng.uniform(0.1, 0.15, size=6)
    options = {"times": [0.0, 0.04, 0.08], "method": "moreau", "dt": 1e-3}
    together = kt.simulate(box, q, qd, **options)
    alone = kt.simulate(box, q[4], qd[4], **options)
    assert np.array_equal(together.q[4], alone.q)
    assert np.array_equal(together["contact_forces"][4], alone["contact_forces"])
    on_gpu = kt.simulate(box.on("cuda"), q.astype(dtype), qd.astype(dtype), **options)
    tol = {"float64": 1e-10, "float32": 1e-3}[dtype]
    for name in ("q", "qd"):
        assert_close(on_gpu[name], together[name], tol, name)
    assert max(together.contact.residuals.values()) < 1e-10
    assert max(on_gpu.contact.residuals.values()) < {"float64": 1e-10, "float32": 1e-3}[dtype]


@pytest.mark.slow
def test_a_wedged_body_does_not_expand():
    """Let bodies on an inclined slide strike with friction that keeps them from going back, and find them at rest."""
    body = kt.Body("slider", 1.4, inertia=(0.01, 0.01, 0.01, 0.0, 0.0, 0.0))
    slide = kt.Joint("slide", "prismatic", "ground", "slider", axis=(0.48, 0.36, -0.8))
    ball = kt.Contact("ball", "slider", "sphere", (0.05,), friction=1.6, restitution=0.6, law="poisson")
    made = kt.build_mechanism("slide", [body], [slide])
    q, qd = np.full((3, 1), -0.2), np.array([[0.3], [0.9], [1.7]])
    run = kt.simulate(made, q, qd, times=[0.0, 0.2, 0.4], contacts=ball, method="moreau", dt=1e-3)
    assert run.status == "finished"
    assert_close(run.qd[:, -1], np.zeros((3, 1)), 1e-12, "velocities after the impact")
    assert max(run.contact.residuals.values()) < 1e-10
