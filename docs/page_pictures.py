"""Make the pictures of docs/page.md and of the lessons: pages of library mechanisms, opened in Chromium.

Run it with `python docs/page_pictures.py [NAME ...]`, with playwright and Chromium installed. A picture is a page, a
size, and steps in JavaScript that bring the page to the state that is shown; `kinetree` is the page's own object.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kinetree as kt

FOLDER = Path(__file__).parent / "pictures"
SETTLED = 400  # [ms] after each step, for frames of the page to be drawn
DESKTOP, PHONE = (1280, 800), (390, 800)


def pages(folder: Path) -> dict[str, Path]:
    """Write the pages, and return their files by name."""
    arm = kt.load("planar_3r")
    way = kt.Cycloid([0.3, -0.4, 0.2], [1.2, 0.8, -0.5], 1.5)
    run = kt.simulate(arm, [0.3, -0.4, 0.2], duration=2.0, dt=1e-3, control=kt.PDGravity(20.0, 2.0, way))
    names = ("puma560", "stewart", "stanford", "four_bar", "planar_2r", "flexible_arm")
    made = {name: kt.load(name).page().save(folder / f"{name}.html") for name in names}
    for name in ("planar_arms", "four_bar_linkage", "pendulum"):
        made[f"lesson:{name}"] = kt.lesson(name).save(folder / f"lesson-{name}.html")
    return made | {"run": run.page(arrows=True).save(folder / "run.html")}


def ahead(seconds: float) -> str:
    """Return the step that computes a motion and shows its end."""
    return (
        f"const m = kinetree.store.get('motion'); m.extend({seconds}, {{ patience: 1e5 }}); "
        "kinetree.player.show(); kinetree.player.seek(m.end)"
    )


SHOW = "kinetree.store.set({{ show: {{ ...kinetree.store.get('show'), {} }} }})"
"""The step that sets toggles of the picture."""

CLICK = "[...document.querySelectorAll('.panel button')].find((b) => b.textContent === '{}').click()"
"""The step that clicks a button of the panel by its text."""
WAIT = "void 0"
"""A step without effect, during which the page computes."""

STEP = "document.querySelectorAll('.dots button')[{}].click(); document.querySelector('button.do').click()"
"""The step that opens a step of a lesson, counted from 0, and presses its button."""
CURVED = """
    return new Promise((done) => {
        const look = () => (kinetree.plots.charts.some((c) => c.title === "curve") ? done() : setTimeout(look, 50));
        look();
    })
