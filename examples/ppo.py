"""Proximal policy optimization in one file, on environments in one native call: python examples/ppo.py [TASK].

J. Schulman and others, "Proximal Policy Optimization Algorithms" (2017), with generalized advantages (2015). It needs
torch alone. CartPole is solved if 100 episodes in a row have a mean return of 475.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

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
    discount: float = 0.98
    trace: float = 0.9
    clip: float = 0.2
    entropy: float = 0.003
    width: int = 64
    scale: float = 0.1
    """The factor of rewards."""


SETTINGS = {
    "CartPole": Settings(),
    "Pendulum": Settings(envs=128, rate=1e-3, discount=0.95, entropy=0.0, scale=0.05),
    "Quadruped": Settings(
        envs=256, horizon=64, epochs=5, batches=8, rate=5e-4, discount=0.98, entropy=0.002, width=128
    ),
}
SOLVED = {"CartPole": 475.0, "Pendulum": -250.0}
"""The mean return of 100 episodes at which a task counts as solved."""


class Policy(nn.Module):
    """Two networks of two layers: the distribution of actions, and the value of a state."""

    def __init__(self, observed: int, actions: int, width: int, discrete: bool) -> None:
        """Make the networks."""
        super().__init__()

        def network(outputs: int, gain: float) -> nn.Sequential:
            layers = [nn.Linear(observed, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()]
            last = nn.Linear(width, outputs)
            nn.init.orthogonal_(last.weight, gain)
            return nn.Sequential(*layers, last)

        self.acts, self.judges, self.discrete = network(actions, 0.01), network(1, 1.0), discrete
        self.spread = nn.Parameter(torch.full((actions,), -0.5))

    def distribution(self, x: torch.Tensor):
        """Return the distribution of actions."""
        if self.discrete:
            return torch.distributions.Categorical(logits=self.acts(x))
        return torch.distributions.Independent(torch.distributions.Normal(self.acts(x), self.spread.exp()), 1)


class Scale:
    """Observations less their mean, over their deviation, both of all that were seen."""

    def __init__(self, size: int) -> None:
        """Begin without observations."""
        self.mean, self.square, self.count = np.zeros(size), np.ones(size), 1e-4

    def __call__(self, x: np.ndarray, *, learn: bool = True) -> torch.Tensor:
        """Return scaled observations; `learn` from them, too."""
        if learn:
            share = len(x) / (self.count + len(x))
            self.mean += share * (x.mean(axis=0) - self.mean)
            self.square += share * ((x**2).mean(axis=0) - self.square)
            self.count += len(x)
        deviation = np.sqrt(np.maximum(self.square - self.mean**2, 1e-6))
        return torch.as_tensor(np.clip((x - self.mean) / deviation, -8.0, 8.0), dtype=torch.float32)


def learn(name: str, seconds: float, seed: int = 0, *, quiet: bool = False) -> tuple[Policy, list[tuple[float, float]]]:
    """Return a policy, and the mean return of the last 100 episodes over the time [s], until the task is solved."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # networks this small are slower on more
    s = SETTINGS.get(name, Settings(envs=256, rate=1e-3))
    task = named_task(name)
    batch, discrete = Batch(task, s.envs, "same_step"), isinstance(task.actions, Discrete)
    count = task.actions.count if isinstance(task.actions, Discrete) else task.actions.size
    policy = Policy(batch.made.observed, count, s.width, discrete)
    optimizer = torch.optim.Adam(policy.parameters(), lr=s.rate, eps=1e-5)
    scale, returns, curve = Scale(batch.made.observed), np.zeros(s.envs), []
    episodes: deque[float] = deque(maxlen=100)
    begin, x = time.perf_counter(), scale(batch.reset(seed))
    while (now := time.perf_counter() - begin) < seconds:
        seen, taken, chances, values, rewards, ends = [], [], [], [], [], []
        with torch.no_grad():
            for _ in range(s.horizon):
                found = policy.distribution(x)
                action = found.sample()
                observation, reward, terminated, truncated = batch.step(action.numpy())
                returns += reward
                gain, done = reward * s.scale, terminated | truncated
                if truncated.any():  # the value of the state at which the time was over
                    last = policy.judges(scale(batch.final, learn=False))[:, 0].numpy()
                    gain = gain + np.where(truncated & ~terminated, s.discount * last, 0.0)
                for part, thing in (
                    (seen, x), (taken, action), (chances, found.log_prob(action)), (values, policy.judges(x)[:, 0]),
                    (rewards, torch.as_tensor(gain, dtype=torch.float32)),
                    (ends, torch.as_tensor(done, dtype=torch.float32)),
                ):  # fmt: skip
                    part.append(thing)
                episodes.extend(returns[done])
                returns[done] = 0.0
                x = scale(observation)
            values.append(policy.judges(x)[:, 0])
        advantages = advantages_of(values, rewards, ends, s)
        data = [torch.cat(z) for z in (seen, taken, chances, advantages)] + [torch.cat(values[:-1])]
        improve(policy, optimizer, data, s)
        if len(episodes) == 100:
            curve.append((now, float(np.mean(episodes))))
            if not quiet and len(curve) % 20 == 0:
                print(f"{curve[-1][0]:6.1f} s   mean return {curve[-1][1]:9.2f}")
            if curve[-1][1] >= SOLVED.get(name, np.inf):
                break
    return policy, curve


def advantages_of(values, rewards, ends, s: Settings) -> list[torch.Tensor]:
    """Return the advantages of all steps, from the last to the first."""
    out, running = [], torch.zeros_like(rewards[0])
    for k in reversed(range(len(rewards))):
        going = 1.0 - ends[k]
        error = rewards[k] + s.discount * going * values[k + 1] - values[k]
        running = error + s.discount * s.trace * going * running
        out.append(running)
    return out[::-1]


def improve(policy: Policy, optimizer: torch.optim.Optimizer, data: list[torch.Tensor], s: Settings) -> None:
    """Change the policy by some epochs on the data of a rollout."""
    seen, taken, chances, advantages, values = data
    wanted = advantages + values
    size = len(seen) // s.batches
    for _ in range(s.epochs):
        order = torch.randperm(len(seen))
        for k in range(s.batches):
            rows = order[k * size : (k + 1) * size]
            found = policy.distribution(seen[rows])
            ratio = (found.log_prob(taken[rows]) - chances[rows]).exp()
            a = advantages[rows]
            a = (a - a.mean()) / (a.std() + 1e-8)
            gain = torch.min(ratio * a, ratio.clamp(1.0 - s.clip, 1.0 + s.clip) * a).mean()
            error = (policy.judges(seen[rows])[:, 0] - wanted[rows]).square().mean()
            loss = 0.5 * error - gain - s.entropy * found.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("task", nargs="?", default="CartPole")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    _, found = learn(given.task, given.seconds, given.seed)
    print(f"{given.task}: mean return {found[-1][1]:.2f} after {found[-1][0]:.1f} s" if found else "no episode ended")
