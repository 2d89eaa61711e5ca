"""Pages of mechanisms and runs in a real browser: their numbers are the library's, and nothing else is loaded."""

from __future__ import annotations

import csv
import html

import numpy as np
import pytest

import kinetree as kt
from browser import browser, needs_browser, opened
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
        page.wait_for_selector(".matrix td")
        shown = [float(x) for x in page.eval_on_selector_all(".matrix td", "all => all.map((x) => x.dataset.value)")]
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


def test_notebooks_show_a_page():
    """Find the page, escaped, in a frame without rights to the notebook around it."""
    made = kt.load("planar_2r").page()
    shown = made._repr_html_()
    assert shown.startswith("<iframe") and html.escape(made.text[:2000]) in shown
    assert 'sandbox="allow-scripts allow-downloads"' in shown
    assert repr(made).startswith("<Page of ")


def test_the_policy_allows_webassembly_only_with_a_kernel(tmp_path):
    """Compare the policies of pages with and without functions of the mechanism."""
    run = kt.simulate(kt.load("planar_2r"), [0.3, -0.2], duration=0.1, dt=1e-3)
    assert "'wasm-unsafe-eval'" in run.page().text
    assert "'wasm-unsafe-eval'" not in run.page(kernel=False).text
    assert kt.load("planar_2r").page().text.isascii()


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
