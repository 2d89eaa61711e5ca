"""Environments: seeds, modes of resets, Gymnasium's checks, delays, kept values, and what is not finite."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import stats

import kinetree as kt
from assembler import assembled, needs_ptxas
from everyday import only
from kinetree.environments import kernels, robots, walkers
from kinetree.environments.robots import TASKS
from kinetree.environments.tasks import Continuous, Discrete, Dynamics, Equations, Task
from kinetree.environments.vector import PRECISIONS, Batch, named_task, seeded_words
from kinetree.errors import KinetreeError
from kinetree.simulation.engines.time_stepping import MEASURES
from kinetree.targets import target
from public_robots import public_robots
from same_bits import assert_same_bits
from tolerance import assert_close

QUICK = ("CartPole", "Acrobot", "Pendulum", "DoublePendulum", "ArmReach", "FourBar")


def short(name: str, **fields) -> Task:
    """Return a task of the catalog whose episodes end after some steps."""
    return named_task(name).changed(**({"max_steps": 7} | fields))


def actions(batch: Batch, rng: np.random.Generator, count: int | None = None) -> np.ndarray:
    """Return random actions."""
    n, a = count or batch.num_envs, batch.task.actions
    return rng.integers(a.count, size=n) if isinstance(a, Discrete) else rng.uniform(-1.0, 1.0, (n, a.size))


def point(**fields) -> Task:
    """Return a task of a point on a line whose velocity is the action."""
    given = {
        "name": "Point",
        "motion": Equations(1, 1, lambda now: ([now.q[0] + 0.1 * now.action[0]], [now.action[0]]), 0.1),
        "actions": Continuous((-2.0,), (4.0,)),
        "observation": ("q", "qd"),
        "reward": lambda now: now.q[0],
        "reset": lambda draw: {"q": [draw.uniform(-1.0, 1.0)]},
        "max_steps": 5,
    }
    return Task(**(given | fields))


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["Quadruped", "Biped"])
def test_gathered_contacts_give_the_same_bits_in_any_batch_and_on_threads(name, precision):
    """Throw robots around by random actions, in many vectors and in one, and compare all bits."""
    task, n, rng = short(name).changed(max_steps=40), 205, np.random.default_rng(2)
    given = [actions(Batch(task, n), rng) for _ in range(40)]

    def run(rows: slice, **options) -> tuple[np.ndarray, ...]:
        batch = Batch(task, rows.stop - rows.start, precision=precision, **options)
        out = [batch.reset(40 + rows.start)]
        for a in given:
            out += batch.step(a[rows])
        return (*out, batch._rows, batch._part("memory")[:, : -len(MEASURES) : 3].copy())

    wanted = run(slice(0, n))
    assert set(np.unique((wanted[-1] > 0.0).sum(axis=1))) >= {0, 1, 2} and wanted[0].dtype == precision
    assert_same_bits(run(slice(0, n), threads=2), wanted)
    for rows in (slice(0, 8), slice(60, 61), slice(64, 71), slice(100, 180)):
        assert_same_bits(run(rows), tuple(x[rows].copy() for x in wanted))


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        *((name, "float64") for name in QUICK),
        *((name, "float32") for name in ("CartPole", "FourBar")),
        *(pytest.param(name, "float64", marks=pytest.mark.slow) for name in ("Quadruped", "Biped", "Bicycle")),
    ],
)
def test_seeds_give_the_same_bits_in_any_batch_and_on_threads(name, precision):
    """Run 13 environments for 30 steps; the same seeds alone, in another batch and on threads give the same bits."""
    task, rng = short(name), np.random.default_rng(0)
    given = [actions(Batch(task, 13), rng) for _ in range(30)]

    def run(batch: Batch, seed, rows: slice) -> list[np.ndarray]:
        out = [batch.reset(seed)]
        for a in given:
            out += batch.step(a[rows])
        return out

    kind = {"precision": precision}
    wanted = run(Batch(task, 13, **kind), 40, slice(None))
    assert_same_bits(tuple(run(Batch(task, 13, threads=2, **kind), 40, slice(None))), tuple(wanted))
    for rows, seed in ((slice(3, 4), 43), (slice(4, 13), 44)):
        found = run(Batch(task, rows.stop - rows.start, **kind), seed, rows)
        assert_same_bits(tuple(found), tuple(x[rows].copy() for x in wanted))
    listed = run(Batch(task, 2, **kind), [52, 40], [12, 0])
    assert_same_bits(tuple(listed), tuple(x[[12, 0]] for x in wanted))
    assert np.isfinite(wanted[0]).all() and not np.array_equal(wanted[0][0], wanted[0][1])


@pytest.mark.parametrize("name", only(TASKS, ("CartPole", "FourBar")))
def test_motions_in_float32_follow_those_in_float64(name):
    """Take six steps of 64 environments in both precisions; loops near dead centers and contacts amplify rounding."""
    task, rng = named_task(name), np.random.default_rng(3)
    exact, single = Batch(task, 64), Batch(task, 64, precision="float32")
    for k in range(7):
        if k == 0:
            wanted, found = exact.reset(5), single.reset(5)
        else:
            a = actions(exact, rng)
            (wanted, *_), (found, *_) = exact.step(a), single.step(a)
        off = np.abs(found - wanted).max(axis=1)
        assert found.dtype == np.float32 and 0.0 <= np.median(off) < 2e-4 and off.max() < 2e-2
    assert_same_bits(single._words, exact._words)  # their random numbers are the same
    assert off.max() > 0.0 and single.lost == 0
    envs = kt.env(task, 4, precision="float32")
    assert envs.batch.precision == "float32" and envs.reset(seed=1)[0].dtype == np.float32
    assert kt.env(task, precision="float32").batch.q.dtype == np.float32


@pytest.mark.parametrize("name", ["CartPole", "FourBar"])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_modes_of_resets_follow_from_masks(name, mode):
    """Compare both modes with environments that are reset by hand, which draw the same random numbers."""
    task, rng, n = short(name, max_steps=5), np.random.default_rng(1), 11
    batch, plain = Batch(task, n, mode), Batch(task, n, "disabled")
    assert_same_bits(batch.reset(9), plain.reset(9))
    plain._part("steps")[:] = batch._part("steps")[:] = np.arange(n)[:, None] % 4.0
    ended = np.zeros(n, bool)
    for _ in range(20):
        a = actions(batch, rng)
        found, reward, terminated, truncated = batch.step(a)
        if mode == "next_step":
            due = ended.copy()
            again = plain.reset(mask=due) if due.any() else None
            kept = plain._rows[due].copy()
            wanted = list(plain.step(a))
            if again is not None:
                plain._rows[due] = kept
                for x, value in zip(wanted, (again[due], 0.0, False, False), strict=True):
                    x[due] = value
            ended = wanted[2] | wanted[3]
        else:
            wanted = list(plain.step(a))
            done = wanted[2] | wanted[3]
            assert_same_bits(batch.final, wanted[0].copy())
            if done.any():
                wanted[0][done] = plain.reset(mask=done)[done]
        assert_same_bits((found, reward, terminated, truncated), tuple(wanted))
    assert_same_bits(batch.q.copy(), plain.q.copy())


@pytest.mark.parametrize("name", only(TASKS, ("CartPole", "Acrobot", "Pendulum", "UR5Reach", "FourBar")))
def test_gymnasiums_checks(name):
    """Run Gymnasium's checks on single environments, whose warnings are about bounds of the spaces."""
    gymnasium = pytest.importorskip("gymnasium")
    if name in ("UR5Reach", "PandaReach"):
        public_robots()  # or skipped
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from gymnasium.utils.env_checker import check_env

        single = kt.env(name)
        assert isinstance(single, gymnasium.Env)
        check_env(single, skip_render_check=True)
    assert all("infinity" in str(x.message) or "symmetric" in str(x.message) for x in caught)


