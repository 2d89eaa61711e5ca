"""Make the pictures of mechanisms in docs/seven-steps.md and docs/charmie.md: snapshots of runs, without a browser.

Run it with `python docs/drawn_pictures.py`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import kinetree as kt
from kinetree.library.templates import new_robot
from kinetree.plots.animation import snapshot

FOLDER = Path(__file__).parent / "pictures"


def draw_crane() -> None:
    """Draw the crane at the start, in the middle and at the end of its lift, beside each other."""
    from PIL import Image

    lift = {"actuator": kt.Cycloid(0.03, 0.17, 2.0), "wrist": kt.Cycloid(0.0, -np.pi / 4, 2.0)}
    with tempfile.TemporaryDirectory() as place:
        new_robot("crane", "closed", Path(place) / "crane")
        crane = kt.load(Path(place) / "crane" / "crane.toml")
        start = crane.assemble(hold={"actuator": 0.03, "wrist": 0.0})
        run = kt.simulate(crane, start, duration=2.5, control=kt.Driven(lift))
        shots = []
        for time in (0.0, 1.0, 2.5):
            file = snapshot(run, Path(place) / "shot.png", time=time, size=(420, 420))
            shots.append(Image.open(file).convert("RGB"))
    whole = Image.new("RGB", (sum(shot.width for shot in shots), shots[0].height), "white")
    for k, shot in enumerate(shots):
        whole.paste(shot, (k * shot.width, 0))
    whole.save(FOLDER / "seven-steps-crane.png", optimize=True)


def draw_charmie() -> None:
    """Draw the complete robot CHARMIE as it is assembled."""
    robot = kt.load("charmie_complete")
    still = kt.Trajectory(robot, np.zeros(1), robot.assemble()[None], np.zeros((1, robot.nv)))
    snapshot(still, FOLDER / "charmie.png", time=0.0, size=(900, 640))


if __name__ == "__main__":
    draw_crane()
    draw_charmie()
