"""Pages in Chromium: steps in multiples of real time, from a slider to the picture, the first picture, and sizes."""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import kinetree as kt
from book import Section
from kinetree.page.kernel import live_mechanism
from measure import Figure, NotMeasured, agree, all_cores
from report import Table
from robot_files import MORE, ROBOTS, Robot

NAMES: tuple[str, ...] = ("UR5", "Talos, free base")
STEP = 1e-3
"""The step of the classical Runge-Kutta method [s]."""
STEPS: dict[str, int] = dict(zip(NAMES, (1000, 100), strict=True))
"""The steps of a reading, which takes less than 1 ms, so that few readings are interrupted by other processes."""
READINGS = 10
"""Readings per round."""
ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
"""The headers of a page that Chromium gives a clock with ticks of 5 us instead of 0.1 ms."""
ADDRESS = "http://localhost/"
"""The address of such a page, which the browser does not fetch."""
AIMS: dict[str, float] = dict(zip(NAMES, (1000.0, 30.0), strict=True))
"""Multiples of real time that pages should reach: an arm and a humanoid."""
AGREE = 1e-9
GOALS: dict[str, tuple[str, float, float]] = {
    "PUMA, falls with trails": ("puma560", 0.0, 25.0),
    "the same after two minutes": ("puma560", 120.0, 25.0),
    "Stewart, falls": ("stewart", 0.0, 15.0),
    "Talos with meshes": ("talos", 0.0, 10.0),
}
"""Pages that play: the file, from what time on [s], and pictures per second on two free cores without other work."""
OLDER = "KINETREE_OLDER_PAGES"
"""The environment variable with a folder of the same pages, made by another version, that are measured in turn."""
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-background-networking")
"""Flags of Chromium: pictures are drawn by the processor, as on machines without a graphics processor."""

PACE = """async ([rounds, count, dt, begun, numbers]) => {
    const { kernel, store } = kinetree;
    const [q, qd] = [store.get("q"), store.get("qd")];
    const times = [];
    kernel.useNumbers(numbers);
    const checked = kernel.begin(q, Float64Array.from(begun));
    kernel.advance(checked, dt, 3);
    const read = () => {
        const state = kernel.begin(q, qd);
        const begin = performance.now();
        kernel.advance(state, dt, count);
        return performance.now() - begin;
    };
    for (let k = 0; k < 100; k++) { // the browser compiles with all optimizations meanwhile
        read();
        await new Promise((next) => setTimeout(next, 20));
    }
    for (let k = 0; k < rounds; k++) times.push(read());
    kernel.useNumbers(null);
    return { times, q: Array.from(checked.q) };
}"""
"""Readings of motion from rest [ms each], and the position after three steps from given velocities.

`numbers` are those that the reader could type, null for the functions with the given ones.
"""

SLIDER = """async (rounds) => {
    const slider = document.querySelector(".panel input[type=range]");
    const gl = document.querySelector("canvas.solid").getContext("webgl2");
    const times = [];
    for (let k = 0; k < rounds + 2; k++) {
        await new Promise((next) => setTimeout(next, 20));
        const begin = performance.now();
        slider.value = 0.5 + 0.002 * (1 + k);
        slider.dispatchEvent(new Event("input"));
        kinetree.stage.draw();
        const drawn = performance.now();
        gl?.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); // waits for the picture
        times.push([drawn - begin, performance.now() - begin]);
    }
    return times.slice(2);
}"""
"""From the event of a slider to the commands of drawing, and to the picture by the processor [ms]."""


PLAYED = """async ([from, seconds]) => {
    const { store, stage, player } = kinetree;
    if (store.get("mode") !== "Simulate") store.set({ mode: "Simulate" });
    const motion = store.get("motion");
    while (motion.end < from - 1e-6) motion.extend(from, { patience: 1e5 });
    player.show();
    if (from) player.seek(motion.end);
    const gl = document.querySelector("canvas.solid").getContext("webgl2");
    const draw = stage.draw.bind(stage);
    let count = 0;
    stage.draw = () => {
        draw();
        gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); // waits for the picture
        count += 1;
    };
    player.play(true);
    await new Promise((done) => setTimeout(done, 1500)); // the browser compiles, and draws the first pictures
    count = 0;
    const begin = performance.now();
    await new Promise((done) => setTimeout(done, 1000 * seconds));
    const rate = (1000 * count) / (performance.now() - begin);
    player.play(false);
    return rate;
}"""
"""Pictures per second of a motion that is computed while it plays, each drawn by the processor before the next."""


