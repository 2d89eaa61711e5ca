"""Legged robots on hard contacts: standing, walking, and the balances of their runs."""

from __future__ import annotations

import re
import runpy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.apps.walking import legged
from kinetree.apps.walking.legged import advances, repetition_error, transport
from kinetree.simulation.monitors import integral
from tolerance import assert_close
from walking_balance import balance, point_velocities, world_forces

STEPS = {"planar_biped": 2.5e-4, "quadruped": 1e-3, "hexapod": 1e-3}
GAITS = {"planar_biped": legged.WALK, "quadruped": legged.TROT, "hexapod": legged.TRIPOD}
ADVANCES = {"planar_biped": 0.1987, "quadruped": 0.2153, "hexapod": 0.1802}
"""Distances in a cycle [m], as measured, once the gait has settled."""


def in_the_cone(robot, run, bound: float) -> None:
    """Assert that no force pulls, and that none has more friction than the cone allows."""
    f = run["contact_forces"]
    assert f[..., 0].min() >= -bound
    mu = robot.contacts[0].friction
    assert (np.linalg.norm(f[..., 1:], axis=-1) - mu * f[..., 0]).max() <= bound


@pytest.fixture(scope="module")
def walked():
    """Return the biped, its gait, and a run of two cycles with a sample at every step."""
    robot, gait = legged.planar_biped(), legged.WALK
    return robot, gait, robot.walk(gait, cycles=2, dt=5e-4, samples=2000)


@everyday.long
def test_the_biped_walks(walked):
    """Walk two cycles, and find the distance, an upright trunk, forces in the cone, and the balances."""
    robot, gait, run = walked
    assert run.finished
    forward = advances(run, robot.ahead, gait.period)
    assert 0.19 < forward[0] < 0.24 and 0.19 < forward[1] < 0.24
    in_the_cone(robot, run, 1e-6)
    found = balance(robot, gait, run)
    assert_close(found.impulse, found.momentum, 1e-5 * robot.weight * run.t[-1], "vertical impulse")
    assert found.contacts < 0 < found.drives
    assert abs(found.missing) < 2e-3 * found.spent
    assert np.abs(run.q[:, 2] + np.pi / 2).max() < 0.06


@everyday.long
def test_measures_of_transport(walked):
    """Find distance, weight and works of a short walk, and refuse runs without whole periods."""
    robot, gait, run = walked
    found = transport(run, robot.ahead)
    assert_close(found.weight, robot.weight, 1e-12, "weight")
    assert_close(found.weight, 9.4 * 9.81, 1e-12, "weight of 9.4 kg")
    assert_close(found.distance, advances(run, robot.ahead, gait.period).sum(), 1e-12, "distance")
    assert found.spent > abs(found.work) and found.cost == found.spent / (found.weight * found.distance)
    assert_close(found.work - found.dissipated, run["energy"][-1] - run["energy"][0], 1e-12, "energy")
    with pytest.raises(kt.InputError, match=r"no samples at whole periods of 0\.3017 s"):
        repetition_error(run, robot.ahead, 0.3017)
    with pytest.raises(kt.InputError, match="start the measures before"):
        transport(run, robot.ahead, start=3.0)
    for measure in (lambda: transport(run, 3), lambda: advances(run, 3, gait.period)):
        with pytest.raises(kt.InputError, match="axis is 3; give no more than 2"):
            measure()


def test_impossible_walks_are_refused(walked):
    """Refuse steps that the legs do not reach, no cycles, and measures of a batch."""
    robot, gait, run = walked
    with pytest.raises(kt.InputError, match="do not reach their paths at sample"):
        robot.motion(replace(gait, speed=3.0), np.linspace(0.0, 1.0, 5))
    with pytest.raises(kt.InputError, match="cycles"):
        robot.walk(gait, cycles=0)
    straight = replace(robot, standing=np.array([0.0, 1.25, -np.pi / 2, 0.0, 0.0, np.pi / 2, 0.0, 0.0, np.pi / 2]))
    with pytest.raises(kt.InputError, match="Jacobian is singular, as for a straight leg"):
        straight.motion(gait, np.zeros(1))
    twice = kt.Trajectory(run.system, run.t[:2], np.stack([run.q[:2]] * 2), np.stack([run.qd[:2]] * 2))
    with pytest.raises(kt.InputError, match="single run under control"):
        transport(twice, robot.ahead)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(STEPS))
