"""A time step with live inputs: the motion of control, torques and wrenches that are given when it is called."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.exporting.acting import live_step
from kinetree.page.kernel import TIERS, live_mechanism
from kinetree.simulation.acting.point_forces import forces_of
from kinetree.simulation.acting.rates import ForcedMechanism, rates
from kinetree.targets.wasm import wasm_module
from tolerance import assert_close
from wasm_hosts import Call, in_node, needs_node


def stepped(arm: kt.System, q, qd, folder, steps=1, parameters=(), **inputs) -> list[np.ndarray]:
    """Return q and qd after steps of 1 ms with live inputs by name."""
    kernel, live = live_step(arm.mechanism, forces_of(arm.mechanism))
    given = np.zeros(sum(count for _, count in live.places.values()))
    for name, values in inputs.items():
        first, count = live.places[name]
        given[first : first + count] = np.ravel(values)
    free = [np.array(parameters)[None]] if len(parameters) else []
    arrays = (q[None], qd[None], given[None], *free, np.array([1e-3]), np.array(float(steps)))
    call = Call(wasm_module([kernel]), "time_step", arrays)
    return [x[0] for x in in_node([call], folder)[0]]


@needs_node
@pytest.mark.parametrize("loads", [1.0, [0.0] * 5 + [1.0]], ids=["all", "one"])
def test_torques_gains_and_wrenches_act_in_every_stage(tmp_path, loads):
    """Compare a step of an arm with a Runge-Kutta step in NumPy on forward dynamics, also with the last load alone."""
    arm, rng = kt.load("stanford"), np.random.default_rng(3)
    q, qd = arm.random_state(rng)
    tau, stiffness, damping, target = rng.normal(size=(4, arm.nv)) * (loads == 1.0)
    w = rng.normal(size=(len(arm.bodies), 6)) * loads
    w[:-1] *= loads == 1.0

    def rate(y: np.ndarray) -> np.ndarray:
        p, v = y[:6], y[6:]
        torque = tau + stiffness * (target - p) - damping * v
        return np.concatenate([v, arm.forward_dynamics(p, v, torque, wrenches=w)])

    y, h = np.concatenate([q, qd]), 1e-3
    k1 = rate(y)
    k2 = rate(y + h / 2 * k1)
    k3 = rate(y + h / 2 * k2)
    expected = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3))
    inputs = {"torque": tau, "stiffness": stiffness, "damping": damping, "target": target, "wrenches": w}
    found = np.concatenate(stepped(arm, q, qd, tmp_path, **inputs))
    assert_close(found, expected, 1e-12 * np.abs(expected).max(), "state after a step")
    free = np.concatenate(stepped(arm, q, qd, tmp_path))
    assert np.abs(free - expected).max() > 1e-6


@needs_node
def test_loops_stay_closed(tmp_path):
    """Compare a step of a four-bar under PD control with a run of one step."""
    arm = kt.load("four_bar")
    q = arm.assemble()
    qd = arm.consistent_speeds(q, {"crank": 1.3})
    k, c, target = np.array([3.1, 0.4, 0.9]), np.array([0.2, 0.7, 0.3]), q + np.array([0.2, -0.1, 0.4])
    run = kt.simulate(arm, q, qd, times=[0.0, 1e-3], dt=1e-3, method="rk4", control=kt.PD(k, c, kt.Hold(target)))
    made = stepped(arm, q, qd, tmp_path, stiffness=k, damping=c, target=target)
    assert_close(made[0], run.q[-1], 1e-13, "coordinates")
    assert_close(made[1], run.qd[-1], 1e-12, "velocities")


@needs_node
def test_many_steps_are_those_of_a_run_with_the_given_parameters(tmp_path):
    """Compare three steps without loads of a mechanism with free parameters with a run of the given mechanism."""
    given = kt.load("planar_3r").mechanism
    live = live_mechanism(given, TIERS[0])
    numbers = np.array([p.value for p in live.mechanism.free_parameters])
    arm, q, qd = kt.System(live.mechanism), np.array([0.3, -0.7, 1.1]), np.array([0.4, 0.9, -0.6])
    kernel, inputs = live_step(arm.mechanism, forces_of(arm.mechanism))
    costs = {name: program.cost()["multiplications"] for name, program in kernel.programs}
    whole = rates(ForcedMechanism(arm.mechanism, forces_of(arm.mechanism), inputs)).cost()["multiplications"]
    assert costs["once"] > 20 and costs["once"] + costs["rates"] == whole and costs["idle"] < costs["rates"]
    run = kt.simulate(kt.System(given), q, qd, times=[0.0, 3e-3], dt=1e-3 * (1 + 1e-12), method="rk4")
    made = stepped(arm, q, qd, tmp_path, steps=3, parameters=numbers)
    assert_close(made[0], run.q[-1], 1e-14, "coordinates")
    assert_close(made[1], run.qd[-1], 1e-13, "velocities")
