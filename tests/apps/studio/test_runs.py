"""Runs in Python for a page: those of the library, with progress, and clouds of many."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.apps.studio.actions.runs import batch, on_floor, run_options, simulate
from kinetree.apps.studio.tabs import Cancelled, Folder, Studio, open_system
from kinetree.apps.walking.legged import quadruped
from kinetree.page.table import free_lengths
from kinetree.simulation.methods.table import METHODS
from kinetree.simulation.options import RunOptions
from tolerance import assert_close

Q, QD = [0.3, -0.7], [0.2, 0.4]


def studio_of(name: str, folder, report=lambda share: None) -> Studio:
    """Return a studio with a mechanism of the library in its tab."""
    studio = Studio(Folder.of(folder), report=report)
    studio.tab.system = kt.load(name)
    return studio


def test_a_run_is_that_of_the_library(tmp_path):
    """Simulate with drives that hold an arm: states and columns are those of kt.simulate, and progress reaches 1."""
    shares: list[float] = []
    studio = studio_of("planar_2r", tmp_path, shares.append)
    gains = {"stiffness": [3.0, 2.0], "damping": [0.4, 0.3], "target": [0.1, 0.9]}
    run = simulate(studio, Q, QD, 0.5, method="dop853", drives=gains)["run"]
    control = kt.PD(gains["stiffness"], gains["damping"], kt.Hold(gains["target"]))
    expected = kt.simulate(kt.load("planar_2r"), Q, QD, times=np.linspace(0, 0.5, 31), method="dop853", control=control)
    assert np.array_equal(run["t"], expected.t)
    assert_close(run["q"], expected.q, 0.0, "positions")
    assert {c["name"] for c in run["columns"]} >= {"q", "qd", "energy"}
    assert run["method"] == "dop853" and shares[-1] == 1.0


def test_a_planned_motion_is_tracked(tmp_path):
    """Simulate with samples of a cycloid as the motion of the drives: it is tracked as that cycloid is."""
    motion = kt.Cycloid(Q, [0.9, -0.4], duration=0.6)
    t = np.linspace(0, 0.6, 41)
    q, qd, qdd = (np.array(x).T.tolist() for x in motion(t))
    drives = {"stiffness": [3.0, 2.0], "damping": [0.4, 0.3], "motion": {"t": t.tolist(), "q": q, "qd": qd, "qdd": qdd}}
    run = simulate(studio_of("planar_2r", tmp_path), Q, QD, 0.8, method="dop853", drives=drives)["run"]
    control = kt.Sum([kt.FeedForward(motion), kt.PD([3.0, 2.0], [0.4, 0.3], motion)])
    expected = kt.simulate(kt.load("planar_2r"), Q, QD, times=np.linspace(0, 0.8, 49), method="dop853", control=control)
    assert_close(run["q"], expected.q, 1e-6, "positions")


@everyday.long
def test_frames_touch_a_floor(tmp_path):
    """Hold the legs of a quadruped: it stands on a floor under its feet, as with the same contacts in the library."""
    robot = quadruped()
    studio = studio_of("quadruped", tmp_path)
    start, rest = list(robot.system.mechanism.neutral), [0.0] * robot.system.nv
    studio.tab.data["first"] = {"q": start}
    nv = robot.system.nv
    gains = {"stiffness": [600.0] * nv, "damping": [12.0] * nv, "target": [0.0] * 6 + list(start[7:])}
    run = simulate(studio, start, rest, 0.3, method="moreau", dt=1e-3, drives=gains, floor=0.7)["run"]
    system = robot.system
    joints = [j.name for j in system.joints[1:]]
    control = kt.PD(600.0, 12.0, kt.Hold(start[7:]), joints=joints)
    times = np.linspace(0, 0.3, 19)
    expected = kt.simulate(
        system, start, times=times, dt=1e-3, method="moreau", control=control, contacts=robot.contacts
    )
    heights = np.array([system.pose(run["q"], f"foot_{side}")[:, 1, 3] for side in "abcd"])
    assert np.abs(heights).max() < 1e-4 and abs(run["q"][-1, 1] - 0.5) < 0.01
    assert_close(run["q"], expected.q, 1e-6, "states; the library's floor is 1e-8 m higher")
    fallen = simulate(studio, start, rest, 0.3, method="rk4", dt=1e-3, drives=gains)["run"]["q"][-1, 1]
    assert_close(fallen, 0.5 - 9.81 * 0.3**2 / 2, 1e-9, "without a floor it falls freely")
    with pytest.raises(kt.InputError, match="the friction of the floor is -1; expected a coefficient from 0 to 10"):
        simulate(studio, start, rest, 0.3, floor=-1)
    with pytest.raises(kt.InputError, match="space_robot_3r: a floor needs gravity, and frames that touch it"):
        on_floor(kt.load("space_robot_3r"), kt.load("space_robot_3r").neutral(), 0.7, {})


def test_constant_torques_act(tmp_path):
    """Simulate under constant torques, in fixed steps."""
    studio = studio_of("planar_2r", tmp_path)
    run = simulate(studio, Q, QD, 0.2, method="rk4", dt=1e-3, drives={"torque": [1.5, -0.5]})["run"]
    control = kt.TorqueFunction(lambda t, q, qd: [1.5, -0.5])
    expected = kt.simulate(
        kt.load("planar_2r"), Q, QD, times=np.linspace(0, 0.2, 13), dt=1e-3, method="rk4", control=control
    )
    assert_close(run["q"], expected.q, 0.0, "positions")


def test_a_run_is_cancelled(tmp_path):
    """Cancel a run at its first report."""

    def report(share: float) -> None:
        raise Cancelled("cancelled")

    with pytest.raises(Cancelled):
        simulate(studio_of("planar_2r", tmp_path, report), Q, QD, 100.0)


def test_a_cloud_has_the_runs_of_its_starts(tmp_path):
    """Compare a run of a cloud with one from the same start; the same seed gives the same cloud."""
    studio = studio_of("planar_2r", tmp_path)
    cloud = batch(studio, Q, QD, 0.3, runs=20, spread=0.05, spread_qd=0.1, samples=4, seed=7)
    assert cloud["points"].shape == (20, 4, 3) and cloud["points"].dtype == np.float32 and cloud["failed"] == 0
    assert np.ptp(cloud["points"][:, -1], axis=0)[:2].min() > 0.01
    again = batch(studio, Q, QD, 0.3, runs=20, spread=0.05, spread_qd=0.1, samples=4, seed=7)
    assert np.array_equal(cloud["points"], again["points"])
    still = batch(studio, Q, QD, 0.3, runs=2, spread=0.0, samples=4)
    arm = kt.load("planar_2r")
    run = kt.simulate(arm, Q, QD, times=cloud["t"], dt=1e-3)
    assert_close(still["q_bands"], np.repeat(run.q.T[:, None], 5, axis=1), 1e-14, "bands without scatter")
    tool = arm.pose(run.q, still["frame"])[:, :3, 3]
    assert_close(still["points"][1], tool, 1e-7, "path, in single precision")
    assert_close(cloud["points"][0], tool, 1e-7, "the first run of a cloud")
    found = np.quantile(cloud["points"], [0.05, 0.95, 0.25, 0.75, 0.5], axis=0).transpose(2, 0, 1)
    assert_close(cloud["point_bands"], found, 1e-6, "bands of the points")


def test_loops_of_a_cloud_are_closed(tmp_path):
    """Scatter the starts of a four-bar: each is closed before it runs."""
    bar = kt.load("four_bar")
    q = bar.assemble()
    cloud = batch(studio_of("four_bar", tmp_path), q.tolist(), [0.0] * bar.nv, 0.1, runs=5, spread=0.02, samples=3)
    assert cloud["failed"] == 0 and np.ptp(cloud["points"][:, -1], axis=0).max() > 1e-3
    length = np.linalg.norm(cloud["points"] - cloud["points"][0], axis=-1)
    assert np.isfinite(length).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"duration": 0}, "the duration is 0; expected a number above 0, up to 3600"),
        ({"duration": True}, "the duration is True"),
        ({"q": [0.1]}, r"q is \[0.1\]; expected 2 finite numbers"),
        ({"q": "ab"}, "q is 'ab'; expected 2 numbers"),
        ({"qd": [0.1, float("nan")]}, "expected 2 finite numbers"),
        ({"method": "rk5"}, "no method 'rk5'"),
        ({"method": "rk4"}, r"rk4 takes fixed steps: give dt \[s\]"),
        ({"method": ["rk4"]}, "no method"),
        ({"rtol": "small"}, "rtol is 'small'"),
        ({"threads": 3}, "no option 'threads'"),
        ({"drives": [1]}, r"the drives are \[1\]"),
        ({"drives": {"force": [1, 2]}}, "the drives have force; expected torque"),
        ({"drives": {"torque": [1, 2], "motion": {}}}, "the drives have torque, motion; expected torque, or stiffness"),
        (
            {"drives": {"stiffness": [1, 2], "damping": [1, 2], "motion": [0]}},
            r"the motion is \[0\]; expected t, q, qd",
        ),
    ],
)
def test_wrong_numbers_of_a_run_are_refused(tmp_path, arguments, message):
    """Simulate with values that a page should not send."""
    with pytest.raises(kt.KinetreeError, match=message):
        simulate(studio_of("planar_2r", tmp_path), **{"q": Q, "qd": QD, "duration": 1, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"runs": 60_000}, "runs is 60000; expected a whole number from 1 to 50,000"),
        ({"runs": 1.5}, "runs is 1.5"),
        ({"runs": 50_000, "samples": 62}, "50000 runs of 62 samples are more than 3,050,000 points"),
        ({"spread": -1}, "spread is -1; expected a standard deviation"),
        ({"frame": "tol"}, "'tol'"),
    ],
)
def test_wrong_numbers_of_a_cloud_are_refused(tmp_path, arguments, message):
    """Ask for clouds that are too large, or of frames that do not exist."""
    with pytest.raises(kt.KinetreeError, match=message):
        batch(studio_of("planar_2r", tmp_path), **{"q": Q, "qd": QD, "duration": 0.1, "runs": 2, **arguments})


@everyday.long
def test_lengths_of_the_page_are_changed(tmp_path):
    """Simulate a four-bar whose coupler is longer, as the page's parameter; unknown names are refused."""
    bar = kt.load("four_bar")
    studio = studio_of("four_bar", tmp_path)
    freed = kt.System(free_lengths(bar.mechanism)[0])
    values = {p.name: p.value for p in freed.mechanism.free_parameters}
    name = next(iter(values))
    q = bar.assemble().tolist()
    same = simulate(studio, q, [0.0] * bar.nv, 0.1, parameters=values)["run"]["q"]
    assert_close(same[-1], kt.simulate(bar, q, times=np.linspace(0, 0.1, 7)).q[-1], 1e-12, "given lengths")
    longer = values | {name: 1.02 * values[name]}
    other = simulate(studio, q, [0.0] * bar.nv, 0.1, parameters=longer)["run"]["q"]
    given = list(longer.values())
    gaps = np.asarray(freed.closure_residual(other, parameters=given))
    assert_close(gaps, np.zeros_like(gaps), 1e-9, "gaps of the longer link")
    assert np.abs(other - same).max() > 1e-3
    with pytest.raises(kt.KinetreeError, match="no parameter 'lenght'"):
        simulate(studio, q, [0.0] * bar.nv, 0.1, parameters={"lenght": 1.0})
    with pytest.raises(kt.InputError, match="expected a finite number"):
        simulate(studio, q, [0.0] * bar.nv, 0.1, parameters={name: "long"})


