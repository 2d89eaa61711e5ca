"""Bodies that touch each other: momentum, energy and laws at random, exact impacts, balls in a row, boxes on boxes."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

import everyday
import host_gpu
import kinetree as kt
from kinetree.contact_geometry import candidates
from kinetree.contact_geometry.surfaces import FAR
from kinetree.runtime import contact_motion
from tolerance import assert_close

G = 9.81
EVENTS: dict[str, object] = {}
STEPS = {"method": "moreau", "dt": 1e-3}
SIZES = {"sphere": (0.21,), "capsule": (0.13, 0.47), "box": (0.41, 0.53, 0.29)}
PAIRS = [("sphere", "sphere"), ("sphere", "box"), ("capsule", "capsule"), ("capsule", "box"), ("box", "box")]


def free_bodies(masses: list[float], moments, gravity=(0.0, 0.0, -G)) -> kt.System:
    """Return free bodies b0, b1, ... with the same ratio of principal moments to mass."""
    bodies = [kt.Body(f"b{k}", m, inertia=(*(m * x for x in moments), 0, 0, 0)) for k, m in enumerate(masses)]
    joints = [kt.Joint(f"j{k}", "free", kt.GROUND, b.name) for k, b in enumerate(bodies)]
    return kt.System(kt.build_mechanism("bodies", bodies, joints, gravity=gravity))


def touch(body: str, other: str, shape: str, kind: str = "", sizes=SIZES, name: str = "pair", **laws) -> kt.Contact:
    """Return the contact of two bodies."""
    kind = kind or shape
    return kt.Contact(name, body, shape, sizes[shape], surface=kt.Surface(kind, other, size=sizes[kind]), **laws)


def momenta(system: kt.System, run: kt.Trajectory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return linear and angular momentum about the origin, and kinetic energy [..., nt] of free bodies."""
    linear, angular, energy = 0.0, 0.0, 0.0
    for k, body in enumerate(system.mechanism.bodies):
        r, quaternion = run.q[..., 7 * k : 7 * k + 3], run.q[..., 7 * k + 3 : 7 * k + 7]
        w, v = run.qd[..., 6 * k : 6 * k + 3], run.qd[..., 6 * k + 3 : 6 * k + 6]
        R = Rotation.from_quat(quaternion.reshape(-1, 4)).as_matrix().reshape(*quaternion.shape[:-1], 3, 3)
        spin = np.array(body.inertia[:3]) * w
        p = body.mass * np.einsum("...ij,...j->...i", R, v)
        linear, angular = linear + p, angular + np.cross(r, p) + np.einsum("...ij,...j->...i", R, spin)
        energy = energy + 0.5 * (w * spin).sum(-1) + 0.5 * body.mass * (v * v).sum(-1)
    return linear, angular, energy


