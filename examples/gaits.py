"""Walking robots on hard contact: a planar biped walks, a quadruped trots, a hexapod goes by tripods.

python examples/gaits.py [FOLDER] simulates twenty cycles of each, prints their measures, and writes the pictures of
docs/gaits.md and a page of each run, in which it can be watched.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from kinetree.apps.walking import legged
from kinetree.apps.walking.legged import advances, repetition_error, transport
from kinetree.plots.figures import COLORS, STYLE

CYCLES = 20
CASES = {
    "biped, walk": (legged.planar_biped, legged.WALK, 2.5e-4),
    "quadruped, trot": (legged.quadruped, legged.TROT, 1e-3),
    "hexapod, tripods": (legged.hexapod, legged.TRIPOD, 1e-3),
}
"""Robot, gait and time step [s]."""


def measures(robot, gait, run) -> dict[str, float]:
    """Return the measures of the last ten cycles."""
    start = (CYCLES // 2) * gait.period
    cost, rows = transport(run, robot.ahead, start=start), run.t >= start - 1e-9
    forces = run["contact_forces"][rows]
    normal = forces[..., 0].sum(axis=-1)
    pressed = forces[..., 0] > 1e-3 * robot.weight
    used = np.linalg.norm(forces[..., 1:], axis=-1)[pressed] / forces[..., 0][pressed]
    count = CYCLES - CYCLES // 2
    return {
        "distance in a cycle [m]": float(advances(run, robot.ahead, gait.period)[CYCLES // 2 :].mean()),
        "speed [m/s]": cost.distance / (count * gait.period),
        "cost of transport": cost.cost,
        "work of the drives in a cycle [J]": cost.work / count,
        "difference of the last two cycles [rad, m, rad/s, m/s]": float(
            repetition_error(run, robot.ahead, gait.period)[-1]
        ),
        "mean ground force / weight": float(normal[1:].mean() / robot.weight),
        "largest friction used": float(used.max()),
    }


def draw(folder: Path) -> list[Path]:
    """Simulate, print, and write pages and the picture of ground forces; return their files."""
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    runs, files = {}, [folder / "gaits-ground-forces.png"]
    for name, (make, gait, dt) in CASES.items():
        robot = make()
        run = robot.walk(gait, cycles=CYCLES, dt=dt, samples=round(gait.period / dt))  # every step is a sample
        runs[name] = robot, gait, run
        print(name)
        for what, value in measures(robot, gait, run).items():
            print(f"  {what:56} {value:.4g}")
        files.append(folder / f"{name.split(',')[0]}.html")
        robot.walk(gait, cycles=4, dt=dt, samples=60).page(files[-1], arrows=True)
    with plt.rc_context(STYLE):
        draw_forces(plt, runs, files[0])
    return files


def draw_forces(plt, runs, path: Path) -> None:
    """Draw the normal forces at the feet over the last two cycles."""
    figure, grid = plt.subplots(3, 1, figsize=(7.6, 6.2), layout="constrained")
    for axes, (name, (robot, gait, run)) in zip(grid, runs.items(), strict=True):
        rows = run.t >= run.t[-1] - 2 * gait.period - 1e-9
        t = (run.t[rows] - run.t[rows][0]) / gait.period
        forces = run["contact_forces"][rows][..., 0]
        of = [c.body[-1] for c in robot.contacts]
        for k, foot in enumerate(dict.fromkeys(of)):
            mine = forces[:, [leg == foot for leg in of]].sum(axis=-1)
            axes.plot(t, mine, color=COLORS[k], lw=1.2, label=f"foot {foot}")
        axes.plot(t, forces.sum(axis=-1), color="#202020", lw=0.8, ls=":", label="sum")
        axes.axhline(robot.weight, color="#a0a0a0", lw=0.8)
        axes.set(title=name, ylabel="normal force [N]", xlim=(0, 2), ylim=(0, 1.8 * robot.weight))
        axes.legend(fontsize=7.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))  # beside the curves
    grid[-1].set_xlabel("time [cycles]")
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    print(*draw(Path(sys.argv[1] if len(sys.argv) > 1 else "out/gaits")), sep="\n")
