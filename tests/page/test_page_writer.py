"""Pages of mechanisms and runs in a real browser: their numbers are the library's, and nothing else is loaded."""

from __future__ import annotations

import csv
import html
from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from browser import browser, needs_browser, opened
from command_line import run as run_command
from kinetree.page import kernel
from kinetree.page.kernel import last_frame, page_kernel
from tolerance import assert_close

CALL = "([name, inputs]) => Array.from(kinetree.kernel.call(name, inputs))"


def called(page, name: str, **inputs) -> np.ndarray:
    """Return the output of a function of the page's kernel."""
    return np.array(page.evaluate(CALL, [name, {key: np.ravel(x).tolist() for key, x in inputs.items()}]))


@needs_browser
def test_sliders_move_the_mechanism(tmp_path):
    """Type an angle, and read the pose of a body and the energy as the library computes them; undo it."""
    arm = kt.load("planar_3r")
    path = arm.page(tmp_path / "arm.html").save(tmp_path / "arm.html")
    with browser() as chromium, opened(chromium, path) as page:
        box = page.get_by_label("joint2", exact=True)
        box.fill("-37.5")
        box.press("Enter")
        q = np.array([0.0, np.radians(-37.5), 0.0])
        assert_close(np.array(page.evaluate("Array.from(kinetree.store.get('q'))")), q, 1e-15, "coordinates")
        page.get_by_role("button", name="link3", exact=True).click()
        page.wait_for_selector(".inspector .matrix td")
        shown = [
            float(x)
            for x in page.eval_on_selector_all(".inspector .matrix td", "all => all.map((x) => x.dataset.value)")
        ]
        assert_close(np.reshape(shown, (3, 4)), arm.pose(q, "link3")[:3], 1e-12, "pose of the picked body")
        tau = called(page, "inverse_dynamics", q=q, qd=[0.3, -0.7, 1.1], qdd=[2.0, 0.4, -1.3])
        assert_close(tau, arm.inverse_dynamics(q, [0.3, -0.7, 1.1], [2.0, 0.4, -1.3]), 1e-12, "torques")
        box.fill("400 deg")
        box.press("Enter")
        assert "Type a number" in page.inner_text(".error:not([hidden])")
        page.keyboard.press("Escape")
        page.locator(".stage").focus()
        page.keyboard.press("Control+z")
        assert page.evaluate("Array.from(kinetree.store.get('q'))") == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("name", "frame"), [("stanford", "tool"), ("kuka_lwr4", "link7"), ("three_rrr", None)])
def test_a_page_moves_the_last_frame(name, frame):
    """Choose the named frame of an arm, its last body, or a body that closes loops."""
    mechanism = kt.load(name).mechanism
    found = last_frame(mechanism)
    ends = [body for x in mechanism.loops for body in (x.body_a, x.body_b)]
    assert found == frame if frame else found in (*ends, *(f.name for f in mechanism.frames))


def test_a_table_without_masses_has_a_page():
    """Leave out what needs masses: the center of mass, and motions under forces; numbers can be changed."""
    bare = kt.from_dh([{"joint": "revolute", "a": 0.4, "alpha": 0.3}, {"joint": "prismatic", "b": 0.2, "theta": 0.1}])
    made = page_kernel(bare, 3e5, editable=True)
    assert made is not None and made["editable"]["kinds"] == ["inertia", "lengths", "rotations"] and made["live"] == {}
    for wasm in (made["wasm"], made["editable"]["wasm"]):
        assert b"poses" in wasm and b"inverse_dynamics" in wasm
        assert b"center_of_mass" not in wasm and b"time_step" not in wasm


@pytest.mark.parametrize("name", ["planar_2r", "four_bar"])
def test_a_page_is_made_without_native_code(name, tmp_path, monkeypatch):
    """Write the functions of a page, also with numbers as inputs; the cache has them, and no native code."""
    monkeypatch.setenv("KINETREE_CACHE_DIR", str(tmp_path))
    made = page_kernel(kt.load(name), 3e6, editable=True)
    assert made is not None and made["editable"] is not None
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(kernel, "wasm_module", None)  # it is not made twice
    assert page_kernel(kt.load(name), 3e6 + 10.0, editable=True) == made
    longer = kt.System(replace(kt.load(name).mechanism, description="another one"))
    with pytest.raises(TypeError):
        page_kernel(longer, 3e6, editable=True)


