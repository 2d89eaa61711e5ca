"""Controllers that know loops, against the closed inverse dynamics of separate code, and exact references."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree import InputError
from kinetree.experiments import read_experiment
from kinetree.formulations.charmie import ACTUATORS
from kinetree.model.axes import entries
from tolerance import assert_close

TIGHT = {"method": "dop853", "rtol": 1e-12, "atol": 1e-13}
LEGS = [f"leg{k}" for k in range(1, 7)]
TORSO = {"actuator_4": 0.011, "actuator_5": -0.0047}
PATHS = {
    "four_bar": {"crank": 0.83},
    "five_bar": {"right_crank": -0.23, "left_crank": 0.31},
    "stewart": dict(zip(LEGS, (0.053, 0.031, 0.064, -0.022, 0.043, 0.012), strict=True)),
    "charmie_torso": TORSO,
    "charmie_complete": dict(zip(ACTUATORS, np.linspace(0.05, 0.21, len(ACTUATORS)), strict=True)) | TORSO,
}
"""Displacements of the actuated joints, by mechanism."""
SLOW = ("stewart", "charmie_complete")


def tracked(name, displacements, duration=0.8):
    """Return a mechanism at rest, the entries of the actuated joints in q and in qd, and a cycloid for them."""
    system = kt.load(name)
    q = system.assemble()
    at, labels = ([k for joint in displacements for k in entries(system.mechanism, joint, n)] for n in (0, 1))
    return system, q, at, labels, kt.Cycloid(q[at], q[at] + list(displacements.values()), duration)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in PATHS])
def test_computed_torque_follows_the_driven_joints(name):
    """Follow a reference from the start, with torques in the actuated joints alone that separate code confirms."""
    system, q, at, labels, reference = tracked(name, PATHS[name])
    control = kt.ComputedTorque(400.0, 40.0, reference, actuated=list(PATHS[name]), forces=True)
    run = kt.simulate(system, q, times=np.linspace(0.0, 0.8, 9), control=control, **TIGHT)
    wanted = np.array([reference(t)[0] for t in run.t])
    assert_close(run.q[:, at], wanted, 1e-9, "the actuated joints")
    assert np.abs(run.q[-1] - q).max() > 0.01 and not np.delete(run["control"], labels, axis=1).any()
    needed = system.inverse_dynamics(run.q, run.qd, run["qdd"], actuated=list(PATHS[name]))
    assert_close(run["control"], needed, 1e-8 * np.abs(needed).max(), "the torques")


def test_errors_decay_as_the_gains_say():
    """Start beside the reference at the speed of a crank, and find e'' + c e' + k e = 0 in all samples."""
    system = kt.load("four_bar")
    q = system.assemble(hold={"crank": 0.9})
    qd = system.consistent_speeds(q, {"crank": 2.3})
    control = kt.ComputedTorque(30.0, 7.0, kt.Hold([0.64]), actuated="crank")
    run = kt.simulate(system, q, qd, duration=0.5, control=control, **TIGHT)
    assert_close(run["qdd"][:, 0], -30.0 * (run.q[:, 0] - 0.64) - 7.0 * run.qd[:, 0], 1e-9, "the crank")


WEIGHTS = {"crank": 1 / 2.0**2, "output": 1 / 8.0**2}


def test_redundant_torques_are_those_of_least_effort():
    """Drive two joints of a four-bar from contradictory references, and compare with dense least squares."""
    system = kt.load("four_bar")
    q = system.assemble(hold={"crank": 0.9})
    qd = system.consistent_speeds(q, {"crank": 2.3})
    both, off = ["crank", "output"], np.array([-0.05, 0.023])
    control = kt.ComputedTorque(30.0, 5.0, kt.Hold(q[:2] + off), actuated=both, weights=WEIGHTS)
    run = kt.simulate(system, q, qd, times=[0.0, 0.001], control=control, **TIGHT)
    wanted = 30.0 * off - 5.0 * qd[:2]
    G = system.independent(q, prefer="crank").G
    g = system.consistent_accelerations(q, qd, {"crank": 0.0})
    metric = np.diag([2.0**2, 8.0**2])
    u = np.linalg.solve(G[:2].T @ metric @ G[:2], G[:2].T @ metric @ (wanted - g[:2]))
    assert_close(run["qdd"][0], g + G @ u, 1e-11, "the nearest accelerations")
    least = system.actuation(q, qd, g + G @ u, both, weights=WEIGHTS).tau
    assert least[:2].all() and abs(least[0]) < abs(least[1])
    assert_close(run["control"][0], least, 1e-11 * np.abs(least).max(), "the torques")


