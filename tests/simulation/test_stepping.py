"""A time step as a function: the bits of whole runs, arrays, parameters, threads, and errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import everyday
import gpu_on_cpu
import kinetree as kt
from assembler import assembled, needs_ptxas
from closed_mechanisms import library_state
from kinetree.apps.walking.legged import quadruped
from kinetree.errors import InputError
from kinetree.simulation.stepping import StepFunction, step_kernel
from kinetree.targets import target
from same_bits import assert_same_bits
from tolerance import assert_close

DT = 1 / 128  # differences of times have no rounding


def stepped(step: StepFunction, state: tuple, count: int, *more) -> tuple:
    """Return the state after a number of steps."""
    for _ in range(count):
        state = step(*state, *more)[: len(state)]
    return state


def ended(run: kt.Trajectory) -> tuple:
    """Return the last state of runs."""
    return run.q[..., -1, :].copy(), run.qd[..., -1, :].copy()


@pytest.mark.parametrize("method", ["rk4", "euler", "midpoint", "gauss"])
@pytest.mark.parametrize("name", ["planar_3r", "space_robot_3r", "four_bar"])
def test_steps_have_the_bits_of_a_run(name, method):
    """Compare steps in two substeps each with a run of the same steps: a tree, a free base, and a loop."""
    if name == "four_bar":
        arm, q, qd, _ = library_state(name)
    else:
        arm = kt.load(name)
        q, qd = arm.random_state(3)
    forces = [kt.JointDamper(arm.joints[-1].name, 0.0035)]
    options = {"forces": forces, "method": method}
    run = kt.simulate(arm, q, qd, times=DT * np.arange(8), dt=DT / 2, **options)
    step = arm.stepper(dt=DT, substeps=2, control=(), **options)
    assert step.names == ("q", "qd")
    assert_same_bits(stepped(step, (run.q[0], run.qd[0]), 7), ended(run))


def test_torques_are_held_and_each_sample_has_parameters():
    """Compare a batch with torques and parameters of each sample with runs under constant torques."""
    arm, rng = kt.with_free(kt.load("planar_2r"), "mass.*"), np.random.default_rng(4)
    q, qd = arm.random_state(rng, (11,))
    tau = rng.normal(size=(11, arm.nv))
    nominal = np.array([p.value for p in arm.mechanism.free_parameters])
    values = nominal * rng.uniform(0.9, 1.2, size=(11, len(nominal)))
    step = arm.stepper(dt=DT)
    assert step.names == ("q", "qd", "tau")
    state = q, qd
    for _ in range(5):
        state = step(*state, tau, parameters=values)
    for k in (0, 4, 10):
        held = kt.TorqueFunction(lambda t, q, qd, k=k: tau[k].tolist())
        run = kt.simulate(arm, q[k], qd[k], times=DT * np.arange(6), dt=DT, control=held, parameters=values[k])
        assert_close(state[0][k], run.q[-1], 1e-13, "coordinates against a run")
        assert_close(state[1][k], run.qd[-1], 1e-12, "velocities against a run")
    one = arm.stepper(dt=DT, control="torque", parameters=values[4])
    state4 = q[4], qd[4]
    for _ in range(5):
        state4 = one(*state4, tau[4])
    assert_same_bits(state4, (state[0][4], state[1][4]))
    name = arm.mechanism.free_parameters[0].name
    assert_same_bits(step(q, qd, tau, parameters={name: values[:, 0]}), step(
        q, qd, tau, parameters=np.column_stack([values[:, 0], np.tile(nominal[1:], (11, 1))])
    ))  # fmt: skip


def test_time_is_an_argument_of_steps_that_depend_on_it():
    """Follow a reference in time: the time is the third array, of each sample or of all."""
    arm = kt.load("planar_2r")
    control = kt.PD(0.6, 0.02, kt.Cycloid([0.3, -0.7], [1.1, 0.4], 0.05))
    step = arm.stepper(dt=DT, control=control)
    assert step.names == ("q", "qd", "t")
    run = kt.simulate(arm, [0.2, -0.6], [0.1, 0.4], times=DT * np.arange(9), dt=DT, control=control)
    state = run.q[0], run.qd[0]
    for t in run.t[:-1]:
        state = step(*state, t=t)
    assert_same_bits(state, ended(run))
    q, qd = step(run.q[:-1], run.qd[:-1], run.t[:-1])
    assert_same_bits((q, qd), (run.q[1:].copy(), run.qd[1:].copy()))


def test_steps_with_contact_have_the_bits_of_a_run():
    """Let a quadruped drop on its feet: impulses are the last array, and zero where they are left out."""
    robot = quadruped()
    q0, qd0 = robot.standing.copy(), np.zeros(robot.system.nv)
    q0[1] += 2e-3
    hold = kt.PD(robot.k, robot.c, kt.Constant(q0[7:].tolist()), joints=robot.drives)
    dt, options = 1 / 1024, {"control": hold, "contacts": robot.contacts, "method": "moreau"}
    run = kt.simulate(robot.system, q0, qd0, times=dt * np.arange(41), dt=dt, progress=False, **options)
    step = robot.system.stepper(dt=dt, **options)
    assert step.names == ("q", "qd", "impulses")
    q, qd, impulses = stepped(step, (q0, qd0, np.zeros((4, 3))), 40)
    assert_same_bits((q, qd), ended(run))
    assert_same_bits(impulses / dt, run.contact_forces[-1].copy())
    assert impulses[:, 0].min() > 0.0, "all feet are on the ground"
    whole = step(q0, qd0)
    assert [x.shape for x in whole] == [(19,), (18,), (4, 3), ()]
    assert_same_bits(whole, step(q0, qd0, np.zeros((4, 3))))
    many = step(np.tile(q, (9, 1)), qd, impulses)
    assert many[3].shape == (9,) and (many[3] < 1e-9).all(), "residuals of the laws of contact"


def test_driven_joints_follow_their_references():
    """Drive a joint: its coordinate is that of the reference at the end of each step."""
    arm = kt.load("planar_2r")
    moved = kt.Cycloid(0.1, 0.8, 0.05)
    step = arm.stepper(dt=DT, control=kt.Driven(arm.joints[0].name, moved))
    run = kt.simulate(arm, times=DT * np.arange(5), dt=DT, method="rk4", control=kt.Driven(arm.joints[0].name, moved))
    state = run.q[0], run.qd[0]
    for t in run.t[:-1]:
        state = step(*state, t)
    assert_same_bits(state, ended(run))


@pytest.mark.parametrize("name", ["planar_3r", "four_bar"])
def test_batches_threads_places_and_pickles_have_the_same_bits(name):
    """Compare a batch with single states, on threads, written in place, and from an unpickled step."""
    arm = kt.load(name)
    step = arm.stepper(dt=DT, control=kt.TorqueFunction(lambda t, q, qd: [0.3 * v for v in qd]))
    if name == "four_bar":
        _, q, qd, _ = library_state(name)
        q, qd = np.tile(q, (203, 1)), np.linspace(0.1, 1.0, 203)[:, None] * qd
    else:
        q, qd = arm.random_state(1, (203,))
    wanted = step(q, qd)
    for k in (0, 7, 8, 202):
        assert_same_bits(step(q[k], qd[k]), (wanted[0][k].copy(), wanted[1][k].copy()))
    assert_same_bits(step(q, qd, threads=2), wanted)
    assert_same_bits(pickle.loads(pickle.dumps(arm.stepper(dt=DT, control=kt.PD(0.2, 0.1, kt.Hold(q[0])))))(q, qd),
                     arm.stepper(dt=DT, control=kt.PD(0.2, 0.1, kt.Hold(q[0])))(q, qd))  # fmt: skip
    own = q.copy(), qd.copy()
    found = step(*own, out=own)
    assert found[0] is own[0]
    assert_same_bits(own, wanted)
    places = np.empty_like(q), np.empty_like(qd)
    step(q, qd, out=places, threads=2)
    assert_same_bits(places, wanted)
    assert_same_bits(step(q.tolist(), qd=qd.tolist()), wanted)


def test_substeps_are_steps():
    """Compare four substeps with four steps; the text of a step names its arrays."""
    arm = kt.with_free(kt.load("planar_2r"), "mass.*")
    step = arm.stepper(dt=0.01, substeps=4)
    assert repr(step) == "<step of planar_2r: (q, qd, tau), 0.01 s in 4 substeps>"
    fine = arm.stepper(dt=0.0025)
    q, qd = arm.random_state(2)
    tau = np.array([0.1, -0.2])
    assert_same_bits(step(q, qd, tau), stepped(fine, (q, qd), 4, tau))


def test_a_lost_state_is_not_a_number():
    """Let NaN pass: other states of the batch do not feel it."""
    step = kt.load("planar_2r").stepper(dt=DT, control=())
    q, qd = step(np.array([[0.1, np.nan], [0.1, 0.2]]), np.zeros(2))
    assert np.isnan(q[0]).any() and np.isfinite(q[1]).all() and np.isfinite(qd[1]).all()


def test_errors():
    """Name what is wrong with arrays and options."""
    arm = kt.load("planar_2r")
    step = arm.stepper(dt=0.01)
    q = np.zeros(2)
    for arrays, options, text in (
        ((q, q), {}, r"step takes 3 arrays \(q, qd, tau\), not 2"),
        ((q, q, q, q), {}, r"step takes 3 arrays \(q, qd, tau\), not 4"),
        ((q, q, np.zeros(3)), {}, r"step: tau has shape \(3,\); expected \[\.\.\., 2\]"),
        ((np.zeros((3, 2)), np.zeros((4, 2)), q), {}, "leading"),
        ((q, q, "x"), {}, "tau is not an array of real numbers"),
        ((q, q, q), {"out": (np.zeros(3), np.zeros(2))}, r"out for q_next has shape \(3,\); expected \(2,\)"),
        ((q, q, q), {"parameters": [1.0]}, "has no free parameters"),
    ):
        with pytest.raises(InputError, match=text):
            step(*arrays, **options)
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'; it takes q, qd, tau, parameters, out"):
        step(q, q, speed=q)
    with pytest.raises(TypeError, match="multiple values for argument 'q'"):
        step(q, q, q=q)
    for options, text in (
        ({"dt": 0.0}, "dt is 0"),
        ({"dt": 0.01, "substeps": 0}, "substeps is 0"),
        ({"dt": 0.01, "method": "dopri5"}, "a stepper takes rk4, euler, midpoint or gauss, or moreau"),
        ({"dt": 0.01, "method": "moreau"}, "'planar_2r' has no contacts; give contacts="),
        ({"dt": 0.01, "loops": kt.Minimal()}, r"a stepper takes Projection\(\) or Baumgarte\(rate\)"),
        ({"dt": 0.01, "control": kt.PythonControl(lambda t, q, qd: q)}, "outside of compiled code; give control='torq"),
        ({"dt": 0.01, "control": 3}, "control is 3; give an object with torque"),
    ):
        with pytest.raises(InputError, match=text):
            arm.stepper(**options)
    robot = quadruped()
    with pytest.raises(InputError, match="has contacts: use moreau, or contacts="):
        robot.system.stepper(dt=0.01, contacts=robot.contacts, method="rk4")
    with pytest.raises(InputError, match="too long for a stepper"):
        kt.chain(300).stepper(dt=0.01)
    free = kt.with_free(kt.load("planar_2r"), "mass.*")
    with pytest.raises(InputError, match="parameters have shape"):
        free.stepper(dt=0.01)(q, q, q, parameters=[1.0, 2.0, 3.0])


@pytest.mark.parametrize("name", ["planar_2r", "four_bar"])
def test_a_graphics_card_computes_the_same(name):
    """Run the code of a graphics card on this processor, and compare with vectors."""
    arm = kt.load(name)
    _, q, qd, _ = library_state(name) if name == "four_bar" else (None, *arm.random_state(5), None)
    q, qd = np.tile(q, (3, 1)), np.array([0.4, 1.0, -0.8])[:, None] * qd
    step = arm.stepper(dt=DT, substeps=2)
    tau = np.full((3, arm.nv), 0.03)
    found = gpu_on_cpu.run_kernel(step_kernel(step._stepping), (q, qd, tau, np.array([DT / 2, 2.0])))
    for a, b in zip(found, step(q, qd, tau), strict=True):
        assert_close(a, b, 1e-12, "one thread per state against vectors")


@needs_ptxas
@pytest.mark.parametrize("name", ["planar_3r", pytest.param("quadruped", marks=pytest.mark.slow)])
def test_ptx_is_assembled(name, tmp_path):
    """Assemble the step of a tree, and of a legged robot with contacts, for a graphics card."""
    robot = quadruped()
    if name == "quadruped":
        step = robot.system.stepper(dt=DT, contacts=robot.contacts)
    else:
        step = kt.load(name).stepper(dt=DT)
    ptx = target("ptx")
    registers, _ = assembled(ptx.build(ptx.emit(step_kernel(step._stepping), "float64")), tmp_path)["kernel"]
    assert 0 < registers <= 255


@pytest.mark.parametrize("name", everyday.seldom(["planar_2r", "space_robot_3r", "four_bar"], ["space_robot_3r"]))
@pytest.mark.parametrize("method", ["rk4", "midpoint"])
def test_steps_have_derivatives(name, method):
    """Compare derivatives by state, torques and parameters with differences of steps along consistent changes."""
    rng = np.random.default_rng(6)
    arm = kt.with_free(kt.load(name), "mass.*")
    if name == "four_bar":
        _, q, qd, _ = library_state(name)
        q, qd = q[:3], qd[:3]
    else:
        q, qd = arm.random_state(rng, (3,))
    tau = rng.normal(size=qd.shape)
    step = arm.stepper(dt=0.02, substeps=2, method=method)
    found, h, nv = step.jacobian(q, qd, tau), 1e-6, arm.nv
    wanted = step(q, qd, tau)
    assert_close(found.q, wanted[0], 1e-10, "coordinates after the step")
    assert_close(found.qd, wanted[1], 1e-9, "velocities after the step")

    def difference(change):
        (a, b), (c, d) = (change(s * h)[:2] for s in (1.0, -1.0))
        return np.concatenate([arm.difference(c, a), b - d], axis=-1) / (2.0 * h)

    by_tau = np.stack([difference(lambda s, e=e: step(q, qd, tau + s * e)) for e in np.eye(nv)], axis=-1)
    assert_close(found.tau, by_tau, 1e-6 * max(1.0, np.abs(by_tau).max()), "by torques")
    p = step.parameters
    by_p = np.stack(
        [difference(lambda s, e=e: step(q, qd, tau, parameters=p + s * e)) for e in np.eye(len(p))], axis=-1
    )
    assert_close(found.parameters, by_p, 1e-6 * max(1.0, np.abs(by_p).max()), "by parameters")
    if name != "four_bar":  # changes of the state that leave loops open are closed first
        dq, dqd = rng.normal(size=(2, 3, nv))
        along = difference(lambda s: step(arm.integrate(q, s * dq), qd + s * dqd, tau))
        both = np.concatenate(step.jvp((q, qd, tau), (dq, dqd)), axis=-1)
        assert_close(both, along, 1e-6 * max(1.0, np.abs(along).max()), "along a change of the state")
    adjoint = rng.normal(size=(3, 2 * nv))
    back = step.vjp((q, qd, tau), (adjoint[:, :nv], adjoint[:, nv:]))
    change = rng.normal(size=(3, 3, nv))
    forth = np.concatenate(step.jvp((q, qd, tau), change), axis=-1)
    scale = np.abs(adjoint).max() * np.abs(forth).max()
    assert_close(
        (adjoint * forth).sum(), sum((x * y).sum() for x, y in zip(back, change, strict=True)), 1e-12 * scale, "adjoint"
    )


@everyday.long
def test_derivatives_of_steps_that_have_none():
    """Name what has no derivatives: contacts, several times, and wrong numbers of arrays and tangents."""
    arm, robot = kt.load("planar_2r"), quadruped()
    q, qd = arm.random_state(0)
    step = arm.stepper(dt=0.01)
    touching = robot.system.stepper(dt=0.01, contacts=robot.contacts)
    timed = arm.stepper(dt=0.01, control=kt.TorqueFunction(lambda t, q, qd: [t, 0.0]))
    for call, text in (
        (lambda: step.jacobian(q, qd), r"step takes 3 arrays \(q, qd, tau\), not 2"),
        (lambda: step.jvp((q, qd, qd), (q,)), "1 tangents; give those of q and qd, and of tau"),
        (lambda: timed.jacobian(q, qd, [0.0, 1.0]), "t has several times"),
        (
            lambda: touching.jacobian(robot.standing, np.zeros(18), np.zeros(18), np.zeros((4, 3))),
            "has hard contacts, and a run with their impacts has no derivatives",
        ),
    ):
        with pytest.raises(InputError, match=text):
            call()
    found = timed.jacobian(q, qd, 0.5)
    assert found.tau is None and found.parameters is None
    assert_close(found.qd, timed(q, qd, 0.5)[1], 1e-12, "velocities")
