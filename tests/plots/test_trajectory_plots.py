"""Figures of runs: which panels, labels with units, batches, and names that are not mathematics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_form_runs import batch, swinging
from kinetree.results import Trajectory
from tolerance import assert_close


def titles(figure) -> list[str]:
    """Return the titles of the panels."""
    return [axes.get_title(loc="left") for axes in figure.axes]


def labels(figure) -> list[str]:
    """Return the labels of the panels' values."""
    return [axes.get_ylabel() for axes in figure.axes]


def swinging_chain(n: int) -> Trajectory:
    """Return a run of a chain of n links in which every joint swings, with torques."""
    chain = kt.chain(n)
    t = np.linspace(0.0, 2.0, 41)
    q = 0.3 * np.sin(1.7 * t[:, None] + 0.4 * np.arange(chain.nv))
    return Trajectory(chain, t, q, 0.51 * np.cos(1.7 * t[:, None] + 0.4 * np.arange(chain.nv)), torque=2.0 * q)


def test_a_row_for_each_joint_and_a_column_for_each_quantity():
    """Draw coordinates, velocities and torques of six joints with the units of each."""
    figure = swinging(torque=np.ones((41, 6))).plot()
    assert len(figure.axes) == 18
    assert titles(figure)[:6] == ["joint1", "", "", "joint2", "", ""]
    assert labels(figure)[6:9] == ["$q$  [m]", r"$\dot q$  [m/s]", r"$\tau$  [N]"]
    assert [a.get_xlabel() for a in figure.axes[-4:]] == ["", "time  [s]", "time  [s]", "time  [s]"]


def test_without_torques_there_are_two_columns():
    """Draw a passive run of a free body and find seven coordinates and six velocities."""
    figure = swinging("biped").plot(joints=["base"])
    assert len(figure.axes) == 13
    assert titles(figure)[:2] == ["base.x", "base.wx"]
    assert titles(figure)[-1] == "base.qw"
    assert labels(figure)[-1] == "$q$  [1]"


@everyday.long
def test_energies_share_a_panel_and_parts_have_their_own(tmp_path):
    """Draw two energies with a legend, a reaction by its entries, and write the file."""
    path = tmp_path / "run.png"
    figure = swinging().plot(["energy", "kinetic_energy", "reactions.link2", "reactions.link3.fz", "poses.tool"], path)
    assert titles(figure)[:4] == ["energy, kinetic_energy", "reactions.link2", "", "reactions.link3.fz"]
    assert labels(figure) == ["[J]", "[N m]", "[N]", "[N]", "[1]", "[m]"]
    legends = [[text.get_text() for text in axes.get_legend().get_texts()] for axes in figure.axes[1:3]]
    assert legends == [["nx", "ny", "nz"], ["fx", "fy", "fz"]]
    assert figure.axes[3].get_legend() is None
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["run.png"]


def test_runs_of_a_batch_lie_over_each_other():
    """Draw three runs in each panel, and no more than forty of a hundred."""
    assert len(batch().plot("q").axes[0].get_lines()) >= 3
    runs = batch()
    many = Trajectory(runs.system, runs.t, *(np.resize(a, (100, *a.shape[1:])) for a in (runs.q, runs.qd)))
    figure = many.plot("qd", heading="arm")
    assert len([line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 41]) == 40
    assert figure.get_suptitle() == "arm   (40 of 100 runs are drawn, evenly spread)"
    assert batch().plot("q").get_suptitle() == "stanford"


@pytest.mark.slow
def test_many_joints_stand_side_by_side(tmp_path):
    """Draw 32 joints in a figure of a screen's proportions, and six joints of one quantity in two columns."""
    run = swinging_chain(32)
    width, height = run.plot(("q", "qd", "tau")).get_size_inches()
    assert max(width, height) * 200 < 5000
    assert 0.5 < width / height < 2.0
    grid = swinging().plot("q").axes[0].get_subplotspec().get_gridspec()
    assert (grid.nrows, grid.ncols) == (3, 2)