def test_notebooks_show_a_page():
    """Find pages, escaped, in frames without rights to the notebook; only those with a kernel compile WebAssembly."""
    run = kt.simulate(kt.load("planar_2r"), [0.3, -0.2], duration=0.1, dt=1e-3)
    made = run.page()
    shown = made._repr_html_()
    assert shown.startswith("<iframe") and html.escape(made.text[:2000]) in shown
    assert 'sandbox="allow-scripts allow-downloads"' in shown
    assert repr(made).startswith("<Page of ") and made.text.isascii()
    assert "'wasm-unsafe-eval'" in made.text
    assert "'wasm-unsafe-eval'" not in run.page(kernel=False).text


def test_other_names_are_refused(tmp_path):
    """Write a page under a name that no browser would open as one."""
    with pytest.raises(kt.InputError, match=r"'arm.txt' is not a web page; use a name that ends with .html"):
        kt.load("planar_2r").page(tmp_path / "arm.txt")


@pytest.mark.slow
@needs_browser
def test_functions_of_a_page_are_those_of_the_library(tmp_path):
    """Compare functions of an arm, a closed mechanism with free parameters and a floating one at random states."""
    rng = np.random.default_rng(4)
    with browser() as chromium:
        for name in ("stanford", "press", "space_robot_dual_arm"):
            arm = kt.load(name)
            free = [p.value for p in arm.mechanism.free_parameters]
            more = {"parameters": free} if free else {}
            q = arm.assemble() if arm.closures else arm.random_state(rng)[0]
            qd, qdd, tau = rng.normal(size=(3, arm.nv))
            w = rng.normal(size=(len(arm.bodies), 6))
            motion, loaded = (
                {"q": q, "qd": qd, "qdd": qdd, "wrenches": w},
                {"q": q, "qd": qd, "tau": tau, "wrenches": w},
            )
            cases = [("poses", {"q": q}), ("inverse_dynamics", motion), ("reactions", motion),
                     ("forward_dynamics", loaded), ("kinetic_energy", {"q": q, "qd": qd})]  # fmt: skip
            with opened(chromium, arm.page().save(tmp_path / f"{name}.html")) as page:
                for function, inputs in cases:
                    value = np.asarray(getattr(arm, function)(**inputs, **more))
                    found = called(page, function, **inputs)
                    assert_close(found, value.ravel(), 1e-12 * np.abs(value).max(), f"{function} of {name}")
                last = len(arm.bodies) - 1
                made = page.evaluate("([q, b]) => Array.from(kinetree.kernel.jacobian(q, b))", [q.tolist(), last])
                J = arm.jacobian(q, arm.bodies[last].name, **more)
                assert_close(np.reshape(made, (6, -1)), J, 1e-12 * np.abs(J).max(), f"Jacobian of {name}")


@pytest.mark.slow
@needs_browser
def test_curves_are_read_back(tmp_path):
    """Save the curves of a recorded run as CSV, and find its numbers."""
    run = kt.simulate(kt.load("planar_2r"), [0.3, -0.2], duration=0.5, dt=1e-3)
    with browser() as chromium, opened(chromium, run.page().save(tmp_path / "run.html")) as page:
        with page.expect_download() as saved:
            page.get_by_role("button", name="CSV").click()
        with open(saved.value.path()) as file:
            head, *rows = csv.reader(file)
        numbers = np.array(rows, dtype=float)
        shown = run.at(numbers[:, 0])
        assert head[1] == "position.joint1 [rad]"
        assert np.array_equal(numbers[:, 1:3], shown.q)
        assert np.array_equal(numbers[:, 3:5], shown.qd)