@pytest.mark.parametrize("mode", kernels.MODES)
def test_vector_environments_of_gymnasium(mode):
    """Step with all modes of resets: spaces, types, infos, and episode statistics by a wrapper."""
    gymnasium = pytest.importorskip("gymnasium")
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.wrappers.vector import RecordEpisodeStatistics

    envs = kt.env("CartPole", 16, autoreset=mode)
    assert isinstance(envs, VectorEnv) and envs.metadata["autoreset_mode"] is AutoresetMode[mode.upper()]
    assert envs.single_action_space == gymnasium.spaces.Discrete(2)
    observation, infos = envs.reset(seed=3)
    assert envs.observation_space.contains(observation) and infos == {}
    assert envs.np_random_seed == 3
    envs.action_space.seed(1)
    counted = 0
    for _ in range(80):
        found, reward, terminated, truncated, infos = envs.step(envs.action_space.sample())
        assert found.dtype == np.float32 and envs.observation_space.contains(found)
        assert reward.shape == terminated.shape == truncated.shape == (16,) and terminated.dtype == bool
        done = terminated | truncated
        counted += done.sum()
        assert ("final_obs" in infos) == (mode == "same_step" and bool(done.any()))
        if "final_obs" in infos:
            k = int(np.flatnonzero(done)[0])
            assert envs.single_observation_space.contains(infos["final_obs"][k]) and infos["_final_obs"][k]
            assert abs(infos["final_obs"][k][2]) > 0.2 and abs(found[k][2]) < 0.06
        if mode == "disabled" and done.any():
            observation, _ = envs.reset(options={"reset_mask": done})
            assert (np.abs(observation[done]) < 0.05).all()
            np.testing.assert_array_equal(observation[~done], found[~done])
    assert counted > 16
    if mode != "disabled":
        recorded = RecordEpisodeStatistics(kt.env("CartPole", 16, autoreset=mode))
        recorded.reset(seed=3)
        for _ in range(60):
            recorded.step(recorded.action_space.sample())
        assert recorded.episode_count > 0