@pytest.mark.parametrize("shape, kind, law", [
    ("sphere", "sphere", "poisson"), ("capsule", "box", "newton"),
    *(pytest.param(*pair, law, marks=pytest.mark.slow) for pair in PAIRS for law in ("newton", "poisson")),
])  # fmt: skip
def test_free_bodies_collide_by_the_laws(shape, kind, law) -> None:
    """Let bodies collide from 32 random directions: momenta stay, energy does not grow, and forces obey their laws."""
    rng, n = np.random.default_rng(3), 32
    system = free_bodies([1.3, 0.7], (0.021, 0.017, 0.026), gravity=(0, 0, 0))
    pair = touch("b1", "b0", shape, kind, friction=0.4, restitution=0.5, law=law)
    q, qd = np.tile(system.neutral(), (n, 1)), rng.normal(size=(n, 12))
    along = rng.normal(size=(n, 3))
    along /= np.linalg.norm(along, axis=1)[:, None]
    q[:, :3] = 1.1 * along
    q[:, 3:7], q[:, 10:14] = (
        Rotation.random(n, random_state=rng).as_quat(),
        Rotation.random(n, random_state=rng).as_quat(),
    )
    R = Rotation.from_quat(q[:, 3:7])
    qd[:, 3:6] = R.inv().apply(-2.0 * along)
    qd[:, 9:12] = 0.0
    run = kt.simulate(system, q, qd, times=np.linspace(0, 0.5, 501), contacts=[pair], **STEPS)
    assert run.finished
    linear, angular, energy = momenta(system, run)
    assert_close(linear, linear[:, :1] + 0 * linear, 1e-11, "linear momentum")
    assert_close(angular - angular[:, :1], 0 * angular, 3e-3 * np.abs(angular).max(), "angular momentum")
    assert (energy <= energy[:, :1] * (1 + 2e-2)).all() and (energy[:, -1] < energy[:, 0] * (1 - 1e-3)).sum() > n // 2
    forces, gaps = run["contact_forces"], run["contact_gaps"]
    assert gaps.min() > -1e-3 * 5.0
    unit = forces.max()
    assert forces[..., 0].min() >= 0 and unit > 10
    assert_close(np.maximum(np.hypot(*forces.T[1:]) - 0.4 * forces.T[0], 0.0) / unit, 0 * forces.T[0], 1e-10, "cone")
    poses, wrenches = run["poses"], run["wrenches"]
    force = np.einsum("...kij,...kj->...ki", poses[..., :3, :3], wrenches[..., 3:])
    moment = np.einsum("...kij,...kj->...ki", poses[..., :3, :3], wrenches[..., :3])
    moment = moment + np.cross(poses[..., :3, 3], force)
    total = np.concatenate([force, moment], -1).sum(-2) / unit
    assert_close(total, 0 * total, 1e-12, "action and reaction")
    assert max(run.contact.residuals.values()) < 1e-10


def test_spheres_collide_as_two_rigid_spheres_do() -> None:
    """Compare an oblique impact with friction, sticking and slipping, with the exact impulses, in both engines."""
    for mu in (0.04, 0.6):
        system = free_bodies([1.3, 0.7], (0.4 * 0.21**2,) * 3, gravity=(0, 0, 0))
        laws = {"friction": mu, "restitution": 0.7}
        pair = touch("b1", "b0", "sphere", **laws)
        q, qd = system.neutral(), np.zeros(12)
        n = np.array([0.6, 0.0, 0.8])
        q[7:10] = 0.42 * n
        qd[3:6], qd[6:9], qd[9:12] = (0.1, 0.2, 0.3), (0.3, -0.5, 0.7), (-1.3, 0.9, -1.7)
        at = np.cross(qd[6:9], -0.21 * n)
        u = qd[9:12] + at - qd[3:6]
        un, ut = u @ n, u - (u @ n) * n
        mass = 1 / (1 / 1.3 + 1 / 0.7)
        pn = -mass * 1.7 * un
        stop = mass * 2 / 7 * np.linalg.norm(ut)  # w_t = 7/2 of w_n: the inertia of both is 2/5 m r^2
        p = pn * n - min(mu * pn, stop) * ut / np.linalg.norm(ut)
        after = qd.copy()
        after[3:6] -= p / 1.3
        after[9:12] += p / 0.7
        after[:3] += np.cross(0.21 * n, -p) / (1.3 * 0.4 * 0.21**2)
        after[6:9] += np.cross(-0.21 * n, p) / (0.7 * 0.4 * 0.21**2)
        assert (mu * pn < stop) == (mu == 0.04)
        run = kt.simulate(system, q, qd, times=[0, 1e-9], contacts=pair)
        assert_close(run.qd[-1], after, 1e-7, "velocities after an impact, from event to event")
        run = kt.simulate(system, q, qd, times=[0, 1e-6], contacts=pair, method="moreau", dt=1e-6)
        assert_close(run.qd[-1], after, 1e-4, "velocities after an impact, by time steps")


