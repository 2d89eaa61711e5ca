"""Passive walkers: the gait of a compass as a closed curve, and the starts from which it walks on.

python examples/passive_walkers.py [FOLDER] writes the pictures of docs/gaits.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import kinetree as kt
from kinetree.apps.walking.passive import Compass
from kinetree.plots.figures import COLORS, STYLE

START = (0.27, -1.09, 0.72)
SIDE, STEPS = (36, 28), 8
"""The points of the picture of a basin, and the steps that are taken from each."""


def draw(folder: Path) -> None:
    """Write both pictures, and print their paths."""
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    walker = Compass(np.deg2rad(3.0))
    gait = kt.periodic(walker.step, START)
    print(gait)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        disturbed = walker.step.steps(gait.x + np.array([0.0, 0.05, -0.1]), 12)
        for label, color, steps in (
            ("disturbed, 12 steps", COLORS[1], disturbed),
            ("the gait", COLORS[0], walker.step.steps(gait.x, 2)),
        ):
            for k, run in enumerate(steps):
                leg, rate = run.q.sum(axis=1), run.qd.sum(axis=1)
                for x, y in ((run.q[:, 0], run.qd[:, 0]), (leg, rate)):
                    axes.plot(x, y, color=color, lw=1.6 if color == COLORS[0] else 0.7, label=label if k == 0 else None)
                    label = None
        axes.set(xlabel="angle of a leg [rad]", ylabel="its rate [rad/s]")
        axes.legend(loc="upper right")
        figure.savefig(folder / "compass_gait.png", dpi=150)
        figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        a = np.linspace(gait.x[1] - 0.35, gait.x[1] + 0.45, SIDE[0])
        b = np.linspace(gait.x[2] - 1.1, gait.x[2] + 1.1, SIDE[1])
        points = np.stack([np.full((SIDE[1], SIDE[0]), gait.x[0]), *np.meshgrid(a, b)], axis=-1)
        count = walker.step.returns(points, STEPS)
        shown = axes.pcolormesh(a, b, count, cmap="cividis", shading="nearest")
        axes.plot(*gait.x[1:], "o", color="white", mec="black", ms=7)
        axes.set(xlabel="rate of the supporting leg [rad/s]", ylabel="rate of the hip [rad/s]")
        figure.colorbar(shown, label=f"steps until it falls, of {STEPS}")
        figure.savefig(folder / "compass_basin.png", dpi=150)
    print(folder / "compass_gait.png", folder / "compass_basin.png", sep="\n")


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "out/passive_walkers"))
