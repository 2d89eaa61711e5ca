"""The commands simulate, inverse and run: their output, files and exit status."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

import kinetree as kt
from closed_form_runs import PENDULUM
from command_line import run
from kinetree.simulation.methods.table import METHODS
from tolerance import assert_close
from touching_bodies import leg_start, sticking_leg


def test_simulate_prints_and_writes(tmp_path, capsys):
    """Let an arm fall, read the summary, and find the same run in the file."""
    out = str(tmp_path / "new")
    files = ("--save", "fall.npz", "--replay", "fall.html", "--plot", "--out", out)
    assert run("simulate", "planar_3r", "--duration", "0.5", "--q0", "-1, pi/4, 0", *files) == 0
    text = capsys.readouterr().out
    assert "planar_3r: 1001 samples to 0.5 s\nmethod dop853 (rtol = 1e-08, atol = 1e-10), " in text
    assert "\nstatus: finished\nenergy error: " in text
    assert re.search(r"^q.joint2 +0.785398 +\S+ +\S+ +\S+ +rad$", text, re.MULTILINE)
    names = ["fall.npz", "fall.html", "planar_3r.png"]
    assert text.endswith("\nFiles\n" + "".join(f"{tmp_path / 'new' / name}\n" for name in names))
    saved = kt.read_trajectory(tmp_path / "new" / "fall.npz")
    again = kt.simulate(kt.load("planar_3r"), [-1, np.pi / 4, 0], duration=0.5)
    assert saved.q.tobytes() == again.q.tobytes()
    assert (tmp_path / "new" / "planar_3r.png").read_bytes().startswith(b"\x89PNG")


def test_simulate_closes_the_loops(capsys):
    """Set a crank and its velocity: the other joints follow, and loops stay closed by each method."""
    start = ("simulate", "four_bar", "--set", "crank=0.7", "--speed", "crank=4", "--duration", "0.2")
    for way, gap in (("projection", 1e-12), ("baumgarte=30", 1e-8), ("minimal=crank", 1e-12)):
        assert run(*start, "--loops", way) == 0
        text = capsys.readouterr().out
        found = re.search(r"^loops closed to (\S+) m or rad$", text, re.MULTILINE)
        assert found and float(found[1]) <= gap
        assert re.search(r"^q.crank +0.7 ", text, re.MULTILINE)
        assert re.search(r"^qd.output +1.47328 ", text, re.MULTILINE)


def test_simulate_reports_steps_in_doubt(tmp_path, capsys):
    """Simulate a leg whose inertia leaves time steps no digits: its status names the steps, and the exit is 1."""
    path = tmp_path / "leg.toml"
    kt.save(sticking_leg(1e-12), path)
    start = (
        "--q0",
        ",".join(map(repr, leg_start()[0].tolist())),
        "--qd0",
        ",".join(map(repr, leg_start()[1].tolist())),
    )
    assert run("simulate", str(path), *start, "--duration", "0.1", "--method", "moreau", "--dt", "1e-3") == 1
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(
        r"status: doubtful: in [0-9,]+ steps the contact forces violate Signorini's conditions or Coulomb's", text
    )
    assert "try a smaller dt, or leave out method and dt, so that the run goes from event to event" in text


def test_simulate_sets_joints_of_a_tree(capsys):
    """Set a coordinate and a velocity of an arm by name: the others are neutral and at rest."""
    assert run("simulate", "planar_2r", "--set", "joint1=pi/4", "--speed", "joint2=1", "--duration", "0.1") == 0
    text = capsys.readouterr().out
    for line in (r"q.joint1 +0.785398", r"q.joint2 +0", r"qd.joint1 +0", r"qd.joint2 +1"):
        assert re.search(rf"^{line} ", text, re.MULTILINE)
    assert "loops" not in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--loops", "projection=3"),
            "--loops 'projection=3': only baumgarte has a value (a rate), and minimal (names of joints)",
        ),
        (("--loops", "firm"), "no loops of kind 'firm'; available: projection, baumgarte, minimal"),
        (
            ("--loops", "minimal=crank,output"),
            "not determined by these entries of qd; give as many as the mobility of 1",
        ),
        (("--set", "crank"), "--set 'crank': write joint=value, such as --set crank=pi/4"),
        (("--speed", "crank=x"), "--speed crank: x depends on a parameter"),
        (("--set", "crank=1", "--q0", "0,0,0"), "--q0 and --set: give one of them"),
        (("--speed", "crank=1", "--qd0", "0,0,0"), "--qd0 and --speed: give one of them"),
        (("--q0", "0.3, 0.2, 0.1"), "q0 does not close loop 'pin' (position x): off by 0.106322 m"),
    ],
)
def test_simulate_refuses_what_loops_cannot(options, message, capsys):
    """Give options that do not fit a four-bar, and read the reason."""
    assert run("simulate", "four_bar", "--duration", "0.1", *options) == 2
    assert message in capsys.readouterr().err


def test_inverse_refuses_a_motion_that_opens_loops(tmp_path, capsys):
    """Read which loop opens in a motion of a four-bar; along closed positions read torques with a remark."""
    assert run("inverse", "four_bar", "--cycloid", "--q1", "1,1,1", "--out", str(tmp_path)) == 2
    assert "the motion opens loop 'pin' (position " in capsys.readouterr().err
    bars = kt.load("four_bar")
    angles = np.linspace(0.5, 0.9, 9)
    q = np.array([bars.assemble(hold={"crank": angle}) for angle in angles])
    table = "t,crank,output,coupler\n" + "".join(
        f"{t:g},{','.join(map(repr, row))}\n" for t, row in zip(np.linspace(0, 1, 9), q.tolist(), strict=True)
    )
    (tmp_path / "way.csv").write_text(table)
    assert run("inverse", "four_bar", "--table", str(tmp_path / "way.csv"), "--out", str(tmp_path)) == 0
    assert "These torques drive every joint, and the loops transmit no force" in capsys.readouterr().out


def test_simulate_writes_nothing_unless_asked(tmp_path, monkeypatch, capsys):
    """Take fixed steps from given velocities and find no folder."""
    monkeypatch.chdir(tmp_path)
    assert run("simulate", "planar_3r", "--duration", "0.1", "--dt", "0.01", "--qd0", "1,0,0") == 0
    assert "method rk4 (dt = 0.01), 4,000 evaluations" in capsys.readouterr().out, "a step to every output time"
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_stops_is_written(tmp_path, capsys):
    """Stop a run by too few steps: read the status and the option, find the samples, and get exit status 1."""
    file = tmp_path / "short.toml"
    file.write_text(
        '[experiment]\nmechanism = "planar_3r"\n[run]\nduration = 5.0\nmax_steps = 20\n[output]\nsave = "short.csv"\n'
    )
    assert run("run", str(file), "--out", str(tmp_path)) == 1
    assert "status: stopped: the steps were used up; try a larger max_steps (--max-steps)" in capsys.readouterr().out
    kept = kt.read_trajectory(tmp_path / "short.csv")
    assert 1 < len(kept) < 1001
    assert not kept.finished


def test_without_matplotlib_all_but_the_figure_is_written(tmp_path, capsys, monkeypatch):
    """Run the experiment of a new robot in a base installation: its run and replay are written and listed."""
    monkeypatch.chdir(tmp_path)
    assert run("new", "arm") == 0
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("kinetree.plots.")]:
        monkeypatch.delitem(sys.modules, name)
    capsys.readouterr()
    assert run("run", str(tmp_path / "arm" / "experiment.toml"), "--out", str(tmp_path / "out")) == 2
    text = capsys.readouterr()
    files = [tmp_path / "out" / name for name in ("run.npz", "run.html")]
    assert all(file.stat().st_size > 1000 for file in files)
    assert text.out.rstrip().endswith("\n".join(["Files", *map(str, files)]))
    assert "Figures need the package matplotlib, which is not installed; pip install 'kinetree[plots]'" in text.err


def test_run_prints_the_distance_from_the_reference(tmp_path, capsys):
    """Hold a set point, starting there, and read the distances from it."""
    file = tmp_path / "hold.toml"
    file.write_text(
        '[experiment]\nmechanism = "planar_3r"\ndescription = "Hold still"\n[run]\nduration = 0.2\n'
        '[control]\nkind = "pd_gravity"\nk = 10\nc = 1\nreference = { kind = "hold", q = [0, 0, 0] }\n'
    )
    assert run("run", str(file), "--out", str(tmp_path)) == 0
    text = capsys.readouterr().out
    assert text.startswith("\nHold still\n\nplanar_3r: 1001 samples to 0.2 s\n")
    assert "energy error" not in text, "control does work"
    assert re.search(r"^q.joint1 +\S+ +\S+ +rad$", text.split("Distance from the reference")[1], re.MULTILINE)
    file.write_text(file.read_text().replace("[0, 0, 0] }", '0 }\njoints = ["joint2"]'))
    assert run("run", str(file), "--out", str(tmp_path)) == 0
    assert re.findall(r"^q\S+", capsys.readouterr().out.split("Distance")[1], re.MULTILINE) == ["q.joint2"]


def test_inverse_along_a_cycloid(tmp_path, capsys):
    """Compute the torques of the papers' motion and find them in the file."""
    ends = ("--q0", "0,pi/2,0,0,0,0", "--q1", "pi/3,pi/3,0.1,pi/3,pi/3,pi/3")
    assert run("inverse", "stanford", "--cycloid", *ends, "--samples", "101", "--plot", "--out", str(tmp_path)) == 0
    assert "stanford: torques at 101 times to 10 s" in capsys.readouterr().out
    saved = kt.read_trajectory(tmp_path / "stanford_inverse.csv")
    weight = 9.81 * (4 + 1 + 0.6 + 0.5)  # the load of the third joint at the end, at 60 deg to the vertical
    assert_close(saved["tau"][-1, 2], -weight / 2, 1e-12, "force of joint 3 at rest")
    assert (tmp_path / "stanford_inverse.png").stat().st_size > 1000