OUTCOMES = {
    # balls that touch, law, and restitution: velocities after the first ball arrives at 1 m/s
    (True, "newton", (1.0, 1.0)): (-1 / 3, 2 / 3, 2 / 3),
    (True, "poisson", (1.0, 1.0)): (-1 / 3, 2 / 3, 2 / 3),
    (False, "newton", (1.0, 1.0)): (0.0, 0.0, 1.0),
    (False, "poisson", (1.0, 1.0)): (0.0, 0.0, 1.0),
    (True, "newton", (0.0, 1.0)): (1 / 3, 1 / 3, 1 / 3),
    (True, "poisson", (0.0, 1.0)): (1 / 6, 1 / 6, 2 / 3),
}


@pytest.mark.parametrize("options", [EVENTS, pytest.param(STEPS, marks=pytest.mark.slow)], ids=["events", "steps"])
def test_three_balls_in_a_row(options) -> None:
    """Let a ball strike two others: what leaves depends on whether they touch, momentum and energy do not."""
    system = free_bodies([0.3] * 3, (0.4 * 0.21**2,) * 3, gravity=(0, 0, 0))
    for (touching, law, e), expected in OUTCOMES.items():
        row = [touch(f"b{k + 1}", f"b{k}", "sphere", name=f"c{k}", restitution=e[k], law=law) for k in range(2)]
        q, qd = system.neutral(), np.zeros(18)
        q[0], q[14], qd[3] = -0.5, 0.42 + (0.0 if touching else 0.011), 1.0
        run = kt.simulate(system, q, qd, times=[0, 0.3], contacts=row, **options)
        v = run.qd[-1].reshape(3, 6)[:, 3]
        assert_close(v, expected, 1e-12, "velocities")
        assert_close(v.sum(), 1.0, 1e-12, "momentum")
        assert_close((v * v).sum(), 1.0 if e[0] else np.square(expected).sum(), 1e-12, "energy")


BRICK = {"box": (0.4, 0.3, 0.2)}
MOMENTS = tuple((a * a + b * b) / 12 for a, b in ((0.3, 0.2), (0.4, 0.2), (0.4, 0.3)))


def stack(count: int, friction: float, *, turn: float = 0.0, angle: float = 0.0):
    """Return bricks, one on the other and each turned by more, on a slope [rad], with their contacts and start."""
    system = free_bodies([2.0] * count, MOMENTS)
    tilt = Rotation.from_euler("y", angle)
    slope = kt.Surface(placement=kt.Placement.from_euler("y", (angle,)))
    contacts = [kt.Contact("ground", "b0", "box", BRICK["box"], surface=slope, friction=friction)]
    contacts += [
        touch(f"b{k + 1}", f"b{k}", "box", sizes=BRICK, name=f"c{k}", friction=friction) for k in range(count - 1)
    ]
    q = system.neutral()
    for k in range(count):
        q[7 * k : 7 * k + 3] = tilt.apply((0.0, 0.0, 0.1 + 0.2 * k))
        q[7 * k + 3 : 7 * k + 7] = (tilt * Rotation.from_euler("z", turn * k)).as_quat()
    return system, contacts, q


@everyday.long
@pytest.mark.parametrize("turn, angle, options", [
    (0.3, 0.25, STEPS),
    *(pytest.param(*x, y, marks=pytest.mark.slow)
      for x in ((0.0, 0.0), (0.785, 0.0), (3e-6, 0.2), (0.3, 0.25)) for y in (EVENTS, STEPS)),
])  # fmt: skip
def test_a_box_rests_on_a_box(turn, angle, options) -> None:
    """Lay a box on another one, level or on a slope, and find neither creep nor sinking."""
    system, contacts, q = stack(2, 0.6, turn=turn, angle=angle)
    run = kt.simulate(system, q, times=[0, 0.25, 0.5], contacts=contacts, **options)
    assert run.finished
    assert_close(run.qd[-1], np.zeros(12), 1e-12, "creep")
    assert_close(run.q[-1], q, 1e-12, "displacement")
    upper = run["poses"][-1, 1, :3, :3] @ run["wrenches"][-1, 1, 3:]
    assert_close(upper, [0.0, 0.0, 2.0 * G], 1e-8, "force on the upper box")


