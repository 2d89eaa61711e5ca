"""A trained quadruped in runs of simulate, by time steps and from event to event, as a page and in C: python walk.py.

Its policy was trained by examples/ppo.py Quadruped on one core in 17 minutes. Another one, of `ppo.py --save FILE`, is
given as an argument.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import kinetree as kt
from kinetree.environments.vector import named_task

HERE = Path(__file__).parent
COMMAND = (0.6, 0.0, 0.0)
"""The commanded velocities ahead and aside [m/s], and of turning [rad/s]."""


def walk(policy: kt.Policy, steps: int) -> dict[str, kt.Trajectory]:
    """Return the runs of the policy by method: time steps, and from event to event."""
    task = named_task("Quadruped")
    return {m: kt.simulate_task(task, policy, steps, seed=1, method=m, kept={"command": COMMAND}) for m in METHODS}


METHODS = ("moreau", "auto")
"""Time steps as in the environment, and events."""


def main(arguments: list[str] | None = None) -> None:
    """Walk, compare, and write the page and the C code."""
    parser = argparse.ArgumentParser(description="Play the policy of a trained quadruped.")
    parser.add_argument("policy", nargs="?", type=Path, default=HERE / "quadruped_policy.npz")
    parser.add_argument("--steps", type=int, default=150, help="of 0.02 s")
    parser.add_argument("--folder", type=Path, default=Path("out"))
    given = parser.parse_args(arguments)
    policy = kt.Policy.read(given.policy)
    runs = walk(policy, given.steps)
    for name, run in runs.items():
        speed = (run.q[-1, 2] - run.q[0, 2]) / run.t[-1]
        print(f"{name:7s} {run.t[-1]:.2f} s at {speed:.3f} m/s, trunk above {run.q[:, 1].min():.3f} m")
    first, second = runs.values()
    count = min(len(first), len(second))
    apart = np.linalg.norm(first.q[:count, :3] - second.q[:count, :3], axis=1)
    for t in (0.1, 0.5, 1.0, 2.0, 3.0):
        if (k := round(t / 0.02)) < count:
            print(f"after {t:.1f} s the trunks are {1e3 * apart[k]:.1f} mm apart")
    given.folder.mkdir(parents=True, exist_ok=True)
    first.page(given.folder / "walk.html")
    law = policy.control(named_task("Quadruped"), command=COMMAND)
    files = kt.export(first.system, "control", "c", given.folder, control=law)
    print("written:", given.folder / "walk.html", *files)


if __name__ == "__main__":
    main()