def test_inverse_along_a_table(tmp_path, capsys):
    """Take the columns by name, in any order, from a table at rest, and hold the arm."""
    table = tmp_path / "rest.csv"
    table.write_text("t,joint3,joint1,joint2\n" + "".join(f"{t},0.3,0.1,0.2\n" for t in range(4)))
    assert run("inverse", "planar_3r", "--table", str(table), "--save", "hold.npz", "--out", str(tmp_path)) == 0
    assert "torques at 1001 times to 3 s" in capsys.readouterr().out
    arm, saved = kt.load("planar_3r"), kt.read_trajectory(tmp_path / "hold.npz")
    assert_close(saved["tau"][[0, -1]], [arm.gravity_torque([0.1, 0.2, 0.3])] * 2, 1e-12, "gravity")


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ("simulate planar_3r --method moreau --dt 0.1", "give the model tables [[contact]]"),
        ("cycle five_bar --drive left_crank --speed 1", 'run an experiment with [control] kind = "driven" for several'),
        ("export planar_2r --functions control", "needs a controller, which only Python can give"),
        ("simulate four_bar --q0 1,2,3", "set single joints by --set, and the loops determine the others"),
    ],
)
def test_advice_is_for_the_command_line(arguments, advice, capsys):
    """Fail with a remedy that can be typed, or with the reason why it cannot."""
    assert run(*arguments.split()) == 2
    err = capsys.readouterr().err
    assert advice in err and "contacts=[" not in err and "system." not in err and "Driven(" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("simulate stanfrd", "no library mechanism 'stanfrd'; did you mean 'stanford'?"),
        ("simulate stanford --q0 1,2", "--q0 has 2 numbers; give 6: joint1, joint2, joint3, joint4, joint5, joint6"),
        ("simulate planar_3r --qd0 1,2,x", "--qd0: x depends on a parameter; give a plain number here"),
        ("simulate planar_3r --duration -1", "duration is -1.0; expected a positive number of seconds"),
        ("simulate planar_3r --method rk5", "no method 'rk5'; did you mean 'rk4'?"),
        ("simulate planar_3r --method rk4", "rk4 takes fixed steps: give --dt [s]"),
        ("simulate four_bar --q0 1,2,3", "--q0 does not close loop 'pin' (position x): off by -0.0994"),
        (
            "simulate planar_2r --dt 1e-25 --method rk4",
            "--dt is 1e-25 s: the run takes 1e+26 steps, more than --",
        ),
        ("simulate planar_2r --dt 0.1 --method dopri5", "dopri5 chooses its steps: leave --dt out"),
        ("cost planar_2r pose", "pose needs --frame: one of tool, link1, link2, ground"),
        ("equations planar_2r --symbols some", "--symbols is 'some'; expected one of declared, all, none"),
        ("simulate planar_3r --save x.txt", "--save 'x.txt': use a name that ends with .csv, .npz, .parquet, .zarr"),
        ("simulate planar_3r --replay x", "--replay 'x': use a name that ends with .html"),
        (
            "simulate planar_3r -o x.html",
            "--output 'x.html': give a folder, or a file for the run that ends with .csv, .npz, .parquet, .zarr",
        ),
        ("inverse planar_3r", "--cycloid, --table and --path: give one of them"),
        ("inverse planar_3r --cycloid", "--cycloid requires --q1, the position at which the motion ends"),
        ("inverse planar_3r --table t.csv --q0 1", "--q0 and --q1 belong to --cycloid; leave them out with --table"),
        ("inverse planar_3r --table none.csv", "none.csv: the file cannot be read (No such file or directory)"),
        ("inverse space_robot_3r --cycloid --q1 1", "a motion by coordinates cannot act on the joint 'base': a free"),
        ("run none.toml", "none.toml: the file cannot be read (No such file or directory); check the path"),
    ],
)
def test_errors_are_one_line(arguments, message, capsys):
    """Fail with one readable line on stderr and exit status 2."""
    assert run(*arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"kinetree: {message}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("verb", ["simulate", "run"])
def test_help_tells_the_exit_status(verb, capsys):
    """Read the exit statuses of a command in its help."""
    assert run(verb, "--help") == 0
    text = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "Exit status 1 if the run stops early" in text
    assert verb == "run" or all(name in text for name in METHODS)
    assert "2 if an input is wrong" in text


STOPPED = PENDULUM + "limits = { lower = -0.5, upper = 0.5, velocity = 100 }\n"


def test_simulate_takes_parameters_samples_and_steps(tmp_path, capsys):
    """Set a free parameter and the numbers of output times and steps, and find them in the run."""
    file = tmp_path / "pendulum.toml"
    file.write_text(STOPPED)
    start = ("simulate", str(file), "--duration", "0.5", "--set", "hinge=0.4", "--out", str(tmp_path))
    assert run(*start, "--param", "l=0.25", "--samples", "7", "--save", "p.npz") == 0
    saved = kt.read_trajectory(tmp_path / "p.npz")
    assert len(saved) == 7
    assert saved.parameters is not None and saved.parameters.tolist() == [0.25]
    assert "no limit is exceeded\n" in capsys.readouterr().out
    assert run(*start, "--max-steps", "2") == 1
    assert "the steps were used up" in capsys.readouterr().out
    for text, message in (
        ("k=1", "no free parameter 'k'; available: l"),
        ("l", "--param 'l': write NAME=VALUE"),
        ("l=x", "x depends on a parameter"),
    ):
        assert run(*start, "--param", text) == 2
        assert message in capsys.readouterr().err


def test_simulate_mentions_limits_that_are_passed(tmp_path, capsys):
    """Let a pendulum swing beyond its limits and read the limits, the excess and the time."""
    file = tmp_path / "pendulum.toml"
    file.write_text(STOPPED)
    assert run("simulate", str(file), "--duration", "2", "--set", "hinge=0.5", "--speed", "hinge=1") == 0
    text = capsys.readouterr().out
    assert re.search(r"^limit exceeded: hinge: upper limit 0.5 exceeded by \S+ at t = ", text, re.MULTILINE)
    assert re.search(r"^limit exceeded: hinge: lower limit -0.5 exceeded by ", text, re.MULTILINE)


def test_saved_runs_are_drawn_and_replayed(tmp_path, capsys):
    """Save a run, then plot it and write its replay page; give a file that is not a run and read one line."""
    assert run("simulate", "planar_2r", "--duration", "0.1", "--save", "r.npz", "--out", str(tmp_path)) == 0
    capsys.readouterr()
    assert run("plot", str(tmp_path / "r.npz"), "--column", "q.joint2", "-o", str(tmp_path)) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'r.png'}\n"
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    assert run("replay", str(tmp_path / "r.npz"), "-o", str(tmp_path / "page.html")) == 0
    assert (tmp_path / "page.html").read_text().startswith("<!")
    assert run("plot", str(tmp_path / "none.npz")) == 2
    assert "does not exist" in capsys.readouterr().err


