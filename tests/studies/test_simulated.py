"""Studies by simulation: starts and parameters in batches against single runs."""

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.simulation.outcomes import Outcome
from kinetree.studies.plan import StudyOptions, plan_of
from press import press
from tolerance import assert_close


def test_starts_and_parameters_vary_together():
    """Compare runs of a study with single runs from assembled starts."""
    system = press()
    over = {"r": kt.grid([0.05, 0.07]), "q.main": kt.grid([0.4, 1.1]), "qd.main": kt.grid([2.0])}
    plan = plan_of(
        system, over, {"end": "at_end q.main"}, StudyOptions(simulate={"duration": 0.2, "method": "rk4", "dt": 1e-3}),
    )  # fmt: skip
    values = plan.space.values(0, 4)
    found = plan.evaluation.evaluate(values)
    for n in range(4):
        own = {"r": values["r"][n]}
        q = system.assemble(hold={"main": values["q.main"][n]}, parameters=own)
        qd = system.consistent_speeds(q, {"main": 2.0}, parameters=own)
        one = kt.simulate(system, q, qd, duration=0.2, method="rk4", dt=1e-3, parameters=own)
        assert_close(found.run.q[n], one.q, 1e-9, "positions of a run")
        assert_close(found.run.qd[n], one.qd, 1e-8, "velocities of a run")


def test_runs_that_stop_keep_status_and_reason():
    """Report the runs of a batch that left the finite numbers, and keep the others."""
    arm = kt.load("planar_2r")

    def blow_up(t, now):
        return (0.0, now.qd[0] * now.qd[0] * now.qd[0] * 1e3, 0.0)

    body = arm.bodies[-1].name
    plan = plan_of(
        arm, {"qd.joint1": kt.grid([0.0, 50.0])}, {"end": "at_end q.joint1"},
        StudyOptions(simulate={
            "duration": 0.5, "method": "rk4", "dt": 1e-2, "forces": [kt.ExternalWrench(body, force=blow_up)]
        }),
    )  # fmt: skip
    found = plan.evaluation.evaluate(plan.space.values(0, 2))
    assert found.status[1] == Outcome.LOST
    assert "left the finite numbers" in found.reasons[1]
    assert 0.0 <= found.failed_at[1] < 0.5


@everyday.long
def test_driven_joints_start_where_their_references_do():
    """Simulate designs with a driven crank, each closed at the start."""
    system = press()
    motion = kt.Driven("main", kt.Hold(0.7, speed=9.0))
    plan = plan_of(
        system, {"r": kt.grid([0.05, 0.07])}, {"peak": "peak control.main"},
        StudyOptions(simulate={"duration": 0.3, "control": motion}),
    )  # fmt: skip
    found = plan.evaluation.evaluate(plan.space.values(0, 2))
    one = kt.simulate(system, duration=0.3, control=motion, parameters={"r": 0.07})
    assert_close(found.run["control"][1], one["control"], 1e-6 * np.abs(one["control"]).max(), "torques of the drive")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (3.0, "simulate is 3.0; give options of simulate"),
        ({"duration": 1.0, "treads": 3}, "no option of simulate in a study 'treads'; did you mean 'forces'?"),
        ({}, "duration and times: give one of them"),
        ({"duration": 1.0, "q0": np.zeros((2, 2))}, "q0 and qd0 of a study are one state"),
    ],
)
def test_impossible_options_are_refused(options, message):
    """Refuse unknown options and batches of starts."""
    with pytest.raises(kt.KinetreeError) as caught:
        plan_of(
            kt.load("planar_2r"),
            {"q.joint1": kt.grid([0.1])},
            {"end": "at_end q.joint1"},
            StudyOptions(simulate=options),
        )
    assert message.split(";")[0] in str(caught.value)
