"""Environments on a real GPU: the numbers of the CPU, the same bits again, graphs, and memory that is too small."""

from __future__ import annotations

import numpy as np
import pytest

from complete import import_torch
from kinetree.environments.device import DeviceBatch
from kinetree.environments.vector import Batch, named_task
from kinetree.errors import KinetreeError
from tolerance import assert_close

pytestmark = pytest.mark.gpu


@pytest.fixture
def torch():
    """Return torch with a GPU."""
    module = import_torch()
    if not module.cuda.is_available():
        pytest.skip("torch is installed without CUDA")
    return module


def some_actions(torch, batch: DeviceBatch, seed: int):
    """Return random actions on the GPU."""
    made = torch.Generator("cuda").manual_seed(seed)
    if batch.task.name == "CartPole":
        return torch.randint(2, (batch.num_envs,), device="cuda", generator=made)
    return torch.rand((batch.num_envs, batch.num_actions), device="cuda", generator=made) - 0.5


@pytest.mark.parametrize("name", ["CartPole", "ArmReach", "FourBar", "Quadruped"])
def test_environments_equal_those_of_the_cpu(name, torch):
    """Run short episodes from one seed in float64, and twice on the GPU with the same bits, in other batches."""
    task = named_task(name).changed(max_steps=6)
    cpu, gpu, more = Batch(task, 100, "same_step"), *(DeviceBatch(task, n, precision="float64") for n in (100, 300))
    for batch in (cpu, gpu, more):
        batch.reset(3)
    for k in range(15):
        a = some_actions(torch, gpu, k)
        expected, found = cpu.step(a.cpu().numpy()), gpu.step(a)
        again = more.step(torch.cat([a, a, a]))
        assert_close(found[0].cpu().numpy(), expected[0], 2e-6 * max(1.0, np.abs(expected[0]).max()), "in float32")
        for x, y, z in zip(found[:4], again[:4], expected, strict=True):
            assert torch.equal(x, y[:100])
            assert x.dtype is torch.float32 or (x.cpu().numpy() == z).all()
    assert gpu.lost == 0


def test_a_rollout_is_one_graph(torch):
    """Capture steps with a policy between them, and find the bits of single steps."""
    gpu, other = (DeviceBatch(named_task("Pendulum").changed(max_steps=7), 50) for _ in range(2))
    weights = torch.rand((3, 1), device="cuda") - 0.5

    def play(envs: DeviceBatch) -> None:
        for _ in range(5):
            envs.step((envs.observation @ weights).tanh())

    for envs in (gpu, other):
        envs.reset(seed=1)
    play(gpu)
    for envs in (gpu, other):
        envs.reset(seed=1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        play(gpu)
    for _ in range(3):
        graph.replay()
        play(other)
    assert torch.equal(gpu.q, other.q) and torch.equal(gpu.observation, other.observation)


def test_memory_that_is_too_small_is_named(torch):
    """Ask for more environments than fit, and for actions in the memory of the host."""
    with pytest.raises(KinetreeError, match=r"num_envs is 4000000000: they take .* are free; give at most"):
        DeviceBatch(named_task("CartPole"), 4_000_000_000)
    envs = DeviceBatch(named_task("CartPole"), 8)
    envs.reset(seed=0)
    with pytest.raises(KinetreeError, match=r"torch.int64, on cpu; CartPole takes a tensor of shape \(8,\), .* cuda:0"):
        envs.step(torch.zeros(8, dtype=torch.int64))
