"""Trained policies: networks as arrays, as compiled and exported controllers, and in runs of simulate."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import everyday
import kinetree as kt
from c_compiler import called, library, needs_compiler
from kinetree.environments import policies
from kinetree.environments.policies import Policy, PolicyControl, simulate_task
from kinetree.environments.tasks import Continuous, Dynamics, Task
from kinetree.environments.vector import PRECISIONS, Batch, named_task
from kinetree.errors import KinetreeError
from same_bits import assert_same_bits
from tolerance import assert_close

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def network(observed: int, size: int, activation: str = "tanh", seed: int = 0) -> Policy:
    """Return a network with one hidden layer and random numbers."""
    rng = np.random.default_rng(seed)
    layers = [(rng.normal(size=(m, n)) / np.sqrt(n), rng.normal(size=m) * 0.1) for n, m in ((observed, 9), (9, size))]
    return Policy(tuple(layers), activation, rng.normal(size=observed), rng.uniform(0.5, 2.0, observed), clipped=3.0)


def reach(**changes) -> Task:
    """Return a task of a planar arm whose target is kept for the episode, with one step of the dynamics per action."""
    given = {
        "name": "Reach",
        "motion": Dynamics(system=kt.load("planar_2r"), dt=0.01, method="euler", control=lambda now: now.action),
        "actions": Continuous((-1.0, -3.0), (2.0, 3.0)),
        "observation": ("q", "qd", "tool.position", "target"),
        "reward": lambda now: -(now.q[0] * now.q[0]),
        "reset": lambda draw: {"q": draw.uniform(-1.0, 1.0, 2), "target": draw.uniform(-1.0, 1.0, 3)},
    }
    return Task(**(given | changes))


@pytest.mark.parametrize("activation", policies.ACTIVATIONS)
def test_a_compiled_policy_moves_as_in_its_environment(activation):
    """Run a policy as a controller: steps of the same method have the states of the environment."""
    task, policy = reach(), network(10, 2, activation)
    batch = Batch(task, 1)
    run = batch.record(policy, 50, seed=4)
    law = policy.control(task, target=batch.kept("target")[0])
    step, (q, qd) = batch.system.stepper(dt=0.01, method="euler", control=law), (run.q[0], run.qd[0])
    for k in range(50):
        q, qd = step(q, qd)
        assert_close(q, run.q[k + 1], 1e-12, "coordinates")
    assert_close(qd, run.qd[-1], 1e-11, "velocities")


@everyday.long
@pytest.mark.parametrize("name", ["ArmReach", "FourBar"])
def test_simulate_runs_a_task_with_its_policy(name):
    """Simulate an episode with held actions: the task's own method gives the states and rewards of the environment."""
    task = named_task(name).changed(max_steps=25)
    batch = Batch(task, 1, "disabled")
    policy = network(batch.made.observed, task.actions.size)
    batch.reset(2)
    run, rewards = batch.record(policy, 30, seed=2), []
    observation = batch.reset(2)
    for _ in range(25):
        observation, reward, *_ = batch.step(policy(observation))
        rewards.append(reward[0])
    found = simulate_task(task, policy, 30, seed=2, method=run.method)
    assert len(found) == len(run) == 26
    assert_close(found.q, run.q, 1e-11, "coordinates")
    assert_close(found.options["rewards"], rewards, 1e-10, "rewards")
    finer = simulate_task(task, policy, 30, seed=2)
    assert finer.method != run.method and np.abs(finer.q - run.q).max() < 0.5


@pytest.mark.slow
def test_a_quadruped_under_a_policy_by_events_and_by_time_steps():
    """Run the quadruped by time steps, with the environment's states, and from event to event, with those nearby."""
    task = named_task("Quadruped")
    batch = Batch(task, 1, "disabled")
    batch.reset(1)
    policy = network(batch.made.observed, 12)
    gentle = Policy((*policy.layers[:-1], tuple(0.2 * x for x in policy.layers[-1])), "tanh")
    run = batch.record(gentle, 20, seed=1)
    steps = simulate_task(task, gentle, 20, seed=1, method="moreau")
    assert_close(steps.q, run.q, 1e-9, "time steps against the environment")
    events = simulate_task(task, gentle, 20, seed=1)
    assert events.method != "moreau" and np.abs(events.q - run.q).max() < 0.3
    assert np.array(events.options["touching"])[-5:].any()


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_trained_quadruped_walks(precision):
    """Play the policy of the examples with random commands: nobody falls, and velocities are those commanded."""
    batch = Batch(named_task("Quadruped"), 32, "disabled", precision=precision)
    policy, observation = Policy.read(EXAMPLES / "quadruped_policy.npz"), batch.reset(11)
    speeds = []
    for k in range(400):
        observation, _, terminated, _ = batch.step(policy(observation))
        assert not terminated.any()
        if k >= 100:
            speeds.append(batch.qd[:, [5, 3, 1]].copy())
    lacking = np.mean(speeds, axis=0) - batch.kept("command")
    assert (np.sqrt(np.mean(lacking**2, axis=0)) < [0.05, 0.05, 0.1]).all() and batch.lost == 0


@pytest.mark.slow
def test_the_example_of_walking_compares_both_kinds_of_runs(tmp_path):
    """Run the example for half a second: two walks that stay together, a page, and C code that compiles."""
    call = [sys.executable, str(EXAMPLES / "walk.py"), "--steps", "25", "--folder", str(tmp_path)]
    printed = subprocess.run(call, check=True, capture_output=True, text=True).stdout
    apart = float(re.search(r"after 0.5 s the trunks are ([0-9.]+) mm apart", printed).group(1))
    assert apart < 30.0 and (tmp_path / "walk.html").stat().st_size > 1e5
    assert {x.name for x in tmp_path.iterdir()} == {"walk.html", "control.c", "control.h"}


