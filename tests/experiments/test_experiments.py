"""Experiment files: the run that they describe, and faults reported with their line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_form_runs import PENDULUM
from kinetree.environments.task_files import read_task
from kinetree.experiments import read_experiment
from kinetree.experiments.studies import is_study, read_study_file
from kinetree.simulation.acting.controllers import PD, Saturated, Sum
from tolerance import assert_close

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(file for file in EXAMPLES.glob("*.toml") if "[experiment]" in file.read_text())
TEXT = """\
[experiment]
mechanism = "planar_3r"
[start]
q = [0, 0, "-pi/2"]
[run]
duration = 0.5
[[force]]
kind = "joint_damper"
joint = "joint2"
damping = 0.5
[[control]]
kind = "torque"
tau = 0.0
[[control]]
kind = "pd"
k = 10
c = 1
[control.reference]
kind = "cycloid"
q0 = 0.0
q1 = [1.0, 1.0, 1.0]
duration = 0.4
[output]
save = "a.npz"
plot = ["q"]
"""
SWING = PENDULUM + "damping = 0.1\n"


def write(folder: Path, text: str = TEXT, *changes: tuple[str, str]) -> Path:
    """Write an experiment with some of its lines changed."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    file = folder / "x.toml"
    file.write_text(text)
    return file


def test_an_experiment_is_what_the_functions_do(tmp_path):
    """Run an experiment from a file and in Python, and get the same motion."""
    found = read_experiment(write(tmp_path)).simulate()
    arm = kt.load("planar_3r")
    control = Sum([PD(10, 1, kt.Cycloid(0.0, [1.0] * 3, 0.4))])
    forces = [kt.JointDamper("joint2", 0.5)]
    by_hand = kt.simulate(arm, [0, 0, -np.pi / 2], duration=0.5, control=control, forces=forces)
    assert found.finished
    assert_close(found.q, by_hand.q, 1e-12, "coordinates")


POINTS = [[0.0, 0.0], [0.7, np.pi / 5], [0.2, 0.3]]
WITHIN_LIMITS = {
    "waypoints": (
        """kind = "waypoints"
points = [[0.0, 0.0], [0.7, "pi/5"], [0.2, 0.3]]
velocity = 2.0
acceleration = [9, 7]
jerk = 80
""",
        lambda: kt.Waypoints(POINTS, velocity=2.0, acceleration=[9.0, 7.0], jerk=80.0),
    ),
    "timed_path": (
        """kind = "timed_path"
path = { kind = "table", times = [0, 1, 2], values = [[0, 0], [0.7, "pi/5"], [0.2, 0.3]], ends = "natural" }
velocity = [2, 3]
acceleration = 9.0
knots = 500
""",
        lambda: kt.TimedPath(
            kt.Table([0, 1, 2], POINTS, ends="natural"), velocity=[2.0, 3.0], acceleration=9.0, knots=500
        ),
    ),
}


@pytest.mark.parametrize("kind", WITHIN_LIMITS)
def test_several_joints_are_driven_within_limits(kind, tmp_path):
    """Drive two joints by one reference in a file and in Python, and get the same bits."""
    lines, reference = WITHIN_LIMITS[kind]
    text = TEXT[: TEXT.index("[[control]]")] + '[control]\nkind = "driven"\njoint = ["joint3", "joint1"]\n'
    text += "[control.reference]\n" + lines + '[output]\nsave = "a.npz"\n'
    found = read_experiment(write(tmp_path, text, ('q = [0, 0, "-pi/2"]', "q = [0, 0, 0]"))).simulate()
    control, arm = kt.Driven(["joint3", "joint1"], reference()), kt.load("planar_3r")
    by_hand = kt.simulate(arm, np.zeros(3), duration=0.5, control=control, forces=[kt.JointDamper("joint2", 0.5)])
    assert found.finished and found.q.tobytes() == by_hand.q.tobytes()


@pytest.mark.parametrize(
    "file",
    everyday.some(everyday.without(FILES, [x for x in FILES if x.stem in ("stanford_fall", "kuka_tracking")])),
    ids=lambda f: f.stem,
)
def test_examples_run_to_their_end(file, tmp_path):
    """Run every example, end near its reference if it has one, and find its files."""
    experiment = read_experiment(file)
    run = experiment.simulate()
    assert run.finished
    files = experiment.write(run, tmp_path)
    assert {f.suffix for f in files} >= {".png", ".html"}
    assert all(f.stat().st_size > 1000 for f in files)
    error = experiment.tracking_error(run)
    if error is None:
        assert_close(run.energy_error, 0.0, 1e-8, "energy")
    else:
        assert np.abs(error[-1]).max() < 0.02