def test_registered_tasks():
    """Make environments by Gymnasium's names, single ones and vectors."""
    gymnasium = pytest.importorskip("gymnasium")
    assert gymnasium.make_vec("kinetree/Pendulum-v0", num_envs=3).num_envs == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        single = gymnasium.make("kinetree/Acrobot-v0")
        observation, _ = single.reset(seed=1)
        assert observation.shape == (6,) and len(single.step(1)) == 5


NAMED = """
import gymnasium, sys
assert "kinetree" not in sys.modules
print(gymnasium.make_vec("kinetree.environments:kinetree/Pendulum-v0", num_envs=3))
print(gymnasium.make("kinetree/Pendulum-v0", precision="float32").unwrapped)
"""


def test_tasks_need_no_gymnasium(tmp_path):
    """Step a batch in a process whose Gymnasium cannot be imported; its own interface says so."""
    (tmp_path / "gymnasium.py").write_text("raise ImportError('damaged')\n")
    program = """
import kinetree as kt
from kinetree.environments.vector import Batch, named_task
print(Batch(named_task("Pendulum"), 2).reset(1).shape)
try:
    kt.env("Pendulum")
except kt.InputError as error:
    print(error)
"""
    given = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=given)
    assert done.stdout.splitlines()[0] == "(2, 3)" and "Environments need the package gymnasium" in done.stdout


