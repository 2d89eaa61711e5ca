"""Arrays that are computed at their first use: when, how often, and relative to a run."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_form_runs import swinging
from kinetree.results.columns import is_zeros
from kinetree.simulation import run_states


def driven(**options) -> kt.Trajectory:
    """Return runs of an arm with control, damping and a wrench."""
    arm = kt.load("planar_2r")
    control = kt.PD([3.0, 0.5], [0.5, 0.05], kt.Hold([0.4, -0.3]))
    forces = [kt.JointDamper("joint1", 0.3), kt.ExternalWrench("link2", (0.1, 0.0, 0.0), force=(0.4, 0.2, 0.1))]
    q0 = np.linspace(0.1, 0.8, 8).reshape(4, 2)
    return kt.simulate(arm, q0, **({"duration": 0.5, "control": control, "forces": forces} | options))


def test_an_array_is_computed_once_when_it_is_read():
    """Count the calls of a source over several uses of a field and its column."""
    calls = []

    def source(name: str, run: kt.Trajectory) -> np.ndarray:
        calls.append(name)
        return 2.0 * run.qd

    run = swinging(torque=source)
    assert calls == []
    assert np.array_equal(run["tau"], 2.0 * run.qd)
    assert np.array_equal(run.torque, run["tau"])
    assert calls == ["torque"]
    with pytest.raises(ValueError, match="read-only"):
        run.torque[0] = 1.0


def test_a_run_keeps_states_alone_until_more_is_read():
    """Simulate, take parts, and find no array but those of the states."""
    run = driven()
    for part in (run, run[10:20], run.run(2), run.run(1)[5:]):
        assert [name for name, value in vars(part).items() if isinstance(value, np.ndarray)] == [
            "t",
            "q",
            "qd",
            "reference",
        ]


@pytest.mark.parametrize("block", everyday.some([7, 300, 65_536]))
def test_blocks_do_not_change_the_bits(block, monkeypatch):
    """Compute columns in blocks of any size, of parts, and of single runs, to the same bits."""
    whole = driven()
    expected = {name: getattr(whole, name) for name in run_states.FIELDS}
    monkeypatch.setattr(run_states, "BLOCK", block)
    again = driven()
    for name, values in expected.items():
        assert np.array_equal(getattr(again, name), values)
        assert np.array_equal(getattr(driven()[3:9], name), values[:, 3:9])
        assert np.array_equal(getattr(driven().run(3), name), values[3])


def test_held_torques_are_the_control():
    """Compute the torques of a run with sampled control from the held values, also for a part of the run."""
    law = kt.PD([3.0, 0.5], [0.5, 0.05], kt.Hold([0.4, -0.3]))
    run = driven(control=kt.Sampled(law, rate=50.0))
    damping = np.array([0.3, 0.0])
    part = run[100:200].run(2)
    assert np.array_equal(part.torque, run.torque[2, 100:200])
    assert np.abs(run["tau"] - (run["control"] - damping * run.qd)).max() < 1e-15
    assert len(np.unique(run["control"][0, :-1, 0])) == 25


def test_what_never_acts_takes_no_memory():
    """Find columns of zeros without memory where no wrench, drive or force acts."""
    run = driven(control=None, forces=[])
    assert run.torque is not None and run.wrenches is not None and run.control is not None
    assert is_zeros(run.torque) and is_zeros(run.wrenches) and is_zeros(run.control)
    assert run["wrenches"].shape == (4, 1001, 2, 6)
    assert not is_zeros(np.zeros(3)) and not is_zeros(np.broadcast_to(1.0, (3,)))


def test_replaced_fields_stay_replaced():
    """Remove the wrenches of a run and find the other arrays unchanged."""
    run = driven()
    without = replace(run, wrenches=None)
    assert without.wrenches is None
    assert np.array_equal(without.torque, run.torque)


def test_a_run_can_be_sent_to_another_process():
    """Pickle a run before and after its arrays are used."""
    run = driven()
    for _ in range(2):
        again = pickle.loads(pickle.dumps(run))
        assert np.array_equal(again["tau"], run["tau"])
        assert np.array_equal(again["qdd"], run["qdd"])


def test_other_times_have_what_acted():
    """Resample a run and find torques and control between those of its samples."""
    run = driven()
    middle = run.at((run.t[1:] + run.t[:-1]) / 2.0)
    for name in ("torque", "control", "wrenches"):
        before, after = getattr(run, name)[:, :-1], getattr(run, name)[:, 1:]
        assert np.abs(getattr(middle, name) - (before + after) / 2.0).max() < 1e-14
    assert middle["reference"].shape == (1000, 2)