@needs_compiler
def test_a_policy_is_exported_as_c_with_its_controller(tmp_path):
    """Compile the exported controller: its self-test passes, and its torques are those of the network."""
    task, policy = reach(), network(10, 2, "elu")
    system, target = task.motion.system, np.array([0.3, -0.2, 0.4])
    kt.export(system, "control", "c", tmp_path, control=policy.control(task, target=target))
    compiled = library([tmp_path / "control.c"])
    assert compiled.control_selftest() == 0
    q, qd = np.random.default_rng(1).normal(size=(2, 20, 2))
    (tau,) = called(compiled.control, [np.zeros((20, 1)), q, qd], [(2,)])
    place = system.pose(q, "tool")[:, :3, 3]
    action = np.clip(policy(np.concatenate([q, qd, place, np.tile(target, (20, 1))], axis=1)), -1.0, 1.0)
    assert_close(tau, action * [1.5, 3.0] + [0.5, 0.0], 1e-12, "torques")


def test_policies_are_kept_in_files(tmp_path):
    """Write and read a policy; outputs have the same bits."""
    policy, x = network(5, 3, "relu"), np.random.default_rng(2).normal(size=(7, 5))
    again = Policy.read(policy.save(tmp_path / "policy.npz"))
    assert_same_bits(again(x), policy(x))
    assert again.activation == "relu" and (again.choose(x) == policy(x).argmax(axis=1)).all()


def test_policies_of_torch():
    """Take the layers of a torch Sequential by name: its outputs are those of torch."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 8), torch.nn.ELU(), torch.nn.Linear(8, 8), torch.nn.ELU(), torch.nn.Linear(8, 2)]
    model = torch.nn.ModuleDict({"acts": torch.nn.Sequential(*layers).double()})
    policy, x = Policy.from_torch(model.state_dict(), "acts", "elu"), np.random.default_rng(0).normal(size=(6, 4))
    assert_close(policy(x), model["acts"](torch.as_tensor(x)).detach().numpy(), 1e-14, "outputs")
    with pytest.raises(KinetreeError, match="state has no layers of 'act'; it has acts.0.weight, "):
        Policy.from_torch(model.state_dict(), "act", "elu")


def test_errors_of_policies(tmp_path):
    """Name what is wrong with layers, files, tasks and actions."""
    one = network(10, 2)
    whole = one.save(tmp_path / "whole.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez_compressed(tmp_path / "large.npz", W0=np.zeros(2**28, dtype=np.uint8))
    for make, text in (
        (lambda: Policy(()), "a policy needs at least one layer"),
        (lambda: Policy((((1.0, 2.0), 0.0),)), r"layer 0 has weights \(2,\) and biases \(\); expected \[n, m\]"),
        (lambda: Policy((*one.layers, *one.layers)), r"layer 2 has weights \(9, 10\) .*expected \[n, 2\]"),
        (lambda: Policy(one.layers, "sine"), "no activation 'sine'.*tanh"),
        (lambda: Policy(one.layers, "tanh", mean=np.zeros(3)), r"mean has shape \(3,\); expected 10 finite numbers"),
        (lambda: Policy(one.layers, "tanh", deviation=0.0), "deviation has 0; give more than zero"),
        (lambda: Policy(((np.full((2, 2), np.nan), np.zeros(2)),)), "layer 0 has numbers that are not finite"),
        (lambda: one(np.zeros(9)), r"observation has shape \(9,\); the policy takes \[..., 10\]"),
        (lambda: Policy(one.layers, clipped=np.nan), "clipped is nan; give a finite number"),
        (lambda: Policy.read(tmp_path / "none.npz"), "none.npz: is not the file of a policy.*No such file"),
        (lambda: Policy.read(tmp_path / "cut.npz"), "cut.npz: is not the file of a policy.*give one of Policy.save"),
        (lambda: Policy.read(tmp_path / "array.npy"), "array.npy: is not the file of a policy"),
        (lambda: Policy.read(tmp_path / "large.npz"), "large.npz: its arrays have 268,.* bytes; those of a policy"),
        (lambda: one.control(reach(), goal=1.0), "no value of the episode 'goal'.*target"),
        (lambda: one.control(reach(), target=1.0), r"target has shape \(1,\); expected 3 numbers"),
        (lambda: network(10, 3).control(reach()), "the policy has 3 outputs; task 'Reach' takes 2"),
        (lambda: one.control(reach(delay=1)), "has actions by number, or a delay"),
        (lambda: one.control(named_task("CartPole")), "task 'CartPole' has equations"),
        (lambda: simulate_task(named_task("CartPole"), one, 3), "task 'CartPole' has equations.*use Batch.record"),
        (lambda: simulate_task(reach(delay=1), one, 3), "or a delay; use Batch.record"),
        (
            lambda: simulate_task(reach(), lambda x: [1.0], 3),
            "act returned .* of shape .*; expected 2 numbers",
        ),
    ):
        with pytest.raises(KinetreeError, match=text):
            make()
    other = network(9, 2)
    law = PolicyControl(other, reach(), np.zeros(3))
    with pytest.raises(KinetreeError, match="the task has 10 observations; the policy takes 9"):
        kt.load("planar_2r").stepper(dt=0.01, method="euler", control=law)
    rough = named_task("QuadrupedRough")
    law = network(38, 12).control(rough)
    with pytest.raises(KinetreeError, match="contact 'foot_a' is no point on a plane of the ground"):
        rough.motion.system.stepper(dt=0.01, control=law, contacts=())
