"""Ropes against exact solutions and balances: catenary, hanging chain, falling chain, whip, trees and nets."""

from __future__ import annotations

import runpy
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.special import jn_zeros

import everyday
import kinetree as kt
from kinetree.library.chains import Link, rope_parts
from kinetree.simulation.engines.marching import March, joint_law
from kinetree.simulation.run_states import Settings
from tolerance import assert_close

G = 9.81
ROPE = {"mass_per_metre": 0.37, "radius": 0.001, "joint": "revolute"}


def settled(bridge: kt.System) -> tuple[np.ndarray, np.ndarray]:
    """Return the equilibrium of a bridge in the x-z plane and its multipliers, by Newton's method on g = J^T force."""
    q = bridge.assemble()
    plane = bridge.closure_jacobian(q).any(axis=1)
    J = bridge.closure_jacobian(q)[plane]
    force = np.linalg.lstsq(J.T, bridge.gravity_torque(q), rcond=None)[0]
    nudges = 1e-5 * np.eye(bridge.nv)

    def unbalanced(q: np.ndarray) -> np.ndarray:
        return bridge.gravity_torque(q) - force @ bridge.closure_jacobian(q)[..., plane, :]

    for _ in range(12):
        J = bridge.closure_jacobian(q)[plane]
        slope = (unbalanced(q + nudges) - unbalanced(q - nudges)).T / 2e-5
        left = np.concatenate([unbalanced(q), bridge.closure_residual(q)[plane]])
        step = np.linalg.solve(np.block([[slope, -J.T], [J, np.zeros((2, 2))]]), -left)
        q, force = q + step[:-2], force + step[-2:]
        if np.abs(step[:-2]).max() < 1e-10:
            return q, force
    raise AssertionError("no rest was found")


def catenary_error(n: int) -> tuple[float, float]:
    """Return the distance of the joints of a bridge at rest from the catenary [m], and the error of its end force."""
    length, span = 2.3, 1.7
    bridge = kt.rope(length, n, ends=("pinned", "pinned"), span=span, **ROPE)
    a = brentq(lambda a: 2 * a * np.sinh(span / 2 / a) - length, 0.05, 50.0)
    q, force = settled(bridge)
    s = np.arange(n) * length / n - length / 2  # arc length from the lowest point
    exact = np.stack([span / 2 + a * np.arcsinh(s / a), np.hypot(a, s) - a * np.cosh(span / 2 / a)], axis=1)
    tension = 0.37 * G * a * np.cosh(span / 2 / a)
    return float(np.abs(bridge.poses(q)[:, [0, 2], 3] - exact).max()), float(np.linalg.norm(force) / tension - 1)


@everyday.long
def test_a_bridge_hangs_as_a_catenary():
    """Bring bridges of 25 and 50 links to rest, and find catenary and end force to second order in 1/n."""
    coarse, fine = catenary_error(25), catenary_error(50)
    assert_close(fine[0], 0.0, 2e-4, "shape")  # 1.6e-4 m measured
    assert_close(fine[1], 0.0, 2e-4, "pull")
    assert_close(np.log2(coarse[0] / fine[0]), 2.0, 0.1, "order")


@pytest.mark.slow
def test_a_long_bridge_hangs_as_a_catenary():
    """Bring a bridge of 500 links to rest by rolled functions, with a hundredth of the error of 50 links."""
    shape, pull = catenary_error(500)
    assert_close(shape, 0.0, 2e-6, "shape")  # 1.6e-6 m measured
    assert_close(pull, 0.0, 2e-6, "pull")


def swings(n: int, length: float) -> np.ndarray:
    """Return the first six angular frequencies of small swings [rad/s]."""
    rope = kt.rope(length, n, **ROPE | {"radius": 1e-4})
    nudges = 1e-4 * np.eye(n)
    slope = (rope.gravity_torque(nudges) - rope.gravity_torque(-nudges)) / 2e-4
    return np.sqrt(eigh(slope, rope.inertia_matrix(np.zeros(n)), eigvals_only=True)[:6])


