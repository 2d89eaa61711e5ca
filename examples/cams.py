"""Cams and gears of variable ratio: one revolution of a cam with its contact force, and two elliptical gears.

python examples/cams.py [FOLDER] writes the pictures of docs/cams.md.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

import kinetree as kt
from kinetree.plots.figures import COLORS, INK, STYLE

LIFT, BASE, ROLLER = 0.03, 0.05, 0.012


def rise(angle: np.ndarray) -> np.ndarray:
    """Return the lift [m]: a cycloid up in a third of a revolution, a dwell, and a cycloid down."""
    x = np.interp(np.mod(angle, 2 * np.pi), [0, 2.1, 3.1, 5.2, 2 * np.pi], [0, 1, 1, 2, 2])
    up = x - np.sin(2 * np.pi * x) / (2 * np.pi)
    return LIFT * np.where(x <= 1, up, 2 - up)


def pitch_curve(count: int = 60) -> np.ndarray:
    """Return points of the path of the roller's center, seen from the cam, against the clock."""
    angles = 2 * np.pi * np.arange(count) / count
    path, reach = np.pi / 2 - angles, BASE + rise(angles)
    return np.stack([reach * np.cos(path), reach * np.sin(path)], axis=1)[::-1]


def cam() -> kt.System:
    """Return a cam with a roller follower above it."""
    bodies = [
        kt.Body("cam", 1.5, inertia=(2e-3, 2e-3, 3e-3, 0, 0, 0)),
        kt.Body("valve", 0.4, inertia=(1e-4, 1e-4, 1e-4, 0, 0, 0)),
    ]
    joints = [
        kt.Joint("cam", "revolute", kt.GROUND, "cam"),
        kt.Joint("valve", "prismatic", kt.GROUND, "valve", axis="y"),
    ]
    curve = kt.Curve(points=tuple(map(tuple, pitch_curve().tolist())))
    contact = kt.Loop("contact", "point_on_curve", "cam", "valve", curve=curve)
    return kt.System(
        kt.build_mechanism("cam", bodies, joints, loops=[contact], gravity=(0, -9.81, 0), guess={"valve": BASE})
    )


def gears(a: float = 0.2, e: float = 0.45) -> kt.System:
    """Return two equal ellipses in contact, each on a pivot in its focus."""
    curve = kt.Curve.ellipse(a, a * math.sqrt(1 - e * e), (-a * e, 0.0))
    bodies = [kt.Body(n, 1.0, inertia=(0.01, 0.01, 0.01, 0, 0, 0)) for n in "ab"]
    joints = [
        kt.Joint("a", "revolute", kt.GROUND, "a"),
        kt.Joint("b", "revolute", kt.GROUND, "b", kt.Placement((2 * a, 0, 0))),
    ]
    teeth = kt.Loop("teeth", "curve_on_curve", "a", "b", curve=curve, curve_b=curve)
    return kt.System(kt.build_mechanism("gears", bodies, joints, loops=[teeth]))


def draw_cam(path: Path) -> None:
    """Draw the cam in four positions, and lift and contact force over a revolution."""
    import matplotlib.pyplot as plt

    system = cam()
    run = system.cycle("cam", speed=20.0, samples=361)
    force = run["multipliers.contact"]
    pitch = pitch_curve(360)
    normal = np.roll(pitch, -1, axis=0) - np.roll(pitch, 1, axis=0)
    normal = np.stack([normal[:, 1], -normal[:, 0]], axis=1) / np.linalg.norm(normal, axis=1)[:, None]
    profile = pitch - ROLLER * normal
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(10, 4.6))
        grid = figure.add_gridspec(2, 6)
        for k, angle in enumerate((0.0, 1.2, 2.6, 4.2)):
            at = figure.add_subplot(grid[k // 2, k % 2])
            turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            at.fill(*(profile @ turn.T).T, color=COLORS[0], alpha=0.25)
            at.plot(*(profile @ turn.T).T, color=COLORS[0])
            at.add_patch(
                plt.Circle((0, BASE + float(rise(np.array(angle)))), ROLLER, fill=False, color=COLORS[1], lw=2)
            )
            at.plot(0, 0, "o", color=INK, ms=3)
            at.set(aspect="equal", xlim=(-0.1, 0.1), ylim=(-0.09, 0.105), title=f"{angle:g} rad")
            at.axis("off")
        lift, push = figure.add_subplot(grid[0, 2:]), figure.add_subplot(grid[1, 2:])
        lift.plot(run.q[:, 0], 1e3 * (run.q[:, 1] - BASE), color=COLORS[0])
        lift.set(ylabel="lift [mm]")
        push.plot(run.q[:, 0], force, color=COLORS[1])
        push.axhline(0.0, color=INK, lw=0.8)
        push.set(xlabel="angle of the cam [rad]", ylabel="contact force [N]")
        figure.tight_layout()
        figure.savefig(path, dpi=110)


def draw_gears(path: Path) -> None:
    """Draw two elliptical gears in three positions, and the angle of the second over that of the first."""
    import matplotlib.pyplot as plt

    a, e = 0.2, 0.45
    system = gears(a, e)
    s = np.linspace(0, 2 * np.pi, 200)
    ellipse = np.stack([-a * e + a * np.cos(s), a * math.sqrt(1 - e * e) * np.sin(s)], axis=1)
    q, found = system.assemble(), []
    angles = np.linspace(0, 3.1, 32)  # up to the position with both long axes in line, at which the contact is singular
    for angle in angles:
        q = system.assemble(q, hold={"a": angle})
        found.append(q)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), width_ratios=(1.3, 1.3, 1.3, 1.4))
        for at, k in zip(axes, (0, 13, 26), strict=False):
            for body, x in ((0, 0.0), (1, 2 * a)):
                turn = found[k][body]
                R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
                at.fill(*(ellipse @ R.T + [x, 0]).T, color=COLORS[body], alpha=0.25)
                at.plot(*(ellipse @ R.T + [x, 0]).T, color=COLORS[body])
                at.plot(x, 0, "o", color=INK, ms=4)
            at.set(aspect="equal", xlim=(-0.32, 0.72), ylim=(-0.34, 0.34))
            at.axis("off")
            at.set_title(f"{angles[k]:.2f} rad")
        whole = np.linspace(0, 2 * np.pi, 200)
        law = whole + sum(2 * (-e) ** n / n * np.sin(n * whole) for n in range(1, 46))
        axes[3].plot(whole, law, color=COLORS[0], label="law of sines")
        axes[3].plot(angles[::4], -np.array(found)[::4, 1], "o", color=COLORS[1], ms=4, label="ellipses in contact")
        axes[3].legend()
        axes[3].set(xlabel="first gear [rad]", ylabel="second gear, reversed [rad]")
        figure.tight_layout()
        figure.savefig(path, dpi=110)


def main(folder: Path) -> None:
    """Write all pictures into a folder, and print their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for draw, name in ((draw_cam, "cams-cycle.png"), (draw_gears, "cams-gears.png")):
        draw(folder / name)
        print(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/cams"))
