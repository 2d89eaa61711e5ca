"""Drives that loops forbid: errors that name the instant and the part."""

from __future__ import annotations

import pytest

import kinetree as kt


def drive(name: str, motions: dict, **options) -> kt.Trajectory:
    """Simulate a closed mechanism of the library with driven joints."""
    return kt.simulate(kt.load(name), duration=1.0, control=kt.Driven(motions), **options)


def test_refuses_drives_that_contradict_each_other():
    """Drive two joints of a mechanism with one degree of freedom, also in agreement at the start."""
    arm = kt.load("four_bar")
    q = dict(zip([j.name for j in arm.joints], arm.assemble(hold={"crank": 0.3}), strict=True))
    with pytest.raises(
        kt.InputError, match=r"the loops move the driven joint 'output' when joint 'crank' moves, at t = 0 s"
    ):
        drive("four_bar", {"crank": kt.Hold(q["crank"], speed=1.0), "output": kt.Hold(q["output"])})
    with pytest.raises(kt.AssemblyError, match=r"with the driven joints of t = 0 s, four_bar: .* stays open by"):
        drive("four_bar", {"crank": kt.Hold(0.3), "output": kt.Hold(float(q["output"]) + 1.0)})


def test_refuses_a_start_that_the_loops_cannot_reach():
    """Start a slider beyond the reach of its rod."""
    with pytest.raises(
        kt.AssemblyError, match=r"with the driven joints of t = 0 s, .*slider = 9 m held.*'pin' stays open"
    ):
        drive("slider_crank", {"slider": kt.Hold(9.0)})


@pytest.mark.parametrize("method", [{}, {"dt": 1e-3}], ids=["dop853", "rk4"])
def test_a_drive_beyond_reach_stops_the_run(method):
    """Pull a slider beyond the reach of its rod: the run keeps its samples and names the time, joint and loop."""
    run = drive("slider_crank", {"slider": kt.Hold(1.8, speed=3.0)}, **method)
    text = "stopped: the loops do not close with the driven joints 'slider' at t = 0.067 s (loop 'pin' by 1 mm): "
    assert run.status.startswith(text)
    assert "the last good state is at t = 0.066" in run.status
    assert 0.0 <= run.t[-1] <= 0.067


def test_refuses_a_joint_at_its_dead_center():
    """Drive a slider from where the crank is aligned with the rod."""
    with pytest.raises(kt.InputError, match=r"the loops do not let the driven joint 'slider' move at t = 0 s"):
        drive("slider_crank", {"slider": kt.Hold(2.0, speed=-0.1)})


def test_refuses_other_ways_to_close_loops():
    """Ask for gaps that decay, which driven joints do not have."""
    with pytest.raises(kt.InputError, match=r"with driven joints, loops are closed by Projection\(\); leave loops out"):
        drive("four_bar", {"crank": kt.Hold(0.3, speed=1.0)}, loops=kt.Baumgarte())
