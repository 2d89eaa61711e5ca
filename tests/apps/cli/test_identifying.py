"""Robots identified from logs by the command line: names of columns, units, signs, gaps, swapped columns."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from command_line import run, words
from kinetree import InputError
from kinetree.analysis.identification.logs import read_log
from strategies import random_mechanism
from tolerance import assert_close

SCRIPT = Path(__file__).parents[3] / "docs" / "robot_log.py"
ARM = kt.load("planar_2r")


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    """Return the log that the page of identification writes."""
    path = tmp_path_factory.mktemp("log") / "log.csv"
    runpy.run_path(str(SCRIPT))["write"](path)
    return path


def test_from_a_log_to_a_model_and_a_report(log, tmp_path, capsys):
    """Identify the arm of a log and find the torques of the real one, its delay, the gap, and a report."""
    assert run("identify", str(log), "--model", "planar_2r", "--gains", "14,9", "-o", str(tmp_path)) == 0
    text = words(capsys.readouterr().out)
    assert "1 gap of up to 0.404 s; the recording is cut there" in text
    assert "torques of joint2 count the other way round than joints of the model; they are reversed" in text
    assert "planar_2r_identified.toml" in text
    assert (tmp_path / "planar_2r_identification.html").read_text().count('<svg class="chart"') == 4
    assert "not in .urdf: armature of joint" in text
    one, other = (kt.load(tmp_path / f"planar_2r_identified{x}") for x in (".toml", ".urdf"))
    assert one.bodies == other.bodies
    assert (tmp_path / "planar_2r_identified.xml").read_text().count("armature=") == 2
    found, real = kt.load(tmp_path / "planar_2r_identified.toml"), runpy.run_path(str(SCRIPT))["real_robot"]()
    q, qd = found.random_state(3, 50)
    tau = real.inverse_dynamics(q, qd, 2.0 * qd[::-1])
    assert_close(found.inverse_dynamics(q, qd, 2.0 * qd[::-1]), tau, 0.03 * np.abs(tau).max(), "torques")


def test_mistakes_of_the_command(log, tmp_path, capsys):
    """Read what is wrong with options, and with a model of another robot; several logs are one set of data."""
    assert run("identify", str(log), "--model", "planar_2r", "--gains", "14", "-o", str(tmp_path)) == 2
    assert "--gains has 1 number; give 2: joint1, joint2" in words(capsys.readouterr().err)
    assert run("identify", str(log), "--model", "planar_3r", "-o", str(tmp_path)) == 2
    assert "no position of 'joint3' among the columns time [s], q1 [deg]" in words(capsys.readouterr().err)


def test_several_logs_and_another_one_for_residuals(log, tmp_path, capsys):
    """Identify from two logs and check on a third one, whose samples are all held out."""
    other = tmp_path / "other.csv"
    runpy.run_path(str(SCRIPT))["write"](other, seed=5)
    logs = [str(log), str(other), "--validation", str(log)]
    assert run("identify", *logs, "--model", "planar_2r", "--gains", "14,9", "-o", str(tmp_path)) == 0
    assert "samples held out" in words(capsys.readouterr().out)


def test_joints_that_stand_still(log, tmp_path, capsys):
    """Identify two joints of an arm of three without columns of the third, and find all of them again."""
    options = ["--lock", "joint3", "--no-delays", "-o", str(tmp_path)]
    assert run("identify", str(log), "--model", "planar_3r", "--gains", "14,9", *options) == 0
    assert "joint2" in words(capsys.readouterr().out)
    again = kt.load(tmp_path / "planar_3r_identified.toml")
    assert [j.kind for j in again.joints] == ["revolute"] * 3
    assert again.nv == 3
    assert run("identify", str(log), "--model", "planar_3r", "--lock", "jaw", "-o", str(tmp_path)) == 2
    assert "no joint 'jaw'" in words(capsys.readouterr().err)


def written(tmp_path: Path, head: str, columns, mark: str = ",") -> Path:
    """Write a table and return its path."""
    path = tmp_path / "log.csv"
    rows = "\n".join(mark.join(f"{x:.9g}" for x in row) for row in np.column_stack(columns))
    path.write_text(f"{head}\n{rows}\n")
    return path


T = np.arange(0.0, 9.0, 0.03)
Q = np.stack([np.sin(1.7 * T), 0.7 * np.cos(2.9 * T) + 0.1], axis=-1)
QD = np.stack([1.7 * np.cos(1.7 * T), -0.7 * 2.9 * np.sin(2.9 * T)], axis=-1)
TAU = ARM.inverse_dynamics(Q, QD, 0.0 * QD)


@pytest.mark.parametrize("head", [
    "time,q1,q2,tau1,tau2", "t,q_0,q_1,effort_0,effort_1",
    "Timestamp,actualPosition[0],actualPosition[1],torque[0],torque[1]",
    "time,joint1.position,joint2.position,joint1.effort,joint2.effort",
    "time_s,pos_joint1,pos_joint2,torque_joint1,torque_joint2",
])  # fmt: skip
def test_names_of_columns(tmp_path, head):
    """Read the same numbers under the names that controllers give."""
    findings: list[str] = []
    found = read_log(written(tmp_path, head, (T, Q, TAU)), ARM, findings)
    assert not findings
    assert_close(found.t, T, 1e-9, "t")
    assert_close(found.q, Q, 1e-8, "q")
    assert_close(found.tau, TAU, 1e-7, "tau")


def test_units_are_recognized(tmp_path):
    """Read milliseconds, degrees by their name and by their size, and semicolons with decimal commas."""
    findings: list[str] = []
    path = written(tmp_path, "time;q1;q2;i1;i2", (1e3 * T, np.degrees(Q) * 9.0, TAU), ";")
    path.write_text(path.read_text().replace(".", ","))
    found = read_log(path, ARM, findings)
    assert_close(found.t, T, 1e-6, "t")
    assert_close(found.q, 9.0 * Q, 1e-7, "q")
    assert found.tau is None
    assert_close(found.current, TAU, 1e-7, "currents")
    assert findings[0] == "log.csv: steps of 30 are taken as milliseconds"
    assert "are taken as degrees; --radians if they are not" in findings[1]
    found = read_log(written(tmp_path, "time,q1 [deg],q2 [deg],tau1,tau2", (T, np.degrees(Q), TAU)), ARM, findings)
    assert_close(found.q, Q, 1e-7, "q")
    assert read_log(path, ARM, findings, degrees=False).q.max() > 50.0


def test_velocities_tell_swapped_columns(tmp_path):
    """Refuse velocities of another joint or of none, and report those in degrees or with the opposite sign."""
    head = "time,q1,q2,qd1,qd2,tau1,tau2"
    with pytest.raises(
        InputError, match="the velocity of 'joint2' is the rate of the position of 'joint1': columns are swap"
    ):
        read_log(written(tmp_path, head, (T, Q, QD[:, ::-1], TAU)), ARM, [])
    noise = np.random.default_rng(1).normal(size=QD.shape)
    with pytest.raises(InputError, match="the velocity of 'joint1' is not the rate of its position"):
        read_log(written(tmp_path, head, (T, Q, noise, TAU)), ARM, [])
    findings: list[str] = []
    read_log(written(tmp_path, head, (T, Q, QD * [1, -1], TAU)), ARM, findings)
    assert findings == ["log.csv: velocities of joint2 have the opposite sign of positions; not used"]
    findings.clear()
    read_log(written(tmp_path, head, (T, Q, np.degrees(QD), TAU)), ARM, findings)
    assert findings == ["log.csv: velocities are in degrees per second, positions in radians"]


def test_rows_out_of_order(tmp_path):
    """Sort rows by time, leave out repeated ones, and keep NaN for what follows."""
    order = np.r_[0:100, 120:140, 100:120, 140:300, 299]
    tau = TAU.copy()
    tau[7, 1] = np.nan
    findings: list[str] = []
    found = read_log(written(tmp_path, "time,q1,q2,tau1,tau2", (T[order], Q[order], tau[order])), ARM, findings)
    assert findings == [
        "log.csv: rows are not in the order of time; they are sorted",
        "log.csv: 1 rows repeat the time of the row before; they are left out",
    ]
    assert_close(found.q, Q, 1e-8, "q")
    assert np.isnan(found.tau[7, 1])


@pytest.mark.parametrize(("head", "message"), [
    ("when,q1,q2,tau1,tau2", "no column of times among when, q1.* or give rate= .--rate 500"),
    ("time,q1,x,tau1,tau2", "no position of 'joint2' among the columns time, q1, x"),
    ("time,q1,q2,a,b", "no torques and no currents among the columns"),
    ("time,q1,q2,tau1,b", "tau of 1 of 2 joints; give the columns of all joints"),
    ("time,q1,q2,q1,tau1", "columns 'q1' and 'q1' are both q of the same joint; rename one"),
    ("time,q1,q2,temp1,tau1", "tau of 1 of 2 joints"),
])  # fmt: skip
def test_headers_that_do_not_do(tmp_path, head, message):
    """Read what is missing in a header, and the remedy."""
    with pytest.raises(InputError, match=message):
        read_log(written(tmp_path, head, (T, Q, TAU)), ARM, [])


def test_files_that_cannot_be_read(tmp_path):
    """Read what is wrong with a file, and with a mechanism that logs do not suit."""
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_log(tmp_path / "none.csv", ARM, [])
    (tmp_path / "short.csv").write_text("time,q1\n")
    with pytest.raises(InputError, match="has 1 lines; a log has a header and a row per time"):
        read_log(tmp_path / "short.csv", ARM, [])
    ball = kt.System(random_mechanism(["spherical"], [-1], 1))
    with pytest.raises(InputError, match="has joints with quaternions"):
        read_log(written(tmp_path, "time,q1", (T, Q[:, 0])), ball, [])


def test_swapped_torques_are_noticed(tmp_path):
    """Swap the columns of torques and find a sentence about it."""
    t = np.arange(0.0, 20.0, 0.005)
    q = np.stack([np.sin(0.7 * t) + 0.3 * np.sin(2.3 * t), 0.7 * np.cos(1.9 * t) + 0.3 * np.sin(3.1 * t)], axis=-1)
    path = written(tmp_path, "time,q1,q2,tau1,tau2", (t, q, ARM.inverse_dynamics(q, 0 * q, 0 * q)[:, ::-1]))
    recording = read_log(path, ARM, [])
    found = kt.identify(ARM, recording, consistent="log-cholesky", signs=True)
    assert any("look for swapped columns" in x for x in found.findings)