def test_the_weight_is_shared_by_least_effort():
    """Hold a four-bar by all its joints with the torques of least effort, which dense least squares confirms."""
    system = kt.load("four_bar")
    q = system.assemble(hold={"crank": 0.9})
    names = ["crank", "output", "coupler"]
    hold = kt.PDGravity(90.0, 9.0, kt.Hold(q), actuated=names)
    run = kt.simulate(system, q, duration=0.4, control=hold, **TIGHT)
    assert_close(run.q, np.tile(q, (len(run.t), 1)), 1e-9, "at rest")
    rest = np.zeros(3)
    least = system.actuation(q, rest, rest, names, weights=dict.fromkeys(names, 1.0)).tau
    assert least.all()
    assert_close(run["control"][0], least, 1e-10, "the shares of the weight")


def test_a_regulator_shares_the_weight_by_its_weights():
    """Hold a four-bar by two joints whose torques LQR weighs, and bring it back from a displaced start."""
    system = kt.load("four_bar")
    q = system.assemble(hold={"crank": 0.9})
    found = kt.LQR(system, q, Q=[90.0, 1.1], R=list(WEIGHTS.values()), joints=list(WEIGHTS))
    least = system.actuation(q, np.zeros(3), np.zeros(3), list(WEIGHTS), weights=WEIGHTS).tau
    assert found.K.shape == (2, 2) and least[:2].all()
    assert_close(found.tau, least, 1e-9 * np.abs(least).max(), "the torques at rest")
    start = system.assemble(hold={"crank": 1.1}, q_guess=q)
    run = kt.simulate(system, start, times=[0.0, 5.0], control=found)
    assert_close(run.q[-1], q, 1e-6, "back at rest")


def test_gravity_is_held_where_the_loops_carry_it():
    """Hold a four-bar by its crank without gains, where the torque of the open tree would let it fall."""
    system = kt.load("four_bar")
    q = system.assemble(hold={"crank": 0.7})
    hold = kt.PDGravity(0.0, 0.0, kt.Hold([1.3]), actuated="crank")
    run = kt.simulate(system, q, duration=0.2, control=hold, **TIGHT)
    assert_close(run.q[-1], q, 1e-10, "still")
    assert (run["reference"][:, 0] == 1.3).all() and np.isnan(run["reference"][:, 1:]).all()


def test_feed_forward_finds_the_dependent_joints():
    """Give the torques of a reference motion, whose other joints Newton's method finds in the compiled step."""
    system, q, at, _, reference = tracked("five_bar", PATHS["five_bar"])
    control = kt.FeedForward(reference, actuated=list(PATHS["five_bar"]))
    run = kt.simulate(system, q, times=np.linspace(0.0, 0.8, 9), control=control, **TIGHT)
    assert_close(run.q[:, at], np.array([reference(t)[0] for t in run.t]), 1e-8, "the cranks")
    far = system.assemble(hold={"left_crank": q[0] + 0.2, "right_crank": q[2] - 0.1}, q_guess=q)
    beside = kt.simulate(system, far, times=[0.0, 0.1], control=control, **TIGHT)
    assert_close(beside["control"][0], run["control"][0], 1e-11, "the state has no part in it")