def test_robots_stand(name):
    """Hold the posture for two seconds, and find rest and the weight on the feet."""
    robot = getattr(legged, name)()
    run = robot.stand(2.0, dt=STEPS[name])
    assert np.abs(run.qd[-1]).max() < 1e-3
    assert_close(run["contact_forces"][-1, :, 0].sum(), robot.weight, 1e-4 * robot.weight, "ground forces")
    in_the_cone(robot, run, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(STEPS))
def test_gaits_go_on(name):
    """Walk 60 cycles without falling, and find the stated distance in each of the last ones, which repeat."""
    robot, gait = getattr(legged, name)(), GAITS[name]
    run = robot.walk(gait, cycles=60, dt=STEPS[name])
    assert run.finished
    in_the_cone(robot, run, 1e-6)
    assert_close(advances(run, robot.ahead, gait.period)[30:], np.full(30, ADVANCES[name]), 1e-3, "distance in a cycle")
    height = robot.standing[robot.up]
    assert np.abs(run.q[:, robot.up] - height).max() < 0.01
    twice = repetition_error(run, robot.ahead, 2 * gait.period)
    assert twice[-5:].max() < (0.2 if name == "planar_biped" else 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(STEPS))
def test_energy_and_impulse_balance_in_the_limit_of_short_steps(name):
    """Find that the gaps in the balances of energy and of the vertical impulse vanish with the step."""
    robot, gait = getattr(legged, name)(), GAITS[name]
    found = []
    for dt in (STEPS[name], STEPS[name] / 2, STEPS[name] / 4):
        run = robot.walk(gait, cycles=1, dt=dt, samples=round(gait.period / dt))
        found.append(balance(robot, gait, run))
    missing = np.array([x.missing for x in found])
    assert np.abs(missing).max() < 2e-3 * found[0].spent
    assert_close(missing[:-1] / missing[1:], np.full(2, 2.0), 0.2, "ratio of missing energies at half the step")
    gaps = np.array([abs(x.impulse - x.momentum) for x in found])
    assert_close(gaps, np.zeros(3), 1e-12 * robot.weight * gait.period, "impulse of the ground less that of gravity")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["planar_biped", "quadruped"])
def test_half_the_step_converges(name):
    """Find that the states after half a cycle approach each other as steps are halved."""
    robot, gait = getattr(legged, name)(), GAITS[name]
    ends = [robot.walk(gait, cycles=1, dt=STEPS[name] / 2**k, samples=2).q[1] for k in range(5)]
    apart = [np.abs(a - b).max() for a, b in pairwise(ends)]
    assert apart[0] < 5e-3 and apart[3] < 0.5 * apart[0]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sides"), [("quadruped", legged.TROT_SIDES), ("hexapod", legged.TRIPOD_SIDES)])
def test_mirrored_gaits_give_mirrored_motions(name, sides):
    """Exchange the legs of both sides in a gait, and find the trunk's motion mirrored."""
    robot, gait = getattr(legged, name)(), GAITS[name]
    runs = [robot.walk(g, cycles=2, dt=STEPS[name]) for g in (gait, gait.mirrored(sides))]
    side = 2 - robot.ahead  # the axis to the side
    mirror = np.ones(7)
    mirror[side] = -1.0
    mirror[3:6] = -1.0  # rotations about the other axes change their sense, as the displacement along this one
    mirror[3 + side] = 1.0
    scale = np.abs(runs[0].q[:, :7]).max(axis=0)
    assert scale[side] > 1e-5
    assert_close(runs[1].q[:, :7], runs[0].q[:, :7] * mirror, 1e-8, "mirrored motion of the trunk")