@everyday.long
def test_small_swings_are_those_of_bessel():
    """Compare frequencies of a hanging chain with zeros of J0, omega = j / 2 sqrt(g / L), to second order in 1/n."""
    exact = jn_zeros(0, 6) / 2 * np.sqrt(G / 2.3)
    errors = [np.abs(swings(n, 2.3) / exact - 1) for n in (100, 200)]
    assert_close(errors[1][:3], np.zeros(3), 1.2e-4, "the first three")
    assert_close(np.log2(errors[0] / errors[1]), np.full(6, 2.0), 0.1, "orders")


def test_a_swing_takes_its_period():
    """Start in the first mode and time the passages through zero by events."""
    n, length = 100, 2.3
    rope = kt.rope(length, n, **ROPE)
    nudges = 1e-4 * np.eye(n)
    slope = (rope.gravity_torque(nudges) - rope.gravity_torque(-nudges)) / 2e-4
    mode = eigh(slope, rope.inertia_matrix(np.zeros(n)))[1][:, 0]
    event = kt.Event(lambda now: now.q[0], name="upright")
    q0 = 1e-3 * mode / np.abs(mode).max()
    run = kt.simulate(rope, q0, times=np.linspace(0, 6, 121), method="implicit_midpoint", dt=5e-4, events=[event])
    passed = np.array([hit.t for hit in kt.event_hits(run)])
    assert len(passed) == 5
    exact = 2 * np.pi / (jn_zeros(0, 1)[0] / 2 * np.sqrt(G / length))
    assert_close(2 * np.diff(passed) / exact, np.ones(4), 2e-5, "period")