def test_the_own_forces_of_a_tree_are_compensated():
    """Follow a reference with damping, friction and a spring in the joints of an open arm, only with forces=True."""
    joints = [kt.Joint("hip", "revolute", "ground", "thigh", axis=(0, 1, 0), damping=0.7, friction=0.3)]
    thigh = kt.Body("thigh", 2.3, (0.21, 0.0, 0.04), (0.02, 0.05, 0.04, 0.0, 0.0, 0.0))
    system = kt.System(kt.build_mechanism("leg", [thigh], joints))
    reference = kt.Cosine([0.6], 3.0)
    q, qd, _ = (np.array(x, dtype=float) for x in reference(0.0))
    for forces, error in ((True, 1e-9), (False, None)):
        control = kt.ComputedTorque(100.0, 20.0, reference, forces=forces)
        run = kt.simulate(system, q, qd, duration=1.0, control=control, **TIGHT)
        off = np.abs(run["tracking_error"]).max()
        assert off < error if error else off > 1e-3


@everyday.long
def test_batches_exports_and_derivatives_follow(tmp_path):
    """Find the same bits in a batch, code in C, and derivatives of runs as by differences of runs."""
    system = kt.load("four_bar")
    q = system.assemble(hold={"crank": 0.9})
    control = kt.ComputedTorque(30.0, 5.0, kt.Cycloid(q[:2], q[:2], 0.5), actuated=["crank", "output"])
    options = {"times": [0.0, 0.15, 0.3], "control": control, "method": "rk4", "dt": 5e-3}
    starts = system.assemble(hold={"crank": np.array([0.8, 0.9, 1.03])}, follow=True)
    many = kt.simulate(system, starts, **options)
    one = kt.simulate(system, starts[1], **options)
    assert (many.q[1] == one.q).all() and (many.qd[1] == one.qd).all()
    names = {p.name for p in kt.export(system, ["control", "step"], "c", tmp_path, control=control)}
    assert any(name.endswith(".c") for name in names)
    e = system.consistent_speeds(starts[1], {"crank": 1.0})
    for c in (control, kt.FeedForward(kt.Cycloid(q[:1], q[:1] + 0.4, 0.5), actuated="crank")):
        options["control"] = c
        exact = kt.simulation_derivatives(system, starts[1], 2.1 * e, wrt=["qd0"], **options)
        after, before = (kt.simulate(system, starts[1], (2.1 + h) * e, **options) for h in (1e-5, -1e-5))
        found = exact.dq[-1] @ e
        assert_close(found, (after.q[-1] - before.q[-1]) / 2e-5, 1e-6 * np.abs(found).max(), type(c).__name__)


def simulated(control, name="four_bar", **hold):
    """Return the status of a short run."""
    system = kt.load(name)
    return kt.simulate(system, system.assemble(hold=hold), duration=1.0, control=control).status


