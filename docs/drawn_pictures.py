"""Make pictures of mechanisms in docs/seven-steps.md, charmie.md and contact.md: snapshots of runs, without a browser.

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


def draw_pile() -> None:
    """Draw boxes, balls and a capsule that were dropped on each other, at rest."""
    kinds = [
        ("box", (0.5, 0.4, 0.12)),
        ("box", (0.3, 0.24, 0.16)),
        ("box", (0.2, 0.3, 0.14)),
        ("box", (0.24, 0.1, 0.1)),
    ]
    kinds += [("sphere", (0.09,)), ("capsule", (0.06, 0.2))]
    places = [(0, 0, 0.06), (0.02, 0.03, 0.24), (-0.03, 0, 0.45), (0, 0.02, 0.64), (0.36, 0.02, 0.1), (-0.34, 0, 0.1)]
    turns = [0.1, 0.7, -0.3, 1.2, 0.0, 1.6]
    bodies = []
    for k, (kind, size) in enumerate(kinds):
        color = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2")[k]
        rgba = tuple(int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
        shape = kt.Shape(kind, size, color=(*rgba, 1.0))
        bodies.append(kt.Body(f"b{k}", 1.0, inertia=(5e-3, 5e-3, 5e-3, 0, 0, 0), shapes=(shape,)))
    joints = [kt.Joint(f"j{k}", "free", kt.GROUND, b.name) for k, b in enumerate(bodies)]
    pile = kt.System(kt.build_mechanism("pile", bodies, joints))
    laws = {"friction": 0.6, "role": "visual"}
    contacts = [*kt.contacts_of(pile, **laws), *kt.contacts_between(pile, **laws)]
    q = pile.neutral()
    for k, (place, turn) in enumerate(zip(places, turns, strict=True)):
        q[7 * k : 7 * k + 3], q[7 * k + 5 : 7 * k + 7] = place, (np.sin(turn / 2), np.cos(turn / 2))
    q[38:42] = np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)
    run = kt.simulate(pile, q, duration=1.5, contacts=contacts, method="moreau", dt=1e-3)
    assert run.finished and abs(run.qd[-1]).max() < 1e-6, (run.status, abs(run.qd[-1]).max())
    snapshot(run, FOLDER / "contact-pile.png", time=1.5, size=(900, 560))


if __name__ == "__main__":
    draw_pile()
    draw_crane()
    draw_charmie()
