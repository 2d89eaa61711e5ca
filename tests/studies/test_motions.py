"""Studies along motions: states, torques and loads of many designs against runs one by one."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.simulation.outcomes import Outcome
from kinetree.studies.plan import StudyOptions, plan_of
from kinetree.studies.space import depends_on_parameters
from press import press
from tolerance import assert_close

MOTION = {"main": kt.Cycloid(0.3, 5.1, 0.7)}


def outcome(system, values, **options):
    over = {name: kt.grid(x) for name, x in values.items()}
    options = {"motion": MOTION, "duration": 0.7, "steps": 60} | options
    plan = plan_of(system, {name: kt.grid([1.0]) for name in over}, {"x": "peak control.main"}, StudyOptions(**options))
    return plan.evaluation.evaluate({name: np.array(x) for name, x in values.items()})


def test_parameters_of_loops_are_found_in_their_equations():
    """Tell parameters that are in equations of loops from others."""
    system = press()
    assert depends_on_parameters(system, (1,))
    assert not depends_on_parameters(system, (0, 2))


def test_few_samples_are_some_of_many():
    """Follow the loops between samples that are far apart, with cranks up to nearly the length of the rod."""
    values = {"r": [0.031, 0.14, 0.243]}
    few, many = (outcome(press(), values, steps=n).run for n in (4, 120))
    for name in ("q", "qd", "qdd", "control"):
        assert_close(few[name], many[name][:, ::30], 1e-9 * np.abs(many[name]).max(), f"{name} of a few samples")


def test_designs_that_stop_closing_have_an_instant():
    """Lose a crank longer than the rod where the rod is across the guide, and keep the other designs."""
    found = outcome(press(), {"r": [0.05, 0.29, 0.083]}, motion={"main": kt.Hold(0.3, speed=2.0)})
    assert found.rows.tolist() == [0, 2]
    assert found.status.tolist() == [Outcome.FINISHED, Outcome.OPEN, Outcome.FINISHED]
    reach = (np.arcsin(0.25 / 0.29) - 0.3) / 2.0
    assert reach <= found.failed_at[1] < reach + 0.7 / 60 + 1e-9
    assert np.isnan(found.failed_at[[0, 2]]).all()


def test_driven_joints_at_rest_move_nothing():
    """Find velocities and accelerations that are exactly zero while the drive rests."""
    run = outcome(press(), {"r": [0.05, 0.083]}, motion={"main": kt.Hold(0.7)}).run
    assert not run["qd"].any() and not run["qdd"].any()


@pytest.mark.parametrize("values", [{"m": [0.0, 9.1], "k": [100.0, 900.0]}, {"r": [0.05, 0.083], "k": [100.0, 900.0]}])
def test_designs_along_a_motion_equal_simulated_ones(values):
    """Compare states, accelerations and drive torques of designs with driven runs of each."""
    system = press()
    run = outcome(system, values).run
    for n in range(2):
        own = {name: x[n] for name, x in values.items()}
        one = kt.simulate(system, times=run.t, control=kt.Driven(MOTION), parameters=own, rtol=1e-10, atol=1e-12)
        assert_close(run.q[n], one.q, 1e-9, "positions of a design")
        assert_close(run.qd[n], one.qd, 1e-8, "velocities of a design")
        for name in ("qdd", "control", "tau"):
            size = np.abs(one[name]).max()
            assert_close(run[name][n], one[name], 1e-8 * size, f"{name} of a design")


@pytest.mark.parametrize("values", [{"m": [0.0, 9.1], "k": [100.0, 900.0]}, {"r": [0.05, 0.083], "k": [100.0, 900.0]}])
def test_loads_of_designs_equal_those_of_single_states(values):
    """Compare the reactions of designs with those that the same states have one by one."""
    run = outcome(press(), values).run
    for n in range(2):
        one = run.run(n)
        for name in ("reactions", "loop_reactions"):
            size = np.abs(one["reactions"]).max()
            assert_close(run[name][n], one[name], 1e-9 * size, f"{name} of a design")


def test_other_joints_can_be_actuated():
    """Make the motion of the crank by a force at the guide, equal in power."""
    values = {"r": [0.05, 0.083], "k": [100.0, 900.0]}
    system = press()
    short = {"motion": {"main": kt.Cycloid(0.4, 1.9, 0.7)}}
    direct, other = outcome(system, values, **short).run, outcome(system, values, actuated="guide", **short).run
    power = direct["control.main"] * direct["qd.main"]
    assert_close(other["control.guide"] * other["qd.guide"], power, 1e-8 * np.abs(power).max(), "power of the drive")
    assert not other["control.main"].any()


def test_a_tree_follows_one_reference_for_all_joints():
    """Compare torques of an arm along a motion with its inverse dynamics."""
    arm = kt.load("planar_3r")
    reference = kt.Cosine([0.3, -0.8, 0.5], [2.0, 3.1, 1.3])
    times = np.linspace(0.0, 1.0, 23)
    plan = plan_of(arm, {"q.joint1": kt.grid([0.0])}, {"x": "peak q.joint1"}, StudyOptions(simulate={"duration": 1.0}))
    assert plan.evaluation.times[-1] == 1.0
    names = [p.name for p in arm.mechanism.free_parameters]
    assert names == []
    from kinetree.studies.motions import along_motion
    from kinetree.studies.space import quantities

    along = along_motion(
        arm, reference, times, None, quantities(arm.mechanism, ()), passive=True, forces=(), actuated=None
    )  # fmt: skip
    run = along.run(None, 1)
    tau = arm.inverse_dynamics(run.q[0], run.qd[0], run["qdd"][0])
    assert_close(run["control"][0], tau, 1e-12 * np.abs(tau).max(), "torques along a motion")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"motion": {"main": kt.Hold(0.3), "guide": kt.Hold(0.3)}}, "the loops cannot close"),
        ({"motion": {"shaft": kt.Hold(0.3)}}, "Driven: no joint 'shaft'"),
        ({"motion": 3.0}, "motion is 3.0; give references by joint"),
        ({"motion": MOTION, "actuated": ["main", "guide"]}, "2 degrees of freedom are actuated and the motion has 1"),
    ],
)
def test_impossible_motions_are_refused(options, message):
    """Refuse motions of unknown joints, and actuators that do not fit."""
    with pytest.raises(kt.KinetreeError) as caught:
        outcome(press(), {"m": [1.0]}, **options)
    assert message in str(caught.value) or "with the driven joints of t = 0 s and the nominal" in str(caught.value)


def test_a_motion_that_leaves_joints_free_is_refused():
    """Name the count of freedoms where a motion drives too few."""
    arm = kt.load("five_bar")
    with pytest.raises(kt.InputError, match="drives 'left_crank' with 1 of 2 degrees of freedom"):
        from kinetree.studies.motions import along_motion
        from kinetree.studies.space import quantities

        q = arm.assemble()
        motion = {"left_crank": kt.Hold(float(q[0]))}
        along_motion(
            arm, motion, np.linspace(0, 1, 5), None, quantities(arm.mechanism, ()), passive=True, forces=(),
            actuated=None,
        )  # fmt: skip
