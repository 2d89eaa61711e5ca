"""Trajectory: columns by name, slices, runs of a batch, energy, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_form_runs import PENDULUM, batch, swinging
from kinetree.compiler.lower.build import is_long
from kinetree.results import Trajectory
from kinetree.simulation.outcomes import Ending, Endings, Outcome
from tolerance import assert_close


def test_columns_are_the_systems_functions():
    """Get torques, accelerations, energies, reactions and poses with the bits of single calls."""
    run = swinging(torque=np.ones((41, 6)))
    arm, k = run.system, 17
    q, qd = run.q[k], run.qd[k]
    qdd = arm.forward_dynamics(q, qd, np.ones(6))
    assert np.array_equal(run["tau"][k], np.ones(6))
    assert np.array_equal(run["qdd"][k], qdd)
    assert np.array_equal(run["reactions"][k], arm.reactions(q, qd, qdd))
    assert np.array_equal(run["poses"][k], arm.poses(q))
    assert run["energy"][k] == arm.kinetic_energy(q, qd) + arm.potential_energy(q)
    assert np.array_equal(run["momentum"][k], arm.momentum(q, qd))
    assert np.array_equal(run["center_of_mass"][k], arm.center_of_mass(q))


def test_every_column_has_the_shape_it_says():
    """Compute all columns of a batch and compare their shapes with the list of columns."""
    runs = batch("biped", 2)
    for column in runs.columns:
        lead = (41,) if column.name == "t" else (2, 41)
        assert runs[column.name].shape == (*lead, *column.shape)
        assert len(column.labels) == len(column.units) == int(np.prod(column.shape))


def test_parts_are_views_of_columns():
    """Take single coordinates, wrenches of bodies and poses of bodies and frames by name."""
    run = swinging()
    assert np.array_equal(run["q.joint3"], run.q[:, 2])
    assert np.array_equal(run["reactions.link2"], run["reactions"][:, 1])
    assert np.array_equal(run["reactions.link2.fz"], run["reactions"][:, 1, 5])
    assert np.array_equal(run["poses.link6"], run["poses"][:, 5])
    assert np.array_equal(run["poses.tool"], run.system.pose(run.q, "tool"))
    assert np.array_equal(swinging("biped")["q.base"], swinging("biped").q[:, :7])
    with pytest.raises(kt.UnknownNameError, match=r"no part of column 'poses' 'tol'; did you mean 'tool'\?"):
        run["poses.tol"]


def test_columns_are_computed_once_and_read_only():
    """Get the same array twice, and an error for writing to it or to the states."""
    run = swinging()
    assert run["qdd"] is run["qdd"]
    for array in (run["qdd"], run["tau"], run.q, run.t):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        run.t = run.t  # type: ignore[misc]


def test_known_forces_enter():
    """Use the accelerations and wrenches of the simulation in place of those of the torques alone."""
    run = swinging()
    w = np.zeros((41, 6, 6))
    w[:, 5, 3] = 10.0
    pushed = swinging(wrenches=w)
    arm = run.system
    zero = np.zeros(6)
    assert np.array_equal(pushed["qdd"][3], arm.forward_dynamics(run.q[3], run.qd[3], zero, wrenches=w[3]))
    assert np.array_equal(pushed["reactions"][3], arm.reactions(run.q[3], run.qd[3], pushed["qdd"][3], wrenches=w[3]))
    assert np.array_equal(pushed["wrenches.link6.fx"], w[:, 5, 3])
    assert np.array_equal(swinging(accelerations=7.0 * run.q)["qdd"], 7.0 * run.q)
    with pytest.raises(kt.UnknownNameError, match="no column 'wrenches'"):
        run["wrenches"]


def test_slices_keep_what_belongs_together():
    """Slice samples with a step, and find the same numbers in columns."""
    runs = batch()
    some = runs[10:20:3]
    assert len(some) == 4
    assert np.array_equal(some.t, runs.t[10:20:3])
    assert np.array_equal(some["qdd"], runs["qdd"][:, 10:20:3])
    assert np.array_equal(some.torque, runs.torque[:, 10:20:3])


def test_runs_of_a_batch():
    """Take one run of a batch and iterate over all, with their parameters."""
    runs = batch()
    assert (runs.shape, len(runs)) == ((3,), 41)
    assert np.array_equal(runs.run(1)["qdd"], runs["qdd"][1])
    assert [one.shape for one in runs.runs()] == [(), (), ()]
    assert next(swinging().runs()).shape == ()
    assert repr(runs) == "<Trajectory of 'stanford': 3 runs of 41 samples over 2 s, rk4, finished>"
    with pytest.raises(kt.InputError, match=r"no run 3; the batch has shape \(3,\)"):
        runs.run(3)
    with pytest.raises(kt.InputError, match=r"0 indices are given for a batch of shape \(3,\)"):
        runs.run()
    with pytest.raises(TypeError, match="not iterable"):
        list(runs)


def test_parameters_of_each_run_are_used(tmp_path):
    """Let pendulums of different lengths swing and find the energy of each by hand."""
    (tmp_path / "p.toml").write_text(PENDULUM)
    pendulum = kt.load(tmp_path / "p.toml")
    t = np.linspace(0.0, 1.0, 5)
    q = np.broadcast_to(0.3 * t[:, None], (2, 5, 1))
    lengths = np.array([[0.5], [2.0]])
    runs = Trajectory(pendulum, t, q, np.full((2, 5, 1), 0.3), parameters=lengths)
    expected = 0.5 * 2.0 * lengths**2 * 0.09 - 2.0 * 9.81 * lengths * np.cos(q[..., 0])
    assert_close(runs["energy"], expected, 2e-14, "energy")  # measured 0
    assert np.array_equal(runs.run(1)["energy"], runs["energy"][1])
    with pytest.raises(kt.InputError, match=r"parameters have shape \(3, 1\); expected \[1\] or \[2, 1\]"):
        Trajectory(pendulum, t, q, np.full((2, 5, 1), 0.3), parameters=np.ones((3, 1)))
    with pytest.raises(kt.InputError, match=r"parameters have shape \(1,\); expected none"):
        swinging(parameters=[1.0])


def test_energy_error_does_not_depend_on_the_height():
    """Drop a body exactly and find no drift; add a known drift and find its ratio to the energy in motion."""
    body = kt.Body("b", mass=2.0)
    system = kt.System(kt.build_mechanism("m", [body], [kt.Joint("j", "prismatic", kt.GROUND, "b")]))
    t = np.linspace(0.0, 1.0, 101)[:, None]
    for height in (0.0, 1e4):
        fall = Trajectory(system, t[:, 0], height - 4.905 * t**2, -9.81 * t)
        assert_close(fall.energy_error, 0.0, 1e-10 if height else 1e-14, f"drift from {height:g} m")  # 3e-13, 1e-16
    wrong = Trajectory(system, t[:, 0], -4.905 * t**2, -9.81 * t * 1.01)
    assert_close(wrong.energy_error, (1.01**2 - 1.0) / 1.01**2, 1e-14, "known drift")
    rest = Trajectory(system, t[:, 0], 0.0 * t, 0.0 * t)
    assert rest.energy_error == 0.0


def test_samples_after_a_stop_stay_nan():
    """Stop a run of a batch early and find numbers before, NaN after, and an energy error of the finite samples."""
    runs = batch()
    q = np.array(runs.q)
    q[1, 20:] = np.nan
    stopped = Trajectory(
        runs.system,
        runs.t,
        q,
        runs.qd,
        endings=Endings(whole=Ending(Outcome.STOPPED, "joint2 left its limits at t = 0.95 s")),
    )
    assert not stopped.finished
    assert np.isfinite(stopped["energy"][1, :20]).all()
    assert np.isnan(stopped["energy"][1, 20:]).all()
    assert np.isfinite(stopped.energy_error).all()
    assert "stopped: joint2 left" in repr(stopped)


def test_a_mechanism_that_cannot_move():
    """Make a run without coordinates and find its columns empty or constant."""
    body = kt.Body("b", mass=2.0, com=(0.0, 0.0, 1.0))
    system = kt.System(kt.build_mechanism("m", [body], [kt.Joint("j", "fixed", kt.GROUND, "b")]))
    run = Trajectory(system, [0.0, 1.0], np.zeros((2, 0)), np.zeros((2, 0)))
    assert run["q"].shape == (2, 0)
    assert_close(run["energy"], np.full(2, 2.0 * 9.81), 1e-14)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"t": [0.0, 0.0]}, r"t has shape \(2,\); expected one or more finite times \[nt\] that increase"),
        ({"t": [0.0, np.nan]}, "finite times"),
        ({"t": []}, "one or more"),
        ({"q": np.zeros((2, 5))}, r"q has shape \(2, 5\); expected \(2, 6\)"),
        ({"qd": np.zeros((3, 6))}, r"qd has shape \(3, 6\); expected \(2, 6\)"),
        ({"torque": np.zeros((4, 2, 6))}, r"torque has shape \(4, 2, 6\); expected \(2, 6\)"),
        ({"wrenches": np.zeros((2, 6))}, r"wrenches has shape \(2, 6\); expected \(2, 6, 6\)"),
        ({"q": "no"}, "q is not an array of real numbers"),
        (
            {"options": {"control": print}},
            "options of a run must be plain numbers, texts, lists and tables: .*function",
        ),
    ],
)
def test_what_does_not_fit_is_refused(changed, message):
    """Build runs with one wrong field each and read the field and the reason."""
    fields = {"t": [0.0, 1.0], "q": np.zeros((2, 6)), "qd": np.zeros((2, 6)), **changed}
    with pytest.raises(kt.InputError, match=message):
        Trajectory(kt.load("stanford"), **fields)


def test_an_index_is_refused():
    """Index a run by a number and read what to do."""
    with pytest.raises(kt.InputError, match=r"a run has no item 3; give a column's name or a slice"):
        swinging()[3]  # type: ignore[call-overload]


@everyday.long
def test_reactions_of_a_long_bridge():
    """Compute the reactions at the pinned end and at every joint of a bridge with more links than are unrolled."""
    bridge = kt.rope(2.3, 131, mass_per_metre=0.37, radius=0.01, joint="revolute", ends=("pinned", "pinned"), span=1.9)
    assert is_long(bridge.mechanism)
    run = kt.simulate(bridge, times=[0.0, 0.01], method="implicit_midpoint", dt=1e-3)
    expected = bridge.loads(run.q, run.qd, tau=run["tau"])
    assert_close(run["loop_reactions.end"], expected.at("end"), 1e-9, "end")
    assert_close(run["reactions"], expected.joints, 1e-9, "joints")
    assert np.abs(run["loop_reactions.end.fz"]).min() > 1.0
