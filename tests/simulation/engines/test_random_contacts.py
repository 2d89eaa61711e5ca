"""Random mechanisms with random contacts: no state breaks Signorini's conditions, the cone or the dissipation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from contacted import outputs
from floating_states import Floating
from kinetree.compiler.lower.contacts import motion_program
from kinetree.runtime.native import native
from kinetree.simulation.contact import transitions
from kinetree.simulation.contact.transitions import impact
from strategies import THOROUGH, random_mechanism
from tolerance import assert_close

SHAPES = (("point", ()), ("sphere", (0.2,)), ("capsule", (0.1, 0.3)), ("disc", (0.25,)), ("box", (0.3, 0.2, 0.4)))
BOX = (0.273, -1.173, -0.386, 0.0122, -0.138, 0.647, 0.302)
"""The height and the velocities of a box that lands on one corner after the other, then on two at once."""
JOINTS = ("revolute", "prismatic", "spherical", "universal")


def falling(seed: int) -> tuple[kt.System, np.ndarray, np.ndarray, list[kt.Contact]]:
    """Return a random mechanism that falls to a plane close below it, with random contacts."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 4))
    kinds = ["free" if k == 0 and rng.random() < 0.7 else str(rng.choice(JOINTS)) for k in range(count)]
    tree = random_mechanism(kinds, [-1, *(int(rng.integers(0, k)) for k in range(1, count))], rng)
    tree = replace(tree, gravity=(0.0, 0.0, -9.81))
    system = kt.System(tree)
    q, qd = system.random_state(rng)
    bodies = [b.name for b in tree.bodies]
    contacts = []
    for k in range(int(rng.integers(1, 4))):
        shape, size = SHAPES[rng.integers(len(SHAPES))]
        contacts.append(kt.Contact(
            f"c{k}", str(rng.choice(bodies)), shape, size, tuple(rng.normal(size=3) * 0.3),
            friction=float(rng.uniform(0.0, 1.0)), restitution=float(rng.choice([0.0, 0.3, 0.7])),
            law=str(rng.choice(["newton", "poisson"])),
        ))  # fmt: skip
    gaps = outputs(motion_program(replace(tree, contacts=tuple(contacts))), q, qd)["gap"]
    plane = kt.Surface(placement=kt.Placement((0.0, 0.0, float(gaps.min() - rng.uniform(0.0, 0.1)))))
    return system, q, 0.3 * qd, [replace(c, surface=plane) for c in contacts]


WEDGED, GAINING = (58, 70), (78,)
"""Seeds of mechanisms with a wedged body that cannot rebound, and with an impact to which Newton's law adds energy."""