def section(quick: bool) -> Section:
    """Return times and sizes of the pages of an arm and a humanoid."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None or find_spec("playwright") is None:
        raise NotMeasured("no Chromium on the PATH, or playwright is not installed")
    from playwright.sync_api import sync_playwright

    rounds = 8 if quick else 40
    chosen = [robot for robot in (*ROBOTS, *MORE) if robot.name in NAMES]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=list(FLAGS))
        found = {robot.name: measured(browser, robot, Path(folder), rounds) for robot in chosen}
        browser.close()
    with tempfile.TemporaryDirectory() as folder, all_cores(), sync_playwright() as play:
        pictures = picture_table(play, chromium, Path(folder), seconds=4.0 if quick else 12.0)
    rows = tuple(
        (
            name, f"{x['size'] / 1000:.0f}", f"{x['wasm'] / 1000:.0f}", x["pace"].text(), f"{AIMS[name]:,.0f}",
            x["typed"].text() if x["typed"] else "",
            x["slider"].text(), x["picture"].text(), x["first"].text(),
        )
        for name, x in found.items()
    )  # fmt: skip
    columns = (
        "robot", "page [kB]", "functions [kB]", "multiples of real time", "goal", "with typed numbers",
        "slider to drawing [ms]", "slider to picture by software [ms]", "first picture [ms]",
    )  # fmt: skip
    note = (
        f"Steps of {STEP:g} s of the classical Runge-Kutta method, from rest under gravity, "
        f"{' and '.join(f'{n:,}' for n in STEPS.values())} per reading, by a clock with ticks of 5 us. "
        "With typed numbers, all numbers of the mechanism are inputs of the functions, and a reading has a quarter of "
        "the steps. A frame at 60 Hz has 16.7 ms. The first picture is drawn from a file on disk, timed from the start "
        "of its navigation, in a browser that runs. "
        "A slider's event leads to all numbers of the page and to the commands for the graphics processor; without "
        "one, as here, the processor draws the picture."
    )
    headline = ", ".join(f"{name} {x['pace'].median:,.0f} times" for name, x in found.items())
    table = Table("Pages in Chromium", columns, rows, note)
    return Section("Pages", f"Pages step faster than real time: {headline}.", (table, pictures))


def picture_table(play: Any, chromium: str, folder: Path, *, seconds: float) -> Table:
    """Return pictures per second of pages that play, beside those of another version if there are any."""
    for name in ("puma560", "stewart"):
        kt.load(name).page().save(folder / f"{name}.html")
    talos = next(robot for robot in MORE if robot.name == NAMES[1])
    data = talos.path.parents[2]
    system = kt.load(talos.path, base=talos.base, roots=[data.parents[0], data.parents[1]])
    system.page(meshes=True, editable=False).save(folder / "talos.html")
    older = os.environ.get(OLDER)
    rows = []
    for name, (file, begin, goal) in GOALS.items():
        own = Figure.of([played(play, chromium, folder / f"{file}.html", begin, seconds) for _ in range(3)])
        given = Path(older) / f"{file}.html" if older else None
        before = played(play, chromium, given, begin, seconds) if given and given.is_file() else None
        rows.append((name, own.text(), f"{goal:g}", "" if before is None else f"{before:.3g}"))
    note = (
        "Pictures of 678 x 415 pixels with curves below, with multisampling, drawn by the processor (SwiftShader). "
        f"The load of the machine was {os.getloadavg()[0]:.1f} at the end. The last column is of the pages in {OLDER}."
    )
    return Table("Pictures per second", ("page", "pictures per second", "goal", "older"), tuple(rows), note)


def played(play: Any, chromium: str, file: Path, begin: float, seconds: float) -> float:
    """Return pictures per second of a page, in a browser of its own."""
    browser = play.chromium.launch(executable_path=chromium, args=list(FLAGS))
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(file.as_uri())
    page.wait_for_selector("body[data-ready]", state="attached", timeout=120_000)
    rate = float(page.evaluate(PLAYED, [begin, seconds]))
    browser.close()
    return rate


def measured(browser: Any, robot: Robot, folder: Path, rounds: int) -> dict[str, Any]:
    """Return the figures of one robot, whose states are those of the library."""
    system = kt.load(robot.path, base=robot.base)
    made = system.page()
    file = made.save(folder / f"{robot.name}.html")
    firsts = []
    for _ in range(max(3, rounds // 4)):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(file.as_uri())
        page.wait_for_selector("body[data-ready]", state="attached", timeout=120_000)
        firsts.append(float(page.evaluate("document.body.dataset.readyAfter")))
        if len(firsts) < max(3, rounds // 4):
            page.close()
    given, changed = paces(browser, made.text, system, robot.name, READINGS * rounds)
    slider, picture = zip(*page.evaluate(SLIDER, rounds), strict=True)
    wasm = page.evaluate("kinetree.kernel.bytes")
    page.close()
    return {
        "size": len(made.text),
        "wasm": wasm,
        "pace": given,
        "typed": changed,
        "slider": Figure.of(list(slider)),
        "picture": Figure.of(list(picture)),
        "first": Figure.of(firsts[1:]),
    }


def paces(browser: Any, text: str, system: kt.System, name: str, readings: int) -> tuple[Figure, Figure | None]:
    """Return multiples of real time with the given numbers and with typed ones, None if the page takes none."""
    page = browser.new_page()
    page.route(ADDRESS, lambda route: route.fulfill(body=text, content_type="text/html", headers=ISOLATED))
    page.goto(ADDRESS)
    page.wait_for_selector("body[data-ready]", state="attached", timeout=120_000)
    assert page.evaluate("crossOriginIsolated"), "the clock of the page has ticks of 0.1 ms"
    q = np.array(page.evaluate("Array.from(kinetree.store.get('q'))"))
    qd = np.random.default_rng(5).normal(size=system.nv)  # at rest, friction would amplify rounding errors
    run = kt.simulate(system, q, qd, times=[0.0, 3 * STEP], dt=STEP * (1 + 1e-12), method="rk4", progress=False)

    def pace(numbers: list[float] | None) -> Figure:
        steps = STEPS[name] // (4 if numbers else 1)
        stepped = page.evaluate(PACE, [readings, steps, STEP, qd.tolist(), numbers])
        agree(f"{name} in the page", np.array(stepped["q"]), run.q[-1], AGREE)
        return Figure.of([1000.0 * STEP * steps / x for x in stepped["times"]])

    numbers = typed(page, system)
    found = pace(None), pace(numbers) if numbers else None
    page.close()
    return found


def typed(page: Any, system: kt.System) -> list[float] | None:
    """Return the numbers of a mechanism as the reader of its page could type them, None if that page takes none."""
    kinds = page.evaluate("kinetree.data.kernel.editable?.kinds")
    if not kinds:
        return None
    own = len(system.mechanism.free_parameters)
    return [p.value for p in live_mechanism(system.mechanism, kinds).mechanism.free_parameters[own:]]
