"""Ropes: a settling bridge, a falling folded chain, a whip and a swinging net, each drawn as a picture.

python examples/ropes.py [FOLDER] writes the pictures of docs/ropes.md, and pages that replay the motions.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import kinetree as kt
from kinetree.library.chains import Link, rope_parts
from kinetree.plots.figures import COLORS, INK, STYLE


def bridge() -> kt.Trajectory:
    """Simulate a bridge of 60 links that falls from an arc; bending is damped, and it comes to rest as a catenary."""
    system = kt.rope(
        2.3, 60, mass_per_metre=0.37, radius=0.004, bending=1e-4, damping=0.02, joint="revolute",
        ends=("pinned", "pinned"), span=1.7,
    )  # fmt: skip
    return kt.simulate(system, times=np.linspace(0, 4, 201), method="implicit_midpoint", dt=2e-3)


def fall() -> kt.Trajectory:
    """Simulate a folded chain of 80 links, pinned at one end and released at the other."""
    system = kt.rope(2.0, 80, mass_per_metre=0.37, radius=0.001, joint="revolute")
    q0 = np.where(np.arange(80) == 40, np.pi - 0.05, 0.0)
    return kt.simulate(system, q0, times=np.linspace(0, 0.56, 141), method="rk4", dt=5e-5)


def whip(n: int = 80) -> kt.Trajectory:
    """Simulate a rope that lies folded back, whose handle a force accelerates and stops along a pulse of velocity."""
    link = Link(2.0 / n, 0.16 / n, 0.004)
    bodies, joints, springs = rope_parts(link, n, joint="revolute", bending=3e-4, damping=2e-6, parent="handle")
    handle = kt.Body("handle", 0.4, inertia=(1e-3, 1e-3, 1e-3, 0.0, 0.0, 0.0))
    slide = kt.Joint("hand", "prismatic", kt.GROUND, "handle", axis=(1.0, 0.0, 0.0))
    tip = kt.Frame("tip", bodies[-1].name, kt.Placement((2.0 / n, 0.0, 0.0)))
    system = kt.System(
        kt.build_mechanism(
            "whip", (handle, *bodies), (slide, *joints), frames=[tip], forces=springs, gravity=(0.0, 0.0, 0.0)
        )
    )
    q0 = np.zeros(n + 1)
    q0[1] = np.pi
    q0[n // 2 - 5 : n // 2 + 7] = 0.98 * np.pi / 12

    def hand(t, q, qd):
        tau = np.zeros_like(qd)
        tau[..., 0] = 60.0 * (7.0 * np.sin(np.pi * min(t / 0.25, 1.0)) ** 2 - qd[..., 0])
        return tau

    times = np.linspace(0, 0.35, 701)
    return kt.simulate(system, q0, times=times, method="implicit_midpoint", dt=5e-5, control=kt.PythonControl(hand))


def net() -> kt.Trajectory:
    """Simulate a swinging net of four hanging ropes, tied by nine horizontal ones."""
    system = kt.net(3, 4, mesh=0.21, n=2, mass_per_metre=0.37, radius=0.004, bending=1e-4, joint="revolute")
    speeds = {"down": 2.5, "across": -2.5}
    first = [j.name.split("_")[0].rstrip("0123456789") if j.name.endswith("_joint1") else "" for j in system.joints]
    qd0 = np.array([speeds.get(name, 0.0) for name in first])
    return kt.simulate(system, None, qd0, times=np.linspace(0, 0.6, 61), method="rk4", dt=5e-4)


APART = {"bridge": (5, 0.0, 0.0), "fall": (8, 0.3, 0.0), "whip": (6, 0.0, -0.4), "net": (5, 1.0, 0.0)}
"""For each motion, the number of samples to draw, and their offsets in x and z [m], which keep them apart."""


def shapes(axes, run: kt.Trajectory, count: int, dx: float, dz: float) -> None:
    """Draw the links at evenly spaced samples, from light to dark, as lines in the x-z plane."""
    mechanism = run.system.mechanism
    ends = np.array([float(np.max(np.abs(b.com), initial=0.0)) * 2 for b in mechanism.bodies])
    for k, shade in enumerate(np.linspace(0.4, 1.0, count)):
        poses = run.system.poses(run.q[(len(run.t) - 1) * k // (count - 1)])
        a, along = poses[:, :3, 3], poses[:, :3, 0] * ends[:, None]
        lines = np.stack([a, a + along], axis=1)[:, :, [0, 2]] + (k * dx, k * dz)
        axes.plot(*np.moveaxis(lines, -1, 0).swapaxes(1, 2), color=INK, alpha=shade, linewidth=1.2)
    axes.set_aspect("equal")
    axes.set_xlabel("x  [m]" + (", each sample shifted" if dx else ""))
    axes.set_ylabel("z  [m]" + (", shifted" if dz else ""))


def speeds(axes, run: kt.Trajectory, names: dict[str, np.ndarray]) -> None:
    """Draw speeds over time."""
    for color, (name, values) in zip(COLORS, names.items(), strict=False):
        axes.plot(run.t, values, color=color, label=name)
    axes.set_xlabel("time  [s]")
    axes.set_ylabel("speed  [m/s]")
    axes.legend()


def draw(folder: Path) -> list[Path]:
    """Simulate all motions, draw the pictures, write the pages, and return the paths of all."""
    import matplotlib
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    runs = {"bridge": bridge(), "fall": fall(), "whip": whip(), "net": net()}
    files = []
    with matplotlib.rc_context(STYLE):
        for name, run in runs.items():
            print(f"{name}: {run.status}, {len(run.system.bodies)} bodies; {kt.energy_balance(run)}")
            timed = name in ("fall", "whip")
            figure = Figure(figsize=(7.2, 2.8), layout="constrained")
            panels = figure.subplots(1, 1 + timed, squeeze=False)[0]
            shapes(panels[0], run, *APART[name])
            if timed:
                world = run.system.twist(run.q, run.qd, "tip", axes="world")
                pace = np.linalg.norm(world[:, 3:], axis=1)
                beside = {"free fall": 9.81 * run.t} if name == "fall" else {"handle": np.abs(run.qd[:, 0])}
                speeds(panels[1], run, {"tip": pace, **beside})
            files.append(folder / f"ropes-{name}.png")
            figure.savefig(files[-1], dpi=110, metadata={"Software": "Kinetree"})
            files.append(run.replay(folder / f"ropes-{name}.html"))
    return files


if __name__ == "__main__":
    for file in draw(Path(sys.argv[1] if len(sys.argv) > 1 else "out/ropes")):
        print(file)
