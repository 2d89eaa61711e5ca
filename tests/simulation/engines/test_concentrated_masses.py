"""A leg with almost all mass at its upper end, whose foot sticks: both engines, all units, and steps in doubt."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import everyday
import kinetree as kt
from kinetree.simulation.engines import time_stepping
from tolerance import assert_close
from touching_bodies import LEG_MASS, LEG_START, G, leg_start, sticking_leg

END = 0.4
"""The duration [s]."""
SMALL = 1e-12
"""A mass moment of inertia for which time steps have no digits left [kg m^2]."""


def pendulum(inertia: float) -> float:
    """Return the angle at the end of a pendulum that turns about the foot."""
    rate = LEG_MASS * G / (LEG_MASS + inertia)
    found = solve_ivp(
        lambda t, y: (y[1], rate * np.sin(y[0])), (0.0, END), LEG_START, method="DOP853", rtol=1e-13, atol=1e-14
    )
    return float(found.y[0, -1])


@pytest.mark.parametrize("inertia", [1e-1, 1e-4, 3e-5, 1e-7, 1e-9])
def test_a_foot_that_sticks_is_a_pivot(inertia) -> None:
    """Turn a leg about its foot with both engines, and compare the angle with that of a pendulum."""
    system, (q, qd), exact = sticking_leg(inertia), leg_start(), pendulum(inertia)
    run = kt.simulate(system, q, qd, times=[0.0, END])
    assert run.status == "finished"
    assert_close(run.q[-1, 2], exact, 1e-11 + 1e-17 / inertia, "angle from event to event [rad]")
    errors = []
    for dt in (1e-3, 5e-4):
        stepped = kt.simulate(system, q, qd, times=[0.0, 0.13, END], method="moreau", dt=dt)
        assert stepped.status == "finished" and not stepped.contact.doubtful_steps
        assert max(stepped.contact.residuals.values()) < 1e-10
        errors.append(stepped.q[-1, 2] - exact)
    assert abs(errors[0]) < 1e-4
    assert 1.8 < errors[0] / errors[1] < 4.3  # of the first or second order, as for other inertias


@everyday.long
@pytest.mark.parametrize("inertia", [3e-5, 1e-7, 1e-9])
def test_loops_over_contacts_keep_a_foot_in_place(inertia, monkeypatch) -> None:
    """Turn the leg by the code for many contacts, which has loops over them, and find the same angle."""
    system, (q, qd) = sticking_leg(inertia), leg_start()
    found = []
    for few in (time_stepping.FEW, 0):
        monkeypatch.setattr(time_stepping, "FEW", few)
        run = kt.simulate(kt.System(system.mechanism), q, qd, times=[0.0, END], method="moreau", dt=1e-3)
        assert run.status == "finished" and not run.contact.doubtful_steps
        found.append(run.q[-1, 2])
    assert_close(found[1], found[0], 1e-9 + 1e-16 / inertia, "angle by loops [rad]")


@everyday.long
@pytest.mark.parametrize("units", [(1e-6, 1.0, 1.0), (1.0, 1e6, 1.0), (3.7e4, 2.3e-8, 0.013)])
@pytest.mark.parametrize("inertia", [3e-5, SMALL])
def test_units_do_not_change_the_verdict(units, inertia) -> None:
    """Give the leg in micrometers or kilotons, and find the same angle, residual and status from both engines."""
    time = units[2]
    for more in ({}, {"method": "moreau", "dt": 1e-3}):
        if inertia == SMALL and not more:
            continue
        scaled = {} if not more else {"method": "moreau", "dt": 1e-3 / time}
        expected = kt.simulate(sticking_leg(inertia), *leg_start(), times=[0.0, END], **more)
        run = kt.simulate(
            sticking_leg(inertia, units=units), *leg_start(units=units), times=[0.0, END / time], **scaled
        )
        assert run.finished == expected.finished == (inertia != SMALL)
        assert bool(run.contact.doubtful_steps) == (inertia == SMALL)
        if run.finished:
            assert_close(run.q[-1, 2], expected.q[-1, 2], 1e-8, "angle in other units [rad]")


def test_steps_in_doubt_are_in_the_status() -> None:
    """Lose the friction of a leg with hardly any inertia, and find it in the status, its repr, files and summaries."""
    q, qd = leg_start()
    run = kt.simulate(sticking_leg(SMALL), q, qd, times=[0.0, 0.1, END], method="moreau", dt=1e-3)
    (steps,) = run.contact.doubtful_steps
    assert not run.finished
    assert steps.run == 0 and 100 < steps.steps <= 400 and steps.residual > 0.1 and steps.bound == 1e-9
    assert 0.0 < steps.t <= END
    assert run.status == (
        f"doubtful: in {steps.steps} steps the contact forces violate Signorini's conditions or Coulomb's law, the "
        f"most at t = {steps.t:.9g} s with a residual of {steps.residual:.3g}, where 1e-09 is allowed; try a smaller "
        "dt, or leave out method and dt, so that the run goes from event to event"
    )
    assert run.failures == {0: run.status.removeprefix("doubtful: ")}
    assert run.status in repr(run) and f"status: {run.status}" in run.summary()


def test_steps_in_doubt_of_a_batch_are_of_their_run(tmp_path) -> None:
    """Simulate a leg that sticks and one in flight, and find the doubts of the first alone, also from a file."""
    q, qd = leg_start()
    high = np.array([q, q + np.array([0.0, 5.0, 0.0])])
    run = kt.simulate(sticking_leg(SMALL), high, np.array([qd, qd]), times=[0.0, END], method="moreau", dt=1e-3)
    assert [x.run for x in run.contact.doubtful_steps] == [0] == list(run.failures)
    assert run.status.endswith("event to event (run 0; 1 runs in all)")
    again = kt.read_trajectory(run.save(tmp_path / "run.npz"))
    assert again.status == run.status and again.contact.doubtful_steps == run.contact.doubtful_steps


def test_steps_before_an_event_are_not_in_doubt() -> None:
    """Stop a run before its foot touches, and find no doubt about the steps that follow."""
    q, qd = leg_start()
    q[1] += 0.05
    stop = kt.Event(lambda now: now.t - 0.01, name="early", stop=True)
    run = kt.simulate(sticking_leg(SMALL), q, qd, times=[0.0, 0.02, END], method="moreau", dt=1e-3, events=stop)
    assert run.status.startswith("stopped: event early") and "doubtful" not in run.status


def test_studies_do_not_measure_runs_in_doubt() -> None:
    """Vary the angle of a leg that loses its friction, and find its runs failed with the reason."""
    q, qd = leg_start()
    options = {"q0": q, "qd0": qd, "times": [0.0, 0.05, 0.1], "method": "moreau", "dt": 1e-3}
    over = {"qd.turn": kt.grid(0.3, 0.4, 2)}
    study = kt.study(sticking_leg(SMALL), over, simulate=options, measures={"last": "at_end q.turn"}, progress=False)
    assert not study.finished.any() and np.isnan(study.measures["last"]).all()
    assert "the contact forces violate Signorini's conditions" in str(study.failed[0])