def test_inverse_of_driven_joints(tmp_path, capsys):
    """Drive the crank of a four-bar along closed positions: the other torques are zero."""
    bars = kt.load("four_bar")
    t = np.linspace(0.0, 1.0, 41)
    q = np.array([bars.assemble(hold={"crank": 0.7 + 0.2 * x * x}) for x in t])
    names = ",".join(j.name for j in bars.joints)
    rows = "\n".join(",".join(map(repr, map(float, row))) for row in np.column_stack([t, q]))
    (tmp_path / "way.csv").write_text(f"t,{names}\n{rows}\n")
    way = ("inverse", "four_bar", "--table", str(tmp_path / "way.csv"), "--samples", "41", "--out", str(tmp_path))
    assert run(*way, "--actuated", "crank", "--save", "w.npz") == 0
    assert "These torques drive every joint" not in capsys.readouterr().out
    tau = kt.read_trajectory(tmp_path / "w.npz")["tau"]
    assert np.abs(tau[:, 1:]).max() == 0.0
    assert np.abs(tau[:, 0]).min() > 0.01
    assert run(*way) == 0
    assert "--actuated selects the driven joints." in capsys.readouterr().out


def test_inverse_of_driven_joints_along_a_cycloid(tmp_path, capsys):
    """Give the angles of the crank alone: the loops move the others, and its power is that of the whole motion."""
    way = ("inverse", "four_bar", "--cycloid", "--actuated", "crank", "--samples", "21", "--duration", "0.7")
    ends = ("--q0", "0.3", "--q1", "1.7", "--save", "w.npz", "--out", str(tmp_path))
    assert run(*way, *ends) == 0
    found, bars = kt.read_trajectory(tmp_path / "w.npz"), kt.load("four_bar")
    u = found.t / 0.7
    assert_close(found.q[:, 0], 0.3 + 1.4 * (u - np.sin(2 * np.pi * u) / (2 * np.pi)), 1e-12, "crank")
    assert_close(bars.closure_residual(found.q), np.zeros((21, len(bars.closures))), 1e-11, "gap")
    qdd = np.array([bars.consistent_accelerations(q, qd, {"crank": float(a)}) for q, qd, a in zip(
        found.q, found.qd, 1.4 * 2 * np.pi * np.sin(2 * np.pi * u) / 0.49, strict=True)])  # fmt: skip
    every = bars.inverse_dynamics(found.q, found.qd, qdd)
    power = (every * found.qd).sum(axis=1)
    assert_close(found["tau"][:, 0] * found.qd[:, 0], power, 1e-9 * np.abs(power).max(), "power")
    capsys.readouterr()
    assert run(*way, "--q1", "1,2,3", "--out", str(tmp_path)) == 2
    assert capsys.readouterr().err == "kinetree: --q1 has 3 numbers; give 1: crank\n"


