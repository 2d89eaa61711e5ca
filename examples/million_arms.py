"""A million arms on a GPU: all fall from one posture, with starting velocities that differ a little.

python examples/million_arms.py PICTURE draws how often the last link is where, at a few times. With --runs 20000
--device cpu it runs without a GPU. --save FILE keeps the counts, and --load FILE draws counts that were kept.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import kinetree as kt
from kinetree.plots.figures import INK, STYLE

TIMES = (0.3, 0.5, 0.7, 1.0, 1.5, 2.5)
"""The times of the pictures [s]."""
POSTURE = (0.0, 0.5, 0.0, 1.2, 0.0, -0.6, 0.0)
"""The joint angles at the start [rad]."""
SPREAD = 0.25
"""The standard deviation of the starting velocities [rad/s]."""
DAMPING = 0.2
"""The damping of every joint [N m s]."""
SIDE = np.linspace(-0.85, 0.85, 401)
"""The edges of the pixels [m]."""


def counts(runs: int, device: str) -> dict[str, np.ndarray]:
    """Simulate and return how many last links are in each pixel of the vertical plane at each time."""
    arm = kt.load("kuka_lwr4")
    rng = np.random.default_rng(2026)
    q0 = np.broadcast_to(POSTURE, (runs, arm.nq))
    qd0 = rng.normal(scale=SPREAD, size=(runs, arm.nv))
    damping = [kt.JointDamper(joint.name, DAMPING) for joint in arm.joints]
    began = time.perf_counter()
    run = kt.simulate(arm.on(device), q0, qd0, times=(0.0, *TIMES), dt=1e-3, forces=damping)
    seconds = time.perf_counter() - began
    print(f"{runs:,} arms x {TIMES[-1] * 1000:.0f} steps in {seconds:.2f} s: {run.status}")
    images = []
    for k in range(len(TIMES)):
        x, height, _ = np.moveaxis(arm.pose(run.q[:, k + 1], arm.bodies[-1].name)[..., :3, 3], -1, 0)
        images.append(np.histogram2d(height, x, bins=(SIDE, SIDE))[0].astype(np.int32))
    return {"images": np.array(images), "runs": np.array(runs), "seconds": np.array(seconds)}


def draw(found: dict[str, np.ndarray], path: str) -> None:
    """Draw one panel per time; the darkness grows with the logarithm of the count."""
    import matplotlib.pyplot as plt

    with plt.style.context(STYLE):
        figure, panels = plt.subplots(2, 3, figsize=(9.0, 6.2), sharex=True, sharey=True, layout="constrained")
        for panel, image, t in zip(panels.flat, found["images"], TIMES, strict=True):
            panel.imshow(np.log1p(image), origin="lower", extent=(*SIDE[[0, -1]],) * 2, cmap="Greys")
            panel.set_title(f"t = {t:g} s", fontsize=9, color=INK)
            panel.grid(visible=False)
        for panel in panels[-1]:
            panel.set_xlabel("x [m]")
        for panel in panels[:, 0]:
            panel.set_ylabel("height [m]")
        title = f"Last links of {int(found['runs']):,} arms, {float(found['seconds']):.2f} s for {TIMES[-1]:g} s each"
        figure.suptitle(title, fontsize=10)
        figure.savefig(path, dpi=130)
        plt.close(figure)


def main() -> None:
    """Simulate or load, keep, and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", nargs="?", help="the picture to write, .png or .svg")
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--save", help="keep the counts in a .npz file")
    parser.add_argument("--load", help="draw counts that were kept")
    given = parser.parse_args()
    try:
        found = dict(np.load(given.load)) if given.load else counts(given.runs, given.device)
    except kt.InputError as error:
        raise SystemExit(
            f"{error}; or run `python examples/million_arms.py PICTURE --runs 20000 --device cpu`"
        ) from None
    if given.save:
        np.savez_compressed(given.save, **found)
    if given.picture:
        draw(found, given.picture)


if __name__ == "__main__":
    main()
