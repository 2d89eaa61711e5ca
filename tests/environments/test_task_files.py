"""Task files: the task of a file, values, terms and limits by name, and errors that name lines and remedies."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everyday
import kinetree as kt
from kinetree.environments.task_files import read_task
from kinetree.environments.tasks import Continuous, Dynamics, Task
from kinetree.environments.terms import Limit, Term
from kinetree.environments.vector import Batch, named_task
from kinetree.errors import KinetreeError, ModelError
from same_bits import assert_same_bits
from strategies import examples
from tolerance import assert_close

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "reach.toml"
SOURCE = EXAMPLE.read_text()


@pytest.fixture
def read(tmp_path):
    """Return a function that reads the example with replacements."""

    def make(*replaced: tuple[str, str], more: str = "") -> Task:
        text = SOURCE
        for old, new in replaced:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "reach.toml").write_text(text + more)
        return read_task(tmp_path / "reach.toml")

    return make


def test_a_file_is_the_same_task_as_python():
    """Compare the example with the same task in Python: 30 steps of all environments have equal bits."""
    arm = kt.with_free(kt.load("planar_2r"), "mass.link2")
    carried = kt.PDGravity(0.0, 0.0, kt.Hold([0.0, 0.0]))

    def control(now):
        tau = carried.torque(now.instant)
        drives = [0.5 * (a - v) for a, v in zip(now.action, now.qd, strict=True)]
        limited = [kt.smooth.clip(x, -most, most) for x, most in zip(drives, (6.0, 3.0), strict=True)]
        return [x + y for x, y in zip(tau, limited, strict=True)]

    def reset(draw):
        return {
            "q": [draw.uniform(-np.pi / 2, np.pi / 2), draw.normal(0.0, 0.5)],
            "parameters": {"mass.link2": draw.uniform(0.3, 0.8)},
            "target": draw.position("tool", [draw.uniform(-1.5, 1.5), draw.choice([-1.0, 1.0])]),
        }

    def far(now):
        return [a - b for a, b in zip(now.position("tool"), now["target"], strict=True)]

    task = Task(
        name="reach",
        motion=Dynamics(system=arm, dt=0.02, substeps=2, control=control),
        actions=Continuous((-3.0, -3.0), (3.0, 3.0)),
        observation=("sin_q", "cos_q", "qd", "tool.position", "target", lambda now: now.action),
        reward={
            "distance": lambda now: -kt.smooth.sqrt(sum(x * x for x in far(now))),
            "reached": lambda now: kt.smooth.exp(-sum(x * x for x in far(now)) / 0.05**2),
            "effort": lambda now: -1e-3 * (now.action[0] * now.action[0] + now.action[1] * now.action[1]),
        },
        reset=reset,
        truncated=lambda now: (now.qd[0] > 50.0) | (now.qd[1] > 50.0) | (now.qd[0] < -50.0) | (now.qd[1] < -50.0),
        max_steps=100,
        delay=1,
    )
    of_file, wanted, rng = Batch(read_task(EXAMPLE), 9), Batch(task, 9), np.random.default_rng(0)
    assert list(of_file.task.reward) == ["tool.position", "reached", "effort"]
    assert_same_bits(of_file.reset(3), wanted.reset(3))
    for _ in range(30):
        a = rng.uniform(-1.2, 1.2, (9, 2))
        found, right = of_file.step(a), wanted.step(a)
        assert_same_bits(of_file.q.copy(), wanted.q.copy())
        assert_close(found[0], right[0], 1e-14, "observations")
        assert_close(found[1], right[1], 1e-13, "rewards")
    assert_same_bits(of_file.parameters.copy(), wanted.parameters.copy())
    assert np.ptp(of_file.parameters[:, 0]) > 0.1


def test_the_documentation_shows_the_example():
    """Find the example in the documentation as it is in its file."""
    page = EXAMPLE.parents[1] / "docs" / "learning.md"
    assert f"```toml\n{SOURCE}```" in page.read_text()


def test_files_are_environments():
    """Make environments of a file by its path."""
    pytest.importorskip("gymnasium")
    envs = kt.env(str(EXAMPLE), 3)
    observation, _ = envs.reset(seed=1)
    assert observation.shape == (3, 14) and envs.batch.task.name == "reach"
    assert isinstance(named_task(str(EXAMPLE)), Task)
    with pytest.raises(ModelError, match="none.toml: the file cannot be read .*; check the path"):
        named_task("none.toml")
    with pytest.raises(ModelError, match="no task 'Reach'.*or give a file, such as reach.toml"):
        named_task("Reach")


def test_kinds_of_actions(read, tmp_path):
    """Compare torques, velocities and positions with the stepper of the arm under the same laws."""
    arm = kt.load("planar_2r")
    plain = (SOURCE[SOURCE.index("[[control]]") : SOURCE.index("[[reward]]")], "")
    fixed = ('"mass.link2" = { uniform = [0.3, 0.8] }', "")
    act, q, qd = np.array([0.3, -0.7]), np.array([0.2, 0.4]), np.array([0.1, -0.3])
    for kind, keys, law in (
        ("torque", "low = [-3, -1]\nhigh = 3\n", lambda a, q, qd: [a[0], a[1]]),
        ("velocity", "low = [-3, -1]\nhigh = 3\nc = [0.5, 2]\n", lambda a, q, qd: [
            0.5 * (a[0] - qd[0]), 2.0 * (a[1] - qd[1])]),
        ("position", "low = [-3, -1]\nhigh = 3\nk = 9\nc = [0.5, 2]\naround = [0.1, 0.2]\n", lambda a, q, qd: [
            9.0 * (a[0] + 0.1 - q[0]) - 0.5 * qd[0], 9.0 * (a[1] + 0.2 - q[1]) - 2.0 * qd[1]]),
    ):  # fmt: skip
        begin, end = SOURCE.index("low = -3"), SOURCE.index("[[control]]")
        task = read(
            (SOURCE[begin:end], keys), ('kind = "velocity"', f'kind = "{kind}"'), plain, fixed, ("delay = 1", "")
        )
        batch = Batch(task, 1)
        batch.reset(0, state={"q": q, "qd": qd})
        batch.step(act[None])
        scaled = [3.0 * act[0], 1.0 + 2.0 * act[1]]
        step = arm.stepper(
            dt=0.02, substeps=2, control=kt.TorqueFunction(lambda t, q, qd, a=scaled, f=law: f(a, q, qd))
        )
        assert_close(np.concatenate([batch.q[0], batch.qd[0]]), np.concatenate(step(q, qd)), 1e-13, kind)


BALL = """
[mechanism]
name = "ball"
[[body]]
name = "ball"
mass = 0.7
inertia = [0.01, 0.01, 0.01, 0, 0, 0]
[[joint]]
name = "up"
kind = "prismatic"
parent = "ground"
child = "ball"
axis = "z"
"""
DROP = """
[task]
mechanism = "ball.toml"
dt = 0.01
substeps = 4
observation = ["q", "floor.force.0", "floor.touching"]
[action]
joints = ["up"]
low = -1
high = 3
[[reward]]
weight = 0.5
[[reward]]
of = "energy"
[[terminated]]
of = "ball.position.z"
above = 2
[start]
q = { up = 0.3 }
[[force]]
kind = "joint_damper"
joint = "up"
damping = 2.0
[[contact]]
name = "floor"
body = "ball"
shape = "sphere"
size = 0.1
restitution = 0.2
"""


@everyday.long
def test_forces_and_contacts_of_files(tmp_path):
    """Drop a ball under a damper: it comes to rest on the ground, whose force is its weight less the mean action."""
    (tmp_path / "ball.toml").write_text(BALL)
    (tmp_path / "drop.toml").write_text(DROP)
    batch = Batch(read_task(tmp_path / "drop.toml"), 2)
    assert_close(batch.reset(0)[:, :2], np.array([[0.3, 0.0]] * 2), 1e-15, "start")
    speeds = []
    for _ in range(200):
        observation, reward, terminated, _ = batch.step(np.zeros((2, 1)))
        speeds.append(batch.qd[0, 0])
    assert_close(observation[:, 0], np.full(2, 0.1), 1e-4, "height of the center at rest")
    assert_close(observation[:, 1], np.full(2, 0.7 * 9.81 - 1.0), 1e-9, "force of the ground")
    assert (observation[:, 2] == 1.0).all() and not terminated.any() and max(speeds) > 0.05
    assert_close(reward, np.full(2, 0.5 + 0.7 * 9.81 * 0.1), 1e-3, "a constant term and the energy")
    for old, new, text in (
        ('body = "ball"\nshape', 'body = "bal"\nshape', r"drop.toml:\d+: .*no body 'bal'.*ball"),
        ('shape = "sphere"', 'shape = "egg"', r"drop.toml:\d+: .*no shape 'egg'|drop.toml:\d+: .*egg"),
        ('kind = "joint_damper"', 'kind = "damper"', r"drop.toml:\d+: force 1.*: no force of kind 'damper'"),
        ('"floor.touching"', '"floor.touch"', r"drop.toml:\d+: task, observation: no value 'floor.touch'.*floor.force"),
    ):
        (tmp_path / "drop.toml").write_text(DROP.replace(old, new))
        with pytest.raises(ModelError, match=text):
            read_task(tmp_path / "drop.toml")


@everyday.long
def test_values_by_name():
    """Compare values of bodies, joints, contacts and energies with the functions of the system."""
    robot = kt.load("quadruped")
    names = (
        "energy", "kinetic_energy", "potential_energy", "base.up", "shank_a.up", "base.angular_velocity", "base.q",
        "thigh_b.q", "thigh_b.qd", "foot_c.velocity", "foot_c.position.z", "base.qd.4", "foot_a.force",
        "foot_a.touching", "foot_d.touching", "shank_b.rotation",
    )  # fmt: skip
    given = named_task("Quadruped")
    batch = Batch(given.changed(observation=names, low=None, high=None, terminated=None), 2, "disabled")
    batch.reset(0)
    for _ in range(20):
        found = batch.step(0.2 * np.ones((2, 12)))[0][1]
    q, qd = batch.q[1], batch.qd[1]
    w = robot.twist(q, qd, "base", axes="world")
    foot = robot.twist(q, qd, "foot_c", axes="world")[3:]
    kinetic, potential = float(robot.kinetic_energy(q, qd)), float(robot.potential_energy(q))
    thigh = [j.name for j in robot.joints].index("thigh_b")
    wanted = [
        kinetic + potential, kinetic, potential, *robot.pose(q, "base")[1, :3], *robot.pose(q, "shank_a")[1, :3],
        *w[:3], *q[:7], q[6 + thigh], qd[5 + thigh], *foot, robot.pose(q, "foot_c")[2, 3], qd[4],
    ]  # fmt: skip
    assert_close(found[: len(wanted)], np.array(wanted, float), 1e-12 * 100, "values by name")
    assert_close(found[-9:].reshape(3, 3), robot.pose(q, "shank_b")[:3, :3], 1e-13, "rotation of a body")
    force, touching = found[len(wanted) : len(wanted) + 3], found[-11:-9]
    assert (force[0] > 0.0) == (touching[0] == 1.0) and set(touching) <= {0.0, 1.0}


def test_terms_and_limits():
    """Compute terms and limits of a point from their definitions."""
    arm = kt.load("planar_2r")
    task = Task(
        name="Terms",
        motion=Dynamics(system=arm, dt=0.01, control=lambda now: now.action),
        actions=Continuous((-1.0, -1.0), (1.0, 1.0)),
        observation=("q", "qd"),
        reward={
            "sum": Term("sum", "q", weight=2.0), "squares": Term("squares", ("q", "qd")),
            "distance": Term("distance", "q", ("a", 0.5)), "absolute": Term("absolute", "qd", -0.1),
            "near": Term("near", "q.1", "a", width=0.3), "alive": Term(weight=0.25),
        },
        reset=lambda draw: {"q": draw.uniform(-1.0, 1.0, 2), "a": draw.uniform()},
        truncated=(Limit("q", above=0.9), Limit(("q", "qd"), kind="squares", to=0.1, below=0.05, above=1.5)),
    )  # fmt: skip
    batch = Batch(task, 50, "disabled")
    batch.reset(1)
    *_, truncated = batch.step(np.zeros((50, 2)))
    q, qd, a, t = batch.q, batch.qd, batch.kept("a"), batch.terms
    both = np.concatenate([q, qd], axis=1)
    assert_close(t["sum"], 2.0 * q.sum(axis=1), 1e-14, "sum")
    assert_close(t["squares"], (both**2).sum(axis=1), 1e-14, "squares")
    assert_close(t["distance"], np.hypot(q[:, 0] - a, q[:, 1] - 0.5), 1e-14, "distance")
    assert_close(t["absolute"], np.abs(qd + 0.1).sum(axis=1), 1e-14, "absolute")
    assert_close(t["near"], np.exp(-(((q[:, 1] - a) / 0.3) ** 2)), 1e-14, "near")
    assert (t["alive"] == 0.25).all()
    far = ((both - 0.1) ** 2).sum(axis=1)
    wanted = (q > 0.9).any(axis=1) | (far < 0.05) | (far > 1.5)
    assert (truncated == wanted).all() and 0 < wanted.sum() < 50


FAULTS = [
    ([('mechanism = "planar_2r"', "")], "task: 'mechanism' is missing"),
    ([('"planar_2r"', '"planar_9r"')], r"reach.toml:4: task, mechanism: .*no library mechanism 'planar_9r'.*planar_2r"),
    ([('"planar_2r"', '"../arm.toml"')], "not the name of a file in the folder of the experiment"),
    ([("dt = 0.02", "")], "task: 'dt' is missing"),
    ([("dt = 0.02", "dt = 0")], "reach.toml:5: task, dt: dt is 0; give more than zero"),
    ([("substeps = 2", "substeps = 2.5")], "reach.toml:6: task, substeps: a number where a whole number belongs"),
    ([("max_steps = 100", "max_step = 100")], "reach.toml:7: task: no key 'max_step'.*max_steps"),
    ([('"target", "action"', '"goal", "action"')], r"reach.toml:9: task, observation: no value 'goal'; .*target"),
    ([('"tool.position", "target", "action"', '"tool.position.3"')], "'tool.position.3' has no entry 3; .*has 3"),
    ([('kind = "velocity"', 'kind = "speed"')], "reach.toml:12: action, kind: no action of kind 'speed'.*velocity"),
    ([('"joint1", "joint2"', '"joint1", "joint3"')], "reach.toml:13: action, joints: no joint 'joint3'.*joint2"),
    ([("low = -3", "low = [-3, -2, -1]")], "reach.toml:14: action, low: 3 numbers; give one, or 2, as of joints"),
    ([("high = 3", "high = -3")], "low < high"),
    ([("c = 0.5 ", "k = 0.5 ")], "reach.toml:16: action, k: actions of kind 'velocity' have no k; use position"),
    ([("limit = [6, 3]", "limit = [6, 0]")], "reach.toml:17: action, limit: limit is 0; give more than zero"),
    ([('kind = "distance"', 'kind = "far"')], "reward 1.*no kind of term 'far'.*distance"),
    ([('to = "target"\nweight', 'to = "goal"\nweight')], "reward 1: no value 'goal'.*target"),
    ([('"tool.position"\nto = "target"\nweight', '"q"\nto = "target"\nweight')], "q has 2 numbers, and to has 3"),
    ([("width = 0.05", "")], "reward 2: a term of kind 'near' needs a width"),
    ([("width = 0.05", "width = -1")], "reward 2.*: width is -1; give more than zero"),
    ([('name = "reached"\n', "")], "reward 2: two terms have the name 'tool.position'; add name"),
    ([("above = 50", ""), ("below = -50", "")], "truncated 1: a limit of qd has no bound; give below or above"),
    ([('of = "qd"\nabove', 'of = "speed"\nabove')], "truncated 1: no value 'speed'"),
    ([("joint2 = { normal", "joint7 = { normal")], "start, q, joint7: no joint 'joint7'"),
    ([("{ normal = [0, 0.5] }", "{ normal = [0] }")], "start, q, joint2, normal: 1 numbers; give 2"),
    ([("{ normal = [0, 0.5] }", "{ even = [0, 1] }")], "start, q, joint2: no key 'even'.*uniform"),
    ([("{ normal = [0, 0.5] }", "{ normal = [0, 1], uniform = [0, 1] }")], "2 distributions; give one of uniform"),
    ([("target = {", "q = {")], "draw, q: 'q' is not a name of a number; use"),
    ([('position = "tool"', 'position = "hand"')], "draw, target, position: no frame 'hand'.*tool"),
    ([('"mass.link2"', '"mass.link5"')], "parameters, mass.link5: .*mass.link5"),
    ([('kind = "pd_gravity"', 'kind = "pid"')], "no control of kind 'pid'.*pd_gravity"),
    ([("[parameters]", "[randomise]")], "no table 'randomise'; .*parameters"),
    ([(SOURCE[SOURCE.index("[[reward]]") : SOURCE.index("[[truncated]]")], "")], "reward: there is no reward; add"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(FAULTS)))
def test_errors_name_the_line_and_what_is_available(read, case):
    """Name the place and a remedy for each fault of a file."""
    replaced, text = FAULTS[case]
    with pytest.raises(ModelError, match=text) as error:
        read(*replaced)
    assert "reach.toml" in str(error.value)


def test_errors_of_terms_in_python():
    """Name what is wrong with a term or a limit."""
    for make, text in (
        (lambda: Term("sum", 3), "of is 3; give the name of a value"),
        (lambda: Term("distance"), "a term of kind 'distance' needs the names of its values"),
        (lambda: Term("sum", "q", weight="big"), "weight is 'big'; give a number"),
        (lambda: Term("sum", "q", width=1.0), "a term of kind 'sum' has no width"),
        (lambda: Limit("q", kind="near", below=1.0), "a limit has no kind 'near'"),
    ):
        with pytest.raises(KinetreeError, match=text):
            make()


LINES = SOURCE.splitlines()


@examples(100)
@given(data=st.data())
def test_mutations_give_a_task_or_an_error(data, tmp_path_factory):
    """Change lines and numbers of the example: the result is a task, or an error that names the file."""
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 3))):
        if lines:
            k = data.draw(st.integers(0, len(lines) - 1))
            word = data.draw(st.sampled_from(
                ["nan", "inf", "1e400", "-1", "0", '"x"', "[]", "{}", "[[1]]", "true", '"q"', '"pi/0"', "1_0", '"' * 3]
            ))  # fmt: skip
            numbers = list(re.finditer(r"-?\d+(\.\d+)?|\"[^\"]*\"|=", lines[k]))
            if numbers and data.draw(st.booleans()):
                m = data.draw(st.sampled_from(numbers))
                lines[k] = lines[k][: m.start()] + word + lines[k][m.end() :]
            else:
                lines[k : k + 1] = data.draw(st.sampled_from([[], [lines[k]] * 2, [word], [lines[k][:-1]]]))
    path = tmp_path_factory.mktemp("mutated") / "reach.toml"
    path.write_text("\n".join(lines))
    try:
        assert isinstance(read_task(path), Task)
    except ModelError as error:
        assert "reach.toml" in str(error)
