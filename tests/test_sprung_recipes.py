"""Recipes of the documentation on mechanisms with springs, dampers and friction, against simulations of these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everyday
import kinetree as kt
from sprung_mechanisms import sprung
from tolerance import assert_close

ROOT = Path(__file__).resolve().parents[1]

TREE = {
    ("README.md", "qdd = arm.forward_dynamics(q, qd, tau)"): ("qdd", "qdd"),
    ("docs/index.md", "qdd = arm.forward_dynamics(q, qd, tau)"): ("qdd", "qdd"),
    ("README.md", "arm.inverse_dynamics(q, qd, qdd)"): ("arm.inverse_dynamics(q, qd, qdd)", "control"),
    ("docs/results.md", 'run["tau"], run["energy"], run["reactions"], run["center_of_mass"]'): (
        "arm.reactions(q, qd, qdd)",
        "reactions",
    ),
    ("docs/forces-and-control.md", "arm.inverse_dynamics(q, qd, qdd)"): ("arm.inverse_dynamics(q, qd, qdd)", "control"),
    ("docs/every-machine.md", "qdd = arm.forward_dynamics(q, qd, tau)"): ("qdd", "qdd"),
    ("docs/derivatives.md", 'forward = arm.function("forward_dynamics")'): ("forward(q, qd, tau)", "qdd"),
    ("docs/getting-started.md", 'fn = arm.function("inverse_dynamics")'): ("fn(q, qd, qdd)", "control"),
    ("docs/optimal-control.md", 'f = arm.casadi("forward_dynamics")'): ("columns(f, q, qd, tau)", "qdd"),
    ("docs/optimal-control.md", 'g = arm.casadi("forward_dynamics", form="native")'): ("columns(g, q, qd, tau)", "qdd"),
    ("docs/forces-and-control.md", "arm.hybrid_dynamics(q, qd, qdd, tau, driven="): (
        'arm.hybrid_dynamics(q, qd, np.where(np.arange(3) == 1, qdd, 0.0), tau, driven=["elbow"])[1]',
        "control",
    ),
}
CLOSED = {
    ("docs/index.md", 'tau = bars.inverse_dynamics(q, qd, qdd, actuated=["crank"])'): ("tau", "control"),
    ("docs/index.md", "bars.forward_dynamics(q, qd, tau)"): ("bars.forward_dynamics(q, qd, tau)", "qdd"),
    ("docs/closed-loop-dynamics.md", 'found = bars.actuation(q, qd, qdd, ["crank"])'): ("found.tau", "control"),
    ("docs/closed-loop-dynamics.md", 'loads = bars.loads(q, qd, qdd=qdd, actuated=["crank"])'): (
        "loads.joints",
        "reactions",
    ),
    ("docs/conventions.md", "loads(q, qd, tau=tau)"): ("bars.loads(q, qd, tau=tau).cuts", "loop_reactions"),
    ("docs/conventions.md", "multipliers(q, qd, tau)"): ("bars.multipliers(q, qd, tau)", "multipliers"),
    ("docs/closed-loop-dynamics.md", "done = bars.driven_motion(*crank)"): ("done.tau", "control"),
    ("docs/forces-and-control.md", 'needed = bars.inverse_dynamics(run.q, run.qd, run["qdd"], actuated="crank")'): (
        "needed",
        "control",
    ),
    ("docs/load-report.md", "report = kt.load_report(turn)"): (
        'report.drive("crank").effort[:, None] * [1, 0, 0]',
        "control",
    ),
}


def arm() -> kt.System:
    """Return an arm in space with a spring between points, a joint spring, damping and friction."""
    bodies = [
        kt.Body("base", 2.1, (0.02, 0.01, 0.1), (0.03, 0.02, 0.04, 0.001, 0.0, 0.002)),
        kt.Body("upper", 1.7, (0.2, 0.01, -0.02), (0.01, 0.05, 0.05, 0.001, 0.0, 0.0)),
        kt.Body("slide", 0.9, (0.1, 0.0, 0.03), (0.004, 0.01, 0.01, 0.0, 0.001, 0.0)),
    ]
    joints = [
        kt.Joint("shoulder", "revolute", kt.GROUND, "base", damping=(0.31,), friction=(0.05,)),
        kt.Joint("elbow", "revolute", "base", "upper", kt.Placement((0.1, 0, 0.3)), axis=(0, 1, 0), damping=(0.2,)),
        kt.Joint("slider", "prismatic", "upper", "slide", kt.Placement((0.4, 0, 0)), axis=(1, 0, 0), friction=(1.3,)),
    ]
    rates = (("stiffness", 180.0), ("damping", 2.3), ("free_length", 0.21), ("preload", 4.0))
    coil = kt.ForceElement("coil", "spring_damper", kt.GROUND, "slide", (0.3, -0.2, 0.8), (0.05, 0.02, 0.01), rates)
    rates = (("stiffness_1", 7.0), ("rest_1", 0.4))
    clock = kt.ForceElement("clock", "joint_spring", "base", "upper", coefficients=rates)
    return kt.System(kt.build_mechanism("sprung arm", bodies, joints, forces=[coil, clock]))


Q0, QD0 = np.array([0.4, -0.7, 0.03]), np.array([0.9, 1.3, -0.4])


def pushes(t, q, qd):
    """Return torques of drives that vary in time."""
    return [1.3 - 2.0 * t, 4.0 + t, 7.0 - 3.0 * q[0]]


@pytest.fixture(scope="module")
def tree():
    """Return a run of the arm and the names of recipes for it."""
    system = arm()
    run = kt.simulate(system, Q0, QD0, times=np.linspace(0, 0.5, 11), control=kt.TorqueFunction(pushes))
    return run, _scope(run, arm=system)


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """Return a run of a driven four-bar and the names of recipes for it."""
    system = sprung(tmp_path_factory.mktemp("recipes"))
    run = kt.simulate(system, times=np.linspace(0, 0.4, 21), control=kt.Driven("crank", kt.Hold(0.1, speed=3.0)))
    angle, rates = run.q[:, 0], np.full(len(run), 3.0)
    crank = {"crank": angle}, {"crank": rates}, {"crank": 0.0 * rates}
    return run, _scope(run, bars=system, crank=crank, turn=run)


def _scope(run, **more):
    def columns(function, *arrays):
        return np.array([np.array(function(*x)).ravel() for x in zip(*arrays, strict=True)])

    return {
        "np": np, "kt": kt, "run": run, "q": run.q, "qd": run.qd, "qdd": run["qdd"], "tau": run["control"],
        "columns": columns, **more,
    }  # fmt: skip


def _compared(recipe, wanted, run, scope):
    """Run a recipe that stands in the documentation, and compare what it gives with a column of the run."""
    page, code = recipe
    assert code in (ROOT / page).read_text(), f"{page} has no longer the recipe {code}"
    scope = dict(scope)
    if "=" in code.split("(")[0]:
        exec(code, scope)
    expression, column = wanted
    found, expected = eval(expression, scope), run[column]
    assert np.abs(expected).max() > 0.1
    bare = run.system.inverse_dynamics(run.q, run.qd, run["qdd"], forces=False)
    assert np.abs(bare - run["control"]).max() > 0.5, "the forces of the mechanism matter in this run"
    assert_close(found, expected, 1e-9 * np.abs(expected).max(), f"{page}: {code}")


@pytest.mark.parametrize("recipe", TREE, ids=lambda x: f"{x[0]}: {x[1][:30]}")
def test_recipes_of_trees(recipe, tree):
    """Find what acted in a simulation by the recipes for trees."""
    if "casadi" in recipe[1]:
        pytest.importorskip("casadi")
    _compared(recipe, TREE[recipe], *tree)


@pytest.mark.parametrize("recipe", CLOSED, ids=lambda x: f"{x[0]}: {x[1][:30]}")
def test_recipes_of_closed_mechanisms(recipe, closed):
    """Find what acted in a simulation by the recipes for closed mechanisms."""
    _compared(recipe, CLOSED[recipe], *closed)


def _accelerations(system, q, qd, tau):
    """Return the accelerations at the start of simulations under constant torques [n, .]."""
    out = []
    for x, v, effort in zip(*np.broadcast_arrays(q, qd, tau), strict=True):
        push = kt.TorqueFunction(lambda t, q, qd, effort=effort: [float(e) for e in effort])
        out.append(kt.simulate(system, x, v, times=[0.0, 1e-4], control=push)["qdd"][0])
    return np.array(out)


@everyday.long
def test_recipes_of_derivatives(tree):
    """Compare derivatives and linearizations with differences of the accelerations of simulations."""
    run, scope = tree
    arm, q, qd, tau = scope["arm"], run.q[3], run.qd[3], run["control"][3]
    text, h = (ROOT / "docs/derivatives.md").read_text(), 1e-5
    names = {**scope, "q": q, "qd": qd, "qdd": run["qdd"][3], "tau": tau}
    for code in (
        "dtau_dq, dtau_dqd, I = arm.inverse_dynamics_derivatives(q, qd, qdd)",
        "dqdd_dq, dqdd_dqd, inverse = arm.forward_dynamics_derivatives(q, qd, tau)",
        "state = arm.linearize(q, qd, tau)",
    ):
        assert code in text
        exec(code, names)
    steps = h * np.concatenate([np.eye(3), -np.eye(3)])

    def slope(ends):
        return ((ends[:3] - ends[3:]) / (2 * h)).T

    by_q = slope(_accelerations(arm, q + steps, qd, tau))
    by_qd = slope(_accelerations(arm, q, qd + steps, tau))
    by_tau = slope(_accelerations(arm, q, qd, tau + steps))
    for found, expected, label in (
        (names["dqdd_dq"], by_q, "dqdd/dq"), (names["dqdd_dqd"], by_qd, "dqdd/dqd"), (names["inverse"], by_tau, "1/I"),
        (names["dtau_dq"], -np.linalg.solve(by_tau, by_q), "dtau/dq"),
        (names["dtau_dqd"], -np.linalg.solve(by_tau, by_qd), "dtau/dqd"),
        (names["state"].A[3:], np.hstack([by_q, by_qd]), "A"), (names["state"].B[3:], by_tau, "B"),
    ):  # fmt: skip
        assert_close(found, expected, 1e-6 * np.abs(expected).max(), label)


def test_recipes_of_rest(tree, closed):
    """Hold mechanisms by the torques of recipes for rest, and find that they stay where they are in a simulation."""
    for system, q, text, code in (
        (tree[1]["arm"], tree[0].q[4], "docs/index.md", "g = arm.gravity_torque(q)"),
        (closed[1]["bars"], None, "docs/derivatives.md", "hanging = kt.equilibrium(crank)"),
    ):
        assert code in (ROOT / text).read_text()
        names = {"kt": kt, "arm": system, "crank": system, "q": q}
        exec(code, names)
        effort = names.get("g", np.zeros(system.nv))
        q = names.get("hanging", q)
        push = kt.TorqueFunction(lambda t, q, qd, effort=effort: [float(e) for e in effort])
        run = kt.simulate(system, q, np.zeros(system.nv), duration=0.3, control=push)
        assert_close(run.q[-1], q, 1e-8, f"{code}: at rest")
        loose = kt.simulate(system, q, np.zeros(system.nv), duration=0.3, control=push, passive=False)
        assert np.abs(loose.q[-1] - q).max() > 1e-3


@everyday.long
def test_recipe_of_the_force_on_a_cam():
    """Compare the contact force of the cam of the documentation, with a valve spring, with Newton's law."""
    names: dict[str, Any] = {}
    text = (ROOT / "docs/cams.md").read_text()
    block = text.split("```python\n")[1].split("```")[0]
    rates = '(("stiffness", 2000.0), ("free_length", 0.45), ("damping", 3.0))'
    coil = f'kt.ForceElement("coil", "spring_damper", kt.GROUND, "valve", (0, 0.3, 0), (0, 0, 0), {rates})'
    sprung = block.replace("gravity=(0, -9.81, 0),", f"gravity=(0, -9.81, 0), forces=[{coil}],")
    assert sprung != block
    exec(sprung, names)
    cycle, force = names["cycle"], names["force"]
    lift, speed, rate = cycle.q[:, 1], cycle.qd[:, 1], cycle["qdd"][:, 1]
    push = 2000.0 * (0.45 - (0.3 - lift)) - 3.0 * -speed  # of the coil on the valve, downward
    along = cycle["multipliers.contact"] * cycle.system.closure_jacobian(cycle.q)[:, 0, 1]
    assert_close(along, 0.4 * (rate + 9.81) + push, 1e-9 * np.abs(push).max(), "force along the valve")
    assert force.min() > 300


def test_run_torques_go_into_functions_without_forces(tree, closed):
    """Give torques and wrenches of drives and forces together to functions that leave the own forces out."""
    for run in (tree[0], closed[0]):
        back = run.system.forward_dynamics(run.q, run.qd, run["tau"], wrenches=run["wrenches"], forces=False)
        assert_close(back, run["qdd"], 1e-9 * np.abs(run["qdd"]).max(), "accelerations")