def test_a_text_takes_the_place_of_the_mechanism(tmp_path):
    """Simulate the text of a model with a changed mass."""
    arm = kt.load("planar_2r")
    heavier = replace(arm.mechanism.bodies[1], mass=2.5)
    mechanism = replace(arm.mechanism, bodies=(arm.mechanism.bodies[0], heavier))
    text = Path(kt.save(mechanism, tmp_path / "heavy.toml")).read_text()
    run = simulate(studio_of("planar_2r", tmp_path), Q, QD, 0.2, model=text)["run"]
    expected = kt.simulate(kt.System(mechanism), Q, QD, times=np.linspace(0, 0.2, 13))
    assert_close(run["q"], expected.q, 0.0, "states")
    with pytest.raises(kt.InputError, match="the model is 7; expected the text of a TOML file"):
        simulate(studio_of("planar_2r", tmp_path), Q, QD, 0.2, model=7)


def test_the_form_of_a_run_is_the_library_s_declaration(tmp_path):
    """List the options of RunOptions that are single values, with defaults, and the methods that have each."""
    options = {x["name"]: x for x in run_options(studio_of("planar_2r", tmp_path))["options"]}
    assert set(options) == set(RunOptions.written()) - {"times", "loops"}
    assert {name: x["default"] for name, x in options.items()} == {name: getattr(RunOptions, name) for name in options}
    assert {x["kind"] for x in options.values()} == {"number", "whole", "flag", "choice"}
    assert list(options["method"]["choices"]) == ["auto", *METHODS]
    for method in METHODS.values():
        assert (method.name in options["dt"]["methods"]) is not method.adaptive
        assert (method.name in options["rtol"]["methods"]) is method.adaptive