@pytest.mark.slow
def test_five_boxes_rest_on_each_other() -> None:
    """Stack five boxes, exactly and turned, for two seconds of time steps."""
    for turn in (0.0, 0.2):
        system, contacts, q = stack(5, 0.5, turn=turn)
        run = kt.simulate(system, q, times=[0, 1, 2], contacts=contacts, **STEPS)
        assert run.finished
        assert_close(run.qd[-1], np.zeros(30), 1e-12, "creep of a stack")
        assert_close(run.q[-1], q, 1e-12, "displacement of a stack")


@pytest.mark.slow
@pytest.mark.parametrize("options", [EVENTS, STEPS], ids=["events", "steps"])
def test_a_box_slides_on_a_board_until_both_move_together(options) -> None:
    """Let a box slide on a smooth board with friction: the common velocity, and the distance, have closed forms."""
    system = free_bodies([2.0, 5.0], MOMENTS)
    board = {"box": (0.1, 0.1, 0.1), "plank": (2.0, 0.5, 0.1)}
    pair = kt.Contact(
        "pair", "b0", "box", board["box"], surface=kt.Surface("box", "b1", size=board["plank"]), friction=0.3
    )
    floor = kt.Contact("floor", "b1", "box", board["plank"])
    q, qd = system.neutral(), np.zeros(12)
    q[:3], q[9], qd[3] = (-0.5, 0.0, 0.15), 0.05, 1.2
    run = kt.simulate(system, q, qd, times=[0, 0.5], contacts=[pair, floor], **options)
    a = 0.3 * G * (1 + 2 / 5)
    v = 1.2 * 2 / 7
    bound = 1e-9 if not options else 2e-3
    assert_close(run.qd[-1, [3, 9]], [v, v], bound, "common velocity")
    assert_close(run.q[-1, 0] - run.q[-1, 7] + 0.5, 1.2**2 / (2 * a), bound, "distance on the board")


def gripper() -> tuple[kt.System, np.ndarray]:
    """Return two fingers that slide along x under forces, and a free body of 0.4 kg between them."""
    names = ("left", "right")
    bodies = [*(kt.Body(x, 0.5, inertia=(1e-3, 1e-3, 1e-3, 0, 0, 0)) for x in names)]
    bodies.append(kt.Body("thing", 0.4, inertia=(4e-4, 4e-4, 4e-4, 0, 0, 0)))
    joints = [kt.Joint(f"slide_{x}", "prismatic", kt.GROUND, x, axis="x") for x in names]
    system = kt.System(kt.build_mechanism("gripper", bodies, [*joints, kt.Joint("root", "free", kt.GROUND, "thing")]))
    q = system.neutral()
    q[:2] = -0.1, 0.1
    return system, q


@everyday.long
@pytest.mark.parametrize("thing, options", [
    ("sphere", STEPS),
    *(pytest.param(*x, marks=pytest.mark.slow) for x in (("sphere", EVENTS), ("box", EVENTS), ("box", STEPS))),
])  # fmt: skip
def test_a_gripper_holds_what_friction_can_carry(thing, options) -> None:
    """Press a ball or a box between two fingers: it stays above the limit of friction, and slips below it."""
    system, q = gripper()
    size = (0.05,) if thing == "sphere" else (0.1, 0.1, 0.1)
    for force, holds in ((6.0, True), (3.0, False)):  # of two fingers with friction 0.4; the weight is 3.92 N
        pads = [
            kt.Contact(x, "thing", thing, size, surface=kt.Surface("box", x, size=(0.1, 0.2, 0.3)), friction=0.4)
            for x in ("left", "right")
        ]
        qd = np.array([0, 0, 0, 0, 0, 0, 0, 0.0 if holds else -0.05])
        squeeze = kt.TorqueFunction(lambda t, q, qd, f=force: [f, -f, *[0.0] * 6])
        run = kt.simulate(system, q, qd, times=[0, 0.1], contacts=pads, control=squeeze, **options)
        fall = 0.0 if holds else 0.05 + (G - 2 * 0.4 * force / 0.4) * 0.1
        assert_close(run.qd[-1, 7], -fall, 1e-9, "velocity of what is held")


