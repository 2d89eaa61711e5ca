"""Steps of environments for learning on one core, compared with Gymnasium's vector environments and EnvPool."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import kinetree as kt
from book import Section
from kinetree.environments.robots import TASKS, arm_reach
from kinetree.environments.tasks import Discrete, Task
from kinetree.environments.vector import Batch
from measure import Contender, Figure, NotMeasured, agree, interleaved, ratio
from report import Table
from robot_files import ROBOTS

MANY, FEW = 16_384, 256
"""The environments of a batch, and those of Gymnasium's loop over single environments."""
OURS, SINGLE = "ours", "ours in float32"
"""How our contenders begin, in both precisions."""
SIX_STEPS = 2e-4
"""The largest difference of observations between both precisions after six steps."""
DRAWS = 8
"""The batches of random actions that are given in turn."""
TARGETS = {"CartPole": 50, "Acrobot": 20, "UR5 reach": 5, "quadruped": 1}
"""Millions of steps per second on one core."""


def section(quick: bool) -> Section:
    """Return the steps per second of all contenders, and the ratios of Kinetree to them."""
    try:
        gymnasium = importlib.import_module("gymnasium")
    except ImportError:
        raise NotMeasured("it needs Gymnasium; pip install 'kinetree[learning]'") from None
    difference = _same_steps(gymnasium)
    contenders, substeps = _contenders(gymnasium)
    times = interleaved(contenders, 3 if quick else 15)
    for name in [x for x in times if x.endswith(", quadruped")]:
        times[f"{name}, contact steps"] = [x / substeps for x in times[name]]
    rows = []
    for name, values in times.items():
        kind, _, task = name.partition(", ")
        rate, target = Figure.of([1e3 / x for x in values]), TARGETS.get(task) if kind in (OURS, SINGLE) else None
        verdict = "-" if target is None else f">= {target}: {'met' if rate.median >= target else 'missed'}"
        rows.append((name, rate.text(3), verdict))
    pairs = [
        (f"{OURS}, {task}", name)
        for task in ("CartPole", "Acrobot", "Pendulum")
        for name in times
        if name.endswith(f", {task}") and not name.startswith("ours")
    ]
    ratios = [(ours, peer, ratio(times[peer], times[ours]).text()) for ours, peer in pairs]
    peers = [name for name in times if name.endswith(", CartPole") and not name.startswith("ours")]
    best = min(peers, key=lambda name: Figure.of(times[name]).median)
    more = ratio(times[best], times["ours, CartPole"]).median
    note = (
        f"{MANY:,} environments and one thread, except for Gymnasium's loops over {FEW} single ones. A step is a whole "
        "call: random actions checked, motion, observation (float32 by Gymnasium's interface), reward, ends, and new "
        "starts with random numbers. UR5 reach and quadruped: an action holds for 2 and 4 steps of the dynamics; "
        "contact steps are those of the dynamics. After one step from the same states, CartPole agrees with "
        f"Gymnasium's to {difference:.1e}. In float32, observations of all tasks agree with those in float64 to "
        f"{SIX_STEPS:g} (median over environments) after six steps."
    )
    rate = 1e3 / Figure.of(times["ours, CartPole"]).median
    return Section(
        "Environments for learning",
        f"{rate:.0f} million steps of CartPole per second on one core, {more:.1f} times the best of the others.",
        (
            Table("Rates", ("contender", "million steps/s", "target"), tuple(rows), note),
            Table("Ratios", ("ours", "to", "ratio"), tuple(ratios), "Of steps per second, round by round."),
        ),
    )


def _same_steps(gymnasium: Any) -> float:
    """Return the difference of CartPole from Gymnasium's vector environment after a step from the same states."""
    peer = gymnasium.make_vec("CartPole-v1", num_envs=64, vectorization_mode="vector_entry_point")
    peer.reset(seed=0)
    state, ours = np.array(peer.unwrapped.state), Batch(TASKS["CartPole"](), 64)
    ours.reset(0, state={"q": state[[0, 2]].T, "qd": state[[1, 3]].T})
    actions = np.random.default_rng(0).integers(0, 2, 64)
    peer.step(actions)
    return agree("CartPole", ours.step(actions)[0], np.array(peer.unwrapped.state).T, 1e-12)