def test_inverse_from_a_table_of_the_driving_joint_alone(tmp_path, capsys):
    """Give a table of the crank, and find the torques of the whole motion; one beyond its reach names the time."""
    bars = kt.load("four_bar")
    t = np.linspace(0.0, 1.0, 41)
    rows = "\n".join(f"{x!r},{0.7 + 0.2 * x * x!r},1.5" for x in t.tolist())
    (tmp_path / "crank.csv").write_text(f"t,crank,other\n{rows}\n")
    way = ("inverse", "four_bar", "--samples", "41", "--actuated", "crank", "--out", str(tmp_path))
    assert run(*way, "--table", str(tmp_path / "crank.csv"), "--save", "w.npz") == 0
    found = kt.read_trajectory(tmp_path / "w.npz")
    assert_close(found.q[:, 0], 0.7 + 0.2 * t**2, 1e-14, "crank")
    assert_close(bars.closure_residual(found.q), np.zeros((41, len(bars.closures))), 1e-11, "gap")
    qdd = np.array(
        [bars.consistent_accelerations(q, qd, {"crank": 0.4}) for q, qd in zip(found.q, found.qd, strict=True)]
    )
    tau = bars.inverse_dynamics(found.q, found.qd, qdd, actuated="crank")
    assert_close(found["tau"], tau, 1e-8 * np.abs(tau).max(), "torque of the crank")
    (tmp_path / "far.csv").write_text("t,slider\n0,1.5\n1,2.5\n")
    capsys.readouterr()
    far = ("--table", str(tmp_path / "far.csv"), "--actuated", "slider", "--samples", "11", "--out", str(tmp_path))
    assert run("inverse", "slider_crank", *far) == 2
    assert "at t = 0.6 s of the motion, slider_crank: with slider = 2.1 m held, loop 'pin'" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["run.csv", "run.npz"])
