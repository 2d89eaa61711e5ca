"""Time steps with many contacts: against those with operations for each contact, and the size of their code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import host_gpu
import kinetree as kt
from contacted import HILLS, outputs, touching
from kinetree.compiler.lanes.form import every
from kinetree.compiler.lower.contacts import motion_program
from kinetree.model.parameters import parse
from kinetree.simulation.acting.rates import ForcedMechanism
from kinetree.simulation.contact import slots as contact_slots
from kinetree.simulation.contact.pairs import many_contacts
from kinetree.simulation.engines import time_stepping
from kinetree.simulation.engines.time_stepping import MEASURES, ManyMoreau
from tolerance import assert_close

TILTED = kt.Surface(placement=kt.Placement.from_euler("yx", (0.13, -0.21), (0.05, -0.02, 0.011)))
DT = 1e-3


def crowd() -> tuple[kt.System, np.ndarray, np.ndarray]:
    """Return a trunk with a wheel on an arm, and a ball that falls on the trunk, near a slope, steps and hills."""
    bodies = [
        kt.Body("trunk", 3.1, (0.02, -0.01, 0.03), (0.05, 0.07, 0.06, 0.003, -0.002, 0.001)),
        kt.Body("wheel", 0.7, (0.01, 0.0, -0.02), (0.004, 0.005, 0.007, 0.0002, 0.0, 0.0001)),
        kt.Body("ball", 0.4, (0.003, 0.001, -0.002), (0.001, 0.0012, 0.0011, 0.0, 0.0, 0.0)),
    ]
    joints = [
        kt.Joint("root", "free", "ground", "trunk"),
        kt.Joint("hinge", "universal", "trunk", "wheel", kt.Placement.from_euler("x", (0.4,), (0.35, 0.02, 0.01))),
        kt.Joint("loose", "free", "ground", "ball"),
    ]
    mechanism = kt.build_mechanism(
        "crowd",
        bodies,
        joints,
        parameters=[kt.Parameter("grip", 0.6, free=True), kt.Parameter("size", 0.06, free=True)],
    )
    roof = kt.Surface("plane", "trunk", kt.Placement.from_euler("y", (0.1,), (0.0, 0.0, 0.1)))
    steps = kt.Surface("steps", placement=kt.Placement((0.0, 0.0, 0.02)), edges=(-0.3, 0.31), heights=(0.01, 0.0, 0.02))
    hills = kt.Surface("heights", placement=kt.Placement((-0.5, -0.4, -0.15)), heights=HILLS, spacing=(0.4, 0.4))
    laws = {"friction": 0.4, "restitution": 0.5}
    contacts = [
        kt.Contact("belly", "trunk", "sphere", (0.05,), (0.17, 0.01, -0.08), steps, friction=0.7),
        kt.Contact("chest", "trunk", "sphere", (0.04,), (-0.14, 0.02, -0.08), steps, friction=0.7),
        kt.Contact("rim", "wheel", "disc", (0.12,), (0.0, 0.01, 0.0), TILTED, **laws),
        kt.Contact("roof", "ball", "sphere", (parse("size"),), (0.001, 0.0, 0.002), roof, law="poisson", **laws),
        kt.Contact("toe", "trunk", "point", (), (0.21, -0.1, -0.12), hills, friction=parse("grip")),
    ]
    system = kt.System(replace(mechanism, contacts=tuple(contacts), gravity=(0.3, -0.2, -9.7)))
    return system, *starts(system)


def starts(system: kt.System, count: int = 11) -> tuple[np.ndarray, np.ndarray]:
    """Return random starts just above the surfaces: of more runs than a vector has."""
    rng = np.random.default_rng(3)
    q = np.tile(system.neutral(), (count, 1)) + 0.0
    q[:, 2] = rng.uniform(0.15, 0.2, size=count)
    q[:, 9:12] = q[:, :3] + [0.02, -0.01, 0.19]
    return q, rng.normal(scale=0.4, size=(count, system.nv))


def run_with(monkeypatch, few: int, system: kt.System, q, qd, steps: int = 160, **options) -> kt.Trajectory:
    """Return runs with operations for each contact if there are at most `few`, otherwise in loops."""
    monkeypatch.setattr(time_stepping, "FEW", few)
    fresh = kt.System(system.mechanism)
    times = np.arange(0, steps + 1, min(10, steps)) * DT
    return kt.simulate(fresh, q, qd, times=times, method="moreau", dt=DT, **options)


def assert_same(a: kt.Trajectory, b: kt.Trajectory, bound: float, label: str, touched: int = 3) -> None:
    """Compare two runs: states, forces and the residuals of both."""
    assert a.status == b.status == "finished"
    for name in ("q", "qd", "contact_gaps"):
        x, y = (np.minimum(np.asarray(run[name]), 1e3) for run in (a, b))
        assert_close(x, y, bound, f"{name}: {label}")
    forces = np.abs(b["contact_forces"])
    assert (forces[..., 0] > 0.0).reshape(-1, forces.shape[-2]).any(axis=0).sum() >= touched, "too few contacts touch"
    assert_close(
        a["contact_forces"] / forces.max(), b["contact_forces"] / forces.max(), 1e3 * bound, f"forces: {label}"
    )
    assert max(a["contact_residuals"].max(), b["contact_residuals"].max()) < 1e-10


@everyday.long
def test_loops_over_contacts_give_the_same_motion(monkeypatch):
    """Let a crowd fall, with rims, edges, hills, a moving surface and both laws, by loops and contact by contact."""
    system, q, qd = crowd()
    parameters = np.array([0.6, 0.06]) * np.linspace(0.8, 1.2, len(q))[:, None]
    loops, each = (run_with(monkeypatch, few, system, q, qd, parameters=parameters) for few in (0, 1000))
    assert_same(loops, each, 1e-9, "a crowd")


@everyday.long
def test_loops_of_mechanisms_stay_closed(monkeypatch):
    """Press points of a four-bar onto a floor: the loop answers to each of their impulses, as with few contacts."""
    bar = kt.load("four_bar")
    q = np.tile(bar.assemble(), (5, 1))
    upright = kt.Placement.from_euler("x", (-np.pi / 2,))  # gravity acts along -y
    tips = [
        kt.Contact(
            f"tip{k}", body.name, "point", (), (0.01 + 0.004 * k, -0.02 * k, 0.003), kt.Surface(placement=upright)
        )
        for k, body in enumerate(bar.bodies)
    ]
    gaps = outputs(motion_program(touching(bar.mechanism, *tips)), q[0], np.zeros(3))["gap"]
    tips = [
        replace(x, friction=0.3, surface=kt.Surface(placement=replace(upright, translation=(0.0, gap - 1e-4, 0.0))))
        for x, gap in zip(tips, gaps, strict=True)
    ]
    system = kt.System(touching(bar.mechanism, *tips))
    qd = bar.closing_speed(q, np.linspace(-1.0, 1.0, 5)[:, None] * [1.0, 0.3, -0.7])
    loops, each = (run_with(monkeypatch, few, system, q, qd, 60) for few in (0, 1000))
    assert_same(loops, each, 1e-9, "a four-bar", touched=1)


def lever() -> tuple[kt.System, np.ndarray, np.ndarray]:
    """Return a light lever that a heavy ball hits near its hinge, with the tip 2.5 mm above a floor."""
    bodies = [
        kt.Body("lever", 0.1, (0.4, 0.0, 0.0), (1e-4, 9e-3, 9e-3, 0.0, 0.0, 0.0)),
        kt.Body("ball", 5.0, (0.0, 0.0, 0.0), (0.01, 0.01, 0.01, 0.0, 0.0, 0.0)),
    ]
    joints = [kt.Joint("hinge", "revolute", "ground", "lever", axis="y"), kt.Joint("base", "free", "ground", "ball")]
    floor = kt.Surface(placement=kt.Placement((0.0, 0.0, -0.0025)))
    contacts = [
        kt.Contact("hit", "ball", "sphere", (0.03,), surface=kt.Surface("plane", "lever"), friction=0.1),
        kt.Contact("tip", "lever", "point", (), (1.0, 0.0, 0.0), floor, friction=0.1),
    ]
    system = kt.System(touching(kt.build_mechanism("lever", bodies, joints), *contacts))
    q, qd = system.neutral(), np.zeros(system.nv)
    q[1], q[3], qd[-1] = 0.05, 0.0304, -1.0
    return system, q, qd


@everyday.long
def test_a_contact_that_impulses_close_is_found_in_the_same_step(monkeypatch):
    """Hit a lever, whose tip would go through the floor within the step: the limits grow until it is among the near."""
    system, q, qd = lever()
    loops, each = (run_with(monkeypatch, few, system, q, qd, 2) for few in (0, 1000))
    assert_same(loops, each, 1e-9, "a lever", touched=2)
    monkeypatch.setattr(contact_slots, "ROUNDS", 1)
    missed = run_with(monkeypatch, 0, system, q, qd, 2)
    assert missed.status.startswith("doubtful") and missed["contact_gaps"][-1, 1] < loops["contact_gaps"][-1, 1] - 2e-4


@everyday.long
def test_a_lane_depends_on_its_own_contacts_alone(monkeypatch):
    """Run a state alone and beside ten others, and find the same bits."""
    system, q, qd = crowd()
    many, one = (run_with(monkeypatch, 0, system, x, v) for x, v in ((q, qd), (q[4:5], qd[4:5])))
    np.testing.assert_array_equal(many.q[4:5], one.q)
    np.testing.assert_array_equal(many["contact_forces"][4:5], one["contact_forces"])


def table(count: int) -> tuple[kt.System, np.ndarray]:
    """Return a table of two hinged halves on many points, standing."""
    body = kt.Body("left", 2.0, (0.01, -0.02, 0.015), (0.02, 0.03, 0.04, 0.001, 0.0, 0.002))
    other = kt.Body("right", 1.3, (0.02, 0.01, 0.01), (0.02, 0.03, 0.04, 0.001, 0.0, 0.002))
    joints = [kt.Joint("base", "free", "ground", "left"), kt.Joint("hinge", "revolute", "left", "right", axis="y")]
    mechanism = kt.build_mechanism("table", [body, other], joints)
    places = [(0.3 * np.cos(k), 0.2 * np.sin(k), -0.1 - 0.003 * (k % 7)) for k in range(count)]
    points = [
        kt.Contact(f"p{k}", ("left", "right")[k % 2], "point", (), place, friction=0.5)
        for k, place in enumerate(places)
    ]
    system = kt.System(touching(mechanism, *points))
    q = system.neutral()
    q[2] = 0.12
    return system, q


def test_code_does_not_grow_with_the_contacts():
    """Write the kernel of 40 and of 400 points: the same operations, and as many statements."""
    sizes = []
    for count in (40, 400):
        made = many_contacts(ForcedMechanism(table(count)[0].mechanism), measures=len(MEASURES))
        kernel = ManyMoreau(made).kernel(made.moving, (3,), None, dtype="float64", in_registers=False)
        operations = sum(len(program.ops) for _, program in kernel.programs)
        sizes.append((operations, sum(1 for _ in every(kernel.body))))
    assert sizes[0] == sizes[1]
    assert sizes[0][0] < 10_000


def test_contacts_beyond_the_memory_are_reported(monkeypatch):
    """Give the memory of two contacts to a table on many points: the run tells that their laws are violated."""
    monkeypatch.setattr(time_stepping, "MOST", 2)
    system, q = table(12)
    run = kt.simulate(system, q, duration=0.1, method="moreau", dt=DT)
    assert run.status.startswith("doubtful")
    assert run.contact.residuals["signorini"] == 1.0


@everyday.long
@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-8), ("float32", 2e-2)])
def test_many_contacts_on_a_gpu(monkeypatch, dtype, bound):
    """Let tables fall on twelve points on a stand-in for a GPU, and find the motion of native code."""
    system, q = table(12)
    rng = np.random.default_rng(5)
    q, qd = np.tile(q, (3, 1)), rng.normal(scale=0.2, size=(3, system.nv))
    q[:, 2] += 0.01
    native = run_with(monkeypatch, 0, system, q, qd, 60)
    host_gpu.install(monkeypatch)
    given = q.astype(dtype), qd.astype(dtype)
    found = kt.simulate(system.on("cuda"), *given, times=native.t, method="moreau", dt=DT)
    assert native["contact_forces"].max() > 0.0
    assert_close(found.q, native.q, bound, f"q on a GPU in {dtype}")
