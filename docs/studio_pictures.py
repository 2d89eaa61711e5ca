"""Make the pictures of docs/studio.md: a studio that is served, in Chromium.

Run it with `python docs/studio_pictures.py`, with playwright and Chromium installed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from page_pictures import FOLDER, chromium  # type: ignore[import-not-found]

import kinetree as kt
from kinetree import library
from kinetree.studio.folder import Folder
from kinetree.studio.serving import running

SIZE = (1280, 800)
RAN = "document.querySelector('.panel').textContent.includes('finished')"


def wait(page: Any, condition: str) -> None:
    """Wait until a condition holds; the policy of the page forbids playwright's own way."""
    for _ in range(1200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise TimeoutError(condition)


def library_picture(page: Any) -> None:
    """Show the dialog of the library."""
    page.keyboard.press("Control+o")
    page.wait_for_selector(".card canvas")
    page.wait_for_timeout(1500)


def run_picture(page: Any) -> None:
    """Show a run in Python."""
    page.evaluate("kinetree.moveTo(Float64Array.from([0.6, -0.7, 0.4, 0.3, 0.9, 0]))")
    page.keyboard.press("f")
    wait(page, "document.querySelectorAll('select[aria-label=method] option').length > 5")
    page.get_by_label("method").select_option("rodas5p")
    page.get_by_label("duration", exact=True).fill("2")
    page.get_by_label("duration", exact=True).press("Enter")
    page.get_by_role("button", name="Run in Python").click()
    wait(page, RAN)
    page.evaluate("kinetree.player.seek(0.9); kinetree.stage.fit()")
    page.wait_for_timeout(600)


PICTURES = {"studio-open": ("stanford", library_picture), "studio-run": ("puma560", run_picture)}


def main() -> None:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as place, chromium() as browser:
        models = Path(place) / "models"
        models.mkdir()
        for name in ("planar_3r", "five_bar"):
            (models / f"my_{name}.toml").write_text(library.path(name).read_text())
        with running(lambda: kt.load("stanford"), Folder.of(models)) as address:
            for name, (mechanism, steps) in PICTURES.items():
                page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
                page.add_init_script("localStorage.setItem('kinetree-tour', 'seen')")
                page.goto(f"{address}&open=library%2F{mechanism}")
                page.wait_for_selector("body[data-ready]", state="attached")
                steps(page)
                page.screenshot(path=FOLDER / f"{name}.png")
                page.close()
                print(FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