@pytest.mark.slow
def test_the_event_driven_run_balances_its_energy():
    """Find dE = work of drives and friction between events to the tolerance, and losses at all impacts."""
    robot, gait = legged.planar_biped(), legged.WALK
    times = np.linspace(0.0, 0.25, 501)
    run = kt.simulate(
        robot.system, *robot.start(gait), times=times, control=robot.control(gait), contacts=robot.contacts,
        rtol=1e-9, atol=1e-11,
    )  # fmt: skip
    assert run.finished and max(run.contact.residuals.values()) < 1e-10
    power = (np.asarray(run.control) * run.qd).sum(axis=-1)
    power += (world_forces(robot, run) * point_velocities(robot, run.q, run.qd)).sum(axis=(-2, -1))
    events = np.unique([event.t for event in run.contact.events])
    borders = np.concatenate([[0.0], events, [times[-1] + 1.0]])
    counted = 0
    for a, b in pairwise(borders):
        rows = np.flatnonzero((times > a + 1e-9) & (times < b - 1e-9))
        if len(rows) < 8:
            continue
        counted += len(rows)
        change = run["energy"][rows] - run["energy"][rows[0]]
        assert_close(integral(times[rows], power[rows]), change, 1e-6 * np.ptp(run["energy"]), "energy between events")
    assert counted > 450


@pytest.mark.slow
def test_both_engines_walk_alike():
    """Find the biped of the event-driven engine where that of ever shorter time steps ends."""
    robot, gait = legged.planar_biped(), legged.WALK
    exact = kt.simulate(
        robot.system, *robot.start(gait), times=[0.0, 0.12], control=robot.control(gait), contacts=robot.contacts
    )
    apart = []
    for dt in (2e-4, 1e-4, 5e-5):
        run = kt.simulate(
            robot.system, *robot.start(gait), times=[0.0, 0.12], control=robot.control(gait), contacts=robot.contacts,
            method="moreau", dt=dt,
        )  # fmt: skip
        apart.append(np.abs(run.q[-1] - exact.q[-1]).max())
    assert apart[0] < 1e-3 and apart[2] < 0.5 * apart[0]


@pytest.mark.slow
def test_disturbed_starts_walk_on():
    """Push 16 quadrupeds with up to 0.3 m/s in random directions, and find all of them walking after 20 cycles."""
    robot, gait = legged.quadruped(), legged.TROT
    q, qd = robot.start(gait)
    pushes = np.random.default_rng(4).uniform(-0.3, 0.3, size=(16, 2))
    qd = np.tile(qd, (16, 1))
    qd[:, [3, 5]] += pushes
    times = np.linspace(0.0, 20 * gait.period, 41)
    run = kt.simulate(
        robot.system, np.tile(q, (16, 1)), qd, times=times, control=robot.control(gait), contacts=robot.contacts,
        method="moreau", dt=1e-3,
    )  # fmt: skip
    assert run.finished
    assert np.abs(run.q[:, :, 1] - 0.5).max() < 0.1
    assert_close(run.q[:, -1, 2] - run.q[:, -3, 2], np.full(16, ADVANCES["quadruped"]), 0.02, "distance in a cycle")


@pytest.mark.slow
def test_friction_moves_the_trot():
    """Start a trot at rest, and find that it walks with friction, and keeps its horizontal momentum of zero without."""
    gait, ends = legged.TROT, []
    for friction in (0.7, 0.0):
        robot = legged.quadruped(friction=friction)
        q, _ = robot.start(gait)
        times = np.linspace(0.0, 4 * gait.period, 5)
        run = kt.simulate(
            robot.system, q, times=times, control=robot.control(gait), contacts=robot.contacts, method="moreau", dt=5e-4
        )
        ends.append(advances(run, robot.ahead, gait.period))
    assert ends[0][-1] > 0.2
    assert np.abs(ends[1]).max() < 2e-3


@pytest.mark.slow
def test_the_example_draws(tmp_path, capsys):
    """Run examples/gaits.py, and find its picture, its pages, and the measures that it prints."""
    example = runpy.run_path(str(Path(__file__).resolve().parents[3] / "examples" / "gaits.py"))
    files = example["draw"](tmp_path)
    assert [f.name for f in files] == ["gaits-ground-forces.png", "biped.html", "quadruped.html", "hexapod.html"]
    assert all(f.stat().st_size > 20000 for f in files)
    printed = capsys.readouterr().out
    found = [float(x) for x in re.findall(r"distance in a cycle \[m\] +(\S+)", printed)]
    assert_close(
        found, [ADVANCES[name] for name in ("planar_biped", "quadruped", "hexapod")], 1e-3, "printed distances"
    )
