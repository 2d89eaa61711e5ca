"""Make the pictures of docs/studio.md and docs/first-robot.md: a studio that is served, in Chromium.

Run it with `python docs/studio_pictures.py`, with playwright and Chromium installed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from page_pictures import FOLDER, chromium  # type: ignore[import-not-found]

import kinetree as kt
from kinetree import library
from kinetree.apps.studio.server import running
from kinetree.apps.studio.tabs import Folder

SIZE = (1280, 800)
RAN = "document.querySelector('.panel').textContent.includes('finished')"


def wait(page: Any, condition: str) -> None:
    """Wait until a condition holds; the policy of the page forbids playwright's own way."""
    for _ in range(6000):
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


def typed(page: Any, label: str, text: str) -> None:
    """Type a number into a box."""
    box = page.get_by_label(label, exact=True)
    box.fill(text)
    box.press("Enter")


def table_picture(page: Any) -> None:
    """Enter a robot of three links by DH parameters, as docs/first-robot.md does."""
    page.get_by_role("button", name="Build", exact=True).click()
    page.get_by_role("button", name="New robot", exact=True).click()
    wait(page, "document.title === 'robot'")
    for label, text in (("b of link1", "0.2"), ("a of link1", "0"), ("alpha of link1", "90")):
        typed(page, label, text)
    for label, text in (("gravity y", "0"), ("gravity z", "-9.81")):
        typed(page, label, text)
    page.get_by_role("button", name="link2", exact=True).first.click()
    page.get_by_role("button", name="Add a link", exact=True).click()
    wait(page, "kinetree.model.bodies.length === 3")
    typed(page, "a of link2", "0.4")
    page.get_by_role("button", name="link1", exact=True).first.click()
    for label, text in (("center of mass x of link1", "0"), ("center of mass y of link1", "-0.1")):
        typed(page, label, text)
    page.get_by_role("button", name="link2", exact=True).first.click()
    for label, text in (("mass of link2", "2.5"), ("center of mass x of link2", "-0.2")):
        typed(page, label, text)
    page.keyboard.press("Escape")
    page.evaluate("document.querySelector('.left').scrollTop = 0; kinetree.stage.fit()")
    page.wait_for_timeout(800)


def torques_picture(page: Any) -> None:
    """Read the torques of that robot along a cycloid."""
    table_picture(page)
    page.get_by_role("button", name="Torques", exact=True).click()
    for label, text in (("to joint1", "90"), ("to joint2", "45"), ("to joint3", "-60")):
        typed(page, label, text)
    page.evaluate("kinetree.plots.choose('torque'); kinetree.player.seek(1.2); kinetree.stage.fit()")
    page.wait_for_timeout(800)


def building_picture(page: Any) -> None:
    """Begin with a branched tree, and show the form of a new body."""
    page.get_by_role("button", name="Build", exact=True).click()
    page.get_by_label("template of a new robot").select_option("branched tree")
    typed(page, "links of a new robot", "3")
    page.get_by_role("button", name="New robot", exact=True).click()
    wait(page, "document.title === 'robot' && kinetree.model.bodies.length === 7")
    page.get_by_text("Add a body", exact=True).click()
    page.evaluate("kinetree.moveTo(Float64Array.from([0.1, 0.3, -0.5, -0.4, -0.2, 0.6, 0.5])); kinetree.stage.fit()")
    page.evaluate("document.querySelector('.left').scrollTop = document.querySelector('.fold').offsetTop - 80")
    page.wait_for_timeout(800)


PICTURES = {
    "studio-build": ("planar_2r", building_picture),
    "studio-open": ("stanford", library_picture),
    "studio-run": ("puma560", run_picture),
    "first-robot-table": ("planar_2r", table_picture),
    "first-robot-torques": ("planar_2r", torques_picture),
}


def main(names: list[str]) -> None:
    """Make the pictures with these names, or all."""
    with tempfile.TemporaryDirectory() as place, chromium() as browser:
        models = Path(place) / "models"
        models.mkdir()
        for name in ("planar_3r", "five_bar"):
            (models / f"my_{name}.toml").write_text(library.path(name).read_text())
        with running(lambda: kt.load("stanford"), Folder.of(models)) as address:
            for name, (mechanism, steps) in PICTURES.items():
                if names and name not in names:
                    continue
                page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
                page.add_init_script("localStorage.setItem('kinetree-tour', 'seen')")
                page.goto(f"{address}&open=library%2F{mechanism}", timeout=300_000)
                page.wait_for_selector("body[data-ready]", state="attached", timeout=300_000)
                steps(page)
                page.screenshot(path=FOLDER / f"{name}.png")
                page.close()
                print(FOLDER / f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