def test_gymnasium_finds_the_tasks_by_name():
    """Make environments in a process that has imported Gymnasium alone, which imports the module of the name."""
    pytest.importorskip("gymnasium")
    done = subprocess.run([sys.executable, "-W", "error", "-c", NAMED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "<Environments of 'Pendulum': 3 environments in float64>",
        "<Environment of 'Pendulum': 1 environment in float32>",
    ]


def test_random_numbers_are_those_of_the_published_generator():
    """Compare draws with the recursion in whole numbers of Python, and their distribution with the even one."""
    task = point(reset=lambda draw: {"q": [draw.uniform()], "more": draw.uniform(0.0, 1.0, 3)})
    batch = Batch(task, 500)
    seeds = np.arange(500, dtype=np.uint64) + np.uint64(17)
    batch.reset(17)
    for k in (0, 3, 499):
        x, y = [int(w) for w in seeded_words(seeds)[k, :3]], [int(w) for w in seeded_words(seeds)[k, 3:]]
        wanted = []
        for _ in range(4):
            p1 = (1403580 * x[1] - 810728 * x[0]) % 4294967087
            p2 = (527612 * y[2] - 1370589 * y[0]) % 4294944443
            x, y = [*x[1:], p1], [*y[1:], p2]
            wanted.append((p1 - p2) % 4294967087 if p1 != p2 else 4294967087)
        found = np.concatenate([batch.q[k], batch.kept("more")[k]])
        assert_close(found, np.array(wanted) / 4294967088.0, 3e-16, "even numbers")
    values = []
    for _ in range(20):
        batch.reset()
        values += [batch.q.ravel().copy(), batch.kept("more").ravel().copy()]
    every = np.concatenate(values)
    assert stats.kstest(every, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(every[:-1], every[1:])[0, 1]) < 0.02


def test_draws_of_other_distributions():
    """Draw normal numbers and choices: their means and deviations."""
    task = point(reset=lambda draw: {
        "q": [draw.normal(0.3, 2.0)], "one": draw.choice([1.0, 2.0, 5.0]), "two": draw.normal(size=2),
    })  # fmt: skip
    batch = Batch(task, 20000)
    batch.reset(2)
    assert stats.kstest(batch.q.ravel(), "norm", (0.3, 2.0)).pvalue > 1e-3
    assert stats.kstest(batch.kept("two").ravel(), "norm").pvalue > 1e-3
    counts = [np.count_nonzero(batch.kept("one") == x) for x in (1.0, 2.0, 5.0)]
    assert sum(counts) == 20000 and min(counts) > 6300


def test_actions_are_scaled_clipped_and_delayed():
    """Follow a point whose velocity is the action of two steps before, from the middle of the bounds."""
    for delay in (0, 1, 2, 3):
        batch = Batch(point(delay=delay, max_steps=100), 1)
        batch.reset(0, state={"q": [0.0]})
        given = np.array([0.5, -3.0, 1.0, 0.0, -0.25, 1.5])
        scaled = np.clip(given, -1.0, 1.0) * 3.0 + 1.0
        acted = np.concatenate([np.ones(delay), scaled])[: len(given)]
        found = [batch.step(np.array([[a]]))[0][0] for a in given]
        assert_close([x[1] for x in found], acted, 1e-14, f"velocities with a delay of {delay}")
        assert_close([x[0] for x in found], 0.1 * np.cumsum(acted), 1e-14, "positions")
    plain = Batch(point(actions=Continuous((-2.0,), (4.0,), scaled=False)), 1)
    plain.reset(0)
    assert plain.step(np.array([[9.0]]))[0][0, 1] == 4.0


def test_episodes_end_in_time():
    """Cut an episode after five steps, or by a condition, and begin the next one with new numbers."""
    batch = Batch(point(truncated=lambda now: now.q[0] > 3.0), 3)
    batch.reset(0, state={"q": [[0.0], [0.0], [2.75]]})
    a = np.array([[1.0], [0.0], [1.0]])
    cuts = [batch.step(a)[3].tolist() for _ in range(5)]
    assert cuts == [[False, False, True], *[[False] * 3] * 3, [True, True, False]]
    assert batch.steps.tolist() == [5.0, 5.0, 3.0]
    observation, reward, *ends = batch.step(a)
    assert (reward[:2] == 0.0).all() and not np.any(ends) and (np.abs(observation[:2, 0]) < 1.0).all()


def test_what_is_not_finite_is_reset_counted_and_reported():
    """Give a reward that is not finite beyond a place, and a state that is not: both end, and others go on."""
    task = point(
        motion=Equations(1, 1, lambda now: ([now.q[0] + 0.1 * now.action[0]], [now.q[0] * 1e200]), 0.1),
        reward=lambda now: kt.smooth.sqrt(now.q[0]),
        reset=lambda draw: {"q": [draw.uniform(0.5, 1.0)]},
    )
    for mode in kernels.MODES:
        batch = Batch(task, 4, mode)
        batch.reset(0, state={"q": [[0.5], [-3.0], [0.6], [1e200]]})
        observation, reward, terminated, truncated = batch.step(np.zeros((4, 1)))
        assert truncated.tolist() == [False, True, False, True] and not terminated.any()
        assert batch.lost == 2 and batch.lost_now.tolist() == [False, True, False, True]
        assert np.isfinite(observation).all() and reward[1] == reward[3] == 0.0 and reward[0] > 0.7
        if mode != "disabled":
            observation, *_ = batch.step(np.zeros((4, 1)))
            assert (batch.q < 3.0).all() and np.isfinite(batch.qd).all() and batch.lost == 2
    both = Batch(point(reward={"a": lambda now: kt.smooth.sqrt(now.q[0]), "b": lambda now: 1.0}), 2)
    both.reset(0, state={"q": [[-3.0], [0.3]]})
    _, reward, *_ = both.step(np.zeros((2, 1)))
    assert both.terms["a"][0] == both.terms["b"][0] == 0.0 and reward[1] == both.terms["a"][1] + 1.0
    nan = Batch(point(), 2)
    nan.reset(0)
    *_, truncated = nan.step(np.array([[np.nan], [0.0]]))
    assert truncated.tolist() == [True, False] and nan.lost == 1
    pytest.importorskip("gymnasium")
    envs = kt.env(point(reward=lambda now: kt.smooth.sqrt(now.q[0])), 2)
    envs.reset(seed=0, options={"q": [[-2.0], [0.5]]})
    *_, infos = envs.step(np.zeros((2, 1), np.float32))
    assert infos["lost"].tolist() == [True, False]


def test_mechanisms_have_random_parameters_terms_and_places():
    """Give each arm its own masses: steps equal those of the stepper with the same parameters and torques."""
    arm = kt.with_free(kt.load("planar_2r"), "mass.*")
    names = [p.name for p in arm.mechanism.free_parameters]
    task = Task(
        name="Reach",
        motion=Dynamics(system=arm, dt=0.02, substeps=2, control=lambda now: [now.action[0], now["gain"] * now.qd[1]]),
        actions=Continuous((-3.0,), (3.0,)),
        observation=("q", "qd", "link2.position", "link2.velocity", "gain", names[0], "action"),
        reward={"speed": lambda now: -now.qd[0], "effort": lambda now: -0.5 * now.action[0]},
        reset=lambda draw: {
            "q": draw.uniform(-1.0, 1.0, 2), "parameters": {names[0]: draw.uniform(0.4, 0.9)}, "gain": draw.uniform(),
        },
    )  # fmt: skip
    batch, rng = Batch(task, 9), np.random.default_rng(3)
    batch.reset(5)
    q, qd, values = batch.q.copy(), batch.qd.copy(), batch.parameters.copy()
    gain, a = batch.kept("gain").copy(), rng.uniform(-1.0, 1.0, (9, 1))
    assert len(set(values[:, 0])) == 9 and (values[:, 1:] == values[0, 1:]).all()
    observation, reward, _, _ = batch.step(a)
    for k in range(9):
        law = kt.TorqueFunction(lambda t, q, qd, k=k: [3.0 * float(a[k, 0]), float(gain[k]) * qd[1]])
        step = arm.stepper(dt=0.02, substeps=2, control=law)
        found = step(q[k], qd[k], parameters=values[k])
        assert_close(batch.q[k], found[0], 1e-14, "coordinates against the stepper")
        assert_close(batch.qd[k], found[1], 1e-13, "velocities against the stepper")
    poses = arm.pose(batch.q, "link2")
    assert_close(observation[:, 4:7], poses[:, :3, 3], 1e-14, "position of a body")
    speed = arm.velocity(batch.q, batch.qd, "link2") if hasattr(arm, "velocity") else None
    assert speed is None or np.shape(speed)[0] == 9
    assert_same_bits(observation[:, 10].copy(), gain)
    assert_same_bits(observation[:, 11].copy(), values[:, 0].copy())
    assert_close(batch.terms["speed"] + batch.terms["effort"], reward, 1e-15, "terms of the reward")
    assert_close(batch.terms["effort"], -1.5 * a[:, 0], 1e-15, "one term")


def test_recorded_motions_are_trajectories():
    """Record a four-bar that runs freely: its samples are those of a run, up to the end of the episode."""
    batch = Batch(short("FourBar", max_steps=30), 5)
    run = batch.record(lambda observation: np.zeros((5, 1)), 100, seed=3, index=2)
    assert run.t[-1] == 0.3 and run.method == "rk4" and run.q.shape == (31, 3)
    wanted = kt.simulate(kt.load("four_bar"), run.q[0], run.qd[0], times=run.t, dt=0.01)
    assert_close(run.q, wanted.q, 1e-11, "coordinates against a run")
    assert_close(run["energy"], wanted["energy"], 1e-11, "energy")
    with pytest.raises(KinetreeError, match="index is 5; there are 5 environments"):
        batch.record(lambda observation: np.zeros((5, 1)), 3, index=5)
    with pytest.raises(KinetreeError, match="Point has equations without a mechanism.*give kt.Equations"):
        Batch(point(), 2).record(lambda observation: np.zeros((2, 1)), 3)


def test_recorded_classics_are_trajectories(tmp_path):
    """Record a pendulum without torque: its energy stays up to its long steps, and its page is written."""
    batch = Batch(named_task("Pendulum").changed(max_steps=50), 2)
    run = batch.record(lambda observation: np.zeros((2, 1)), 60, seed=4, index=1)
    assert run.q.shape == (51, 1) and run.t[-1] == 50 * 0.05
    assert np.ptp(run["energy"]) < 0.25 * np.ptp(run["potential_energy"])  # by a symplectic step
    assert run.page(tmp_path / "pendulum.html") is not None and (tmp_path / "pendulum.html").stat().st_size > 1e5


@pytest.mark.parametrize("name", ["CartPole", "FourBar"])
def test_pictures_show_the_state(name):
    """Draw environments by Gymnasium's render: other states give other pictures, the same state the same one."""
    pytest.importorskip("gymnasium")
    envs = kt.env(name, 2, render_mode="rgb_array")
    assert envs.metadata["render_modes"] == ["rgb_array"] and envs.metadata["render_fps"] in (50, 100)
    envs.reset(seed=1)
    a = np.zeros(2, int) if name == "CartPole" else np.zeros((2, 1), np.float32)
    for _ in range(5):
        envs.step(a)
    first, second = envs.render()
    assert first.shape == (480, 640, 3) and first.dtype == np.uint8
    assert 0.005 < np.mean(np.any(first < 200, axis=-1)) < 0.5 and (first != second).any()
    np.testing.assert_array_equal(envs.render()[0], first)
    single = kt.env(name, render_mode="rgb_array")
    single.reset(seed=1)
    assert single.render().shape == (480, 640, 3) and kt.env(name).render() is None


def test_errors_of_pictures():
    """Name render modes and environments that exist, and what a task of equations needs."""
    pytest.importorskip("gymnasium")
    with pytest.raises(KinetreeError, match="no render mode 'human'.*rgb_array"):
        kt.env("CartPole", render_mode="human")
    with pytest.raises(KinetreeError, match="Point has equations without a mechanism, which has no pictures"):
        kt.env(point(), 2, render_mode="rgb_array")
    with pytest.raises(KinetreeError, match="index is 2; there are 2 environments"):
        Batch(named_task("CartPole"), 2).picture(2)
    with pytest.raises(KinetreeError, match="system has 2 coordinates and 2 velocities; the equations have 1 and 1"):
        Equations(1, 1, lambda now: ([], []), 0.1, kt.load("planar_2r"))


def test_loops_of_starts_are_closed():
    """Draw the angle of a crank: the start is closed to rounding, and stays so over an episode."""
    batch, rng = Batch(named_task("FourBar"), 20), np.random.default_rng(0)
    batch.reset(1)
    bars = kt.load("four_bar")
    assert len(set(batch.q[:, 0].round(6))) > 4
    for _ in range(20):
        batch.step(actions(batch, rng))
        assert np.abs(bars.closure_residual(batch.q)).max() < 1e-12
    assert batch.lost == 0


def test_a_bicycle_rides_alone_at_some_speeds():
    """Push bicycles without touching the handlebar: at 5 m/s the lean fades, at 2 m/s they fall."""
    batch = Batch(named_task("Bicycle"), 2, "disabled")
    batch.reset(0)
    speeds = batch.qd / batch.qd[:, 3:4] * np.array([[5.0], [2.0]])
    speeds[:, 0] = 0.3
    batch.reset(0, state={"qd": speeds})
    fallen = np.zeros(2, bool)
    for _ in range(200):
        observation, _, terminated, _ = batch.step(np.zeros((2, 1)))
        fallen |= terminated
    assert fallen.tolist() == [False, True] and abs(observation[0, 0]) < 0.01


@pytest.mark.slow
def test_quadruped_stands_with_forces_that_carry_it():
    """Hold the standing posture for two seconds: the forces of the feet are the weight in the mean."""
    batch = Batch(named_task("Quadruped"), 3)
    batch.reset(0)
    for _ in range(100):
        observation, _, terminated, _ = batch.step(np.zeros((3, 12)))
        assert not terminated.any()
    assert (np.abs(batch.q[:, 1] - 0.48) < 0.05).all() and (observation[:, -4:] == 1.0).all() and batch.lost == 0


@pytest.mark.slow
def test_rough_ground_carries_the_quadruped():
    """Set robots down on bumps: they stand on feet of different heights, within those of the bumps and their spline."""
    batch = Batch(named_task("QuadrupedRough"), 4, "disabled")
    batch.reset(0)
    q = batch.q.copy()
    q[:, 1], q[:, 2] = 0.62, [3.0, 4.1, 5.3, 6.2]
    batch.reset(0, state={"q": q})
    for _ in range(60):
        *_, terminated, _ = batch.step(np.zeros((4, 12)))
        assert not terminated.any()
    robot = kt.load("quadruped")
    heights = np.stack([robot.pose(batch.q, f"foot_{x}")[:, 1, 3] for x in "abcd"], axis=1)
    assert (heights > -0.01).all() and (heights < 1.3 * walkers.ROUGH).all() and batch.lost == 0
    assert (np.ptp(heights, axis=1) > 2e-3).all()


@pytest.mark.slow
def test_feet_of_the_biped_carry_it():
    """Let bipeds stand in their posture: the mean force of heels and toes is the weight, 9.4 kg."""
    task = named_task("Biped")
    names = [f"{end}_{x}.force.0" for x in "ab" for end in ("heel", "toe")]
    batch = Batch(task.changed(observation=names, low=None, high=None, reset=lambda draw: {"command": 0.0}), 1)
    batch.reset(0, state={"q": [0.0, 1.15, -math.pi / 2, *walkers.STANCE, *walkers.STANCE]})
    forces = np.array([batch.step(np.zeros((1, 6)))[0][0].sum() for _ in range(25)])
    assert abs(forces[5:].mean() / (9.4 * 9.81) - 1.0) < 0.05 and batch.lost == 0


@pytest.mark.parametrize(
    ("name", "file", "tip"),
    [
        ("UR5Reach", "ur_description/urdf/ur5_robot.urdf", "tool0"),
        pytest.param("PandaReach", "panda_description/urdf/panda.urdf", "panda_hand", marks=pytest.mark.slow),
    ],
)
def test_public_arms_reach(name, file, tip):
    """Move the tips of arms straight to their targets by damped least squares: three of four come within 5 cm."""
    public_robots()  # or skipped
    batch = Batch(named_task(name), 64)
    arm, count = robots.public_robot(file), batch.task.actions.size
    batch.reset(0)
    for _ in range(150):
        J = arm.jacobian(batch.q, tip)[:, 3:, :count]
        lacking = batch.kept("target") - arm.pose(batch.q, tip)[:, :3, 3]
        speeds = np.linalg.solve(J @ J.swapaxes(1, 2) + 0.01 * np.eye(3), 3.0 * lacking[..., None])
        batch.step((J.swapaxes(1, 2) @ speeds)[..., 0] / robots.SPEED)
    assert_close(
        batch.terms["distance"],
        -np.linalg.norm(arm.pose(batch.q, tip)[:, :3, 3] - batch.kept("target"), axis=1),
        1e-12,
        "distance",
    )
    assert np.mean(batch.terms["distance"] > -0.05) > 0.75 and batch.lost == 0


def test_public_robots_need_their_package(monkeypatch):
    """Name the package whose model is missing."""

    def missing(name):
        raise robots.PackageNotFoundError(name)

    monkeypatch.setattr(robots, "distribution", missing)
    with pytest.raises(KinetreeError, match="in the package example-robot-data; pip install example-robot-data"):
        named_task("UR5Reach")


@needs_ptxas
@pytest.mark.parametrize("name", ["CartPole", "ArmReach"])
def test_ptx_is_assembled(name, tmp_path):
    """Assemble the step of environments for a graphics card."""
    made = kernels.Compilable(named_task(name))
    ptx = target("ptx")
    code = ptx.build(ptx.emit(kernels.step_kernel(made, "same_step"), "float64"))
    registers, _ = assembled(code, tmp_path)["kernel"]
    assert 0 < registers <= 255


def test_errors_of_calls():
    """Name what is wrong with actions, seeds, masks, states and sizes."""
    batch = Batch(named_task("CartPole"), 4)
    with pytest.raises(KinetreeError, match="call reset before step"):
        batch.step(np.zeros(4, int))
    batch.reset(0)
    for a, text in (
        (np.zeros(3, int), r"actions have shape \(3,\) and type int64; CartPole takes whole numbers of shape \(4,\)"),
        (np.zeros(4), "type float64; CartPole takes whole numbers"),
        (np.array([0, 1, 2, 0]), r"actions\[2\] is 2; CartPole takes 0 to 1"),
        ("x", "CartPole takes whole numbers"),
    ):
        with pytest.raises(KinetreeError, match=text):
            batch.step(a)
    for arguments, text in (
        ({"seed": -1}, "seed is -1; give a whole number of at least 0"),
        ({"seed": [1, 2]}, "give a whole number, or 4 of them"),
        ({"mask": np.ones(3, bool)}, r"expected bool of \(4,\)"),
        ({"state": {"q": np.zeros(3)}}, r"q has shape \(3,\); expected \(4, 2\), or \(2,\) for all"),
        ({"state": {"x": 1.0}}, "no part of a state"),
    ):
        with pytest.raises(KinetreeError, match=text):
            batch.reset(**arguments)
    with pytest.raises(KinetreeError, match=r"num_envs is 10000000000: they take .* GiB, and this machine has"):
        Batch(named_task("CartPole"), 10**10)
    with pytest.raises(KinetreeError, match="no autoreset mode 'later'"):
        Batch(named_task("CartPole"), 4, "later")
    with pytest.raises(KinetreeError, match="no value of the episode 'x'"):
        batch.kept("x")
    with pytest.raises(KinetreeError, match="no task 'Cart'"):
        named_task("Cart")
    pytest.importorskip("gymnasium")
    with pytest.raises(KinetreeError, match="no option of a reset 'low'"):
        kt.env("CartPole", 2).reset(options={"low": 1})


def test_errors_of_tasks():
    """Name what is wrong with a task: unknown names, shapes, and functions that cannot be compiled."""
    for fields, text in (
        ({"observation": ("q", "speed")}, "no value 'speed'"),
        ({"observation": ()}, "observes nothing"),
        ({"reward": {}}, "give a function, or functions by name"),
        ({"reward": lambda now: "much"}, "reward 'reward' of task 'Point' is 'much'"),
        ({"reward": lambda now: math.sin(now.q[0])}, "reward of task 'Point' cannot be compiled"),
        ({"terminated": lambda now: now.q[0]}, "terminated returned .*; return a condition, such as x < y"),
        ({"reset": lambda draw: [1.0]}, "return a mapping"),
        ({"reset": lambda draw: {"q": [0.0, 1.0]}}, "reset returned q with 2 entries; expected 1"),
        ({"reset": lambda draw: {"parameters": {"m": 1.0}}}, "no free parameter 'm'"),
        ({"observation": lambda now: now["target"]}, "no value of the episode 'target'"),
        ({"observation": lambda now: now.position("tip")}, "a task of equations has no bodies or frames"),
        ({"low": (0.0,)}, ""),
    ):
        if fields.get("low"):
            pytest.importorskip("gymnasium")
            with pytest.raises(KinetreeError, match="has 1 numbers in low; it observes 2"):
                kt.env(point(**fields), 2)
            continue
        with pytest.raises(KinetreeError, match=text):
            Batch(point(**fields), 2)
    with pytest.raises(KinetreeError, match="max_steps is 0"):
        point(max_steps=0)
    with pytest.raises(KinetreeError, match="actions is 3"):
        point(actions=3)
    with pytest.raises(KinetreeError, match="low < high"):
        Continuous((1.0,), (1.0,))
    with pytest.raises(KinetreeError, match="count is 1"):
        Discrete(1)
    arm = kt.load("planar_2r")
    for control, text in (
        (lambda now: [1.0], "control returned 1 torques; expected 2, or a mapping from joints"),
        (lambda now: {"elbow": 1.0}, "no joint 'elbow'"),
    ):
        with pytest.raises(KinetreeError, match=text):
            Batch(point(motion=Dynamics(system=arm, dt=0.01, control=control), reset=None), 2)
