"""Make the pictures of the studio's gallery: mechanisms of the library, drawn by their own pages in Chromium.

Run it with `python docs/gallery_pictures.py [--out FOLDER] [NAME ...]`, with playwright and Chromium installed. A
picture belongs to the mechanism with its hash: a test reports those that are out of date.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import tempfile
from pathlib import Path

from page_pictures import chromium  # type: ignore[import-not-found]

import kinetree as kt
from kinetree import library

FOLDER = Path(kt.__file__).parent / "apps" / "studio" / "pictures"
SIZE = (240, 160)  # [px]
KUKA = [0.4, 0.7, 0.3, -1.1, 0.2, 0.8, 0]
POSES = {
    "gripper": [0.3, 0.4, -0.4, 0.3], "kuka_lwr4": KUKA, "planar_2r": [0.7, 0.8],
    "kuka_lwr4_elastic": [x for x in KUKA for _ in "12"],
    "planar_3r": [0.5, 0.6, 0.7], "puma560": [0.6, -0.7, 0.4, 0.3, 0.9, 0], "stanford": [0.5, 1.1, 0.3, 0.2, 0.6, 0],
    "tube_arm": [0.5, 0.6],
}  # fmt: skip
"""Positions of arms that are straight at first."""
DRAW = """async () => {
    kinetree.store.set({ show: { ...kinetree.store.get("show"), floor: false, trails: false } });
    kinetree.part.layer = () => ({});
    kinetree.stage.fit();
    kinetree.stage.draw();
    const canvas = document.querySelector("canvas.solid");
    return canvas.toDataURL("image/png").split(",")[1];
}"""


def main(names: list[str], folder: Path) -> None:
    """Draw the mechanisms with these names, or all, into a folder."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as place, chromium() as opened:
        page = opened.new_page(viewport={"width": 1330, "height": 620}, device_scale_factor=1)
        for name in names or library.names():
            system = kt.load(name)
            file = system.page(Path(place) / f"{name}.html", q=POSES.get(name)).save(Path(place) / f"{name}.html")
            page.goto(file.as_uri())
            page.wait_for_selector("body[data-ready]", state="attached")
            whole = Image.open(io.BytesIO(base64.b64decode(page.evaluate(DRAW))))
            picture = framed(whole)
            picture.quantize(96, method=Image.Quantize.FASTOCTREE).save(folder / f"{name}.png", optimize=True)
            print(f"{name}: {(folder / f'{name}.png').stat().st_size} bytes")
    hashes = {name: kt.load(name).mechanism.hash for name in library.names()}
    (folder / "hashes.json").write_text(json.dumps(hashes, indent=1) + "\n")


def framed(whole):
    """Return the drawn part of a picture in the middle of a small one."""
    from PIL import Image

    drawn = whole.crop(whole.getbbox())
    scale = min((SIZE[0] - 12) / drawn.width, (SIZE[1] - 12) / drawn.height)
    small = drawn.resize(
        (max(1, round(drawn.width * scale)), max(1, round(drawn.height * scale))), Image.Resampling.LANCZOS
    )
    sheet = Image.new("RGBA", SIZE, (0, 0, 0, 0))
    sheet.paste(small, ((SIZE[0] - small.width) // 2, (SIZE[1] - small.height) // 2))
    return sheet


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] == ["--out"]:
        main(given[2:], Path(given[1]))
    else:
        main(given, FOLDER)
