"""Proximal policy optimization in one file: python examples/ppo.py [TASK] [--device cuda].

J. Schulman and others, "Proximal Policy Optimization Algorithms" (2017), with generalized advantages (2015). It needs
torch alone. On a GPU, environments, memory and learner stay there: a rollout is one CUDA graph, an update another one.
CartPole is solved if 100 episodes have a mean return of 475.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import kinetree as kt
from kinetree.environments.device import DeviceBatch
from kinetree.environments.tasks import Discrete
from kinetree.environments.vector import Batch, named_task


@dataclass(frozen=True)
class Settings:
    """What the learning of a task takes."""

    envs: int = 64
    horizon: int = 32
    epochs: int = 4
    batches: int = 4
    rate: float = 2.5e-3
    wanted: float = 0.0
    """The change of the policy in an update, as a divergence, to which the rate adapts; 0 for a fixed rate."""
    discount: float = 0.98
    trace: float = 0.9
    clip: float = 0.2
    entropy: float = 0.003
    norm: float = 0.5
    widths: tuple[int, ...] = (64, 64)
    spread: float = -0.5
    """The logarithm of the first deviation of actions."""
    scale: float = 0.1
    """The factor of rewards."""


SETTINGS = {
    ("CartPole", "cpu"): Settings(),
    ("Pendulum", "cpu"): Settings(envs=128, rate=1e-3, discount=0.95, entropy=0.0, scale=0.05),
    ("Quadruped", "cpu"): Settings(
        envs=512, horizon=24, epochs=5, rate=1e-3, wanted=0.01, discount=0.99, trace=0.95, norm=1.0,
        widths=(128, 64), scale=0.05,
    ),
    ("Quadruped", "cuda"): Settings(
        envs=8192, horizon=24, epochs=5, rate=1e-3, wanted=0.01, discount=0.99, trace=0.95, norm=1.0,
        widths=(256, 128, 64), scale=0.05,
    ),
}  # fmt: skip
SOLVED = {"CartPole": 475.0, "Pendulum": -250.0}
"""The mean return of 100 episodes at which a task counts as solved."""


class Policy(nn.Module):
    """Two networks: the distribution of actions, and the value of a state. Observations are scaled first."""

    mean: torch.Tensor
    square: torch.Tensor
    count: torch.Tensor

    def __init__(self, observed: int, actions: int, s: Settings, discrete: bool) -> None:
        """Make the networks."""
        super().__init__()

        def network(outputs: int, gain: float) -> nn.Sequential:
            sizes, layers = (observed, *s.widths), []
            for a, b in pairwise(sizes):
                layers += [nn.Linear(a, b), nn.Tanh() if discrete else nn.ELU()]
            last = nn.Linear(sizes[-1], outputs)
            nn.init.orthogonal_(last.weight, gain)
            return nn.Sequential(*layers, last)

        self.acts, self.judges, self.discrete = network(actions, 0.01), network(1, 1.0), discrete
        self.spread = nn.Parameter(torch.full((actions,), s.spread))
        self.register_buffer("mean", torch.zeros(observed))
        self.register_buffer("square", torch.ones(observed))
        self.register_buffer("count", torch.full((), 1e-4))

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        """Return observations less their mean, over their deviation, both of all that were seen."""
        return ((x - self.mean) * (self.square - self.mean**2).clamp(min=1e-6).rsqrt()).clamp(-8.0, 8.0)

    def see(self, x: torch.Tensor) -> None:
        """Add observations to those that were seen."""
        self.count += len(x)
        share = len(x) / self.count
        self.mean += share * (x.mean(dim=0) - self.mean)
        self.square += share * ((x**2).mean(dim=0) - self.square)

    def sample(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return an action at random, the logarithm of its chance, and what the distribution is made of."""
        made = self.acts(x)
        if self.discrete:
            noise = torch.rand_like(made).clamp(min=1e-12)
            action = (made - torch.log(-torch.log(noise))).argmax(dim=-1)  # by Gumbel's trick
        else:
            action = made + self.spread.exp() * torch.randn_like(made)
        return action, self.chance(made, action), made

    def chance(self, made: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """Return the logarithm of the chance of an action."""
        if self.discrete:
            return made.log_softmax(dim=-1).gather(-1, action[:, None])[:, 0]
        return -(0.5 * ((action - made) * (-self.spread).exp()).square() + self.spread).sum(dim=-1)

    def entropy(self, made: torch.Tensor) -> torch.Tensor:
        """Return the mean entropy of distributions, without a constant."""
        if self.discrete:
            chances = made.log_softmax(dim=-1)
            return -(chances.exp() * chances).sum(dim=-1).mean()
        return self.spread.sum()


class OnHost:
    """Environments on the CPU with the interface of those on a GPU, whose tensors are views of arrays of NumPy."""

    def __init__(self, batch: Batch) -> None:
        """Store the environments."""
        self.batch, self.device, self.num_obs = batch, torch.device("cpu"), batch.made.observed

    def reset(self, seed: int) -> tuple[torch.Tensor, dict]:
        """Begin new episodes."""
        return torch.as_tensor(self.batch.reset(seed), dtype=torch.float32), {}

    def step(self, actions: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Advance all environments by a step."""
        x, reward, *ends = self.batch.step(actions.numpy())
        float32 = (torch.as_tensor(a, dtype=torch.float32) for a in (x, reward))
        return *float32, *map(torch.as_tensor, ends)


class Learner:
    """A policy, its environments, and the memory of a rollout, all on one device."""

    def __init__(self, name: str, device: str = "cpu", seed: int = 0, **changes: Any) -> None:
        """Make the environments and the policy; `changes` are other settings."""
        torch.manual_seed(seed)
        self.name, self.cuda = name, device != "cpu"
        found = SETTINGS.get(
            (name, "cuda" if self.cuda else "cpu"), Settings(envs=4096 if self.cuda else 256, rate=1e-3)
        )
        self.s = s = Settings(**(vars(found) | changes))
        task = named_task(name)
        if self.cuda:
            torch.set_float32_matmul_precision("high")
            self.worlds: Any = DeviceBatch(task, s.envs, "same_step", device)
        else:
            torch.set_num_threads(1)  # networks this small are slower on more
            self.worlds = OnHost(Batch(task, s.envs, "same_step"))
        a, w = task.actions, self.worlds
        count = a.count if isinstance(a, Discrete) else a.size
        self.policy = Policy(w.num_obs, count, s, isinstance(a, Discrete)).to(w.device)
        self.rate = torch.tensor(s.rate, device=w.device)
        parameters = [p for p in self.policy.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(
            parameters, lr=self.rate if s.wanted else s.rate, eps=1e-5, capturable=self.cuda
        )

        def memory(*shape: int, kind: torch.dtype = torch.float32) -> torch.Tensor:
            return torch.zeros(shape, dtype=kind, device=w.device)

        t, n = s.horizon, s.envs
        self.x, self.values = memory(t + 1, n, w.num_obs), memory(t + 1, n)
        self.taken = memory(t, n, kind=torch.int64) if isinstance(a, Discrete) else memory(t, n, count)
        self.made, self.chances, self.rewards, self.ends = memory(t, n, count), memory(t, n), memory(t, n), memory(t, n)
        self.advantages, self.rows = memory(t, n), memory(t * n // s.batches, kind=torch.int64)
        self.returns, self.finished, self.total = memory(n), memory(), memory()
        self.now = w.reset(seed)[0].clone()
        if self.cuda:  # episodes do not end together
            w.episode_length_buf = torch.randint(task.max_steps, (n,), device=w.device)

    @torch.no_grad()
    def roll(self) -> None:
        """Take the steps of a rollout, and compute the advantages of its actions."""
        s, p = self.s, self.policy
        for k in range(s.horizon):
            x = p.scaled(self.now)
            action, chance, made = p.sample(x)
            value = p.judges(x)[:, 0]
            now, reward, terminated, truncated, *_ = self.worlds.step(action)
            done = (terminated | truncated).float()
            # an episode that is cut off goes on in truth: the value of the state before stands for the rest
            cut = (truncated & ~terminated).float()
            self.x[k], self.taken[k], self.made[k], self.chances[k], self.values[k] = x, action, made, chance, value
            self.rewards[k], self.ends[k] = reward * s.scale + s.discount * cut * value, done
            self.returns += reward
            self.total += (self.returns * done).sum()
            self.finished += done.sum()
            self.returns *= 1.0 - done
            self.now.copy_(now)
            p.see(now)
        self.x[-1] = p.scaled(self.now)
        self.values[-1] = p.judges(self.x[-1])[:, 0]
        running = torch.zeros_like(self.rewards[0])
        for k in reversed(range(s.horizon)):
            going = 1.0 - self.ends[k]
            error = self.rewards[k] + s.discount * going * self.values[k + 1] - self.values[k]
            running = error + s.discount * s.trace * going * running
            self.advantages[k] = running

    def improve(self) -> None:
        """Change the policy by the part of the rollout in `rows`."""
        s, p, rows = self.s, self.policy, self.rows
        x, taken, before, chances, a, old = (
            z[: s.horizon].flatten(0, 1)[rows]
            for z in (self.x, self.taken, self.made, self.chances, self.advantages, self.values)
        )
        wanted = a + old
        made = p.acts(x)
        ratio = (p.chance(made, taken) - chances).exp()
        a = (a - a.mean()) / (a.std() + 1e-8)
        gain = torch.min(ratio * a, ratio.clamp(1.0 - s.clip, 1.0 + s.clip) * a).mean()
        error = (p.judges(x)[:, 0] - wanted).square().mean()
        loss = 0.5 * error - gain - s.entropy * p.entropy(made)
        self.optimizer.zero_grad(set_to_none=False)
        loss.backward()
        nn.utils.clip_grad_norm_(p.parameters(), s.norm)
        if s.wanted:
            with torch.no_grad():
                change = (0.5 * ((made - before) * (-p.spread).exp()).square()).sum(dim=-1).mean()
                factor = torch.where(change > 2.0 * s.wanted, 1 / 1.5, torch.where(change < 0.5 * s.wanted, 1.5, 1.0))
                self.rate.copy_((self.rate * factor).clamp(1e-5, 1e-2))
        self.optimizer.step()

    def learn(self, seconds: float, *, quiet: bool = False, every: int = 10) -> list[tuple[float, float]]:
        """Return the mean return of the last episodes over the time [s], until the task is solved or time is over."""
        begin, curve, s = time.perf_counter(), [], self.s
        roll, improve = self.roll, self.improve
        if self.cuda:
            roll, improve = self._captured(self.roll), self._captured(self.improve)
        size, updates, mean = len(self.rows), 0, None
        while time.perf_counter() - begin < seconds:
            roll()
            for _ in range(s.epochs):
                order = torch.randperm(s.horizon * s.envs, device=self.worlds.device)
                for k in range(s.batches):
                    self.rows.copy_(order[k * size : (k + 1) * size])
                    improve()
            updates += 1
            if self.cuda and updates % every:
                continue  # reading a number waits for the GPU
            if self.finished >= (s.envs if self.cuda else 100):
                mean = float(self.total / self.finished)
                self.finished.zero_()
                self.total.zero_()
                curve.append((time.perf_counter() - begin, mean))
                if not quiet:
                    print(f"{curve[-1][0]:6.1f} s   {updates:5d} updates   mean return {mean:9.2f}", flush=True)
                if mean >= SOLVED.get(self.name, np.inf):
                    break
        return curve

    def result(self) -> kt.Policy:
        """Return the policy without randomness, as plain numbers."""
        p = self.policy
        deviation = (p.square - p.mean**2).clamp(min=1e-6).sqrt()
        scales = {"mean": p.mean.cpu().numpy(), "deviation": deviation.cpu().numpy()}
        return kt.Policy.from_torch(p.state_dict(), "acts", "tanh" if p.discrete else "elu", **scales)

    def _captured(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return some work as a CUDA graph; it is done three times before."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return graph.replay


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("task", nargs="?", default="CartPole")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--save", type=Path, help="the file of the policy, .npz")
    given = parser.parse_args()
    learner = Learner(given.task, given.device, given.seed)
    found = learner.learn(given.seconds)
    print(f"{given.task}: mean return {found[-1][1]:.2f} after {found[-1][0]:.1f} s" if found else "no episode ended")
    if given.save:
        learner.result().save(given.save)