STATES = """() => {
    const { count, t, q } = kinetree.store.get("motion");
    return { t: Array.from(t.subarray(0, count)), q: Array.from(q.subarray(0, count * kinetree.model.nq)) };
}"""


def states(page, arm: kt.System) -> tuple[np.ndarray, np.ndarray]:
    """Return the times and coordinates of the motion that the page shows."""
    motion = page.evaluate(STATES)
    return np.array(motion["t"]), np.reshape(motion["q"], (-1, arm.nq))


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("name", ["planar_3r", "four_bar"])
def test_motions_are_those_of_simulate(name, tmp_path):
    """Let mechanisms fall, then hold them, in the page and in the library; loops stay closed."""
    arm = kt.load(name)
    with browser() as chromium, opened(chromium, arm.page().save(tmp_path / "arm.html")) as page:
        page.keyboard.press("f")
        for drive in ("none", "hold"):
            page.get_by_role("button", name=drive, exact=True).click()
            page.evaluate(
                """() => {
                    const f = kinetree.store.get("forward");
                    kinetree.store.set({ forward: { ...f, target: f.target.map((x) => x + 0.4) } });
                }"""
            )
            page.get_by_role("button", name="Restart").click()
            page.get_by_label("seconds ahead").fill("0.5")
            page.get_by_label("seconds ahead").press("Enter")
            page.get_by_role("button", name="Compute ahead").click()
            page.wait_for_selector("progress", state="hidden")
            t, q = states(page, arm)
            assert len(t) == 31
            f = page.evaluate("kinetree.store.get('forward')")
            rest = np.array(f["target"]) + np.divide(f["weight"], f["stiffness"]) if drive == "hold" else None
            held = {} if rest is None else {"control": kt.PD(f["stiffness"], f["damping"], kt.Hold(rest))}
            run = kt.simulate(arm, q[0], times=t, dt=1 / 60 / 17 * (1 + 1e-9), method="rk4", **held)
            assert np.ptp(q, axis=0).max() > 0.1
            assert_close(q, run.q, 1e-12, f"{name} with drives: {drive}")


@pytest.mark.slow
@needs_browser
def test_a_body_is_pulled_and_motions_are_compared(tmp_path):
    """Drag a body of a hanging arm: it moves, beside the motion before; undo and links restore states."""
    arm = kt.load("planar_2r")
    path = arm.page().save(tmp_path / "arm.html")
    with browser() as chromium:
        with opened(chromium, path) as page:
            page.keyboard.press("f")
            page.get_by_label("joint1", exact=True).fill("-90")
            page.get_by_label("joint1", exact=True).press("Enter")
            page.keyboard.press("Escape")
            page.keyboard.press("c")
            box = page.locator(".stage").bounding_box()
            end = page.evaluate(PLACE)
            x, y = box["x"] + end[0] * box["width"], box["y"] + end[1] * box["height"]
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move(x + 60, y - 20, steps=3)
            page.wait_for_timeout(600)
            page.mouse.up()
            page.keyboard.press(" ")
            t, q = states(page, arm)
            assert len(t) > 3 and np.abs(q - q[0]).max() > 0.01
            assert page.evaluate("kinetree.store.get('ghost') !== null")
            assert "joint1, before" in page.inner_text(".legend")
            assert page.evaluate("kinetree.store.get('playing')") is False
            page.keyboard.press("Control+z")
            assert_close(np.array(page.evaluate("kinetree.store.get('start').q")), np.zeros(2), 0.0, "start after undo")
            page.keyboard.press("Control+y")
            page.keyboard.press("s")
            link = page.input_value("dialog textarea >> nth=0")
            check_texts(page, tmp_path)
        with opened(chromium, path, after="#" + link.partition("#")[2]) as page:
            assert page.evaluate("kinetree.store.get('mode')") == "Simulate"
            assert page.evaluate("kinetree.store.get('start').q") == [-np.pi / 2, 0.0]


