"""Documents of the studio's page in a real browser: a reload, Back, a new studio and a file bring all of it back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import kinetree as kt
from browser import drop, needs_browser, opened, served, typed, until
from kinetree.apps.studio.server import listen, running
from kinetree.apps.studio.tabs import Folder
from tolerance import assert_close

pytestmark = [needs_browser, pytest.mark.slow]

CONTENT = """() => ({
    title: document.title, mode: kinetree.store.get("mode"), q: Array.from(kinetree.store.get("q")),
    qd: Array.from(kinetree.store.get("qd")), time: kinetree.store.get("time"), bodies: kinetree.model.bodies.length,
    masses: kinetree.model.bodies.map((x) => x.mass), chosen: kinetree.plots.chosen,
    charts: kinetree.plots.charts.map((x) => x.title), view: kinetree.stage.view.state.azimuth,
    show: kinetree.store.get("show"), units: kinetree.store.get("units"),
})"""
FRAME = "kinetree.kernel && document.body.dataset.ready"


def content(page: Any) -> dict[str, Any]:
    return page.evaluate(CONTENT)


def kept(page: Any) -> dict[str, Any]:
    """Return what the page shows, once the browser has kept it."""
    page.wait_for_timeout(450)
    return content(page)


def reloaded(page: Any, title: str) -> dict[str, Any]:
    page.reload()
    until(page, f"document.title === {title!r} && window.kinetree?.model.name === {title!r} && {FRAME}")
    page.wait_for_selector(".waiting", state="detached")
    return content(page)


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    """Yield the address of a studio for all tests of this module."""
    with running(lambda: kt.load("planar_2r"), Folder.of(tmp_path_factory.mktemp("folder"))) as found:
        yield found


def test_a_reload_brings_back_every_mode(chromium, address):
    """Change pose, table, view and settings of three modes, reload in each of them, and twice."""
    with served(chromium, address) as page:
        page.keyboard.press("b")
        page.evaluate("kinetree.store.set({ picked: 1 })")
        typed(page, "mass of link2", "0.75")
        page.keyboard.press("Escape")
        page.locator(".stage").focus()
        page.keyboard.press("k")
        typed(page, "joint2", "-37.5")
        page.locator(".stage").focus()
        page.keyboard.press("2")
        before = kept(page)
        assert before["masses"][1] == 0.75 and "token" not in page.url
        assert reloaded(page, "planar_2r") == before
        page.keyboard.press("i")
        typed(page, "duration", "1.25")
        page.get_by_role("button", name="velocity", exact=True).click()
        page.evaluate("kinetree.player.seek(0.5)")
        page.mouse.click(640, 300)
        before = kept(page)
        assert before["chosen"] == ["velocity"] and before["time"] == 0.5
        assert reloaded(page, "planar_2r") == before
        page.keyboard.press("f")
        page.evaluate("kinetree.player.seek(0); kinetree.store.get('motion').extend(0.4, { patience: 5000 })")
        page.evaluate("kinetree.player.seek(0.35)")
        page.mouse.click(640, 300)
        before = kept(page)
        after = reloaded(page, "planar_2r")
        assert after.pop("time") == pytest.approx(before.pop("time"), abs=0)
        assert_close(np.array(after.pop("q")), np.array(before.pop("q")), 1e-15, "the motion is computed again")
        assert_close(np.array(after.pop("qd")), np.array(before.pop("qd")), 1e-14, "and its velocities")
        assert after == before
        reloaded(page, "planar_2r")  # modes that were not opened since keep their settings
        page.keyboard.press("i")
        assert page.get_by_label("duration", exact=True).first.input_value() == "1.25"


def test_back_and_a_closed_tab_keep_a_robot_of_ones_own(chromium, address):
    """Build a robot, open another mechanism, go Back, and open it from the recent ones in another tab."""
    with served(chromium, address) as page:
        page.keyboard.press("b")
        page.get_by_role("button", name="Add a link", exact=True).click()
        until(page, "kinetree.model.bodies.length === 3")
        typed(page, "mass of link3", "0.625")
        before = kept(page)
        assert reloaded(page, "planar_2r") == before
        page.locator(".stage").focus()
        page.keyboard.press("Control+o")
        page.locator(".card", has_text="planar_3r").click()
        until(page, "document.title === 'planar_3r'")
        page.go_back()
        until(page, "kinetree.model.name === 'planar_2r'")
        assert kept(page)["masses"][1] == 0.625
        page.keyboard.press("Control+z")
        page.keyboard.press("Control+z")
        until(page, "kinetree.model.bodies.length === 2")  # undo goes back to the structure before, also after a reload
        page.keyboard.press("Control+y")
        until(page, "kinetree.model.bodies.length === 3")
        assert kept(page)["bodies"] == 3
        other = page.context.new_page()
        page.close()
        other.goto(address)
        other.wait_for_selector("body[data-ready]", state="attached")
        assert other.evaluate("kinetree.model.bodies.length") == 2
        other.evaluate("localStorage.setItem('kinetree-document:damaged', '{')")  # hides none of the others
        other.keyboard.press("Control+o")
        other.locator(".recent .lessonrow", has_text="planar_2r").first.click()
        until(other, "kinetree.model.bodies.length === 3")


def test_undo_goes_back_beyond_a_reload(chromium, address):
    """Move joints and change a mass, take one back, reload: undo and redo go on where they were, in other modes too."""
    with served(chromium, f"{address}&open=library%2Fplanar_3r#mode=Simulate") as page:
        page.keyboard.press("k")
        for text in ("12.5", "-20", "31"):
            typed(page, "joint2", text)
            page.wait_for_timeout(1100)  # changes of the same box within a second are one
        page.keyboard.press("Escape")
        page.locator(".stage").focus()
        page.keyboard.press("b")
        page.evaluate("kinetree.store.set({ picked: 1 })")
        typed(page, "mass of link2", "0.75")
        page.keyboard.press("Escape")
        page.locator(".stage").focus()
        page.keyboard.press("Control+z")
        first = page.evaluate("kinetree.model.bodies[1].mass")
        before = kept(page)
        assert before["masses"][1] == first != 0.75
        assert reloaded(page, "planar_3r") == before
        page.keyboard.press("Control+y")
        assert page.evaluate("kinetree.model.bodies[1].mass") == 0.75
        for angle in (31.0, -20.0, 12.5, 0.0):
            assert page.evaluate("kinetree.store.get('q')[1]") == pytest.approx(np.radians(angle), abs=1e-15)
            page.keyboard.press("Control+z")
            if angle == 31.0:
                assert page.evaluate("kinetree.model.bodies[1].mass") == first
                page.keyboard.press("Control+z")
        page.keyboard.press("Control+y")
        assert page.evaluate("kinetree.store.get('q')[1]") == pytest.approx(np.radians(12.5), abs=1e-15)


def test_a_run_in_python_is_kept(chromium, address):
    """Run in Python, seek, reload: the same states, charts and time; a run that is too large is told."""
    with served(chromium, f"{address}&open=library%2Fplanar_2r#mode=Simulate") as page:
        until(page, "document.querySelectorAll('select[aria-label=method] option').length > 5")
        page.get_by_label("method", exact=True).select_option("dop853")
        typed(page, "duration", "0.75")
        page.get_by_role("button", name="Run in Python").click()
        until(page, "kinetree.store.get('motion').recorded === true")
        page.get_by_role("button", name="energy", exact=True).click()
        page.evaluate("kinetree.player.seek(0.4)")
        states = "['t', 'q', 'qd'].map((x) => Array.from(kinetree.store.get('motion')[x]))"
        given = page.evaluate(states)
        before = kept(page)
        assert reloaded(page, "planar_2r") == before and before["time"] == 0.4
        assert page.evaluate(states) == given
        page.get_by_role("button", name="Restart").click()
        assert page.evaluate("kinetree.store.get('motion').recorded") is None
        before = kept(page)
        assert reloaded(page, "planar_2r") == before
        until(page, "document.querySelectorAll('select[aria-label=method] option').length > 5")
        typed(page, "duration", "400")
        page.get_by_label("method", exact=True).select_option("rk4")
        page.get_by_label("time step", exact=True).last.fill("0.01")
        page.get_by_label("time step", exact=True).last.press("Enter")
        page.get_by_role("button", name="Run in Python").click()
        page.get_by_text("it is too large to be kept through a reload").wait_for(timeout=120_000)


@contextmanager
def studio_at(port: int, folder: Any) -> Iterator[str]:
    """Yield the address of a studio at a port."""
    import threading

    made = listen(lambda: kt.load("planar_2r"), Folder.of(folder), port)
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    try:
        yield made.address
    finally:
        made.server.should_exit = True
        thread.join()


def test_a_studio_that_was_started_again_finds_the_document(chromium, tmp_path):
    """End the studio, change the pose meanwhile, start one at the same port, and reload."""
    context = chromium.new_context()
    page = context.new_page()
    with studio_at(0, tmp_path) as address:
        port = urlsplit(address).port or 0
        page.goto(address)
        page.wait_for_selector("body[data-ready]", state="attached")
        page.keyboard.press("k")
        typed(page, "joint1", "12.5")
    typed(page, "joint2", "-20.25")
    before = kept(page)
    with studio_at(port, tmp_path) as address:
        visitor = context.new_page()
        visitor.goto(address)  # as the terminal opens it: the browser learns the new token
        visitor.wait_for_selector("body[data-ready]", state="attached")
        assert reloaded(page, "planar_2r") == before
        assert page.evaluate("() => kinetree.server.call('files').then((x) => x.files.length)") == 0
    context.close()


MOTION = "\n".join(["t,joint1,joint2", *(f"{0.25 * k},{0.1 * k},{-0.2 * k}" for k in range(5))])


def test_one_file_holds_the_document(chromium, address, tmp_path):
    """Save the page with a motion of a CSV file: it opens from disk as it was, reloads, and opens in the studio."""
    with served(chromium, address) as page:
        page.keyboard.press("i")
        page.get_by_role("button", name="file", exact=True).click()
        given = {"name": "way.csv", "mimeType": "text/csv", "buffer": MOTION.encode()}
        page.get_by_label("CSV file of a motion").set_input_files([given])
        page.get_by_role("button", name="position", exact=True).click()
        before = kept(page)
        assert reloaded(page, "planar_2r") == before and before["chosen"] == ["position"]
        page.keyboard.press("s")
        with page.expect_download() as waiting:
            page.get_by_role("button", name="This page (HTML)").click()
        waiting.value.save_as(tmp_path / "mine.html")
        page.get_by_role("button", name="Close", exact=True).click()
        page.keyboard.press("k")
        typed(page, "joint1", "77")
        drop(page, "mine.html", (tmp_path / "mine.html").read_text())
        until(page, "kinetree.store.get('mode') === 'Torques'")
        assert content(page) == before
        drop(page, "other.html", "<p id='data'>no page</p>")
        until(page, "document.querySelector('.message').textContent.startsWith('other.html is not a page of Kinetree')")
    with opened(chromium, tmp_path / "mine.html") as page:
        found = content(page)
        assert (found["q"], found["charts"]) == (before["q"], before["charts"])
        page.keyboard.press("k")
        typed(page, "joint1", "-33.5")
        before = kept(page)
        assert reloaded(page, "planar_2r") == before


MOMENTS = 20
ACTIONS = {
    "mode": "kinetree.store.set({ mode: pick(kinetree.panels.map((x) => x.name)) })",
    "joints": "kinetree.moveTo(kinetree.store.get('q').map((x) => x + 0.4 * random() - 0.2))",
    "mass": """(() => {
        const table = kinetree.store.get("table");
        const rows = table.rows.map((row, k) => (k ? row : { ...row, mass: row.mass * (1 + random()) }));
        kinetree.table.change({ ...table, rows }, "mass");
    })()""",
    "play": "kinetree.player.play(true)",
    "pause": "kinetree.player.play(false)",
    "seek": "kinetree.player.seek(kinetree.player.start + random() * kinetree.player.span)",
    "chart": "kinetree.plots.charts.length && kinetree.plots.choose(pick(kinetree.plots.charts).title)",
    "view": "kinetree.stage.view.set({ azimuth: 360 * random() - 180 })",
    "units": "kinetree.store.set({ units: pick(['deg', 'rad']) })",
    "law": """kinetree.store.fields.has("inverse") && kinetree.store.set({ inverse: {
        ...kinetree.store.get("inverse"), kind: pick(["cycloid", "cubic", "quintic"]), duration: 1 + random() } })""",
    "via": """kinetree.plan && kinetree.plan.change({ via: [{ u: 0.2 + 0.6 * random(), q: kinetree.plan.here() }] })""",
    "curve": """kinetree.store.set({ curves: { against: "", list: ["x", "y"].map((component) => ({
        quantity: pick(["point position", "point velocity"]), object: "link2 center of mass", component })) } })""",
    "hold": """kinetree.store.fields.has("forward") && kinetree.store.get("mode") === "Simulate"
        && document.querySelectorAll("[aria-label=drives] button")[Math.floor(3 * random())].click()""",
}


def mode(name: str) -> str:
    """Return the step that chooses a mode."""
    return f"kinetree.store.set({{ mode: '{name}' }})"


def moved(*q: float) -> str:
    return f"kinetree.moveTo(Float64Array.from({list(q)}))"


def clicked(text: str) -> str:
    """Return the step that clicks a button of the panel."""
    return f"[...document.querySelectorAll('.panel button')].find((b) => b.textContent === '{text}').click()"


def settings(field: str, changes: str) -> str:
    return f"kinetree.store.set({{ {field}: {{ ...kinetree.store.get('{field}'), {changes} }} }})"


def row(k: int, changes: str) -> str:
    """Return the step that changes numbers of a row of the table."""
    return f"""(() => {{
        const table = kinetree.store.get("table");
        const rows = table.rows.map((row, i) => (i === {k} ? {{ ...row, {changes} }} : row));
        kinetree.table.change({{ ...table, rows }}, "row");
    }})()"""


def curve(quantity: str, what: str, component: str) -> str:
    one = f"{{ quantity: '{quantity}', object: '{what}', component: '{component}' }}"
    return f"kinetree.store.set({{ curves: {{ list: [{one}], against: '' }} }})"


AHEAD = "kinetree.player.seek(0); kinetree.store.get('motion').extend(0.3, { patience: 5000 })"
SEEK = "kinetree.player.seek(0.2)"
BENT = moved(0.4, -0.6, 0.5, 0.7, 0.9, -0.3)
TURNED = "#until kinetree.store.get('motion')?.name === 'turn'"
DRIVEN = "kinetree.store.set({ forward: { ...kinetree.store.get('forward'), drive: 'torque' } })"
TASKS: dict[str, tuple[str, list[str]]] = {
    "pick a robot and move it": ("puma560", [mode("Move"), BENT, "kinetree.store.set({ picked: 3 })"]),
    "an arm by its table": ("planar_2r", [mode("Build"), row(1, "a: 0.41"), "kinetree.store.set({ picked: 1 })"]),
    "along a cycloid": ("planar_3r", [
        mode("Torques"), settings("inverse", "q1: [0.9, -0.4, 0.3], duration: 1.25"),
        "kinetree.plots.choose('velocity')", "kinetree.player.seek(0.5)",
    ]),
    "all solutions": ("planar_3r", [mode("Move"), moved(0.4, 0.7, -0.5), clicked("Find"), moved(0.6, 0.3, -0.2)]),
    "torques with a payload": ("planar_3r", [
        mode("Torques"), settings("inverse", "q1: [1.0, 0.2, -0.3], mass: 1.75, gravity: false"),
        "kinetree.plots.choose('torque')", "kinetree.player.seek(0.75)",
    ]),
    "a planned motion, tracked": ("planar_3r", [
        mode("Motion"), settings("inverse", "q1: [0.9, -0.4, 0.3], duration: 1.5"), mode("Simulate"), clicked("track"),
        AHEAD, SEEK,
    ]),
    "a fall, then held": ("planar_3r", [mode("Simulate"), AHEAD, SEEK, clicked("hold")]),
    "a motion of a file": ("planar_2r", [
        mode("Torques"), clicked("file"), "#file", "kinetree.plots.choose('position')",
    ]),
    "jogged joints": ("puma560", [mode("Move"), BENT, clicked("+x"), clicked("\u2212z")]),
    "another number of links": ("planar_2r", [mode("Build"), clicked("Add a link"), "#bodies 3", row(2, "mass: 0.4")]),
    "a four-bar over a turn": ("four_bar", [mode("Loops"), TURNED, "kinetree.plots.choose('drive torque')"]),
    "a floating arm": ("space_robot_3r", [mode("Simulate"), DRIVEN, AHEAD, SEEK]),
    "a biped on one foot": ("spatial_biped", [mode("Simulate"), clicked("hold"), AHEAD, SEEK]),
    "two sets of parameters": ("tube_arm", [
        mode("Simulate"), AHEAD,
        "kinetree.store.set({ parameters: kinetree.store.get('parameters').map((x, k) => (k ? x : 1.3 * x)) })", SEEK,
    ]),
    "how it is shown": ("planar_2r", [
        "kinetree.store.set({ units: 'rad' })", "kinetree.stage.view.set({ azimuth: 33 })", moved(0.3, 0.2),
    ]),
    "a template": ("planar_2r", [mode("Build"), "#template", moved(0.3, 0.2, 0.1), row(1, "mass: 0.45")]),
    "DH parameters": ("stanford", [
        mode("Build"), "kinetree.store.set({ picked: 1 })", clicked("Step"), clicked("Step"),
    ]),
    "any frame in any other": ("puma560", [mode("Transform"), BENT, settings("transform", "from: 2, to: 5")]),
    "a center of mass": ("planar_3r", [
        mode("Torques"), settings("inverse", "q1: [0.9, -0.4, 0.3]"),
        curve("point position", "link2 center of mass", "x"), "kinetree.plots.choose('point position')",
    ]),
    "solutions of a PUMA": ("puma560", [mode("Move"), BENT, clicked("Find"), moved(0.2, -0.4, 0.3, 0.1, 0.6, 0.2)]),
    "causes along a trajectory": ("puma560", [
        mode("Torques"), settings("inverse", "q1: [0.5, -0.5, 0.4, 0.2, 0.3, 0.1], joint: 1"),
        "kinetree.plots.choose('by cause: joint2')", "kinetree.player.seek(0.6)",
    ]),
    "constant torques": ("planar_2r", [mode("Simulate"), DRIVEN, AHEAD, "kinetree.plots.choose('energy')", SEEK]),
    "jogged tool": ("planar_3r", [mode("Move"), moved(0.4, 0.7, -0.5), clicked("+y"), clicked("\u2212x")]),
    "a branched robot": ("planar_2r", [mode("Build"), "#branch", moved(0.2, 0.3, 0.1)]),
    "steps of a fall": ("planar_2r", [mode("Simulate"), "kinetree.player.step(1)", "kinetree.player.step(1)"]),
}  # fmt: skip
"""The tasks of docs/studio.md: a mechanism and steps, in JavaScript or, after a #, of this file."""
BODIES = "kinetree.model.bodies.length"