def folded(n: int, dt: float) -> tuple[kt.Trajectory, np.ndarray, np.ndarray]:
    """Return the fall of a folded chain of 2 m, pinned at one end, with the fall and the speed of its tip."""
    chain = kt.rope(2.0, n, **ROPE)
    q0 = np.where(np.arange(n) == n // 2, np.pi - 0.05, 0.0)
    end = np.sqrt(2 * 2.0 / G)
    run = kt.simulate(chain, q0, times=np.linspace(0, 0.8 * end, 161), method="rk4", dt=dt)
    z = chain.pose(run.q, "tip")[:, 2, 3]
    return run, z[0] - z, -chain.twist(run.q, run.qd, "tip", axes="world")[:, 5]


@pytest.mark.slow
def test_a_folded_chain_falls_faster_than_free():
    """Find constant energy, the tip ahead of free fall, and its speed that of a chain without losses."""
    run, fall, speed = folded(80, 5e-5)
    assert_close(run.energy_error, 0.0, 1e-6, "energy")
    free = G * run.t**2 / 2
    assert (fall - free)[-1] > 0.15
    part = fall / 2.0
    there = (part > 0.1) & (part < 0.7)
    exact = np.sqrt(2 * G * fall * (1 - part / 2) / (1 - part))[there]
    assert_close(np.sqrt(np.mean((speed[there] / exact - 1) ** 2)), 0.0, 0.015, "speed")  # 0.008
    assert (speed[there] > 1.02 * np.sqrt(2 * G * fall[there])).mean() > 0.9


def whip(n: int = 80) -> tuple[kt.System, np.ndarray]:
    """Return a whip folded back over itself: a handle that slides along x, and a rope of 2 m with bending stiffness."""
    link = Link(2.0 / n, 0.08 * 2.0 / n, 0.004)
    bodies, joints, springs = rope_parts(link, n, joint="revolute", bending=3e-4, damping=2e-6, parent="handle")
    handle = kt.Body("handle", 0.4, inertia=(1e-3, 1e-3, 1e-3, 0.0, 0.0, 0.0))
    slide = kt.Joint("hand", "prismatic", kt.GROUND, "handle", axis=(1.0, 0.0, 0.0))
    tip = kt.Frame("tip", bodies[-1].name, kt.Placement((2.0 / n, 0.0, 0.0)))
    whole = kt.build_mechanism(
        "whip", (handle, *bodies), (slide, *joints), frames=[tip], forces=springs, gravity=(0.0, 0.0, 0.0)
    )
    q0, turn = np.zeros(n + 1), slice(n // 2 - 5, n // 2 + 7)
    q0[1], q0[turn] = np.pi, 0.98 * np.pi / 12
    return kt.System(whole), q0


def hand(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Return the force that moves the handle to and stops it within a quarter of a second, and holds it then."""
    tau = np.zeros_like(qd)
    tau[..., 0] = 60.0 * (7.0 * np.sin(np.pi * min(t / 0.25, 1.0)) ** 2 - qd[..., 0])
    return tau


@pytest.mark.slow
def test_a_whip_cracks():
    """Jerk the handle and find the tip four times as fast, and work = change of energy + losses, to second order."""
    system, q0 = whip()
    law, _ = joint_law(system.mechanism, kt.forces_of(system.mechanism))
    left = []
    for dt in (1e-4, 5e-5):
        run = kt.simulate(
            system, q0, times=np.linspace(0, 0.35, 701), method="implicit_midpoint", dt=dt,
            control=kt.PythonControl(hand),
        )  # fmt: skip
        tip = np.linalg.norm(system.twist(run.q, run.qd, "tip")[:, 3:], axis=1)
        assert tip.max() > 4.4 * np.abs(run.qd[:, 0]).max()
        assert 0.25 < run.t[tip.argmax()] < 0.33
        power = np.array([hand(*state)[0] * state[2][0] for state in zip(run.t, run.q, run.qd, strict=True)])
        work, lost = np.trapezoid(power, run.t), np.trapezoid((law.damping * run.qd**2).sum(axis=1), run.t)
        energy = run["kinetic_energy"] + law.energy(run.q)
        assert min(work, lost, energy[-1] - energy[0]) > 0.1
        assert_close((energy[-1] - energy[0] + lost) / work, 1.0, 2e-2, "work")
        left.append(kt.energy_balance(run).error)
    assert_close(left[1], 0.0, 4e-4, "energy balance")  # 2.0e-4
    assert_close(left[0] / left[1], 4.0, 0.3, "second order")


@pytest.mark.slow
def test_a_thousand_links_take_less_than_their_time():
    """Simulate 1 s of a stiff rope of 1,000 links by steps of 1 ms in less than a second, at best of three."""
    rope = kt.rope(10.0, 1000, mass_per_metre=0.5, radius=0.01, bending=0.05, damping=0.002, joint="revolute")
    q0 = np.where(np.arange(1000) == 0, 0.8, 0.0)
    took = []
    for _ in range(4):  # the first compiles
        start = time.perf_counter()
        run = kt.simulate(rope, q0, times=np.linspace(0, 1, 11), method="implicit_midpoint", dt=1e-3)
        took.append(time.perf_counter() - start)
    assert run.status == "finished"
    assert min(took[1:]) < 1.0  # 0.1 s on a free core


@pytest.mark.slow
def test_the_example_draws(tmp_path):
    """Run examples/ropes.py and find its pictures and pages."""
    example = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "ropes.py"))
    files = example["draw"](tmp_path)
    names = [f"ropes-{name}.{kind}" for name in ("bridge", "fall", "whip", "net") for kind in ("png", "html")]
    assert [f.name for f in files] == names and all(f.stat().st_size > 5000 for f in files)


@pytest.mark.slow
def test_a_tree_of_ropes_keeps_its_energy():
    """Let a tree of 84 links swing and find constant energy, to fourth order in the step."""
    tree = kt.rope_tree(0.7, 12, levels=2, mass_per_metre=0.37, radius=0.004, joint="revolute")
    q0 = np.where(np.char.endswith([j.name for j in tree.joints], "_joint1"), 0.9, 0.03)
    errors = []
    for dt in (1e-3, 5e-4):
        run = kt.simulate(tree, q0, times=np.linspace(0, 0.5, 26), method="rk4", dt=dt)
        errors.append(run.energy_error)
    assert_close(errors[1], 0.0, 1e-7, "energy")
    assert errors[0] > 12 * errors[1]


def swung_net(rows: int, columns: int, n: int, joint: str = "revolute") -> tuple[kt.System, np.ndarray]:
    """Return a net, and velocities with which all ropes swing alike, so that the loops stay closed."""
    net = kt.net(rows, columns, mesh=0.21, n=n, mass_per_metre=0.37, radius=0.004, joint=joint)
    first = {f"down{c + 1}_joint1": 0.8 for c in range(columns)}
    first |= {j.name: -0.8 for j in net.joints if j.name.startswith("across") and j.name.endswith("_joint1")}
    per = net.nv // len(net.bodies)
    return net, np.repeat([first.get(j.name, 0.0) for j in net.joints], per) * (np.arange(net.nv) % per == 0)


@everyday.long
@pytest.mark.parametrize(
    ("method", "dt", "bound"), everyday.some([("rk4", 1e-3, 1e-7), ("implicit_midpoint", 5e-4, 1e-3)])
)
def test_a_net_stays_tied(method, dt, bound):
    """Swing a net and find its loops closed at every sample, and constant energy."""
    net, qd0 = swung_net(2, 3, 2)
    run = kt.simulate(net, None, qd0, times=np.linspace(0, 0.2, 21), method=method, dt=dt)
    assert_close(run["gap"], np.zeros_like(run["gap"]), 1e-12, "gap")
    assert np.ptp(net.pose(run.q, "knot2_2")[:, 0, 3]) > 0.02
    assert_close(run.energy_error, 0.0, bound, method)


@pytest.mark.slow
def test_a_long_net_stays_tied():
    """Swing a net of 135 links and 20 loops by rolled functions, and find closed loops and constant energy."""
    net, qd0 = swung_net(5, 5, 3)

    def rolled(name: str, **options) -> kt.Function:
        return net.function(name, lowering="rolled", **options)

    made = March(net.mechanism, "rk4", [], function=rolled)
    run = made.run(net.neutral(), qd0, np.linspace(0, 0.1, 11), Settings(dt=1e-3))
    gap = np.array([rolled("closure_residual")(q) for q in run.q])
    assert_close(gap, np.zeros_like(gap), 1e-12, "gap")
    kinetic = net.kinetic_energy(run.q, run.qd)
    energy = kinetic + net.potential_energy(run.q)
    assert_close((energy - energy[0]) / kinetic.max(), np.zeros(11), 1e-7, "energy")  # 8e-9


@pytest.mark.slow
def test_a_long_bridge_stays_pinned():
    """Let a bridge of 130 links fall from an arc, and find its end fixed and its energy constant."""
    bridge = kt.rope(2.3, 130, ends=("pinned", "pinned"), span=1.7, **ROPE)
    run = kt.simulate(bridge, times=np.linspace(0, 0.1, 11), method="rk4", dt=5e-4)
    assert_close(run["gap"], np.zeros((11, 3)), 1e-10, "gap")
    assert_close(bridge.pose(run.q, "tip")[:, :3, 3], np.tile([1.7, 0.0, 0.0], (11, 1)), 1e-10, "end")
    assert np.ptp(bridge.pose(run.q, "link66")[:, 2, 3]) > 1e-3
    coarse = kt.simulate(bridge, times=np.linspace(0, 0.02, 6), method="implicit_euler", dt=1e-3)
    for q, qd in zip(coarse.q, coarse.qd, strict=True):
        assert_close(bridge.closure_residual(q), np.zeros(3), 1e-11, "gap of coarse steps")
        assert_close(bridge.closure_jacobian(q) @ qd, np.zeros(3), 1e-11, "speed of the end")
    assert_close(run.energy_error, 0.0, 1e-6, "energy")
