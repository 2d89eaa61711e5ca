"""Sampled and Python control: agreement with loops in NumPy, and failures of controllers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_form_runs import PENDULUM
from kinetree.errors import InputError
from kinetree.formats.toml import read_toml_text
from kinetree.simulation.acting.controllers import Sum
from kinetree.simulation.acting.sampled import PythonControl, Sampled
from kinetree.simulation.engines.held_torques import sampling_instants
from tolerance import assert_close

K, C = np.array([3.0, 0.5]), np.array([0.5, 0.05])
GOAL = np.array([0.5, -0.3])


def law(t, q, qd):
    """Return a PD law about a goal."""
    return K * (GOAL - q) - C * qd


def arm() -> kt.System:
    """Return a planar arm that moves in a vertical plane."""
    return kt.load("planar_2r")


def by_hand(system: kt.System, q, qd, rate: float, count: int, dt: float, damping: float):
    """Return q at the sampling instants by classical Runge-Kutta steps in NumPy, the torque held in between."""
    rows = [q]
    for _ in range(count):
        tau = law(0.0, q, qd)
        for _ in range(round(1 / (rate * dt))):
            k = []
            for c in (0.0, 0.5, 0.5, 1.0):
                x, v = (q + c * dt * k[-1][0], qd + c * dt * k[-1][1]) if k else (q, qd)
                k.append((v, system.forward_dynamics(x, v, tau - damping * v)))
            q, qd = (y + dt / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]) for i, y in enumerate((q, qd)))
        rows.append(q)
    return np.array(rows)


CONTROLS = {
    "Sampled": lambda rate: Sampled(kt.PD(K, C, kt.Hold(GOAL)), rate),
    "PythonControl": lambda rate: PythonControl(law, rate),
}


@pytest.mark.parametrize("control", CONTROLS)
def test_sampled_control_is_the_plain_loop(control):
    """Hold torques for 20 ms and agree with a loop in NumPy with the same steps to rounding, also in a batch."""
    system, rate = arm(), 50.0
    forces = [kt.JointDamper(j.name, damping=0.03) for j in system.joints]
    q0, qd0 = np.array([[0.1, 0.2], [1.0, -0.7]]), np.array([[0.0, 0.0], [0.4, -0.5]])
    times = np.arange(51) / rate
    run = kt.simulate(
        system, q0, qd0, times=times, method="rk4", dt=5e-3, control=CONTROLS[control](rate), forces=forces
    )
    assert run.finished
    for k in range(2):
        expected = by_hand(system, q0[k], qd0[k], rate, 50, 5e-3, 0.03)
        assert_close(run.q[k], expected, 1e-12, f"run {k}")
    held = law(0, run.q, run.qd)[:, :-1]
    assert_close(run["tau"][:, :-1] + 0.03 * run.qd[:, :-1], held, 1e-12, "torque")
    single = kt.simulate(
        system, q0[1], qd0[1], times=times, method="rk4", dt=5e-3, control=CONTROLS[control](rate), forces=forces
    )
    assert np.array_equal(single.q, run.q[1])


@pytest.mark.parametrize("method", everyday.some(["dop853", "dopri5", "euler", "midpoint", "gauss"]))
def test_every_method_holds_torques(method):
    """Agree with fine Runge-Kutta steps within the error of the method, at independent output times."""
    options = {"rtol": 1e-10, "atol": 1e-12} if method.startswith("dop") else {"dt": 1e-4}
    times = np.linspace(0.0, 0.5, 38)
    control = Sampled(kt.PD(K, C, kt.Hold(GOAL)), 40.0)
    fine = kt.simulate(arm(), [0.1, 0.2], times=times, method="rk4", dt=1e-4, control=control)
    run = kt.simulate(arm(), [0.1, 0.2], times=times, method=method, control=control, **options)
    assert_close(run.q, fine.q, 1e-3 if method == "euler" else 1e-7, method)
    assert run.t.tolist() == times.tolist()


def test_held_torques_stand_behind_the_parameters():
    """Find the same motion with a free length as with a fixed one, also by Euler steps."""
    fixed = kt.System(read_toml_text(PENDULUM.replace(", free = true", ""))[0])
    free = kt.System(read_toml_text(PENDULUM)[0])
    control = Sampled(kt.PDGravity(4.0, 1.0, kt.Hold([0.7])), 25.0)
    for method in ("rk4", "euler"):
        options = {"duration": 0.5, "method": method, "dt": 1e-3, "control": control}
        a = kt.simulate(fixed, [0.2], **options)
        b = kt.simulate(free, [[0.2], [0.2]], parameters=[[0.5], [0.8]], **options)
        assert_close(b.q[0], a.q, 1e-12, method)
        assert_close(b["tau"][0], a["tau"], 1e-11, method)
        assert np.abs(b.q[1] - a.q).max() > 1e-3


def test_a_fast_rate_is_continuous_control():
    """Approach the compiled controller in proportion to the period, and reach it without a rate."""
    options = {"duration": 1.0, "rtol": 1e-10, "atol": 1e-12}
    exact = kt.simulate(arm(), [0.1, 0.2], control=kt.PD(K, C, kt.Hold(GOAL)), **options)
    slow, fast = (
        np.abs(kt.simulate(arm(), [0.1, 0.2], control=PythonControl(law, rate), **options).q - exact.q).max()
        for rate in (100.0, 400.0)
    )
    assert 3.0 < slow / fast < 5.0
    always = kt.simulate(arm(), [0.1, 0.2], control=PythonControl(law), **options)
    assert_close(always.q, exact.q, 1e-7, "q")
    assert_close(always["tau"], exact["tau"], 1e-5, "tau")
    assert_close(always["qdd"], exact["qdd"], 1e-4, "qdd")


def test_python_control_keeps_quaternions_unit():
    """Float a robot under a Python function without a rate, in a batch, as with no control at all."""
    robot = kt.load("space_robot_3r")
    q0, qd0 = robot.random_state(5, (2,))
    options = {"duration": 0.5, "rtol": 1e-10, "atol": 1e-11}
    run = kt.simulate(robot, q0, qd0, control=PythonControl(lambda t, q, qd: np.zeros_like(qd)), **options)
    assert_close(run.q, kt.simulate(robot, q0, qd0, **options).q, 1e-7, "q")
    assert_close(np.linalg.norm(run.q[..., 3:7], axis=-1), np.ones(run.q.shape[:-1]), 1e-14, "norm")


def later(good, bad, t0: float = 0.5):
    """Return a law that fails from a given time on."""
    return lambda t, q, qd: good(t, q, qd) if t < t0 else bad(t, q, qd)


BAD = {
    "not finite at t = 0.5": lambda t, q, qd: np.full_like(qd, np.nan),
    "returned torques of shape \\(5,\\) at t = 0.5.* s; expected \\(2,\\)": lambda t, q, qd: np.zeros(5),
    "failed at t = 0.5.* s \\(ZeroDivisionError: division by zero\\)": lambda t, q, qd: 1 / 0,
    "failed at t = 0.5.* s \\(TypeError": lambda t, q, qd: None + 1,
}


@pytest.mark.parametrize("rate", [None, 20.0])
@pytest.mark.parametrize("message", everyday.some(BAD))
def test_a_controller_that_fails_ends_the_run_and_nothing_is_lost(message, rate):
    """Return the states computed so far, with the reason and the time in the status; raise an error at the start."""
    run = kt.simulate(arm(), [0.1, 0.2], duration=1.0, control=PythonControl(later(law, BAD[message]), rate))
    assert run.status.startswith("stopped: the controller '<lambda>'")
    assert re.search(message, run.status), run.status
    assert 0.35 < run.t[-1] <= 0.5
    assert np.isfinite(run.q).all()
    whole = kt.simulate(arm(), [0.1, 0.2], duration=1.0, control=PythonControl(law, rate))
    assert_close(run.q, whole.q[: len(run)], 1e-12, "what was kept")
    with pytest.raises(InputError, match=message.split("0.5")[0].rstrip("= ") + " = 0 s"):
        kt.simulate(arm(), [0.1, 0.2], duration=1.0, control=PythonControl(BAD[message], rate))


def test_one_bad_run_of_a_batch_leaves_the_others():
    """Let the torques of one run be NaN from a time on, and find the other unaffected."""

    def one(t, q, qd):
        tau = law(t, q, qd)
        if t > 0.4:
            tau[1] = np.nan
        return tau

    run = kt.simulate(arm(), [[0.1, 0.2], [0.3, 0.1]], duration=1.0, control=PythonControl(one, 10.0))
    alone = kt.simulate(arm(), [0.1, 0.2], duration=1.0, control=PythonControl(law, 10.0))
    assert np.array_equal(run.q[0], alone.q)
    assert np.isnan(run.q[1, -1]).all()
    assert "not finite at t = 0.5 s (run 1; 1 runs in all)" in run.status


def test_a_memory_is_asked_once_an_instant():
    """Count the calls of a sampled function: one per instant, in order, for all runs together."""
    asked = []

    def counting(t, q, qd):
        asked.append((t, q.shape))
        return np.zeros_like(qd)

    kt.simulate(arm(), np.zeros((3, 2)), duration=1.0, control=PythonControl(counting, 10.0))
    assert_close([t for t, _ in asked], np.arange(10) / 10, 1e-12, "instants")
    assert {shape for _, shape in asked} == {(3, 2)}


def test_instants_next_to_output_times_are_these():
    """Find no interval as short as rounding between an instant and an output time."""
    times = np.linspace(0.0, 1.0, 1001)
    instants = sampling_instants(times, 1000.0)
    assert len(instants) == 1000
    assert np.isin(instants, times).all()
    grid = np.union1d(np.linspace(0.2, 1.7, 100), sampling_instants(np.linspace(0.2, 1.7, 100), 333.0))
    assert np.diff(grid).min() > 1e-7


def test_what_cannot_be_is_refused():
    """Read which rate, method, nesting or file does not fit control outside of the compiled rates."""
    pd = kt.PD(1.0, 1.0, kt.Hold([0.0, 0.0]))
    with pytest.raises(InputError, match="rate of Sampled is 0; give more than zero"):
        Sampled(pd, 0)
    with pytest.raises(InputError, match="rate of PythonControl is nan"):
        PythonControl(law, np.nan)
    with pytest.raises(InputError, match="needs a function of"):
        PythonControl(3.0)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Sampled holds a PythonControl, which has a rate of its own"):
        Sampled(PythonControl(law), 10.0)

    def run(control, **options):
        kt.simulate(arm(), duration=1.0, control=control, **options)

    with pytest.raises(InputError, match="Sampled cannot be inside another controller"):
        run(Sum([Sampled(pd, 10.0)]))
    with pytest.raises(InputError, match="PythonControl cannot be inside another controller"):
        run(kt.Saturated(PythonControl(law, 10.0), 1.0))
    with pytest.raises(InputError, match="bdf cannot hold sampled torques"):
        run(Sampled(pd, 10.0), method="bdf")
    with pytest.raises(InputError, match="runs by dop853 or dopri5, not rk4; give it a rate"):
        run(PythonControl(law), dt=1e-3)
    with pytest.raises(InputError, match="Sampled keeps no checkpoints"):
        run(Sampled(pd, 10.0), checkpoint="run.npz")


def test_steps_of_a_python_function_can_be_used_up():
    """Stop a run without a rate when its steps are used up, and keep the states computed so far."""
    run = kt.simulate(arm(), [0.1, 0.2], duration=10.0, control=PythonControl(law), max_steps=20)
    assert run.status.startswith("stopped: the steps were used up; try a larger max_steps")
    assert 1 < len(run) < 1001
