"""Make pictures of twenty scenes, to compare the page of one version with that of another.

    python docs/scene_pictures.py make FOLDER               # with the kinetree that Python finds
    python docs/scene_pictures.py join BEFORE AFTER FOLDER  # both versions side by side, a picture per scene

For an older version, give its sources: `PYTHONPATH=OLD/src python docs/scene_pictures.py make before`. It needs
playwright and Chromium. Scenes are mechanisms of the library with steps in JavaScript, as in page_pictures.py; a mode
has its name of today and the one before, of which a page takes the one that it has.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from page_pictures import DESKTOP, PHONE, WAIT, ahead, chromium, shot

import kinetree as kt

BEFORE = {
    "Build": "Model", "Move": "Kinematics", "Torques": "Inverse", "Simulate": "Forward", "Understand": "Recursion",
}  # fmt: skip
"""The names that modes had before."""


def mode(name: str) -> str:
    """Return the step that chooses a mode by its name of today, or by the one before."""
    return (
        f"kinetree.store.set({{ mode: kinetree.panels.some((x) => x.name === '{name}') ? '{name}' : "
        f"'{BEFORE.get(name, name)}' }})"
    )


def clicked(text: str) -> str:
    """Return the step that clicks the first button of the panel with a text."""
    return f"[...document.querySelectorAll('.panel button')].find((b) => b.textContent === '{text}')?.click()"


def moved(*q: float) -> str:
    """Return the step that moves the mechanism."""
    return f"kinetree.moveTo(Float64Array.from({list(q)}))"


BENT = moved(0.4, -0.6, 0.5, 0.7, 0.9, -0.3)
SCENES: dict[str, tuple[str, tuple[int, int], list[str]]] = {
    "01-puma-opened": ("puma560", DESKTOP, []),
    "02-stanford-opened": ("stanford", DESKTOP, []),
    "03-stanford-falls": ("stanford", DESKTOP, [mode("Simulate"), ahead(2.0)]),
    "04-stewart-opened": ("stewart", DESKTOP, []),
    "05-stewart-falls": ("stewart", DESKTOP, [mode("Simulate"), ahead(1.0)]),
    "06-quadruped-opened": ("quadruped", DESKTOP, []),
    "07-quadruped-falls": ("quadruped", DESKTOP, [mode("Simulate"), ahead(0.6)]),
    "08-four-bar-turns": ("four_bar", DESKTOP, [mode("Loops"), *[WAIT] * 15, "kinetree.player.seek(0.12)"]),
    "09-charmie": ("charmie", DESKTOP, []),
    "10-kuka": ("kuka_lwr4", DESKTOP, [moved(0.3, 0.6, -0.2, -1.1, 0.4, 0.7, 0.1)]),
    "11-puma-solutions": ("puma560", DESKTOP, [mode("Move"), BENT, clicked("Find"), WAIT]),
    "12-puma-trails": ("puma560", DESKTOP, [mode("Simulate"), BENT, ahead(6.0)]),
    "13-long-link": ("planar_2r", DESKTOP, [
        mode("Build"), """const table = kinetree.store.get("table");
        const rows = table.rows.map((row, k) => (k === 1 ? { ...row, a: 300 } : row));
        kinetree.table.change({ ...table, rows }, "a")""", WAIT,
    ]),
    "14-puma-torques": ("puma560", DESKTOP, [
        BENT, mode("Torques"), "kinetree.plots.choose('by cause: joint1')", "kinetree.player.seek(1.0)",
    ]),
    "15-two-arms-in-space": ("space_robot_dual_arm", DESKTOP, [mode("Simulate"), ahead(1.0)]),
    "16-biped-on-a-phone": ("spatial_biped", PHONE, []),
    "17-puma-dark": ("puma560", DESKTOP, ["kinetree.store.set({ theme: 'dark' })", BENT]),
    "18-tree-of-the-gripper": ("gripper", DESKTOP, [mode("Understand"), clicked("Next"), clicked("Next")]),
    "19-hexapod": ("hexapod", DESKTOP, []),
    "20-torques-on-a-phone": ("planar_3r", PHONE, [mode("Torques"), WAIT]),
}  # fmt: skip


def make(folder: Path) -> None:
    """Write the pictures of all scenes by the version of kinetree that is imported."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as pages, chromium() as browser:
        for name, (mechanism, size, steps) in SCENES.items():
            file = Path(pages) / f"{mechanism}.html"
            if not file.exists():
                kt.load(mechanism).page().save(file)
            shot(browser, file, folder / f"{name}.png", size, steps)
            print(folder / f"{name}.png", flush=True)


def join(before: Path, after: Path, folder: Path) -> None:
    """Write the pictures of both folders side by side."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    for name in SCENES:
        pair = [Image.open(x / f"{name}.png").convert("RGB") for x in (before, after)]
        width, height = pair[0].size
        both = Image.new("RGB", (2 * width + 16, height), "white")
        for k, picture in enumerate(pair):
            both.paste(picture, (k * (width + 16), 0))
        both.save(folder / f"{name}.png")


if __name__ == "__main__":
    command, *folders = sys.argv[1:]
    {"make": make, "join": join}[command](*map(Path, folders))
