"""Environments on a GPU, played by this processor: the numbers of those on the CPU, in tensors that stay in place."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import host_gpu
import kinetree as kt
from complete import import_torch
from kinetree.environments import device
from kinetree.environments.device import DeviceBatch
from kinetree.environments.vector import Batch, named_task
from kinetree.errors import KinetreeError
from tolerance import assert_close


@pytest.fixture
def torch(monkeypatch):
    """Return torch, whose tensors of the GPU are in the memory of the host."""
    module = import_torch()
    host_gpu.install(monkeypatch)
    monkeypatch.setattr(device.TORCH, "place", lambda index: module.device("cpu"), raising=False)
    monkeypatch.setattr(device.TORCH, "stream", lambda index: 0, raising=False)
    return module


def actions_of(batch: Batch, rng: np.random.Generator) -> np.ndarray:
    """Return random actions."""
    if batch.task.name == "CartPole":
        return rng.integers(0, 2, batch.num_envs)
    return rng.uniform(-1.3, 1.3, (batch.num_envs, batch.task.actions.size)).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "mode", "delay"),
    [
        ("CartPole", "same_step", 0),
        ("Pendulum", "next_step", 2),
        ("ArmReach", "same_step", 0),
        ("FourBar", "disabled", 0),
    ],
)
def test_steps_are_those_of_the_cpu(name, mode, delay, torch):
    """Run short episodes on both, from the same seed: observations, rewards, ends, terms and states agree."""
    task = named_task(name).changed(max_steps=4, delay=delay)
    cpu, gpu = Batch(task, 7, mode), DeviceBatch(task, 7, mode, precision="float64", dtype="float64")
    rng = np.random.default_rng(0)
    assert_close(gpu.reset(seed=3)[0].numpy(), cpu.reset(3), 1e-13, "first observation")
    for _ in range(11):
        a = actions_of(cpu, rng)
        found = cpu.step(a)
        mine = gpu.step(torch.as_tensor(a))
        assert_close(mine[0].numpy(), found[0], 1e-11, "observation")
        assert_close(mine[1].numpy(), found[1], 1e-6, "reward, in float32")
        assert (mine[2].numpy() == found[2]).all() and (mine[3].numpy() == found[3]).all()
        assert mine[2].dtype is torch.bool and mine[1].dtype is torch.float32
        assert_close(gpu.q.numpy(), cpu.q, 1e-11, "coordinates")
        assert_close(gpu.qd.numpy(), cpu.qd, 1e-10, "velocities")
        for term, x in cpu.terms.items():
            assert_close(gpu.terms[term].numpy(), x, 1e-5, term)
        if mode == "same_step":
            assert_close(mine[4]["final_obs"].numpy(), cpu.final, 1e-11, "observation before the reset")
    assert gpu.lost == 0 and (gpu.episode_length_buf.numpy() == cpu.steps).all()


def test_seeds_give_the_same_bits_and_masks_begin_anew(torch):
    """Run two batches of different sizes from one seed, and begin some environments again, with a given state."""
    task = named_task("CartPole").changed(max_steps=3)
    many, few = (DeviceBatch(task, n) for n in (9, 4))
    assert torch.equal(many.reset(seed=5)[0][:4], few.reset(seed=5)[0])
    for k in range(7):
        a = torch.arange(9) * k % 2
        assert torch.equal(many.step(a)[0][:4], few.step(a[:4])[0])
    before = few.q.clone()
    mask = torch.tensor([False, True, False, True])
    x, _ = few.reset(mask=mask, state={"q": [0.25, 0.125]})
    assert torch.equal(few.q[mask], torch.tensor([[0.25, 0.125]] * 2)) and torch.equal(few.q[~mask], before[~mask])
    assert torch.equal(x[:, [0, 2]], few.q) and few.episode_length_buf[1] == 0
    few.reset(seed=5, mask=mask)
    assert torch.equal(few.q[mask], DeviceBatch(task, 4).reset(seed=5)[0][:, [0, 2]][mask])
    assert few.observation is few.step(torch.zeros(4, dtype=torch.int64))[0], "the same memory in every step"


def test_what_is_not_finite_is_counted(torch):
    """Divide by zero in a reward, and give choices that do not exist: the episode ends without reward."""
    task = named_task("CartPole").changed(
        reward={"one": lambda now: 1.0, "bad": lambda now: 1.0 / (now.steps - 2.0)}, terminated=None
    )
    envs = DeviceBatch(task, 3)
    envs.reset(seed=0)
    left = torch.zeros(3, dtype=torch.int64)
    *_, infos = envs.step(left)
    assert not infos["lost"].any() and envs.lost == 0
    _, reward, terminated, truncated, infos = envs.step(left)
    assert infos["lost"].all() and truncated.all() and not terminated.any() and not reward.any()
    assert envs.lost == 3 and (envs.episode_length_buf == 0).all() and envs.terms["bad"].tolist() == [0.0] * 3
    x, *_, infos = envs.step(torch.tensor([0, 7, -1]))
    assert infos["lost"].tolist() == [False, True, True] and envs.lost == 5 and bool(x.isfinite().all())


def test_learners_find_their_interfaces(torch):
    """Step with dones, and find sizes, spaces, time limits and lengths of episodes by the names of learners."""
    envs = DeviceBatch(named_task("Pendulum").changed(max_steps=3), 4).with_dones()
    x, more = envs.get_observations()
    assert (envs.num_envs, envs.num_obs, envs.num_actions, envs.max_episode_length) == (4, 3, 1, 3)
    assert x.shape == (4, 3) and more == {"observations": {}} and envs.get_number_of_agents() == 1
    envs.episode_length_buf = torch.tensor([0, 1, 2, 0])
    x, reward, dones, infos = envs.step(torch.zeros(4, 1))
    assert dones.tolist() == [False, False, True, False] == infos["time_outs"].tolist()
    assert reward.shape == (4,) and envs.reset().shape == (4, 3)
    pytest.importorskip("gymnasium")
    info = envs.get_env_info()
    assert info["observation_space"].shape == (3,) and info["action_space"].shape == (1,)


def test_errors_on_a_gpu(torch):
    """Name what is wrong with actions, masks, sizes, precisions and modes."""
    envs = DeviceBatch(named_task("Pendulum"), 4, "next_step")
    with pytest.raises(KinetreeError, match="call reset before step"):
        envs.step(torch.zeros(4, 1))
    envs.reset(seed=1)
    wanted = r"Pendulum takes a tensor of shape \(4, 1\), torch.float32, on cpu"
    for actions, text in (
        (torch.zeros(4), r"actions are a Tensor of shape \(4,\), torch.float32, on cpu; " + wanted),
        (torch.zeros(4, 1, dtype=torch.float64), "torch.float64, on cpu; " + wanted),
        (torch.zeros(4, 1, device="meta"), "on meta; " + wanted),
        (np.zeros((4, 1)), r"actions are a ndarray of shape \(4, 1\), float64, on"),
        ([0.0], r"actions are \[0.0\]; "),
    ):
        with pytest.raises(KinetreeError, match=text):
            envs.step(actions)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"mask": torch.ones(3, dtype=torch.bool)}, r"the mask of a reset is a Tensor of shape \(3,\), torch.bool"),
        ({"mask": [True]}, r"the mask of a reset is \[True\]; expected torch.bool of \(4,\)"),
        ({"state": {"q": [1.0, 2.0]}}, r"q has shape \(2,\); expected \(4, 1\), or \(1,\) for all"),
        ({"state": {"x": [1.0]}}, "no part of a state"),
        ({"seed": -2}, "seed is -2"),
    ]
    for arguments, text in wrong:
        with pytest.raises(KinetreeError, match=text):
            envs.reset(**arguments)
    with pytest.raises(
        KinetreeError, match=r"num_envs is 100000000: they take .* GiB of a graphics card are free; give"
    ):
        kt.env("Pendulum", 10**8, device="cuda")
    with pytest.raises(KinetreeError, match="observations are float32, or float64 with precision='float64'"):
        kt.env("Pendulum", 2, device="cuda", dtype=np.float64)
    with pytest.raises(KinetreeError, match="no precision 'half'"):
        kt.env("Pendulum", 2, device="cuda", precision="half")
    with pytest.raises(KinetreeError, match="on a GPU give a number, and neither threads"):
        kt.env("Pendulum", device="cuda")
    with pytest.raises(KinetreeError, match="no precision 'double'"):
        kt.env("Pendulum", 2, precision="double")
    with pytest.raises(KinetreeError, match="the device is 'gpu'; expected 'cpu', 'cuda'"):
        kt.env("Pendulum", 2, device="gpu")
    with pytest.raises(KinetreeError, match="learners that take dones need 'same_step'"):
        envs.with_dones()


# --- Libraries of learners, as far as they are installed


def test_learners_keep_what_they_were_given(torch):
    """Step twice by each interface, and find the observations, rewards and ends of the first step unchanged."""
    for envs in (
        DeviceBatch(named_task("Pendulum"), 4).with_dones(),
        DeviceBatch(named_task("Pendulum"), 4).with_columns(),
    ):
        envs.reset()
        first = envs.step(torch.ones(4, 1))
        kept = [x.clone() for x in first[:-1]]
        second = envs.step(-torch.ones(4, 1))
        assert not torch.equal(first[0], second[0])
        assert all(torch.equal(x, y) for x, y in zip(first[:-1], kept, strict=True))


def test_columns_take_choices_as_a_column(torch):
    """Step CartPole as skrl does: shapes of results, the present observations on a second reset, and no states."""
    envs = DeviceBatch(named_task("CartPole").changed(max_steps=2), 5).with_columns()
    x, _ = envs.reset()
    assert envs.state() is envs.state_space is None and envs.num_agents == 1
    y, reward, terminated, truncated, infos = envs.step(torch.ones(5, 1, dtype=torch.int64))
    assert [tuple(z.shape) for z in (x, y, reward, terminated, truncated)] == [(5, 4)] * 2 + [(5, 1)] * 3
    assert torch.equal(envs.reset()[0], y) and not truncated.any()
    *_, truncated, infos = envs.step(torch.ones(5, 1, dtype=torch.int64))
    assert truncated.all() and infos["time_outs"].all()
    with pytest.raises(KinetreeError, match="the autoreset mode is 'disabled'; skrl needs 'same_step'"):
        DeviceBatch(named_task("CartPole"), 2, "disabled").with_columns()


def test_groups_need_tensordict(torch, monkeypatch):
    """Ask for groups of observations without the package tensordict, and find what to do in the error."""
    monkeypatch.setitem(sys.modules, "tensordict", None)
    envs = DeviceBatch(named_task("Pendulum"), 4).with_dones("policy")
    with pytest.raises(KinetreeError, match=r"the package tensordict, which RSL-RL 3 and later bring .* plain tensors"):
        envs.get_observations()


LEARNED = pytest.mark.filterwarnings("ignore")
"""Warnings are those of the libraries."""


@LEARNED
def test_rsl_rl_learns(torch):
    """Train for three iterations by RSL-RL: time limits are known, and the policy changes."""
    pytest.importorskip("tensordict")
    runners = pytest.importorskip("rsl_rl.runners")
    envs = DeviceBatch(named_task("Pendulum").changed(max_steps=20), 32).with_dones("policy")
    network = {"class_name": "MLPModel", "hidden_dims": [16, 16]}
    runner = runners.OnPolicyRunner(
        envs,
        {
            "num_steps_per_env": 8, "save_interval": 100, "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
            "algorithm": {"class_name": "PPO", "num_learning_epochs": 2, "num_mini_batches": 2},
            "actor": network | {"distribution_cfg": {"class_name": "GaussianDistribution"}}, "critic": network,
        },
        device="cpu",
    )  # fmt: skip
    before = [x.detach().clone() for x in runner.alg.get_policy().parameters()]
    runner.learn(3)
    after = list(runner.alg.get_policy().parameters())
    assert all(bool(x.isfinite().all()) for x in after) and not all(map(torch.equal, before, after))
    assert (envs.episode_length_buf == 24 % 20).all()


@LEARNED
def test_skrl_learns(torch):
    """Train for four rollouts by skrl on CartPole, whose actions are choices: the policy changes."""
    ppo = pytest.importorskip("skrl.agents.torch.ppo")
    memories, models = (pytest.importorskip(f"skrl.{x}.torch") for x in ("memories", "models"))
    trainers = pytest.importorskip("skrl.trainers.torch")

    def network(mixin: Any, size: int) -> Any:
        class Network(mixin, models.Model):
            def __init__(self, **spaces: Any) -> None:
                models.Model.__init__(self, **spaces)
                mixin.__init__(self)
                self.layers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ELU(), torch.nn.Linear(16, size))

            def compute(self, inputs: dict, role: str) -> tuple:
                return self.layers(inputs["observations"]), {}

        return Network(**spaces)

    envs = DeviceBatch(named_task("CartPole"), 32).with_columns()
    spaces = {"observation_space": envs.observation_space, "action_space": envs.action_space, "device": "cpu"}
    policy, value = network(models.CategoricalMixin, 2), network(models.DeterministicMixin, 1)
    settings = ppo.PPO_CFG(rollouts=8)
    settings.experiment.write_interval = settings.experiment.checkpoint_interval = 0
    memory = memories.RandomMemory(memory_size=8, num_envs=32, device="cpu")
    agent = ppo.PPO(models={"policy": policy, "value": value}, memory=memory, cfg=settings, **spaces)
    before = [x.detach().clone() for x in policy.parameters()]
    trainers.SequentialTrainer(
        env=envs,
        agents=agent,
        cfg={"timesteps": 32, "headless": True, "disable_progressbar": True, "close_environment_at_exit": False},
    ).train()
    after = list(policy.parameters())
    assert all(bool(x.isfinite().all()) for x in after) and not all(map(torch.equal, before, after))


@pytest.mark.slow
@LEARNED
def test_rl_games_learns(torch, tmp_path):
    """Train for three epochs by rl_games on CartPole: they are counted, and the network stays finite."""
    runners = pytest.importorskip("rl_games.torch_runner")
    vecenv, known = (pytest.importorskip(f"rl_games.common.{x}") for x in ("vecenv", "env_configurations"))
    envs = DeviceBatch(named_task("CartPole"), 32).with_dones()
    vecenv.register("kinetree", lambda name, count, **more: envs)
    known.register("CartPole", {"vecenv_type": "kinetree", "env_creator": lambda **more: envs})
    layers = {"units": [16, 16], "activation": "elu", "initializer": {"name": "default"}}
    config = {
        "name": "cart", "env_name": "CartPole", "device": "cpu", "device_name": "cpu", "train_dir": str(tmp_path),
        "num_actors": 32, "horizon_length": 8, "minibatch_size": 128, "mini_epochs": 2, "max_epochs": 3, "gamma": 0.99,
        "tau": 0.95, "learning_rate": 1e-3, "lr_schedule": None, "ppo": True, "e_clip": 0.2, "clip_value": True,
        "critic_coef": 1.0, "entropy_coef": 0.0, "grad_norm": 1.0, "truncate_grads": True, "normalize_advantage": True,
        "normalize_input": True, "normalize_value": True, "value_bootstrap": True, "score_to_win": 1e9,
        "reward_shaper": {"scale_value": 1.0}, "save_frequency": 0, "save_best_after": 1000, "print_stats": False,
    }  # fmt: skip
    runner = runners.Runner()
    runner.load({"params": {
        "seed": 1, "algo": {"name": "a2c_discrete"}, "model": {"name": "discrete_a2c"}, "config": config,
        "network": {"name": "actor_critic", "separate": False, "space": {"discrete": {}}, "mlp": layers},
    }})  # fmt: skip
    runner.run({"train": True})
    (saved,) = tmp_path.glob("*/nn/last*.pth")
    state = torch.load(saved, weights_only=False)
    assert state["epoch"] == 3 and all(bool(x.isfinite().all()) for x in state["model"].values())
