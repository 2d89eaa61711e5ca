"""Steps in Python: agreement with native loops, orders of implicit steps, stability, control, batches and errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree import InputError
from kinetree.model import parse
from kinetree.simulation.engines.marching import March
from kinetree.simulation.run_states import Settings
from strategies import random_mechanism
from tolerance import assert_close

ROPE = {"mass_per_metre": 0.31, "radius": 0.006}
SOFT = {"bending": 0.02, "damping": 0.003, **ROPE}


def long_rope(n: int = 70, **options) -> kt.System:
    """Return a rope with too many bodies for unrolled code."""
    return kt.rope(1.7, n, joint="revolute", **({"bending": 0.05, "damping": 0.002, **ROPE} | options))


@pytest.mark.parametrize("method", everyday.some(["rk4", "euler"]))
@pytest.mark.parametrize("joint", ["universal", "spherical"])
def test_explicit_steps_are_the_native_ones(method, joint):
    """Step a short rope in Python and find the motion of the native integrator to rounding, also for quaternions."""
    rope = kt.rope(0.9, 4, joint=joint, damping=1e-5, **ROPE)
    rng = np.random.default_rng(1)
    q0, qd0 = rope.integrate(rope.neutral(), 0.3 * rng.normal(size=rope.nv)), rng.normal(size=rope.nv)
    times = np.array([0.0, 0.013, 0.05])
    native = kt.simulate(rope, q0, qd0, times=times, method=method, dt=1e-3)
    made = March(rope.mechanism, method, kt.forces_of(rope.mechanism))
    run = made.run(q0, qd0, times, Settings(dt=1e-3))
    assert_close(run.q, native.q, 1e-12, "q")
    assert_close(run.qd, native.qd, 1e-10, "qd")
    acted = made.acting(times, run.q, run.qd, None)
    assert_close(acted["torque"], native["tau"], 1e-12, "tau")
    assert_close(acted["accelerations"] / 100, native["qdd"] / 100, 1e-9, "qdd")
    assert (run.steps, run.evaluations) == (50, 50 * (4 if method == "rk4" else 1))


@pytest.mark.parametrize("method", everyday.some(["rk4", "euler"]))
@pytest.mark.parametrize("root", everyday.some(["free", "free_euler", "planar"]))
def test_floating_trees_take_the_native_steps(method, root):
    """Step two floating trees in Python, a spring between them, and find the motion of the native integrator."""
    rng = np.random.default_rng(4)
    tree = random_mechanism([root, "revolute", "spherical", "free", "prismatic"], [-1, 0, 0, -1, 3], rng)
    system = kt.System(tree)
    q0, qd0 = system.random_state(rng)
    spring = kt.SpringDamper(
        "b1", "b4", (0.1, 0.0, 0.2), (0.0, -0.1, 0.1), stiffness=30.0, damping=0.7, free_length=0.2
    )
    times = np.array([0.0, 0.013, 0.05])
    native = kt.simulate(system, q0, qd0, times=times, method=method, dt=1e-3, forces=spring)
    run = March(system.mechanism, method, [spring]).run(q0, qd0, times, Settings(dt=1e-3))
    assert_close(run.q, native.q, 1e-11, "q")
    assert_close(run.qd, native.qd, 1e-10, "qd")


@everyday.long
@pytest.mark.parametrize("method", ["rk4", "euler", "implicit_euler", "implicit_midpoint"])
def test_a_long_floating_chain_keeps_its_momentum(method):
    """Let two batches of a chain of 70 links on a free body spin, and find their momenta and straight lines."""
    rng = np.random.default_rng(7)
    tree = random_mechanism(["free"] + ["revolute"] * 70, range(-1, 70), rng)
    system = kt.System(replace(tree, gravity=(0.0, 0.0, 0.0)))
    q0, qd0 = system.random_state(rng, (2,))
    run = kt.simulate(system, q0, 0.1 * qd0, times=np.linspace(0.0, 0.02, 5), method=method, dt=1e-3)
    assert run.finished
    momentum, centers = system.momentum(run.q, run.qd)[..., 3:], system.center_of_mass(run.q)
    mass = sum(b.mass for b in tree.bodies)
    assert_close(momentum, np.broadcast_to(momentum[:, :1], momentum.shape), 1e-11, "momentum")
    line = centers[:, :1] + run.t[:, None] * momentum[:, :1] / mass
    assert_close(centers, line, 1e-13, "center of mass")


def regression(system: kt.System, start: tuple, method: str, halvings: list[int], **options) -> float:
    """Return the order of the error at 0.2 s in the step."""
    exact = kt.simulate(system, *start, times=[0.0, 0.2], method="dop853", rtol=1e-12, atol=1e-12, **options)
    errors = []
    for count in halvings:
        run = kt.simulate(system, *start, times=[0.0, 0.2], method=method, dt=0.2 / count, **options)
        errors.append(np.abs(system.difference(run.q[-1], exact.q[-1])).max())
    return float(np.polyfit(np.log(halvings), -np.log(errors), 1)[0])


CASES = {
    "springs and dampers": lambda: kt.rope(1.3, 6, joint="universal", **SOFT),
    "twist": lambda: kt.rope(1.3, 4, joint="euler", torsion=0.01, **SOFT),
    "quaternions": lambda: kt.rope(1.3, 4, joint="spherical", damping=1e-5, **ROPE),
    "a loop": lambda: kt.rope(1.3, 7, joint="revolute", ends=("pinned", "pinned"), **SOFT),
}


@pytest.mark.parametrize(("method", "order"), [("implicit_euler", 1), ("implicit_midpoint", 2)])
@pytest.mark.parametrize("case", everyday.some(everyday.without(CASES, ["twist", "a loop"])))
def test_orders_of_implicit_steps(case, method, order):
    """Measure the order with springs, dampers, gravity and loops, on all kinds of coordinates, by halving the step."""
    system = CASES[case]()
    rng = np.random.default_rng(3)
    q0 = system.assemble() if system.closures else system.integrate(system.neutral(), 0.15 * rng.normal(size=system.nv))
    qd0 = 0.3 * rng.normal(size=system.nv)
    qd0 = system.closing_speed(q0, qd0) if system.closures else qd0
    slope = regression(system, (q0, qd0), method, [64, 128, 256, 512, 1024])
    assert_close(slope, order, 0.25, "order")


@everyday.long
@pytest.mark.parametrize(("method", "order"), [("implicit_euler", 1), ("implicit_midpoint", 2)])
def test_orders_with_friction_and_others(method, order):
    """Measure the order with springs, friction, a force between points and a controller."""
    rope = kt.rope(1.3, 4, joint="revolute", **SOFT)
    forces = [
        *kt.forces_of(rope.mechanism),
        *(kt.JointFriction(f"joint{k}", 0.03, slip_speed=0.3) for k in range(1, 5)),
        kt.SpringDamper(kt.GROUND, "link4", (0.3, 0.0, -1.0), (0.3, 0.0, 0.0), stiffness=7.0, damping=0.1),
    ]
    options = {"forces": forces, "control": kt.PD(0.4, 0.02, kt.Cosine([0.5, 0.1, -0.2, 0.3], 9.0))}
    start = np.array([0.3, -0.2, 0.25, 0.1]), np.array([1.0, -0.7, 0.4, 2.0])
    assert_close(regression(rope, start, method, [64, 128, 256, 512, 1024], **options), order, 0.25, "order")


def test_a_stiff_oscillator_is_that_of_the_formulas():
    """Step one link on a stiff spring: midpoint conserves the energy, Euler agrees with its formula."""
    link = kt.chain(1, length=0.4, mass=0.7, radius=0.01, gravity=(0.0, 0.0, 0.0))
    inertia, k, c, h = link.inertia_matrix([0.0])[0, 0], 900.0, 0.01, 0.02
    forces = [kt.JointSpring("joint1", k, 0.3)]
    times = h * np.arange(200)
    run = kt.simulate(link, [0.7], [1.1], times=times, method="implicit_midpoint", dt=h, forces=forces)
    energy = inertia * run.qd[:, 0] ** 2 / 2 + k * (run.q[:, 0] - 0.3) ** 2 / 2
    assert h * np.sqrt(k / inertia) > 3
    assert_close(energy / energy[0], np.ones(200), 1e-12, "energy")
    forces.append(kt.JointDamper("joint1", c))
    run = kt.simulate(link, [0.7], [1.1], times=times[:3], method="implicit_euler", dt=h, forces=forces)
    x, v = 0.4, 1.1
    for at in run.q[1:, 0]:
        v = (inertia * v - h * k * x) / (inertia + h * c + h * h * k)
        x += h * v
        assert_close(at, 0.3 + x, 1e-14, "implicit Euler")


@everyday.long
def test_implicit_steps_are_stable_where_explicit_ones_are_not():
    """Take steps of 1 ms with stiff bending: explicit ones diverge, implicit ones are accurate."""
    rope = long_rope(150)
    q0 = np.zeros(150)
    q0[0] = 0.8
    times = [0.0, 0.2, 0.4]
    for method in ("rk4", "euler"):
        run = kt.simulate(rope, q0, times=times, method=method, dt=1e-3)
        assert run.status == "stopped: the state left the finite numbers; the last good state is at t = 0 s"
        assert len(run.t) == 1
    near = kt.simulate(rope, q0, times=times, method="implicit_midpoint", dt=1e-4)
    tip = rope.pose(near.q[-1], "tip")[:3, 3]
    for method, bound in (("implicit_euler", 5e-3), ("implicit_midpoint", 1e-4)):  # 2.6e-3 and 8e-6 m measured
        run = kt.simulate(rope, q0, times=times, method=method, dt=1e-3)
        assert run.status == "finished"
        assert_close(rope.pose(run.q[-1], "tip")[:3, 3], tip, bound, method)


@everyday.long
def test_tension_bounds_the_step_of_a_rope_without_stiffness():
    """Find the bound of docs/ropes.md: tension waves are explicit, since they involve no spring of a joint."""
    n, length = 100, 1.7
    rope = kt.rope(length, n, joint="revolute", **ROPE)
    bound = 0.4 * length / n / np.sqrt(9.81 * length)
    q0 = np.where(np.arange(n) == n // 3, 0.2, 0.0)
    for part, status in ((0.9, "finished"), (1.3, "stopped")):
        run = kt.simulate(rope, q0, times=[0.0, 0.3], method="implicit_midpoint", dt=part * bound)
        assert run.status.startswith(status), f"{part} of the bound"


def test_friction_needs_no_small_steps():
    """Bring a long rope to rest by friction with a small slip speed, with steps far above its time constant."""
    rope = long_rope(70)
    forces = [*kt.forces_of(rope.mechanism), *(kt.JointFriction(j.name, 0.7) for j in rope.joints)]
    qd0 = np.where(np.arange(70) == 0, 1.7, 0.0)
    times = np.linspace(0, 3.0, 31)
    run = kt.simulate(rope, None, qd0, times=times, method="implicit_euler", dt=2e-3, forces=forces)
    assert run.status == "finished"
    assert np.abs(run.qd[1]).max() > 0.5
    assert np.abs(run.qd[-1]).max() < 0.01
    explicit = kt.simulate(rope, None, qd0, times=times, method="euler", dt=2e-3, forces=forces)
    assert explicit.status.startswith("stopped")


@pytest.mark.parametrize("method", everyday.some(["implicit_euler", "implicit_midpoint"]))
def test_parameters_reach_the_springs(method):
    """Run a batch over a free stiffness, and find the runs of mechanisms with that fixed stiffness."""
    link = kt.chain(2, length=0.4, mass=0.7).mechanism
    free = [kt.Parameter("k", 2.0, free=True)]
    system = kt.System(kt.build_mechanism("sprung", link.bodies, link.joints, parameters=free))
    forces = [kt.JointSpring("joint1", parse("k")), kt.JointDamper("joint2", parse("k/50"))]
    values, times = np.array([[1.0], [5.0], [23.0]]), [0.0, 0.1, 0.3]
    many = kt.simulate(
        system, np.tile([0.4, -0.3], (3, 1)), times=times, method=method, dt=1e-3, forces=forces, parameters=values
    )
    for k in range(3):
        own = [kt.JointSpring("joint1", values[k, 0]), kt.JointDamper("joint2", values[k, 0] / 50)]
        alone = kt.simulate(system.fixed(values[k]), [0.4, -0.3], times=times, method=method, dt=1e-3, forces=own)
        assert_close(many.q[k], alone.q, 1e-12, "q")
        assert_close(many["tau"][k], alone["tau"], 1e-11, "tau")
    assert np.abs(many.q[0, -1] - many.q[2, -1]).max() > 0.1


@pytest.mark.parametrize("method", everyday.some(["rk4", "implicit_midpoint"]))
@pytest.mark.parametrize("ends", everyday.some([pytest.param(("pinned", end)) for end in ("free", "pinned")]))
def test_the_same_bits_alone_and_in_a_batch(method, ends):
    """Run three long ropes, and bridges, together and alone, and find the same bits."""
    rope = long_rope(130, ends=ends, bending=1e-4, damping=0.0)
    rng = np.random.default_rng(5)
    q0 = rope.assemble() if rope.closures else np.zeros(rope.nq)
    speeds = 0.3 * rng.normal(size=(3, rope.nv))
    qd0 = rope.closing_speed(q0, speeds) if rope.closures else speeds
    times = np.array([0.0, 0.0012, 0.0031])
    many = kt.simulate(rope, q0, qd0, times=times, method=method, dt=2e-4)
    assert many.status == "finished"
    for k in range(3):
        alone = kt.simulate(rope, q0, qd0[k], times=times, method=method, dt=2e-4)
        for name in ("q", "qd", "tau", "qdd"):
            assert (alone[name] == many[name][k]).all(), name


def test_one_run_of_a_batch_that_fails():
    """Start one of two ropes too fast, read which one diverged, and find the other unaffected."""
    rope = long_rope(70)
    qd0 = np.zeros((2, 70))
    qd0[1] = 1e160
    times = [0.0, 0.05, 0.1]
    run = kt.simulate(rope, np.full(70, 0.01), qd0, times=times, method="implicit_euler", dt=1e-3)
    why = "the state left the finite numbers; the last good state is at t = 0 s"
    assert run.status == f"stopped: {why} (run 1; 1 runs in all)"
    alone = kt.simulate(rope, np.full(70, 0.01), times=times, method="implicit_euler", dt=1e-3)
    assert (run.q[0] == alone.q).all()
    assert np.isnan(run.q[1, 1:]).all()


def test_a_bridge_that_fails():
    """Step a long bridge too coarsely, and read the reason in the status."""
    bridge = long_rope(130, ends=("pinned", "pinned"), bending=50.0)
    run = kt.simulate(bridge, times=[0.0, 0.1], method="rk4", dt=1e-2)
    why = "the loops did not close, or the state left the finite numbers; try a smaller dt"
    assert run.status == f"stopped: {why}; the last good state is at t = 0 s"


def test_python_functions_control_long_ropes():
    """Drive the first joint of a long rope by a function, find its torque in the columns and its work in the energy."""
    rope = long_rope(70, damping=0.0)

    def drive(t, q, qd):
        tau = np.zeros_like(qd)
        tau[..., 0] = 0.5 * np.sin(20 * t)
        return tau

    times = np.linspace(0, 0.3, 301)
    run = kt.simulate(rope, times=times, method="implicit_midpoint", dt=1e-4, control=kt.PythonControl(drive))
    assert_close(run["tau"][:, 0], 0.5 * np.sin(20 * times), 1e-15, "torque")
    assert np.abs(kt.energy_balance(run).joint_work).max() > 0.01
    assert_close(kt.energy_balance(run).error, 0.0, 1e-4, "energy balance")  # 4.2e-5


def test_a_controller_that_fails_keeps_the_run():
    """Let a controller fail: during a run, keep the states and read the time; at the start, raise an error."""
    rope = long_rope(70)

    def late(t, q, qd):
        if t > 0.0251:
            raise ZeroDivisionError("no more")
        return 0 * qd

    times = np.linspace(0, 0.05, 6)
    run = kt.simulate(rope, times=times, method="implicit_euler", dt=1e-3, control=kt.PythonControl(late))
    assert "the controller 'late' failed at t = 0.026 s (ZeroDivisionError: no more)" in run.status
    assert_close(run.t, times[:3], 0.0, "times")
    with pytest.raises(InputError, match=r"returned torques of shape \(3,\) at t = 0.001 s; expected \(70,\)"):
        short = kt.PythonControl(lambda t, q, qd: np.zeros(3))
        kt.simulate(rope, times=times, method="implicit_euler", dt=1e-3, control=short)


def test_events_are_found():
    """Stop a swinging long rope where its first joint passes zero, between the samples."""
    rope = long_rope(70)
    q0 = np.where(np.arange(70) == 0, 0.3, 0.0)
    event = kt.Event(lambda now: now.q[0], stop=True, name="upright")
    run = kt.simulate(rope, q0, times=np.linspace(0, 1.5, 31), method="implicit_midpoint", dt=1e-3, events=[event])
    assert "event upright" in run.status
    assert_close(run.q[-1, 0], 0.0, 1e-9, "angle")
    assert 0.5 < run.t[-1] < 0.75


REFUSED = {
    "adaptive": (
        {"method": "dop853"},
        "dop853 cannot be compiled for the 70 bodies of 'rope'; use rk4, euler, implicit_euler or implicit_midpoint, "
        "with a step dt",
    ),
    "default": ({}, "dop853 cannot be compiled for the 70 bodies"),
    "stops": (
        {"forces": [kt.JointStops("joint1")], "method": "rk4", "dt": 1e-3},
        "JointStops cannot act on 'rope', which has 70 bodies: only springs, dampers and friction of joints act",
    ),
    "controller": ({"control": kt.PD(1.0, 0.1, kt.Hold(0.0)), "method": "rk4", "dt": 1e-3}, "PD cannot act on 'rope'"),
    "sampled": (
        {"control": kt.PythonControl(lambda t, q, qd: 0 * qd, rate=100.0), "method": "rk4", "dt": 1e-3},
        "'rope' has 70 bodies: too many for torques that are sampled; use a PythonControl without a rate",
    ),
    "Baumgarte": (
        {"loops": kt.Baumgarte(), "method": "rk4", "dt": 1e-3},
        "rk4 of 'rope' closes loops by Projection, not Baumgarte; leave loops out",
    ),
    "checkpoint": ({"checkpoint": "x.npz", "method": "rk4", "dt": 1e-3}, "this run keeps no checkpoints"),
    "step": ({"method": "implicit_euler"}, "implicit_euler takes fixed steps: give dt [s]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_long_mechanisms_refuse(case):
    """Request options that require unrolled code for a long rope, and read the alternatives."""
    options, message = REFUSED[case]
    with pytest.raises(InputError) as error:
        kt.simulate(long_rope(70), duration=0.01, **options)
    assert message in str(error.value)


def test_auto_takes_a_stiff_rope_as_stiff():
    """Choose implicit steps for a long rope with springs, and explicit ones without."""
    for bending, method in ((0.05, "implicit_midpoint"), (0.0, "rk4")):
        rope = kt.rope(2.0, 70, mass_per_metre=0.3, radius=0.01, bending=bending, joint="revolute")
        run = kt.simulate(rope, times=[0.0, 0.002], dt=1e-3)
        assert run.method == method and run.finished