def check_texts(page, folder) -> None:
    """Run the lines of Python and the experiment that the page offers, and compare their runs."""
    python, toml = (page.input_value(f"dialog textarea >> nth={k}") for k in (1, 2))
    made: dict = {}
    exec(python.replace("run.plot()", ""), made)
    assert made["run"].q[0].tolist() == [-np.pi / 2, 0.0]
    (folder / "fall.toml").write_text(toml.replace('replay = "run.html"', 'save = "run.npz"'))
    assert run_command("run", str(folder / "fall.toml"), "--out", str(folder)) == 0
    assert np.array_equal(kt.read_trajectory(folder / "run.npz").q, made["run"].q)


PLACE = """() => {
    const stage = kinetree.stage;
    stage.draw();
    const m = kinetree.matricesNow()[1], c = stage.view.shown.both;
    const p = [0, 1, 2].map((k) => m[12 + k] + 0.15 * m[k]);
    const w = c[3] * p[0] + c[7] * p[1] + c[11] * p[2] + c[15];
    const at = (r) => (c[r] * p[0] + c[4 + r] * p[1] + c[8 + r] * p[2] + c[12 + r]) / w;
    return [0.5 + 0.5 * at(0), 0.5 - 0.5 * at(1)];
}"""
"""A point on the second link, in the picture."""


@pytest.mark.slow
@needs_browser
def test_pages_are_accessible(tmp_path):
    """Look for violations of the rules of accessibility that are serious or worse, in all themes and modes."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    run = kt.simulate(kt.load("planar_2r"), [0.3, -0.2], duration=0.2, dt=1e-3)
    with browser() as chromium, opened(chromium, run.page(arrows=True).save(tmp_path / "run.html")) as page:
        page.evaluate("kinetree.player.play(false)")
        for theme in ("light", "dark", "projector"):
            page.evaluate("(theme) => kinetree.store.set({ theme, picked: 1 })", theme)
            for mode in page.eval_on_selector_all(
                ".modes button:not([aria-disabled])", "all => all.map((x) => x.textContent)"
            ):
                page.get_by_role("button", name=mode, exact=True).click()
                found = axe.Axe().run(page).response["violations"]
                assert [(x["id"], theme, mode) for x in found if x["impact"] in ("serious", "critical")] == []


@pytest.mark.slow
@needs_browser
def test_a_saved_page_is_a_page(tmp_path):
    """Save the page from the browser, and open what was saved; names with elements in them stay text."""
    evil = "</script><img src=x onerror=alert(1)>"
    body = kt.Body(evil, mass=1.0, com=(0.2, 0.0, 0.1), inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    arm = kt.System(kt.build_mechanism(evil, [body], [kt.Joint(evil, "revolute", kt.GROUND, evil, axis="y")]))
    with browser() as chromium:
        with opened(chromium, arm.page().save(tmp_path / "arm.html")) as page:
            page.keyboard.press("s")
            with page.expect_download() as saved:
                page.get_by_role("button", name="This page (HTML)").click()
            saved.value.save_as(tmp_path / "again.html")
        with opened(chromium, tmp_path / "again.html", size=(390, 800)) as page:
            assert page.inner_text(".bodies .pick") == evil
            assert page.locator("img").count() == 0
            page.keyboard.press("f")
            assert page.evaluate("kinetree.store.get('mode')") == "Simulate"


@pytest.mark.slow
@needs_browser
def test_keys_are_unique(tmp_path):
    """Find a key of its own for every mode and toggle, also once all modes were opened, and all of them in the list."""
    path = kt.load("four_bar").page().save(tmp_path / "bars.html")
    with browser() as chromium, opened(chromium, path) as page:
        modes = page.eval_on_selector_all(
            ".modes button:not([aria-disabled])", "all => all.map((x) => [x.textContent, x.title])"
        )
        for mode, _ in modes:
            page.get_by_role("button", name=mode, exact=True).click()
        keys = dict(page.evaluate("kinetree.keys.list()"))
        for mode, title in modes:
            key = title[-2]
            assert keys[key] == f"mode {mode}", (mode, key)
            page.evaluate("document.activeElement.blur()")
            page.keyboard.press(key)
            assert page.evaluate("kinetree.store.get('mode')") == mode
