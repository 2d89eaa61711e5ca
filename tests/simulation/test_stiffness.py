"""Stiff runs: detected by `auto`, but not for a method given by name."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.simulation.engines import native
from tolerance import assert_close

START = ([0.3, 0.4], [1.0, -0.7])


def hard(*damping: float) -> list[kt.JointDamper]:
    """Return dampers of two joints."""
    return [kt.JointDamper(f"joint{k + 1}", c) for k, c in enumerate(damping)]


def test_auto_takes_a_native_method_for_a_stiff_run():
    """Damp an arm hard, and find the run of rodas5p, with its evaluations."""
    arm = kt.load("planar_2r")
    run = kt.simulate(arm, *START, duration=2.0, forces=hard(3e4, 1e4), progress=False)
    named = kt.simulate(arm, *START, duration=2.0, forces=hard(3e4, 1e4), method="rodas5p", progress=False)
    assert (run.method, run.status) == ("rodas5p", "finished")
    assert run.evaluations == named.evaluations < 5000
    assert_close(run.q, named.q, 1e-15, "q")


def test_auto_takes_radau_for_long_rates_and_needs_no_casadi(monkeypatch):
    """Damp an arm hard, with rates that count as too long for an exact Jacobian: the states are those of rodas5p."""
    arm = kt.load("planar_2r")
    exact = kt.simulate(arm, *START, duration=2.0, forces=hard(3e4, 1e4), method="rodas5p", rtol=1e-11, progress=False)
    monkeypatch.setattr(native, "LONGEST", 10)
    monkeypatch.setitem(sys.modules, "casadi", None)
    run = kt.simulate(arm, *START, duration=2.0, forces=hard(3e4, 1e4), progress=False)
    assert (run.method, run.status) == ("radau", "finished")
    assert_close(run.q, exact.q, 1e-8, "q")
    message = r"the method bdf .* need the package casadi, which is not installed; pip install 'kinetree\[optimal\]'"
    for call in (
        lambda: kt.simulate(arm, *START, duration=0.1, method="bdf", progress=False),
        lambda: arm.casadi("forward_dynamics"),
        lambda: kt.simulate(arm, *START, duration=0.1, control=kt.FromCasadi(None), progress=False),
    ):
        with pytest.raises(kt.InputError, match=message):
            call()


@everyday.long
def test_steps_that_are_used_up_in_the_first_piece_are_noticed():
    """Damp so hard that the steps are used up at once, and still reach the end."""
    arm = kt.load("planar_2r")
    run = kt.simulate(arm, *START, duration=10.0, forces=hard(3e5, 1e5), max_steps=50_000, progress=False)
    assert (run.method, run.status) == ("rodas5p", "finished")


def test_other_runs_keep_their_method():
    """Keep a method given by name, that of a batch, and that of a run that is not stiff."""
    arm = kt.load("planar_2r")
    named = kt.simulate(
        arm, *START, duration=0.5, forces=hard(3e4, 1e4), method="dopri5", max_steps=5000, progress=False
    )
    assert named.method == "dopri5"
    assert 'or method="rodas5p" (--method rodas5p) where it is stiff' in named.status
    batch = kt.simulate(arm, [START[0]] * 2, duration=0.5, forces=hard(3e4, 1e4), max_steps=5000, progress=False)
    assert batch.method == "dop853"
    assert kt.simulate(arm, *START, duration=5.0, rtol=1e-12, progress=False).method == "dop853"


@pytest.mark.parametrize("damping", [3e4, 1e6])
def test_output_times_do_not_choose_the_method(damping):
    """Damp a pendulum hard, and find one method for 2 to 15 output times, and for many."""
    pendulum, forces = kt.load("pendulum"), [kt.JointDamper("pin", damping)]
    methods = {}
    for count in (2, 5, 7, 9, 11, 13, 14, 15, 300):
        run = kt.simulate(
            pendulum, [0.3], [1.0], times=np.linspace(0.0, 10.0, count), forces=forces, max_steps=30_000, progress=False
        )
        methods[count] = run.method, run.status
    assert set(methods.values()) == {("rodas5p", "finished")}, methods


def test_output_times_do_not_choose_the_method_of_other_mechanisms():
    """Find one method for an arm that is stiff only once it is fast, and for one that never is."""
    arm = kt.load("planar_2r")
    damped = [kt.TorqueFunction(lambda t, q, qd: [-1e6 * t * t * t * qd[0], -3e4 * qd[1]])]
    soft = hard(0.3, 0.2)
    for forces, control, expected in (((), damped[0], "rodas5p"), (soft, None, "dop853")):
        for count in (3, 8, 14, 70):
            times = np.linspace(0.0, 4.0, count)
            run = kt.simulate(arm, *START, times=times, forces=forces, control=control, progress=False)
            assert (run.method, run.status) == (expected, "finished"), count


@pytest.mark.parametrize(("method", "limit"), [("rk4", 2.78), ("euler", 2.0), ("midpoint", 2.0), ("gauss", 3.4)])
def test_a_state_that_leaves_the_finite_numbers_names_the_step(method, limit):
    """Damp an arm so hard that fixed steps grow without bounds, and find the step that the hint names."""
    arm, forces = kt.load("planar_2r"), hard(3e4, 1e4)
    rate = np.linalg.eigvals(np.linalg.solve(arm.inertia_matrix(START[0]), np.diag([3e4, 1e4]))).max()
    run = kt.simulate(arm, *START, duration=1.0, forces=forces, method=method, dt=1e-2)
    assert "the state left the finite numbers; the last good state is at t = " in run.status
    hint = re.search(
        rf"at t = 0 s the motion has rates of (\S+) 1/s, for which {method} needs steps below (\S+) s", run.status
    )
    assert hint, run.status
    assert 'try a smaller dt, or method="rodas5p" for stiff systems' in run.status
    assert_close(float(hint[1]) / rate, 1.0, 0.1, "rates")
    assert_close(float(hint[2]) * rate / limit, 1.0, 0.1, "step")
    fine = kt.simulate(
        arm, *START, duration=100 * float(hint[2]), forces=forces, method=method, dt=0.5 * float(hint[2])
    )
    assert fine.status == "finished"