def test_runs_keep_the_contacts_of_pairs(tmp_path) -> None:
    """Save a run of two bodies, and read forces, gaps and names again."""
    system = free_bodies([1.3, 0.7], (0.017, 0.018, 0.019))
    q = system.neutral()
    q[[2, 9]] = 0.21, 0.63
    contacts = [
        kt.Contact("floor", "b0", "sphere", 0.21, friction=0.3),
        touch("b1", "b0", "sphere", friction=0.3, restitution=0.4),
    ]
    run = kt.simulate(system, q, times=np.linspace(0, 0.1, 5), contacts=contacts)
    run.save(tmp_path / "run.npz")
    again = kt.read_trajectory(tmp_path / "run.npz")
    assert_close(again.contact.forces("pair"), run.contact.forces("pair"), 0, "forces read again")
    assert_close(again["contact_gaps"], run["contact_gaps"], 0, "gaps read again")
    assert again.contact.events == run.contact.events
    assert_close(run.contact.forces("pair")[-1], [0.7 * G, 0, 0], 1e-9, "weight on the lower ball")


@pytest.mark.parametrize("options", [EVENTS, STEPS], ids=["events", "steps"])
def test_starts_within_each_other_are_refused(options) -> None:
    """Name the pair and its depth where two bodies overlap at the start."""
    system = free_bodies([1.3, 0.7], (0.017, 0.018, 0.019))
    q = system.neutral()
    q[9] = 0.3
    with pytest.raises(kt.InputError, match=r"q0 puts contact 'pair' 0\.12 m under its surface; "):
        kt.simulate(system, q, times=[0, 0.1], contacts=touch("b1", "b0", "sphere"), **options)


@pytest.mark.slow
def test_bodies_pass_beside_each_other() -> None:
    """Let a ball fly past an edge of a box at less than its radius from the edges' line, and beyond it: no force."""
    system = free_bodies([1.3, 0.7], (0.017, 0.018, 0.019), gravity=(0, 0, 0))
    q, qd = system.neutral(), np.zeros(12)
    q[7:10], qd[9] = (-1.0, 0.53 / 2 + 0.15, 0.29 / 2 + 0.15), 3.0
    run = kt.simulate(system, q, qd, times=[0, 0.7], contacts=touch("b1", "b0", "sphere", "box"), **STEPS)
    assert_close(run.qd[-1], qd, 1e-15, "velocities of a ball that misses")
    q[8] -= 0.01
    run = kt.simulate(system, q, qd, times=[0, 0.7], contacts=touch("b1", "b0", "sphere", "box"), **STEPS)
    assert abs(run.qd[-1] - qd).max() > 0.1