def take(page: Any, step: str) -> None:
    """Take a step of a task."""
    word, _, rest = step.removeprefix("#").partition(" ")
    if not step.startswith("#"):
        page.evaluate(f"() => {{ {step} }}")
    elif word == "until":
        until(page, rest)
    elif word == "bodies":
        until(page, f"{BODIES} === {rest}")
    elif word == "file":
        given = {"name": "way.csv", "mimeType": "text/csv", "buffer": MOTION.encode()}
        page.get_by_label("CSV file of a motion").set_input_files([given])
        until(page, "kinetree.store.get('motion').count > 1")
    elif word == "template":
        page.get_by_label("template of a new robot").select_option("planar arm")
        typed(page, "links of a new robot", "3")
        page.get_by_role("button", name="New robot", exact=True).click()
        until(page, f"document.title === 'robot' && {BODIES} === 3 && kinetree.store.get('mode') === 'Build'")
    else:
        page.get_by_text("Add a body", exact=True).click()
        page.get_by_label("parent of the new body").select_option("link1")
        page.get_by_role("button", name="Add the body").click()
        until(page, f"{BODIES} === 3 && kinetree.store.get('mode') === 'Build'")


@pytest.mark.parametrize("task", TASKS)
def test_every_task_comes_back_at_a_random_moment(chromium, address, task):
    """Take a random number of steps of a task, and some time, reload, and find the same document, pose and charts."""
    name, steps = TASKS[task]
    rng = np.random.default_rng(sum(map(ord, task)))
    with served(chromium, f"{address}&open=library%2F{name}") as page:
        for step in steps[: int(rng.integers(1, len(steps) + 1))]:
            take(page, step)
            page.wait_for_timeout(int(rng.integers(20, 200)))
        page.evaluate("kinetree.player.play(false)")
        page.keyboard.press("Shift")
        before = kept(page)
        reloaded(page, page.evaluate("kinetree.model.name"))
        until(page, f"kinetree.plots.charts.length === {len(before['charts'])}")  # turns of loops come in slices
        compare(before, content(page), task)


