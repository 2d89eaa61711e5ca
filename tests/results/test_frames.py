"""Runs as data frames."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import kinetree as kt
from closed_form_runs import batch, swinging
from tolerance import assert_close


def test_a_run_is_a_frame_over_time():
    """Find coordinates, velocities and torques by label over time, with their units."""
    pytest.importorskip("pandas")
    run = swinging(torque=np.ones((41, 6)))
    frame = run.to_dataframe()
    assert list(frame.columns) == [f"{name}.joint{k}" for name in ("q", "qd", "tau") for k in range(1, 7)]
    assert frame.index.name == "t"
    assert_close(frame.index.to_numpy(), run.t, 0.0, "t")
    assert_close(frame["qd.joint3"].to_numpy(), run["qd.joint3"], 0.0, "qd")
    assert frame.attrs["units"]["q.joint3"] == "m"
    chosen = run.to_dataframe(["energy", "reactions"])
    assert list(chosen.columns)[:2] == ["energy", "reactions.link1.nx"]
    with pytest.raises(kt.UnknownNameError, match="no column 'torque'"):
        run.to_dataframe(["torque"])


def test_a_batch_is_a_frame_by_run():
    """Find the runs of a batch as the first level of the index."""
    pytest.importorskip("pandas")
    runs = batch()
    frame = runs.to_dataframe(["q", "t"])
    assert frame.index.names == ["run", "t"]
    assert_close(frame.loc[2]["q.joint1"].to_numpy(), runs["q.joint1"][2], 0.0, "q")


def test_a_missing_package_is_named(monkeypatch):
    """Hide pandas and read how to install it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        kt.InputError, match=r"Data frames need the package pandas, .*pip install 'kinetree\[results\]'"
    ):
        swinging().to_dataframe()


def test_a_summary_names_limits_that_are_passed():
    """Read mechanism, status and the limit that is exceeded most, and no limits if all are kept."""
    body = kt.Body("bob", 1.0, (0.0, -1.0, 0.0))
    joint = kt.Joint("pivot", "revolute", "ground", "bob", limits=kt.Limits((), (), (1.5,), (6.0,)))
    system = kt.System(kt.build_mechanism("pendulum", [body], [joint], gravity=(0.0, -9.81, 0.0)))
    push = kt.TorqueFunction(lambda t, q, qd: [10.0])
    lines = kt.simulate(system, [0.1], duration=0.2, control=push).summary().splitlines()
    assert lines[0].startswith("pendulum: 1,001 samples over 0.2 s by dop853, ")
    assert lines[1] == "status: finished"
    assert lines[-1].startswith("2 limits are exceeded; the most by pivot: effort limit 6 exceeded by 4 at t = 0 s")
    calm = kt.simulate(system, [0.1], duration=0.2).summary()
    assert "limit" not in calm
