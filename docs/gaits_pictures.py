"""Make the picture of walking robots of docs/gaits.md: pages of their runs, opened in Chromium.

Run it with `python docs/gaits_pictures.py`, with playwright and Chromium installed.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from page_pictures import FOLDER, SETTLED, chromium

from kinetree.apps.walking import legged

CASES = {
    "quadruped": (legged.quadruped, legged.TROT, 1e-3, 0.88),
    "hexapod": (legged.hexapod, legged.TRIPOD, 1e-3, 1.05),
    "biped": (legged.planar_biped, legged.WALK, 2.5e-4, 2.3),
}
"""Robot, gait, time step and the instant that is shown [s]."""
STEPS = (
    "kinetree.player.play(false)",
    "kinetree.store.set({{ show: {{ ...kinetree.store.get('show'), values: false }} }})",
    "kinetree.player.seek({at})",
    "kinetree.stage.fit()",
)


def main() -> None:
    """Write the picture."""
    from PIL import Image

    shots = []
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for name, (make, gait, dt, at) in CASES.items():
            run = make().walk(gait, cycles=3, dt=dt, samples=60)
            file = run.page(arrows=True).save(Path(folder) / f"{name}.html")
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(file.as_uri())
            page.wait_for_selector("body[data-ready]", state="attached")
            for step in STEPS:
                page.evaluate(step.format(at=at))
                page.wait_for_timeout(SETTLED)
            shots.append(Image.open(io.BytesIO(page.locator("canvas").first.screenshot())).convert("RGB"))
            page.close()
    width, height = sum(shot.width for shot in shots), max(shot.height for shot in shots)
    whole = Image.new("RGB", (width, height), "white")
    left = 0
    for shot in shots:
        whole.paste(shot, (left, 0))
        left += shot.width
    whole.quantize(128).save(FOLDER / "gaits-robots.png", optimize=True)


if __name__ == "__main__":
    main()