@pytest.mark.slow
def test_code_of_many_contacts_has_the_geometry(monkeypatch) -> None:
    """Compare gaps and velocities of compiled loops, with sizes as inputs, with the geometry on plain numbers."""
    rng = np.random.default_rng(8)
    system = free_bodies([1.0, 1.0], (0.1, 0.1, 0.1))
    shapes = ["point", *SIZES]
    contacts = []
    for kind in SIZES:
        for shape in shapes[: shapes.index(kind) + 1]:
            for k in range(2):
                size, solid = ((1.0 + 0.1 * k) * np.array(x) for x in (SIZES.get(shape, ()), SIZES[kind]))
                places = [
                    kt.Placement(rng.normal(size=3) * 0.1, Rotation.random(random_state=rng).as_matrix()) for _ in "ab"
                ]
                surface = kt.Surface(kind, "b0", places[0], size=solid)
                contacts.append(kt.Contact(f"{shape}_{kind}_{k}", "b1", shape, size, places[1], surface))
    monkeypatch.setattr(contact_motion, "FEW", 0)
    mechanism = replace(system.mechanism, contacts=tuple(contacts))
    q, qd = system.neutral(), rng.normal(size=12)
    q[7:10] = 0.5, 0.3, 0.4
    q[3:7], q[10:] = Rotation.random(2, random_state=rng).as_quat()
    gap, velocity = contact_motion.ContactMotion(mechanism).gaps(q, qd)
    turns = [Rotation.from_quat(x).as_matrix() for x in (q[3:7], q[10:])]
    expected = []
    for c in contacts:
        (ra, A), (rb, B) = (
            (q[7 * k : 7 * k + 3] + turns[k] @ x.translation, turns[k] @ x.rotation)
            for k, x in enumerate((c.surface.placement, c.placement))
        )
        w, v = [], []
        for k in range(2):
            w.append(turns[k] @ qd[6 * k : 6 * k + 3])
            v.append(turns[k] @ qd[6 * k + 3 : 6 * k + 6] + np.cross(w[k], rb - q[7 * k : 7 * k + 3]))
        motion = A.T @ (rb - ra), A.T @ B, A.T @ (w[1] - w[0]), A.T @ (v[1] - v[0])
        for x in candidates(c, *(x.tolist() for x in motion)):
            expected.append([x.gap, *(np.dot(e.n, motion[2]) + np.dot(e.f, motion[3]) for e in x.equations)])
    expected = np.array(expected)
    here = expected[:, 0] < FAR
    assert here.sum() > 20 and (gap < FAR).tolist() == here.tolist()
    assert_close(np.column_stack([gap, velocity])[here], expected[here], 1e-12, "gaps and velocities")


def cam_and_follower() -> tuple[kt.System, kt.Contact]:
    """Return the cam of the library with a heavy flywheel, and its follower, which is free to lift off."""
    given = kt.load("cam_follower").mechanism
    heavy = tuple(replace(b, inertia=(1e6, 1e6, 1e6, 0, 0, 0)) if b.name == "cam" else b for b in given.bodies)
    made = replace(given, bodies=heavy, loops=(), forces=(), guess=())
    outline = kt.Surface("curve", "cam", curve=given.loops[0].curve)
    return kt.System(made), kt.Contact("cam", "follower", surface=outline)


def test_a_follower_lifts_off_its_cam_and_falls_back() -> None:
    """Compare the times at which a follower leaves a fast cam and lands on it again with the closed form."""
    speed, lift = 40.0, 0.01
    leaves = math.acos(-G / (lift * speed**2)) / speed  # where the cam is decelerated more than gravity does
    start, rate = 0.05 - lift * math.cos(speed * leaves), lift * speed * math.sin(speed * leaves)
    lands = brentq(
        lambda t: start + rate * t - G / 2 * t * t - 0.05 + lift * math.cos(speed * (leaves + t)), 0.02, 0.12
    )
    system, contact = cam_and_follower()
    times = np.array([0.0, 0.1, leaves + lands - 1e-6, leaves + lands + 1e-6])
    run = kt.simulate(system, [0.0, 0.04], [speed, 0.0], times=times, contacts=contact, rtol=1e-11, atol=1e-13)
    found = {e.kind: e.t for e in run.contact.events}
    assert_close([found["lift-off"], found["impact"]], [leaves, leaves + lands], 1e-9, "times of flight")
    t = 0.1 - leaves
    assert_close(run.q[1, 1], start + rate * t - G / 2 * t * t, 1e-10, "height in flight")
    assert_close(run.qd[2, 1], rate - G * (lands - 1e-6), 1e-9, "velocity before it lands")
    assert_close(run.qd[3, 1], lift * speed * math.sin(speed * (leaves + lands)), 1e-4, "velocity of the cam after")
    steps = kt.simulate(
        system, [0.0, 0.04], [speed, 0.0], times=[0, 0.1, 0.16], contacts=contact, method="moreau", dt=1e-5
    )
    assert_close(steps.q[1, 1], run.q[1, 1], 1e-6, "height in flight, by time steps")