def compare(before: dict[str, Any], after: dict[str, Any], what: str) -> None:
    """Fail unless a page shows the same after a reload; a mode without a motion of its own has no time."""
    for key in ("q", "qd"):
        a, b = np.array(after.pop(key)), np.array(before.pop(key))
        assert_close(a, b, 1e-9 * max(1.0, np.abs(b).max(initial=0.0)), f"{key}: {what}")
    times = after.pop("time"), before.pop("time")
    if after["mode"] in ("Motion", "Torques", "Simulate"):
        assert_close(times[0], times[1], 1e-12, f"time: {what}")
    assert after == before, what


@pytest.mark.parametrize("name", ["planar_3r", "four_bar"])
def test_random_moments_come_back(chromium, address, name):
    """Do five random things, reload, and find the same document, twenty times."""
    rng = np.random.default_rng(20 + len(name))
    with served(chromium, f"{address}&open=library%2F{name}") as page:
        for moment in range(MOMENTS):
            done = [str(x) for x in rng.choice(list(ACTIONS), size=5)]
            for action in done:
                page.evaluate(
                    f"""(seed) => {{
                        let state = seed;
                        const random = () => (state = (state * 16807) % 2147483647) / 2147483647;
                        const pick = (list) => list[Math.floor(random() * list.length)];
                        void ({ACTIONS[action]});
                    }}""",
                    int(rng.integers(1, 2**31 - 1)),
                )
                page.wait_for_timeout(60)
            page.evaluate("kinetree.player.play(false)")
            page.keyboard.press("Shift")
            compare(kept(page), reloaded(page, name), f"moment {moment}: {done}")