def test_a_mechanism_beside_the_file(tmp_path):
    """Load a mechanism next to the experiment, set its parameter and a joint by name, and leave out its damping."""
    (tmp_path / "swing.toml").write_text(SWING)
    text = (
        '[experiment]\nmechanism = "swing.toml"\n[parameters]\nl = 0.8\n[start]\nq.hinge = 0.4\n[run]\nduration = 1\n'
    )
    damped = read_experiment(write(tmp_path, text))
    assert damped.q0.tolist() == [0.4]
    assert damped.parameters is not None
    assert damped.parameters.tolist() == [0.8]
    assert len(damped.forces) == 1
    free = read_experiment(write(tmp_path, text, ("[parameters]", "own_forces = false\n[parameters]")))
    assert free.forces == ()
    assert_close(free.simulate().energy_error, 0.0, 1e-7, "energy without damping")
    assert damped.simulate().energy_error > 1e-3


CLOSED = """\
[experiment]
mechanism = "four_bar"
[start]
q = { crank = 0.7 }
qd.crank = 4.0
[run]
duration = 0.2
loops = "projection"
"""


@pytest.mark.parametrize(
    ("way", "loops"),
    everyday.some(
        [
            ('"projection"', kt.Projection()),
            ('"baumgarte"', kt.Baumgarte()),
            ('{ kind = "baumgarte", rate = "3*10" }', kt.Baumgarte(30.0)),
            ('"minimal"', kt.Minimal()),
            ('{ kind = "minimal", independent = ["output"] }', kt.Minimal((1,))),
        ]
    ),
)
def test_a_closed_mechanism_starts_closed(way, loops, tmp_path):
    """Give angle and velocity of the crank: the others follow, and loops stay closed by the method of the file."""
    experiment = read_experiment(write(tmp_path, CLOSED, ('"projection"', way)))
    bars = kt.load("four_bar")
    assert experiment.q0[0] == 0.7 and np.abs(bars.closure_residual(experiment.q0)).max() <= 1e-12
    assert_close(experiment.qd0, bars.consistent_speeds(experiment.q0, {"crank": 4.0}), 1e-12, "speeds")
    assert experiment.method["loops"] == loops
    run = experiment.simulate()
    by_hand = kt.simulate(bars, experiment.q0, experiment.qd0, duration=0.2, loops=loops)
    assert run.finished and run.q.tobytes() == by_hand.q.tobytes()


def test_a_closed_mechanism_starts_from_its_guess(tmp_path):
    """Leave the start out, and find the assembled guess at rest."""
    text = CLOSED.replace("q = { crank = 0.7 }\nqd.crank = 4.0\n", "")
    experiment = read_experiment(write(tmp_path, text))
    assert_close(experiment.q0, kt.load("four_bar").assemble(), 1e-12, "guess")
    assert not experiment.qd0.any()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"projection"', '"baumgart"', ":8: run, loops, kind: no loops of kind 'baumgart'; did you mean 'baumgarte'"),
        ('"projection"', '{ kind = "baumgarte", rate = 0 }', ":8: run, loops, rate: the rate of Baumgarte is 0"),
        ('"projection"', '{ kind = "minimal", independent = ["c"] }', ":8: run, loops, independent: no joint 'c'"),
        ('"projection"', "7", ":8: run, loops: "),
        ('"four_bar"', '"planar_2r"', ":8: run, loops: 'planar_2r' has no loops; leave it out"),
        ("crank = 0.7", "crnk = 0.7", ":4: start, q: no part of q 'crnk'; did you mean 'crank'"),
        ("qd.crank = 4.0", "qd = { crank = 1, output = 9 }", ":5: start, qd: the loops do not allow these velocities"),
        (
            '"four_bar"\n[start]\nq = { crank = 0.7 }',
            '"crank_rocker"\n[start]\nq = { rocker = 0.3 }',
            ":4: start, q: with rocker = 0.3 rad held, loop 'pin' stays open by 127 mm",
        ),
    ],
)
def test_faults_of_closed_mechanisms_are_located(old, new, message, tmp_path):
    """Break a line about loops and read its number, the cause and the remedy."""
    text = CLOSED if "planar" not in new else CLOSED.replace("crank", "joint1")
    with pytest.raises(kt.ModelError) as caught:
        read_experiment(write(tmp_path, text, (old, new)))
    assert message in str(caught.value)