"""
"""The step that waits for the turn of a closed mechanism, which is computed in slices."""
PAUSE = "kinetree.player.play(false); kinetree.player.seek({})"
"""The step that stops a motion at a time."""

PICTURES: dict[str, tuple[str, tuple[int, int], list[str]]] = {
    "page-joints": ("puma560", DESKTOP, [
        "kinetree.moveTo(Float64Array.from([0.6, -0.7, 0.4, 0.3, 0.9, 0]))", "kinetree.store.set({ picked: 2 })",
        SHOW.format("axes: true, joints: true"), "kinetree.stage.fit()",
    ]),
    "page-model": ("stanford", DESKTOP, [
        "kinetree.moveTo(Float64Array.from([0.5, 1.2, 0.35, 0.3, 0.6, 0]))", "kinetree.store.set({ mode: 'Build' })",
        "kinetree.store.set({ picked: 1 })", *[CLICK.format("Step")] * 3, "kinetree.stage.fit()",
    ]),
    "page-matrices": ("puma560", DESKTOP, [
        "kinetree.moveTo(Float64Array.from([0.4, -0.6, 0.5, 0.7, 0.9, -0.3]))", "kinetree.store.set({ mode: 'Build' })",
        "kinetree.store.set({ picked: 3 })", *[CLICK.format("Step")] * 4, "kinetree.stage.fit()",
        "document.querySelector('.motions').scrollIntoView()",
    ]),
    "page-kinematics": ("puma560", DESKTOP, [
        "kinetree.moveTo(Float64Array.from([0.4, -0.6, 0.5, 0.7, 0.9, -0.3]))",
        "kinetree.store.set({ kinematics: { ...kinetree.store.get('kinematics'), ellipsoid: true } })",
        CLICK.format("Find"), CLICK.format("Sample"), WAIT, WAIT, "kinetree.stage.fit()",
        "document.querySelector('.solutions').scrollIntoView({ block: 'center' })",
    ]),
    "page-motion": ("puma560", DESKTOP, [
        "kinetree.store.set({ mode: 'Motion' })",
        "kinetree.moveTo(Float64Array.from([0.4, -0.6, 0.5, 0.7, 0.9, -0.3]))", CLICK.format("From here"),
        "kinetree.moveTo(Float64Array.from([1.0, -0.4, 0.3, 0.2, 0.7, 0.1]))", CLICK.format("To here"),
        CLICK.format("line"), """kinetree.store.set({ curves: { against: "", list: ["x", "y", "z"]
            .map((component) => ({ quantity: "point velocity", object: "link4 center of mass", component })) } })""",
        "kinetree.plots.choose('point velocity')", "kinetree.player.seek(0.9)", "kinetree.stage.fit()",
    ]),
    "page-inverse": ("puma560", DESKTOP, [
        "kinetree.moveTo(Float64Array.from([0.4, -0.6, 0.5, 0.7, 0.9, -0.3]))",
        "kinetree.store.set({ mode: 'Torques' })",
        "kinetree.store.set({ inverse: { ...kinetree.store.get('inverse'), joint: 1, mass: 2 } })",
        "kinetree.plots.choose('by cause: joint2')", "kinetree.player.seek(1.1)", "kinetree.stage.fit()",
    ]),
    "page-forward": ("stanford", DESKTOP, [
        "kinetree.moveTo(Float64Array.from([0.3, 1.2, 0.3, 0, 0.5, 0]))", "kinetree.store.set({ mode: 'Simulate' })",
        SHOW.format("reactions: true"), ahead(0.3), "kinetree.stage.fit()",
    ]),
    "page-loops": ("four_bar", DESKTOP, [
        "kinetree.store.set({ mode: 'Loops' })", *[WAIT] * 20, CLICK.format("Find modes"), *[WAIT] * 10,
        "kinetree.plots.choose('curve'); kinetree.plots.choose('bearing forces', true)", "kinetree.player.seek(0.12)",
        "document.querySelector('.pictures').scrollIntoView({ block: 'end' })", WAIT,
    ]),
    "page-cloud": ("planar_2r", DESKTOP, [
        "kinetree.moveTo(Float64Array.from([0.4, 0.6]))", "kinetree.store.set({ mode: 'Simulate' })",
        CLICK.format("Run cloud"), *[WAIT] * 30, "kinetree.player.seek(1.2)", "kinetree.stage.fit()",
        "document.querySelector('.panel').parentElement.scrollTop = 1000",
    ]),
    "page-beams": ("flexible_arm", DESKTOP, [
        "kinetree.store.set({ mode: 'Simulate' })", ahead(0.35), "kinetree.plots.choose('bending moment')",
        "kinetree.plots.choose('shear', true)", "kinetree.store.set({ bending: { decades: 0.7, strain: true } })",
    ]),
    "page-run": ("run", DESKTOP, ["kinetree.player.play(false)", "kinetree.player.seek(0.8)"]),
    "page-dark": ("stewart", DESKTOP, [
        "kinetree.store.set({ theme: 'dark', mode: 'Simulate' })", ahead(0.35), "kinetree.plots.choose('energy')",
    ]),
    "page-tour": ("puma560", DESKTOP, [
        "kinetree.moveTo(Float64Array.from([0.6, -0.7, 0.4, 0.3, 0.9, 0]))", "kinetree.stage.fit()",
        "[...document.querySelectorAll('.tools button')].find((b) => b.textContent === '?').click()",
        "[...document.querySelectorAll('dialog button')].find((b) => b.textContent.startsWith('Tour')).click()",
        *["document.querySelector('.tourcard .main').click()"] * 4,
    ]),
    "lesson-planar-arms": ("lesson:planar_arms", DESKTOP, [STEP.format(5), PAUSE.format(0.32)]),
    "lesson-four-bar": ("lesson:four_bar_linkage", DESKTOP, [STEP.format(2), CURVED, PAUSE.format(0.12)]),
    "lesson-phone": ("lesson:pendulum", PHONE, [STEP.format(1)]),
    "page-phone": ("puma560", PHONE, [
        "kinetree.moveTo(Float64Array.from([0.6, -0.7, 0.4, 0.3, 0.9, 0]))", "kinetree.stage.fit()",
    ]),
}  # fmt: skip


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        opened = play.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        )
        yield opened
        opened.close()


def shot(browser: Any, file: Path, to: Path, size: tuple[int, int], steps: list[str]) -> None:
    """Open a page, take the steps, and save what it shows."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.add_init_script("localStorage.setItem('kinetree-tour', 'offered')")
    page.goto(file.as_uri())
    page.wait_for_selector("body[data-ready]", state="attached")
    for step in steps:
        page.evaluate(f"() => {{ {step} }}")
        page.wait_for_timeout(SETTLED)
    page.screenshot(path=to)
    page.close()


def main(names: list[str]) -> None:
    """Make the pictures with these names, or all."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        found = pages(Path(folder))
        for name, (page, size, steps) in PICTURES.items():
            if names and name not in names:
                continue
            shot(browser, found[page], FOLDER / f"{name}.png", size, steps)
            print(FOLDER / f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