def energies(system: kt.System, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Return kinetic energies [J]."""
    return 0.5 * np.einsum("...i,...ij,...j->...", qd, system.inertia_matrix(q), qd)


@pytest.fixture
def impacts(monkeypatch) -> list:
    """Return a list to which each impact of a run from event to event is appended, with its state and velocities."""
    found = []

    def seen(given, state, qd, *rest):
        found.append((state, qd, impact(given, state, qd, *rest)))
        return found[-1][2]

    monkeypatch.setattr(transitions, "impact", seen)
    return found


def assert_work_of_impacts(system: kt.System, impacts: list) -> None:
    """Compare the work of impulses, with the mean velocities of their contacts, and the change of kinetic energy."""
    for state, qd, x in impacts:
        before = state.v[list(x.which)]
        change = energies(system, state._q, x.qd) - energies(system, state._q, qd)
        size = energies(system, state._q, qd)
        assert_close(0.5 * (x.impulses * (before + x.after)).sum() / size, change / size, 1e-10, "work of an impact")
        assert change <= 1e-12 * size


def assert_work_of_steps(system: kt.System, contacts: list[kt.Contact], run: kt.Trajectory, dt: float) -> None:
    """Compare the work of the impulses of all steps, with mean velocities, and the change of kinetic energy by them."""
    floating = Floating(system)
    halves = [floating.halfway(q, qd, dt) for q, qd in zip(run.q[:-1], run.qd[:-1], strict=True)]
    z, middle, qd, free = (np.array(x) for x in zip(*halves, strict=True))
    ends = zip(z, run.q[1:], run.qd[1:], strict=True)
    after = np.array([floating.uncentered(at, floating.centered(*end)[1])[1] for at, *end in ends])
    *_, J, _, _ = native(motion_program(replace(system.mechanism, contacts=tuple(contacts))))(middle, qd)
    p = run["contact_forces"][1:] * dt
    mean = np.einsum("tcij,tj->tci", J.reshape(*p.shape, -1), 0.5 * (free + after))
    before, work = energies(system, middle, free), (p * mean).sum(axis=(1, 2))
    change = energies(system, middle, after) - before
    assert_close(work / before, change / before, 1e-10, "work of the impulses of steps")


@everyday.long
def test_the_energy_lost_at_impacts_is_the_work_of_impulses(impacts) -> None:
    """Run into the ground from event to event, with reduced restitution, and find the energy in the impulses."""
    system, q, qd, contacts = falling(GAINING[0])
    newton = [replace(c, law="newton") for c in contacts]
    kt.simulate(system, q, qd, times=[0.0, 0.4], contacts=newton, rtol=1e-6, atol=1e-8)
    assert min(x.kept for _, _, x in impacts) < 1.0
    assert_work_of_impacts(system, impacts)


@pytest.mark.slow
def test_random_mechanisms_keep_all_conditions(impacts) -> None:
    """Run 100 mechanisms into the ground, and bound the residuals of samples and impacts."""
    ended = 0
    for seed in range(100):
        impacts.clear()
        system, q, qd, contacts = falling(seed)
        try:
            run = kt.simulate(system, q, qd, times=np.linspace(0, 0.4, 21), contacts=contacts, rtol=1e-6, atol=1e-8)
        except kt.InputError as error:
            assert "Painleve" in str(error), seed
            continue
        assert run.finished or "Painleve" in run.status or "accumulate" in run.status, (seed, run.status)
        ended += run.finished
        assert_work_of_impacts(system, impacts)
        for residuals in (run.contact.residuals, run.contact.impact_residuals):
            for name, value in residuals.items():
                assert_close(value, 0.0, 1e-10, name)
        if not any(c.restitution for c in contacts):
            change = np.diff(run["energy"]) / (1.0 + np.abs(run["energy"][0]))
            assert_close(np.maximum(change, 0.0), 0 * change, 1e-5, "energy never grows")
    assert ended > 85


@everyday.long
@pytest.mark.parametrize(
    "seeds", [(WEDGED[0], *GAINING), pytest.param(range(100), marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_time_steps_of_random_mechanisms_keep_their_bound(seeds) -> None:
    """Run 100 mechanisms, or two of the hardest, into the ground by time steps, and bound all residuals."""
    for seed in seeds:
        system, q, qd, contacts = falling(seed)
        assert_bounds_of_steps(seed, system, q, qd, [replace(c, law="newton") for c in contacts])


@pytest.mark.slow
def test_time_steps_by_both_laws_keep_their_bound() -> None:
    """Run the mechanisms with restitution by Poisson's law into the ground by time steps, and bound all residuals."""
    for seed in range(100) if THOROUGH else (1, 8, 10, 11, *WEDGED):
        system, q, qd, contacts = falling(seed)
        if any(c.law == "poisson" and c.restitution for c in contacts):
            assert_bounds_of_steps(seed, system, q, qd, contacts)


def assert_bounds_of_steps(seed: int, system: kt.System, q, qd, contacts: list[kt.Contact]) -> None:
    """Bound the residuals of a run by time steps, and compare the work of its impulses with the change of energy."""
    run = kt.simulate(system, q, qd, times=np.arange(401) * 1e-3, contacts=contacts, method="moreau", dt=1e-3)
    assert run.finished, seed
    assert_work_of_steps(system, contacts, run, 1e-3)
    for name, value in run.contact.residuals.items():
        assert_close(value, 0.0, 1e-10, f"{name} of mechanism {seed}")


@pytest.mark.slow
def test_time_steps_converge_to_runs_from_event_to_event() -> None:
    """Halve the time steps of random mechanisms four times, and find errors of the first order on average."""
    steps, found = np.array([8e-4, 4e-4, 2e-4, 1e-4, 5e-5]), []
    for seed in range(100) if THOROUGH else (*range(16), *WEDGED, *GAINING):
        system, q, qd, contacts = falling(seed)
        options = {"times": [0.0, 0.2], "contacts": [replace(c, law="newton") for c in contacts]}
        try:
            exact = kt.simulate(system, q, qd, rtol=1e-10, atol=1e-12, **options)
        except kt.InputError as error:
            assert "Painleve" in str(error), seed
            continue
        if not exact.finished:
            continue
        runs = [kt.simulate(system, q, qd, method="moreau", dt=dt, **options) for dt in steps]
        assert all(run.finished for run in runs), seed
        assert max(x for run in runs for x in run.contact.residuals.values()) < 1e-9, seed
        errors = np.array([np.abs(run.q[-1] - exact.q[-1]).max() for run in runs])
        if errors.max() > 1e-12:  # accelerations are constant in some
            found.append(np.log(errors))
    assert len(found) > (75 if THOROUGH else 12)
    slope = np.polyfit(np.log(steps), np.mean(found, axis=0), 1)[0]
    assert 0.8 < slope < 1.25, slope  # 0.97: the phase of an impact in its step is random


@pytest.mark.slow
def test_two_corners_at_once_have_no_unique_order() -> None:
    """Displace a corner of a box by 1e-7 m before a face lands on two corners, and find another end by millimeters."""
    ends = []
    for shift in (1e-7, -1e-7):
        body = kt.Body("box", 2.0, (0.01, -0.02, 0.015), (0.02, 0.03, 0.04, 0.001, 0.0, 0.002))
        tree = kt.build_mechanism("box", [body], [kt.Joint("base", "free", "ground", "box")])
        places = [(-0.2, -0.15, -0.1), (0.2, -0.15, -0.1), (-0.2, 0.15, -0.1), (0.2, 0.15, -0.1 + shift)]
        corners = [kt.Contact(f"c{k}", "box", "point", (), x, friction=0.5) for k, x in enumerate(places)]
        q = kt.System(tree).neutral()
        q[2] = BOX[0]
        ends.append(kt.simulate(tree, q, BOX[1:], times=[0.0, 0.3], contacts=corners, rtol=1e-9, atol=1e-11).q[-1])
    assert np.abs(ends[1] - ends[0]).max() > 1e-3