def test_only_driven_joints_have_an_error(tmp_path):
    """Drive one joint within a limit and find NaN for the others."""
    changes = (("c = 1", 'c = 1\nlimit = 2.0\njoints = ["joint2"]'), ("q1 = [1.0, 1.0, 1.0]", "q1 = 1.0"))
    experiment = read_experiment(write(tmp_path, TEXT, *changes))
    assert isinstance(experiment.control, Sum)
    assert isinstance(experiment.control.controllers[1], Saturated)
    error = experiment.tracking_error(experiment.simulate())
    assert error is not None
    assert np.isnan(error[:, [0, 2]]).all()
    assert np.abs(error[:, 1]).max() > 0.01


DRIVE = """[control]
kind = "driven"
joint = "crank"
reference = { kind = "hold", q = 0.7, speed = 4.0 }
"""


def test_a_joint_is_driven(tmp_path):
    """Drive the crank of a closed mechanism from a file, and find the bits of a run by hand; faults name the line."""
    experiment = read_experiment(write(tmp_path, CLOSED + DRIVE))
    run, bars = experiment.simulate(), kt.load("four_bar")
    drive = kt.Driven("crank", kt.Hold(0.7, speed=4.0))
    by_hand = kt.simulate(bars, experiment.q0, experiment.qd0, duration=0.2, control=drive, loops=kt.Projection())
    assert run.finished and run.q.tobytes() == by_hand.q.tobytes()
    error = experiment.tracking_error(run)
    assert error is not None and np.abs(error[:, 0]).max() == 0.0
    with pytest.raises(kt.ModelError, match=r"11: control 1, joint: no joint 'cran'; did you mean 'crank'\?"):
        read_experiment(write(tmp_path, CLOSED + DRIVE, ('joint = "crank"', 'joint = "cran"')))