HOLD = kt.Hold([0.3])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: simulated(kt.ComputedTorque(1.0, 1.0, HOLD)),
            "ComputedTorque on 'four_bar', which has loops: name the",
        ),
        (lambda: simulated(kt.PDGravity(1.0, 1.0, HOLD)), "with a drive, actuated=[...]; the reference and the gains"),
        (lambda: simulated(kt.FeedForward(HOLD)), "FeedForward on 'four_bar', which has loops: name the joints with a"),
        (
            lambda: simulated(kt.ComputedTorque(1.0, 1.0, HOLD, actuated="left_crank"), "five_bar"),
            "ComputedTorque: the actuated joints (left_crank) determine 1 of the 2 degrees of freedom of 'five_bar': "
            "with them held, 'right_forearm' still moves; actuate more joints, or others",
        ),
        (
            lambda: simulated(kt.FeedForward(HOLD, actuated="crnk")),
            "FeedForward: no joint 'crnk'; did you mean 'crank'?",
        ),
        (
            lambda: simulated(kt.FeedForward(HOLD, actuated=["crank", "crank"])),
            "FeedForward drives the joint 'crank' twice; name it once",
        ),
        (
            lambda: simulated(kt.ComputedTorque(1.0, 1.0, HOLD, actuated=["crank", "output"])),
            "the reference returns 1 coordinates; expected 2",
        ),
        (
            lambda: simulated(kt.ComputedTorque(1.0, 1.0, HOLD, actuated="platform"), "stewart"),
            "ComputedTorque cannot act on the joint 'platform': a free joint has 7 coordinates for 6 velocities",
        ),
        (
            lambda: simulated(kt.ComputedTorque(1.0, 1.0, HOLD, actuated="crank", weights={"output": 1.0})),
            "ComputedTorque: weight of 'output', which is not actuated; leave it out",
        ),
        (
            lambda: kt.FeedForward(HOLD, actuated="crank", weights={"crank": 0.0}),
            "weights of FeedForward is 0; give more than zero",
        ),
        (lambda: kt.FeedForward(HOLD, weights={"crank": 1.0}), "weights are numbers by actuated joint, with actuated="),
        (lambda: kt.PDGravity(1.0, 1.0, HOLD, actuated=[]), "PDGravity: actuated is []; give names of joints"),
        (lambda: kt.FeedForward(HOLD, forces=1), "FeedForward: forces is 1; give True or False"),
    ],
)
def test_faults_are_named(make, message):
    """Give a wrong actuation, and read its name and the remedy."""
    with pytest.raises(kt.KinetreeError) as caught:
        make()
    assert message in str(caught.value)


def test_runs_that_stop_name_the_actuated_joints():
    """Drive a slider-crank by its slider into the dead center, and beyond its reach."""
    into = kt.Polynomial([-1.682941969615793], [-3.18], 1.0)
    status = simulated(kt.ComputedTorque(400.0, 40.0, into, actuated="slider"), "slider_crank", crank=1.0)
    assert "stopped: the actuated joints (slider) of ComputedTorque hardly determine the motion at t = 0.33" in status
    assert "near a dead center; actuate more joints, or others, or keep the reference away from it" in status
    status = simulated(kt.FeedForward(kt.Hold([7.0]), actuated="slider"), "slider_crank", crank=1.0)
    assert "the loops do not close with the actuated joints (slider) at the reference of FeedForward" in status


def test_experiments_read_actuated_joints(tmp_path):
    """Read actuated joints, weights and forces from a file, and follow the same motion as in Python."""
    system = kt.load("four_bar")
    q = system.assemble(hold={"crank": 0.9})
    (tmp_path / "run.toml").write_text(
        f"""
[experiment]
mechanism = "four_bar"

[start]
q = {{ crank = {q[0]}, output = {q[1]}, coupler = {q[2]} }}

[run]
duration = 0.2
samples = 5

[control]
kind = "computed_torque"
k = 100
c = 20
actuated = ["crank", "output"]
weights = {{ crank = 2, output = 0.5 }}
forces = true
reference = {{ kind = "hold", q = [{q[0] + 0.1}, {q[1] + 0.02}] }}
"""
    )
    found = read_experiment(tmp_path / "run.toml").simulate()
    control = kt.ComputedTorque(
        100.0, 20.0, kt.Hold([q[0] + 0.1, q[1] + 0.02]), actuated=["crank", "output"],
        weights={"crank": 2.0, "output": 0.5}, forces=True,
    )  # fmt: skip
    same = kt.simulate(system, q, times=found.t, control=control)
    assert_close(found.q, same.q, 1e-9, "the motion")
    assert np.abs(found.q[-1] - q).max() > 0.01


def test_unknown_actuated_joints_are_refused_in_python_and_batches():
    """Refuse actuated joints of a floating tree that leave its base without a drive."""
    system = kt.load("hexapod")
    legs = [j.name for j in system.joints[1:]]
    with pytest.raises(
        InputError, match=r"determine 12 of the 18 degrees of freedom of 'hexapod': with them held, 'base"
    ):
        kt.simulate(system, duration=0.1, control=kt.ComputedTorque(1.0, 1.0, kt.Hold([0.0] * 12), actuated=legs))
