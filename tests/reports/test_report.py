"""Load reports as a whole: words, tables, files, selections, and runs that are not whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_form_runs import batch, swinging
from kinetree._support.tables import figure
from kinetree.simulation.outcomes import Ending, Endings, Outcome
from loaded_runs import SPEED, spinning
from tolerance import assert_close


def test_the_summary_is_in_plain_words():
    """Read peak, instant, continuous torque, speed and bearing load of a pendulum in sentences."""
    report = kt.load_report(spinning(401), thermal_time=10.0)
    d = report.drive("hinge")
    first, second = report.words
    expected = f"hinge needs {abs(d.peak.value):.2f} N m at most, at {d.peak.t:.4g} s, and {d.continuous:.2f} N m"
    assert first.startswith(f"{expected} continuously (RMS), or ")
    assert f"It turns at up to {SPEED:.2f} rad/s (29.6 rpm) and delivers up to" in first
    assert second.startswith("The largest bearing force is ")
    assert str(report).count("\n") > 6


def test_tables_as_text_csv_and_frames(tmp_path):
    """Find the same numbers in all forms of a table, with units in the headings."""
    report = kt.load_report(kt.load("four_bar").cycle("crank", speed=5.0, samples=37))
    frame = report.to_dataframe()
    assert list(frame["drive"]) == ["crank", "output", "coupler"]
    assert_close(frame["peak power [W]"][0], report.drive("crank").peak_power.value, 0.0, "peak power")
    assert "peak power at [s]" in frame
    files = report.to_csv(tmp_path / "tables")
    assert [f.name for f in files] == ["drives.csv", "bearings.csv", "causes.csv", "energy.csv"]
    head, first = (tmp_path / "tables" / "bearings.csv").read_text().splitlines()[:2]
    assert head.startswith("joint,sort,kind,radial peak [N],at [s],radial RMS [N]")
    assert float(first.split(",")[3]) == report.bearing("crank").peaks["radial"].value
    (one,) = report.to_csv(tmp_path / "energy.csv", "energy")
    assert one.read_text().startswith("energy,value [J]\ndelivered by the drives,")
    assert report.table("bearings").splitlines()[0].startswith("joint")
    with pytest.raises(kt.UnknownNameError, match="no table 'bearing'; did you mean 'bearings'"):
        report.table("bearing")


def test_joints_are_selected_by_name():
    """Report one joint and one loop, and refuse a name that does not exist."""
    run = kt.load("four_bar").cycle("crank", speed=5.0, samples=37)
    report = kt.load_report(run, joints=["crank", "pin"])
    assert [d.name for d in report.drives] == ["crank"]
    assert [b.name for b in report.bearings] == ["crank", "pin"]
    assert_close(report.energy.delivered, kt.load_report(run).energy.delivered, 0.0, "energy of the whole run")
    with pytest.raises(kt.UnknownNameError, match="no joint or loop 'crnk'; did you mean 'crank'"):
        kt.load_report(run, joints="crnk")
    with pytest.raises(kt.UnknownNameError, match="no drive 'pin'; available: crank"):
        report.drive("pin")


def test_a_run_of_one_sample():
    """Report a single instant: RMS values are the values, energies are zero."""
    report = kt.load_report(spinning(1))
    d = report.drive("hinge")
    assert d.continuous == abs(d.peak.value) > 0.0
    assert d.delivered == d.regenerated == 0.0
    assert_close(d.mean_power, d.power[0], 0.0, "power")
    assert report.words[0] == "The run has a single instant, t = 0 s: RMS values equal the peaks, energies are zero."


def test_a_run_that_ended_early():
    """Report the finite part of a run that failed, with its status."""
    run = spinning(41)
    q, torque = np.array(run.q), np.array(run.torque)
    q[30:] = np.nan
    torque[29:] = np.nan
    stopped = replace(
        run, q=q, torque=torque, control=torque, endings=Endings(whole=Ending(Outcome.STOPPED, "the joint broke"))
    )
    report = kt.load_report(stopped)
    assert len(report.t) == 29
    assert report.words[0].startswith(
        "The run ended early (stopped: the joint broke). All figures are of the part up to"
    )
    q[:] = np.nan
    with pytest.raises(kt.InputError, match="the run has no sample with finite numbers"):
        kt.load_report(replace(run, q=q))


def test_what_is_no_run_is_refused():
    """Refuse batches, mechanisms, and factors that are not positive."""
    with pytest.raises(kt.InputError, match=r"the batch has shape \(3,\); choose one of its runs with run\(i\)"):
        kt.load_report(batch())
    with pytest.raises(kt.InputError, match="a load report takes a run"):
        kt.load_report(kt.load("four_bar"))  # type: ignore[arg-type]
    for option in ("safety", "thermal_time"):
        with pytest.raises(kt.InputError, match=f"{option} is -1; give more than zero"):
            kt.load_report(spinning(11), **{option: -1})
    with pytest.raises(kt.InputError, match="a load report takes SpringDamper and LinearActuator"):
        kt.load_report(spinning(11), forces=[kt.JointDamper("hinge", 1.0)])


def test_a_run_without_drives_has_bearings():
    """Report a falling arm without torques."""
    report = kt.load_report(swinging("stanford"))
    assert report.driven == ()
    assert "No joint is driven in this run: no drive exerts a force or torque." in report.words
    assert len(report.bearings) == 6


@everyday.long
def test_springs_without_stiffness_need_no_note():
    """Report a press whose spring has no stiffness: nothing is left out."""
    report = kt.load_report(kt.load("press").cycle("main_bearing", speed=6.0, samples=37))
    assert report.notes == ()
    assert report.element("spring").peak.value == 0.0


def test_given_linear_actuators_are_listed():
    """List an actuator that was given to simulate, by its force as a function of time."""
    push = kt.LinearActuator("ground", "bob", (0.3, 0.0, 0.4), (0.1, 0.0, 0.0), force=lambda t: 3.0 + 2.0 * t)
    report = kt.load_report(spinning(51), forces=[push])
    assert_close(report.element("LinearActuator 1").force, 3.0 + 2.0 * report.t, 1e-14, "force")


@pytest.mark.parametrize(
    ("x", "text"),
    [(0.0, "0"), (12.3456, "12.35"), (-0.00123456, "-0.001235"), (123456.0, "123456"), (4.2e-9, "4.200e-09"),
     (np.inf, "no limit")],
)  # fmt: skip
def test_numbers_have_four_digits(x, text):
    """Print numbers of all sizes."""
    assert figure(x) == text