def test_teeth_with_play_fly_between_their_flanks() -> None:
    """Let a tooth rattle between two flanks of another wheel: free flight, impacts by turns, and angular momenta."""
    wheels = [kt.Body(x, 0.3, inertia=(2e-4, 2e-4, i, 0, 0, 0)) for x, i in (("drive", 3e-4), ("driven", 2e-4))]
    axes = [
        kt.Joint(b.name, "revolute", kt.GROUND, b.name, axis="z", placement=kt.Placement((x, 0.0, 0.0)))
        for b, x in zip(wheels, (0.0, 0.1), strict=True)
    ]
    system = kt.System(kt.build_mechanism("gears", wheels, axes))
    play, e = 0.002, 0.7
    flanks = [
        kt.Contact(name, "driven", "sphere", 0.004, (-0.05, 0.0, 0.0), restitution=e, surface=kt.Surface(
            "box", "drive", (0.05, side * (0.014 + play), 0.0), size=(0.03, 0.02, 0.02)))
        for name, side in (("front", -1.0), ("back", 1.0))
    ]  # fmt: skip
    run = kt.simulate(system, [0.0, 0.0], [2.0, 0.0], times=np.linspace(0, 0.6, 601), contacts=flanks)
    hits = [x for x in run.contact.events if x.kind == "impact"]
    assert [x.contact for x in hits[:4]] == ["front", "back", "front", "back"]
    assert_close(hits[0].t, 0.0204, 1e-3, "time of the first impact")
    borders = [0.0, *(x.t for x in hits[:4])]
    for a, b in itertools.pairwise(borders):
        flight = run.qd[(run.t > a) & (run.t < b)]
        assert len(flight) > 5 and abs(flight - flight[0]).max() < 1e-12
    energy = run["kinetic_energy"]
    assert (np.diff(energy) < 1e-15).all() and energy[-1] < 0.9 * energy[0]


@pytest.mark.slow
def test_a_gpu_computes_the_runs_of_the_cpu(monkeypatch) -> None:
    """Drop a box on a free box on a stand-in for a GPU, with the motion of the CPU."""
    host_gpu.install(monkeypatch)
    system, contacts, start = stack(2, 0.5, turn=0.4)
    rng = np.random.default_rng(4)
    q, qd = np.tile(start, (3, 1)), rng.normal(size=(3, 12)) * 0.3
    q[:, 9] += 0.03
    options = {"times": [0.0, 0.05, 0.1], "contacts": contacts, **STEPS}
    here, there = kt.simulate(system, q, qd, **options), kt.simulate(system.on("cuda"), q, qd, **options)
    assert here.finished and there.finished and here["contact_forces"].max() > 1.0
    assert_close(there.q, here.q, 1e-8, "positions on a GPU")


def test_a_stepper_takes_bodies_that_touch() -> None:
    """Step two balls that strike each other by a function of states, with the velocities of a run."""
    system = free_bodies([1.3, 0.7], (0.017, 0.018, 0.019), gravity=(0, 0, 0))
    pair = touch("b1", "b0", "sphere", restitution=1.0)
    q, qd = system.neutral(), np.zeros(12)
    q[7], qd[9] = 0.5, -1.0
    step = kt.System(replace(system.mechanism, contacts=(pair,))).stepper(dt=1e-3)
    impulses = np.zeros((1, 3))
    for _ in range(200):
        q, qd, impulses, _ = step(q, qd, np.zeros(12), impulses)
    assert_close(qd[[3, 9]], [-0.7, 0.3], 1e-12, "velocities of an elastic impact")