def test_inverse_along_a_saved_run(file, tmp_path, capsys):
    """Compute the torques of a saved fall: none act, up to the error of splines between the samples."""
    to = ("--out", str(tmp_path))
    assert run("simulate", "planar_2r", "--duration", "0.3", "--q0", "0.3,-0.2", "--save", file, *to) == 0
    assert run("inverse", "planar_2r", "--table", str(tmp_path / file), "--save", "w.npz", *to) == 0
    found, arm = kt.read_trajectory(tmp_path / "w.npz"), kt.load("planar_2r")
    weight = np.abs(arm.gravity_torque(found.q)).max()
    assert np.abs(found["tau"]).max() < 2e-4 * weight  # 5e-5, by the spline's accelerations in the last interval
    capsys.readouterr()
    assert run("inverse", "planar_3r", "--table", str(tmp_path / file), *to) == 2
    message = "has the coordinates q.joint1, q.joint2; give a single run with q.joint1, q.joint2, q.joint3\n"
    assert capsys.readouterr().err == f"kinetree: {tmp_path / file}: {message}"


def test_fixed_steps_may_be_many(capsys):
    """Take more than a million fixed steps without an option that allows them."""
    assert run("simulate", "planar_2r", "--duration", "0.0110001", "--dt", "1e-8", "--samples", "2") == 0
    assert "status: finished" in capsys.readouterr().out


def test_simulate_tells_how_a_drone_floats(tmp_path, capsys):
    """Refuse a URDF without joints on a fixed base, with the option that lets it float; then let it fall."""
    file = tmp_path / "drone.urdf"
    moments = 'ixx="0.02" iyy="0.03" izz="0.04" ixy="0" iyz="0" ixz="0"'
    inertial = f'<inertial><mass value="1.5"/><inertia {moments}/></inertial>'
    file.write_text(f'<robot name="drone"><link name="frame">{inertial}</link></robot>')
    assert run("simulate", str(file), "--duration", "0.1") == 2
    assert capsys.readouterr().err == (
        "kinetree: 'drone' cannot move: it has no degrees of freedom; add a joint, or let the root link of a URDF "
        'float: base="free" (command line: --base free)\n'
    )
    assert run("simulate", str(file), "--duration", "0.1", "--base", "free") == 0