def test_options_that_a_method_does_not_have_are_left_out(tmp_path):
    """Give a step and a tolerance, as a form keeps both: the run has the one of its method; steps are bounded."""
    studio, given = studio_of("planar_2r", tmp_path), {"dt": 1e-2, "rtol": 1e-3, "atol": 1e-3}
    expected = kt.simulate(kt.load("planar_2r"), Q, QD, times=np.linspace(0, 0.2, 13), dt=1e-2)
    run = simulate(studio, Q, QD, 0.2, method="rk4", passive=False, **given)["run"]
    assert_close(run["q"], expected.q, 0.0, "fixed steps")
    expected = kt.simulate(kt.load("planar_2r"), Q, QD, times=np.linspace(0, 0.2, 13), rtol=1e-3, atol=1e-3)
    assert_close(simulate(studio, Q, QD, 0.2, **given)["run"]["q"], expected.q, 0.0, "tolerances")
    with pytest.raises(kt.InputError, match="max_steps"):
        simulate(studio, Q, QD, 0.2, method="rk4", dt=1e-3, max_steps=7)


@pytest.mark.usefixtures("plain_data")
def test_a_run_follows_the_opened_mechanism(tmp_path):
    """Open another mechanism in the tab: runs are of it."""
    studio = studio_of("planar_2r", tmp_path)
    open_system(studio, kt.load("planar_3r"))
    with pytest.raises(kt.InputError, match="expected 3 finite numbers"):
        simulate(studio, Q, QD, 1.0)


def test_texts_of_runs_have_no_flags(tmp_path):
    """Use the steps up: the advice is that for Python, without that for the command line."""
    studio = studio_of("planar_2r", tmp_path)
    run = simulate(studio, [0.0, 0.0], [0.0, 0.0], 3.0, method="dop853", max_steps=10)["run"]
    assert "try a larger max_steps, or method=" in run["status"] and "--" not in run["status"]
