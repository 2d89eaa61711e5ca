"""Runs of bodies and trees in free flight: momentum by all methods with fixed steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import host_gpu
import kinetree as kt
from assembler import assembled, needs_ptxas
from c_compiler import called, library, needs_compiler
from kinetree.simulation.acting.rates import ForcedMechanism
from kinetree.simulation.methods.stepper import stepper
from kinetree.simulation.methods.table import METHODS
from kinetree.targets import target
from kinetree.targets.wasm import wasm_module
from tolerance import assert_close
from wasm_hosts import Call, in_wasmtime, needs_wasmtime

FIXED = [m.name for m in METHODS.values() if not m.adaptive]
NATIVE = [name for name in FIXED if not name.startswith("implicit")]
AXIS = np.array((0.48, 0.6, 0.64))


def flying(kind: str, method: str, gravity=(0.0, 0.0, 0.0)) -> tuple[kt.System, np.ndarray, np.ndarray]:
    """Return a body with an arm that spins, and its start; contacts, if the method needs some, are far away."""
    bodies = [
        kt.Body("hull", 1.7, (0.03, -0.05, 0.07), (0.21, 0.33, 0.17, 0.02, -0.01, 0.03)),
        kt.Body("arm", 0.6, (0.1, 0.02, -0.2), (0.11, 0.13, 0.07, 0.0, 0.01, 0.0)),
    ]
    root = kt.Joint("root", kind, "ground", "hull", axis=tuple(AXIS), sequence="zyx")
    joints = [root, kt.Joint("hinge", "revolute", "hull", "arm", axis=(0.6, 0.0, 0.8))]
    mechanism = kt.build_mechanism("flying", bodies, joints, gravity=gravity)
    if method == "moreau":
        floor = kt.Surface(placement=kt.Placement((0.0, 0.0, -1000.0)))
        contact = kt.Contact("c", "hull", "sphere", (0.1,), friction=0.5, surface=floor)
        mechanism = replace(mechanism, contacts=(contact,))
    system = kt.System(mechanism)
    q, qd = system.neutral(), np.zeros(system.nv)
    start = {"free": (6, -7, 4, 0.7, -1.2, 0.6), "free_euler": (0.7, -1.2, 0.6, 2, -3, 1), "planar": (0.7, -1.2, 9)}
    qd[:-1], qd[-1] = start[kind], 3.3
    q[-1] = 0.4
    if kind == "free_euler":
        q[3:6] = 0.3, 0.4, -0.2
    return system, q, qd


def changes(system: kt.System, run: kt.Trajectory) -> np.ndarray:
    """Return the changes of the momentum, along the directions in which nothing holds the root."""
    change = system.momentum(run.q, run.qd)[:, 3:]
    change = change - change[0]
    planar = system.mechanism.joints[0].kind == "planar"
    return change - np.outer(change @ AXIS, AXIS) if planar else change


@pytest.mark.parametrize("kind", ["free", "free_euler", "planar"])
@pytest.mark.parametrize("method", FIXED)
def test_momentum_is_kept_to_rounding(kind, method):
    """Let a tree spin in free flight, and find its momentum and the straight line of its center of mass."""
    system, q, qd = flying(kind, method)
    run = kt.simulate(system, q, qd, duration=0.3, method=method, dt=3e-3)
    assert run.status == "finished"
    assert_close(changes(system, run), np.zeros((len(run.t), 3)), 2e-12, "momentum after 1000 steps")
    centers = system.center_of_mass(run.q)
    line = centers[0] + run.t[:, None] * system.momentum(run.q, run.qd)[:1, 3:] / 2.3
    apart = centers - line
    if kind == "planar":
        apart = apart - np.outer(apart @ AXIS, AXIS)
    assert_close(apart, np.zeros_like(apart), 1e-12, "center of mass")


def ring(method: str) -> tuple[kt.System, np.ndarray, np.ndarray]:
    """Return a four-bar that floats and spins, and its start; contacts, if the method needs some, are far away."""
    inertia = (0.01, 0.02, 0.02, 0.0, 0.0, 0.0)
    bodies = [
        kt.Body("base", 2.0, (0.1, 0.02, 0.03), (0.02, 0.03, 0.04, 0.0, 0.0, 0.0)),
        kt.Body("a", 0.4, (0.1, 0.0, 0.01), inertia),
        kt.Body("b", 0.5, (0.2, 0.0, 0.01), inertia),
        kt.Body("c", 0.6, (0.15, 0.0, 0.01), inertia),
    ]
    joints = [
        kt.Joint("root", "free", "ground", "base"),
        kt.Joint("ja", "revolute", "base", "a"),
        kt.Joint("jb", "revolute", "a", "b", kt.Placement((0.2, 0.0, 0.0))),
        kt.Joint("jc", "revolute", "base", "c", kt.Placement((0.5, 0.0, 0.0))),
    ]
    pin = kt.Loop("pin", "revolute", "b", "c", kt.Placement((0.45, 0.0, 0.0)), kt.Placement((0.35, 0.0, 0.0)))
    still, guess = (0.0, 0.0, 0.0), {"ja": 1.2, "jb": -0.9, "jc": 1.5}
    made = kt.build_mechanism("ring", bodies, joints, loops=[pin], gravity=still, guess=guess)
    if method == "moreau":
        floor = kt.Surface(placement=kt.Placement((0.0, 0.0, -1000.0)))
        made = replace(made, contacts=(kt.Contact("c", "base", "sphere", (0.1,), surface=floor),))
    system = kt.System(made)
    q = system.assemble()
    return system, q, system.consistent_speeds(q, {"root": (6.0, -7.0, 4.0, 0.7, -1.2, 0.6), "ja": 5.0})


@everyday.long
@pytest.mark.parametrize("method", FIXED)
def test_momentum_with_loops_is_kept_to_rounding(method):
    """Let a four-bar spin in free flight: its loop is closed, and its center of mass moves straight."""
    system, q, qd = ring(method)
    run = kt.simulate(system, q, qd, times=np.linspace(0.0, 0.5, 6), method=method, dt=4e-3)
    assert run.status == "finished"
    assert_close(changes(system, run), np.zeros((6, 3)), 2e-12, "momentum after 125 steps")  # euler was 0.03 N s off
    centers, velocity = system.center_of_mass(run.q), system.momentum(q, qd)[3:] / 3.5
    assert_close(centers, centers[0] + run.t[:, None] * velocity, 1e-12, "center of mass")
    assert_close(system.closure_residual(run.q), np.zeros((6, 5)), 1e-12, "loop")
    rates = np.einsum("tij,tj->ti", system.closure_jacobian(run.q), run.qd)
    assert_close(rates, np.zeros((6, 5)), 1e-11, "rates of the loop")


@everyday.long
def test_momentum_with_loops_on_a_gpu(monkeypatch):
    """Let it spin in the code of a GPU, by all methods that are computed there."""
    host_gpu.install(monkeypatch)
    for method in NATIVE:
        system, q, qd = ring(method)
        given = np.tile(q, (2, 1)), np.tile(qd, (2, 1))
        run = kt.simulate(system.on("cuda"), *given, times=[0.0, 0.25, 0.5], method=method, dt=4e-3)
        momentum = system.momentum(run.q, run.qd)[..., 3:]
        assert_close(momentum, momentum[:, :1] + np.zeros((2, 3, 1)), 2e-12, f"momentum by {method}")


@needs_compiler
@pytest.mark.parametrize("method", ["rk4", "euler"])
def test_momentum_with_loops_in_exported_code(method, tmp_path):
    """Let it spin by exported steps in C."""
    system, q, qd = ring(method)
    kt.export(system, ["step"], "c", tmp_path, method=method)
    step, state = library([tmp_path / "time_step.c"]).time_step, (q[None], qd[None])
    for _ in range(125):
        state = called(step, [*state, np.zeros((1, 9)), [[4e-3]]], [(10,), (9,)])
    last = system.momentum(*(x[0] for x in state))[3:]
    assert_close(last, system.momentum(q, qd)[3:], 2e-12, "momentum")


@everyday.long
@pytest.mark.parametrize("method", ["rk4", "euler", "gauss"])
def test_derivatives_of_floating_loops(method):
    """Compare derivatives of runs of the four-bar, forward and in reverse, with differences by velocities."""
    system, q, qd = ring(method)
    options = {"times": [0.0, 0.02], "method": method, "dt": 2e-3}
    along = system.closing_speed(q, np.random.default_rng(4).normal(size=system.nv))
    h = 1e-6
    after, before = (kt.simulate(system, q, qd + s * h * along, **options) for s in (1.0, -1.0))
    expected = (after.qd[-1] - before.qd[-1]) / (2 * h)
    found = kt.simulation_derivatives(system, q, qd, wrt="qd0", **options)
    assert_close(found.dqd[-1] @ along, expected, 1e-7, "derivatives forward")
    back = kt.simulation_gradient(system, q, qd, terminal=lambda now: now.qd[2] + 3.0 * now.qd[4], **options)
    assert_close(back.qd0 @ along, expected[2] + 3.0 * expected[4], 1e-7, "gradient in reverse")


def ball(method: str) -> tuple[kt.System, np.ndarray, np.ndarray]:
    """Return a ball in free flight at 100 rad/s and 1.5 m/s, and its start; contacts are far away."""
    body = kt.Body("ball", 1.3, inertia=(0.01, 0.01, 0.01, 0.0, 0.0, 0.0))
    mechanism = kt.build_mechanism("ball", [body], [kt.Joint("root", "free", "ground", "ball")])
    mechanism = replace(mechanism, gravity=(0.0, 0.0, -9.81))
    if method == "moreau":
        floor = kt.Surface(placement=kt.Placement((0.0, 0.0, -1000.0)))
        mechanism = replace(mechanism, contacts=(kt.Contact("c", "ball", "sphere", (0.1,), surface=floor),))
    system = kt.System(mechanism)
    return system, system.neutral(), np.array((60.0, -70.0, np.sqrt(1500.0), 0.7, -1.2, 0.6))


def assert_on_parabola(system: kt.System, q: np.ndarray, qd: np.ndarray, bound: float = 1e-11) -> None:
    """Compare the state of the ball after a second with its parabola."""
    q, qd = (np.asarray(x, float).reshape(-1) for x in (q, qd))
    momentum = system.momentum(q, qd)[3:]
    assert_close(momentum, [0.91, -1.56, 1.3 * (0.6 - 9.81)], bound, "momentum")  # euler and moreau were 33 N s off
    assert_close(qd[:3], [60.0, -70.0, np.sqrt(1500.0)], 10 * bound, "angular velocity")
    assert_close(q[:2], [0.7, -1.2], bound, "place")


@pytest.mark.parametrize("method", FIXED)
def test_a_ball_that_spins_keeps_its_velocity(method):
    """Throw a ball at 100 rad/s in steps of 1 ms, and find it a second later on its parabola."""
    system, q, qd = ball(method)
    run = kt.simulate(system, q, qd, times=[0.0, 1.0], method=method, dt=1e-3)
    assert_on_parabola(system, run.q[-1], run.qd[-1])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("method", NATIVE)
def test_a_ball_on_a_gpu(monkeypatch, method, dtype):
    """Throw it in the code of a GPU."""
    host_gpu.install(monkeypatch)
    system, q, qd = ball(method)
    q, qd = (np.tile(x, (2, 1)).astype(dtype) for x in (q, qd))
    run = kt.simulate(system.on("cuda"), q, qd, times=[0.0, 1.0], method=method, dt=1e-3)
    for k in range(2):
        assert_on_parabola(system, run.q[k, -1], run.qd[k, -1], 1e-11 if dtype == "float64" else 2e-3)


@needs_ptxas
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("method", [pytest.param(x, marks=pytest.mark.slow if x == "moreau" else ()) for x in NATIVE])
def test_momentum_in_kernels_that_are_assembled(monkeypatch, tmp_path, method, dtype):
    """Let a tree spin in the code of a GPU, and assemble all kernels of its run for the oldest GPU and a new one."""
    device = host_gpu.install(monkeypatch)
    system, q, qd = flying("free", method)
    run = kt.simulate(system.on("cuda"), q.astype(dtype), qd.astype(dtype), duration=0.3, method=method, dt=3e-3)
    assert run.status == "finished"
    bound = 2e-12 if dtype == "float64" else 1e-3
    assert_close(changes(system, run), np.zeros((len(run.t), 3)), bound, "momentum")
    assert device.sources
    ptx = target("ptx")
    for source in device.sources:
        for architecture in ("sm_80", "sm_90"):
            registers, _ = assembled(ptx.build(source), tmp_path, architecture)["kernel"]
            assert 0 < registers <= 255


@needs_compiler
@pytest.mark.parametrize("method", [x for x in NATIVE if x != "moreau"])
def test_a_ball_in_exported_code(method, tmp_path):
    """Throw it by a run and by steps exported in C."""
    system, q, qd = ball(method)
    kt.export(system, ["run", "step"], "c", tmp_path, method=method)
    given = [q[None], qd[None], np.array([[0.0, 1.0]]), [[1e-3]], [[0.0]], [[1e9]]]
    shapes = [(2, 7), (2, 6), (7,), (6,), (4,)]
    *_, q_end, qd_end, _ = called(library([tmp_path / "run.c"]).run, given, shapes, first=(2,))
    assert_on_parabola(system, q_end, qd_end)
    step, state = library([tmp_path / "time_step.c"]).time_step, (q[None], qd[None])
    for _ in range(1000):
        state = called(step, [*state, np.zeros((1, 6)), [[1e-3]]], [(7,), (6,)])
    assert_on_parabola(system, *state)


@needs_wasmtime
@pytest.mark.parametrize("method", [x for x in NATIVE if x != "moreau"])
def test_a_ball_in_webassembly(method):
    """Throw it in the WebAssembly of a run."""
    system, q, qd = ball(method)
    kernel = stepper(ForcedMechanism(system.mechanism), METHODS[method].scheme).kernel
    call = Call(wasm_module([kernel]), kernel.name, (q[None], qd[None], np.array([0.0, 1.0]), 1e-3, 0.0, 1e9), 2)
    _, _, q_end, qd_end, _ = in_wasmtime([call])[0]
    assert_on_parabola(system, q_end, qd_end)
