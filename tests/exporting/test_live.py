"""A time step with live inputs: the motion of control, torques and wrenches that are given when it is called."""

from __future__ import annotations

import numpy as np

import kinetree as kt
from kinetree.compiler.targets.wasm.target import wasm_module
from kinetree.exporting.live import live_step
from kinetree.simulation.forces.point_forces import forces_of
from tolerance import assert_close
from wasm_hosts import Call, in_node, needs_node


def stepped(arm: kt.System, q, qd, folder, **inputs) -> list[np.ndarray]:
    """Return q and qd after a step of 1 ms with live inputs by name."""
    kernel, live = live_step(arm.mechanism, forces_of(arm.mechanism))
    given = np.zeros(sum(count for _, count in live.places.values()))
    for name, values in inputs.items():
        first, count = live.places[name]
        given[first : first + count] = np.ravel(values)
    call = Call(wasm_module([kernel]), "time_step", (q[None], qd[None], given[None], np.array([1e-3])))
    return [x[0] for x in in_node([call], folder)[0]]


@needs_node
def test_torques_gains_and_wrenches_act_in_every_stage(tmp_path):
    """Compare a step of an arm with a Runge-Kutta step in NumPy on forward dynamics."""
    arm, rng = kt.load("stanford"), np.random.default_rng(3)
    q, qd = arm.random_state(rng)
    tau, stiffness, damping, target = rng.normal(size=(4, arm.nv))
    w = rng.normal(size=(len(arm.bodies), 6))

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
