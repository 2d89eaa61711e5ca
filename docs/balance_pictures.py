"""Make the picture of docs/ground-forces.md: support polygons and zero-moment point of a hexapod that walks.

Run it with `python docs/balance_pictures.py`.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt
from kinetree.apps.walking import legged

FILE = Path(__file__).parent / "pictures" / "ground-balance.png"
COLORS = ("#4477aa", "#ee6677")
"""Colors of the two tripods."""


def main() -> None:
    """Write the picture."""
    robot = legged.hexapod()
    run = robot.walk(legged.TRIPOD, cycles=3, samples=60)
    found = kt.ground_balance(run)
    last = run.t >= run.t[-1] - legged.TRIPOD.period
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", width_ratios=(1, 1.2))
    drawn = [np.zeros((0, 2))]
    for at in np.flatnonzero(last):
        corners = found.support[at]
        if len(corners) == 3 and all(x.shape != corners.shape or abs(x - corners).max() > 0.01 for x in drawn):
            color = COLORS[(len(drawn) - 1) % 2]
            left.fill(*corners.T, alpha=0.25, color=color)
            left.plot(*corners.T, "o", color=color)
            drawn.append(corners)
    for points, color, label in (
        (found.zero_moment_point, "black", "zero-moment point"),
        (found.capture_point, "#228833", "capture point"),
    ):
        left.plot(*found.plane.within(points[last]).T, color=color, lw=1.2, label=label)
    left.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="one cycle from above, two tripods")
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.35), ncols=2, fontsize=8)
    right.plot(run.t, found.margin, color="black", lw=1.0)
    right.axhline(0.0, color="#bb5566", lw=0.8)
    right.set(xlabel="t [s]", ylabel="margin [m]", title="distance of the zero-moment point from the border")
    figure.savefig(FILE, dpi=110)
    print(found)


if __name__ == "__main__":
    main()