def test_tracking_shows_reference_error_and_limits():
    """Draw a driven arm with limits and find them, the reference, the error and the control in its panels."""
    bodies = [kt.Body(n, 1.1, (0.3, 0.1, 0.0), (0.1, 0.2, 0.15, 0.0, 0.0, 0.0)) for n in ("one", "two")]
    limits = kt.Limits((-0.6,), (0.9,), (2.5,), (40.0,)), kt.Limits((-300.0,), (300.0,), (), ())
    joints = [
        kt.Joint("a", "revolute", kt.GROUND, "one", limits=limits[0]),
        kt.Joint("b", "revolute", "one", "two", kt.Placement((0.5, 0.0, 0.0)), limits=limits[1]),
    ]
    system = kt.System(kt.build_mechanism("arm", bodies, joints, gravity=(0.0, -9.81, 0.0)))
    control = kt.PD(30.0, 6.0, kt.Hold([0.7]), joints=["a"])
    run = kt.simulate(system, [0.1, 0.2], duration=1.0, control=control, forces=[kt.JointDamper("a", 0.8)])
    figure = run.plot()
    assert labels(figure)[:4] == ["$q$  [rad]", "$q_d - q$  [rad]", r"$\dot q$  [rad/s]", r"$\tau$  [N m]"]
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["reference", "control", "limit"]
    drawn = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert_close(np.unique(drawn["reference"].get_ydata()), [0.7], 1e-15, "reference")
    heights = {float(line.get_ydata()[0]) for axes in figure.axes[:4] for line in axes.get_lines()}
    assert {0.9, 2.5} <= heights
    assert [t.get_text() for t in figure.axes[0].texts] == ["limit -0.6"]
    assert figure.axes[0].texts[0].get_position()[1] < 1.0  # below the title, which may be long
    assert [t.get_text() for t in figure.axes[4].texts] == [r"limit $\pm$300"]
    assert [t.get_text() for t in figure.axes[5].texts] == ["not driven"]


def test_the_rounding_of_zero_is_flat():
    """Draw torques of which one is noise, and find its axis in the unit, from -1 to 1."""
    torque = np.ones((41, 6))
    torque[:, 2] = 1e-15 * np.random.default_rng(3).normal(size=41)
    axes = swinging(torque=torque).plot("tau").axes[2]
    assert axes.get_ylabel() == r"$\tau$  [N]"
    assert axes.get_ylim() == (-1.0, 1.0)


def test_names_are_not_read_as_mathematics(tmp_path):
    """Draw a mechanism whose names have dollars and braces."""
    body = kt.Body("b", mass=1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    system = kt.System(kt.build_mechanism("$\\evil{", [body], [kt.Joint("$\\frac{$", "revolute", kt.GROUND, "b")]))
    t = np.linspace(0.0, 1.0, 5)
    run = Trajectory(system, t, t[:, None], np.ones((5, 1)))
    run.plot(("q", "reactions.b"), tmp_path / "a.png")
    run.portraits(tmp_path / "b.png")
    assert (tmp_path / "b.png").stat().st_size > 1000


@everyday.long
def test_nan_and_single_samples_are_drawn(tmp_path):
    """Draw a run that stopped in a batch, and a run of one sample."""
    runs = batch()
    q = np.array(runs.q)
    q[1, 20:] = np.nan
    Trajectory(runs.system, runs.t, q, runs.qd).plot(("q", "energy"), tmp_path / "a.png")
    swinging()[:1].plot(path=tmp_path / "b.svg")
    assert (tmp_path / "a.png").stat().st_size > 1000
    assert (tmp_path / "b.svg").read_text().startswith("<?xml")


def test_portraits_are_of_single_coordinates():
    """Draw velocity over coordinate for the legs of a biped, not for its free base."""
    figure = swinging("biped").portraits()
    assert titles(figure) == ["thigh_a", "shank_a", "foot_a", "thigh_b", "shank_b", "foot_b"]
    assert figure.axes[0].get_xlabel() == "$q$  [rad]"
    with pytest.raises(kt.UnknownNameError, match="no joint of one degree of freedom 'base'; .*thigh_a"):
        swinging("biped").portraits(joints=["base"])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"columns": ["torque"]}, kt.UnknownNameError, "no column 'torque'"),
        ({"joints": ["elbow"]}, kt.UnknownNameError, "no joint that moves 'elbow'; available: joint1, joint2"),
        (
            {"columns": ["reactions", "poses"]},
            kt.InputError,
            "'poses' has 96 entries, too many for a panel; name a part",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, error, message):
    """Give columns and joints that do not exist, or too many, and read which exist."""
    with pytest.raises(error, match=message):
        swinging().plot(**options)


def test_control_is_not_drawn_over_an_equal_torque():
    """Draw a run whose torque is the control up to rounding, and find one curve per torque and no such legend."""
    arm = kt.load("planar_2r")
    control = kt.ComputedTorque(16.0, 8.0, kt.Cosine([0.8, 0.6], 2.0))
    run = kt.simulate(arm, [0.5, -0.4], duration=0.3, control=control)
    run = replace(run, control=run["control"] * (1.0 + 1e-15) + 1e-15)
    figure = run.plot(["q", "tau"])
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["reference"]