def _same_in_float32(task: Task) -> None:
    """Require that observations in both precisions agree after six steps; contacts and loops amplify rounding."""
    exact, single = Batch(task, 64), Batch(task, 64, precision="float32")
    exact.reset(5)
    single.reset(5)
    for a in _actions(task, 64)[:6]:
        wanted, found = exact.step(a)[0], single.step(a)[0]
    off = float(np.median(np.abs(found - wanted).max(axis=1)))
    if not off < SIX_STEPS:
        raise RuntimeError(f"{task.name} in float32 differs by {off:.2g} after six steps, more than {SIX_STEPS:g}")


def _contenders(gymnasium: Any) -> tuple[dict[str, Contender], int]:
    """Return all contenders, and the steps of the dynamics in a step of the quadruped."""
    ur5 = kt.load(ROBOTS[0].path)
    found = {}
    tasks: dict[str, Task] = {name: TASKS[name]() for name in ("CartPole", "Acrobot", "Pendulum")}
    tasks |= {"UR5 reach": arm_reach(ur5, ur5.bodies[-1].name, (150.0, 150.0, 150.0, 28.0, 28.0, 28.0))}
    tasks |= {"four-bar": TASKS["FourBar"](), "quadruped": TASKS["Quadruped"]()}
    for name, task in tasks.items():
        _same_in_float32(task)
        for kind, precision in ((OURS, "float64"), (SINGLE, "float32")):
            batch = Batch(task, MANY, precision=precision)
            batch.reset(seed=0)
            found[f"{kind}, {name}"] = Contender(_turns(batch.step, _actions(task, MANY)), MANY)
    envs = kt.env(tasks["CartPole"], MANY)
    envs.reset(seed=0)
    found["ours by Gymnasium's interface, CartPole"] = Contender(
        _turns(envs.step, _actions(tasks["CartPole"], MANY)), MANY
    )
    kinds = {"CartPole": "vector_entry_point", "Acrobot": "sync", "Pendulum": "sync"}
    for name, mode in kinds.items():
        count = FEW if mode == "sync" else MANY
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = gymnasium.make_vec(f"{name}-v1", num_envs=count, vectorization_mode=mode)
            peer.reset(seed=0)
        found[f"Gymnasium, {name}"] = Contender(_turns(peer.step, _actions(tasks[name], count)), count)
    for name in kinds:
        peer = _envpool(f"{name}-v1")
        if peer is not None:
            peer.reset()
            found[f"EnvPool, {name}"] = Contender(_turns(peer.step, _actions(tasks[name], MANY)), MANY)
    motion: Any = tasks["quadruped"].motion
    return found, motion.substeps


def _envpool(name: str) -> Any:
    """Return EnvPool's environments on one thread; None if it is not installed."""
    try:
        envpool = importlib.import_module("envpool")
    except ImportError:
        return None
    return envpool.make(name, env_type="gymnasium", num_envs=MANY, num_threads=1)


def _actions(task: Task, count: int) -> list[np.ndarray]:
    """Return batches of random actions."""
    rng, a = np.random.default_rng(1), task.actions
    if isinstance(a, Discrete):
        return [rng.integers(a.count, size=count) for _ in range(DRAWS)]
    return [rng.uniform(-1.0, 1.0, (count, a.size)).astype(np.float32) for _ in range(DRAWS)]


def _turns(step: Callable[[Any], Any], actions: list[np.ndarray]) -> Callable[[], Any]:
    """Return a function that steps with the next of some batches of actions."""
    state = [0]

    def call() -> Any:
        state[0] = (state[0] + 1) % len(actions)
        return step(actions[state[0]])

    return call