MODEL = """\
[mechanism]
name = "lift"
[[body]]
name = "arm"
mass = 0.7
com = [0.2, 0, 0]
inertia = [0.001, 0.01, 0.01, 0, 0, 0]
[[joint]]
name = "shoulder"
kind = "revolute"
parent = "ground"
child = "arm"
axis = "y"
elastic = { stiffness = 200, damping = 0.4, inertia = 2e-5, ratio = 50 }
[[motor]]
name = "m"
joint = "shoulder"
torque_constant = 0.05
resistance = 0.8
gear = 50
"""
LIFT = """\
[experiment]
mechanism = "lift.toml"
[run]
duration = 0.2
[control]
kind = "motor_control"
"""
COMMANDS = {
    "torque": (
        '[control.control]\nkind = "at_motors"\n[control.control.controller]\nkind = "pd"\nk = 20\nc = 2\n'
        'reference = { kind = "hold", q = 0.3 }',
        lambda: kt.MotorControl(kt.AtMotors(kt.PD(20.0, 2.0, kt.Hold(0.3)))),
    ),
    "voltage": ('command = "voltage"\ncontrol = { m = 6 }', lambda: kt.MotorControl({"m": 6.0}, command="voltage")),
    "current": (
        'command = "current"\ncontrol = { kind = "cosine", amplitude = 2.0, frequency = 9.0 }',
        lambda: kt.MotorControl(kt.Cosine(2.0, 9.0), command="current"),
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_motors_are_commanded(command, tmp_path):
    """Command the motor of an elastic joint from a file, and find the bits of a run by hand; faults name the line."""
    (tmp_path / "lift.toml").write_text(MODEL)
    text, control = COMMANDS[command]
    run = read_experiment(write(tmp_path, LIFT + text)).simulate()
    by_hand = kt.simulate(kt.load(tmp_path / "lift.toml"), duration=0.2, control=control())
    assert run.finished and run.q.tobytes() == by_hand.q.tobytes()
    assert np.abs(run["control"]).max() > 0.1
    with pytest.raises(
        kt.ModelError, match=r"7: control 1, command: the command of MotorControl is 'volts'; give one of"
    ):
        read_experiment(write(tmp_path, LIFT + 'command = "volts"\ncontrol = 1'))


FAULTS = [
    ("[experiment]", "[experimen]", "1: no table 'experimen'; did you mean 'experiment'?"),
    ('"planar_3r"', '"planar_r"', "2: experiment, mechanism: no library mechanism 'planar_r'; did you mean"),
    ('"planar_3r"', '"../x.toml"', "2: experiment, mechanism: '../x.toml' is not the name of a file in the folder"),
    ('"planar_3r"', '"/tmp/x.toml"', "2: experiment, mechanism: '/tmp/x.toml' is not the name of a file in the folder"),
    ('"planar_3r"', '"C:\\\\x.toml"', "2: experiment, mechanism: 'C:\\\\x.toml' is not the name of a file"),
    ('"planar_3r"', '"no.toml"', "2: experiment, mechanism: there is no file 'no.toml'; put it into"),
    ('"planar_3r"', "3", "2: experiment, mechanism: a number where a text belongs; put it in quotes"),
    ('q = [0, 0, "-pi/2"]', "q = [0]", "4: start, q: 1 numbers; give 3: q.joint1, q.joint2, q.joint3"),
    ('q = [0, 0, "-pi/2"]', "q.elbow = 1", "4: start, q: no part of q 'elbow'; available: joint1, joint2, joint3"),
    ('q = [0, 0, "-pi/2"]', "q = [0, 0, nan]", "4: start, q: the number is nan; give a finite number"),
    ("duration = 0.5", "duration = -1", "6: run, duration: duration is -1; give more than zero"),
    ("duration = 0.5", "", "5: run: a run requires either duration or times; give one of them, in seconds"),
    ("duration = 0.5", "times = [0, 2, 1]", "6: run, times: times must be at least two finite numbers"),
    ("duration = 0.5", "duration = 1\nsamples = 1", "7: run, samples: samples is 1; give 2 to 1000000"),
    ("duration = 0.5", 'duration = 1\nmethod = "rk5"', "7: run, method: no method 'rk5'; did you mean 'rk4'?"),
    ("duration = 0.5", 'duration = 1\nmethod = "rk4"', "7: run, method: rk4 takes fixed steps; add dt = ..."),
    (
        "duration = 0.5",
        'duration = 1\nmethod = "dopri5"\ndt = 1',
        "8: run, dt: dopri5 chooses its own steps; leave dt out",
    ),
    (
        "duration = 0.5",
        "duration = 1\nmax_steps = 1.5",
        "7: run, max_steps: max_steps is not a whole number above zero",
    ),
    ("damping = 0.5", "dampin = 0.5", "10: force 1: no key 'dampin'; did you mean 'damping'?"),
    ("damping = 0.5", "damping = -1", "10: force 1, damping: the damping of JointDamper of 'joint2' is -1; give 0"),
    ('"joint2"', '"elbow"', "9: force 1, joint: no joint 'elbow'; available: joint1, joint2, joint3"),
    (
        "[[force]]",
        '[[force]]\nkind = "spring_damper"\nbody_a = "ground"\nbody_b = "hand"\nstiffness = 2\n[[force]]',
        "10: force 1, body_b: no body 'hand'; available:",
    ),
    (
        "[[force]]",
        '[[force]]\nkind = "external_wrench"\nbody = "ground"\nforce = [1, 2, 3]\n[[force]]',
        "9: force 1, body: ExternalWrench acts on the ground, which cannot move; name a body",
    ),
    (
        "[[force]]",
        '[[force]]\nkind = "ground_force"\nbody = "link3"\nstiffness = 2\nup = "w"\n[[force]]',
        "11: force 1, up: 'w' is not an axis; give x, y, z, -x, -y, -z, or three numbers",
    ),
    (
        "[[force]]",
        '[[force]]\nkind = "ground_force"\nbody = "link3"\nstiffness = 2\nup = [0, 0, 0.0]\n[[force]]',
        "11: force 1, up: the up of GroundForce on 'link3' is zero; give a direction out of the ground",
    ),
    ("c = 1", 'c = 1\njoints = ["elbow"]', "18: control 2, joints: no joint 'elbow'; available: joint1"),
    ('"joint_damper"', '"damper"', "8: force 1, kind: no force of kind 'damper'; did you mean 'joint_damper'?"),
    ('"pd"', '"pid"', "15: control 2, kind: no control of kind 'pid'; did you mean 'pd'?"),
    ("k = 10", "k = [1, 2]", "16: control 2, k: k of PD has 2 numbers; give one, or 3"),
    ("[1.0, 1.0, 1.0]", "[1.0, 1.0]", "18: control 2, reference: the reference returns 2 coordinates; expected 3"),
    ("duration = 0.4", "", "18: control 2, reference: 'duration' is missing; add duration = ..."),
    ("duration = 0.4", "duration = 0", "22: control 2, reference, duration: the duration of Cycloid is 0; give more"),
    ('"cycloid"', '"circle"', "19: control 2, reference, kind: no reference of kind 'circle'; available: hold,"),
    ("c = 1", 'c = 1\nlimit = "effort"', "18: control 2, limit: no joint of 'planar_3r' has an effort limit"),
    ('"a.npz"', '"../a.npz"', "24: output, save: '../a.npz' is not the name of a file in the folder of the results"),
    (
        '"a.npz"',
        '"a.txt"',
        "24: output, save: 'a.txt' is not a format of trajectories; use one of .csv, .npz, .parquet, .zarr",
    ),
    ('["q"]', '["q.elbow"]', "25: output, plot: no part of column 'q' 'elbow'; available: joint1"),
    (
        "[output]",
        '[output]\nreplay = "r"',
        "24: output, replay: 'r' is not a web page; use a name that ends with .html",
    ),
    ("[output]", '[output]\nreply = "r"', "24: output: no key 'reply'; did you mean 'replay'?"),
    ("[output]", "[parameters]\nl = 1\n[output]", "24: parameters, l: no free parameter 'l'; available: none"),
    ("[output]", "[output", "23: not TOML: Expected ']' at the end of a table declaration"),
]


@pytest.mark.parametrize(("old", "new", "message"), FAULTS, ids=[f[2][:50] for f in FAULTS])
def test_faults_are_located(old, new, message, tmp_path):
    """Break one line of a good file and read file, line, cause and remedy."""
    file = write(tmp_path, TEXT, (old, new))
    with pytest.raises(kt.ModelError) as error:
        read_experiment(file)
    assert str(error.value).startswith(f"{file}:{message}")


def test_a_link_cannot_lead_out(tmp_path):
    """Refuse a symbolic link to a mechanism outside the folder of the experiment."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "swing.toml").write_text(SWING)
    (inside / "swing.toml").symlink_to(tmp_path / "swing.toml")
    with pytest.raises(kt.ModelError, match="'swing.toml' leads out of the folder of the experiment; copy it there"):
        read_experiment(write(inside, TEXT, ('"planar_3r"', '"swing.toml"')))


def test_a_fault_in_a_table_is_in_its_own_file(tmp_path):
    """Follow a CSV file with a bad number and read its line."""
    (tmp_path / "way.csv").write_text("t,a,b,c\n0,0,0,0\n1,0,x,0\n")
    reference = TEXT[TEXT.index("[control.reference]") : TEXT.index("[output]")]
    file = write(tmp_path, TEXT, (reference, '[control.reference]\nkind = "table"\nfile = "way.csv"\n'))
    with pytest.raises(kt.ModelError, match=r"way\.csv:3: b: 'x' is not a number; give a decimal"):
        read_experiment(file)


def test_a_file_of_another_sort_is_recognized(tmp_path):
    """Give a mechanism, an experiment, a study and a task to readers of the others: each names what it has read."""
    tables = {
        "mechanism": "name = 'm'",
        "experiment": "mechanism = 'm'",
        "study": "minimize = 'm'",
        "task": "steps = 3",
    }
    readers = {"mechanism": kt.load, "experiment": read_experiment, "study": read_study_file, "task": read_task}
    advice = {
        "mechanism": "a mechanism; kt.load reads it",
        "experiment": "an experiment; give it to `kinetree run`",
        "study": "a study; give it to `kinetree study`",
        "task": "a task of learning; give it to kt.env",
    }
    for sort, line in tables.items():
        (tmp_path / f"{sort}.toml").write_text(f"# of another sort\n[{sort}]\n{line}\n")
        for own, reader in readers.items():
            if own != sort:
                with pytest.raises(kt.ModelError, match=f"{sort}.toml:2: {sort}: the file is {advice[sort]}"):
                    reader(tmp_path / f"{sort}.toml")


def test_a_file_that_is_no_toml_is_named(tmp_path):
    """Give a URDF to the question whether a file is a study, which `kinetree run` asks first."""
    (tmp_path / "arm.urdf").write_text("<robot name='arm'>\n</robot>\n")
    with pytest.raises(kt.ModelError, match=r"arm\.urdf:1: not TOML"):
        is_study(tmp_path / "arm.urdf")


def test_the_number_of_forces_is_bounded(tmp_path):
    """Refuse more forces than compiled code can have, with the line of the first one."""
    file = tmp_path / "many.toml"
    file.write_text('[experiment]\nmechanism = "pendulum"\n[run]\nduration = 0.3\n' + "[[force]]\n" * 1001)
    with pytest.raises(kt.ModelError, match=r"many\.toml:5: force: 1,001 tables; give no more than 1,000"):
        read_experiment(file)
