"""The page's panel of the recursion in a real browser: steps, numbers and matrices of the library."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from browser import needs_browser, opened
from tolerance import assert_close

Q = [0.4, -0.6, 0.5, 0.7, 0.9, -0.3]

pytestmark = [pytest.mark.slow, needs_browser]


def numbers(page, selector: str) -> np.ndarray:
    """Return the full numbers of table cells."""
    found = page.eval_on_selector_all(f"{selector} [data-value]", "all => all.map((x) => x.dataset.value)")
    return np.array([float(x) for x in found])


def test_steps_show_the_quantities_of_the_library(chromium, tmp_path):
    """Walk through both recursions, and find twists, wrenches, articulated bodies and accelerations of the library."""
    arm = kt.load("stanford")
    with opened(chromium, arm.page(q=Q).save(tmp_path / "arm.html")) as page:
        page.get_by_role("button", name="Understand").click()
        t, dt, w, collected, tau = arm.inverse_recursion(Q, [0.5] * 6, [0.3] * 6)
        page.get_by_role("button", name="Next", exact=True).click()
        assert "link2" in page.inner_text(".working h2")
        expected = np.concatenate([t[1], dt[1], w[1]])
        assert_close(numbers(page, ".working"), expected, 1e-12 * np.abs(expected).max(), "second body outward")
        page.locator(".steps button").nth(7).click()
        expected = np.append(collected[4], tau[4])
        assert_close(numbers(page, ".working"), expected, 1e-12 * np.abs(collected).max(), "second body inward")
        assert page.locator(".block").count() == 2
        page.get_by_role("button", name="forward", exact=True).click()
        Mhat, psi, mhat, tauhat, _, qdd = arm.forward_recursion(Q, [0.5] * 6, [0.3] * 6)
        expected = np.concatenate([Mhat[5].ravel(), psi[5], [mhat[5], tauhat[5]]])
        assert_close(numbers(page, ".working"), expected, 1e-12 * np.abs(expected).max(), "last body eliminated first")
        page.locator(".steps button").nth(11).click()
        assert_close(numbers(page, ".working")[-1], qdd[5], 1e-11 * np.abs(qdd).max(), "last acceleration")
        done = page.locator(".block .module1.done").count()
        assert done == 6, "all pivots are in D"


def test_every_joint_has_a_velocity_and_an_acceleration_of_its_own(chromium, tmp_path):
    """Type velocities and accelerations of single joints and of all, and find the recursion of the library."""
    arm = kt.load("stanford")
    with opened(chromium, arm.page(q=Q).save(tmp_path / "arm.html"), after="#mode=Understand&units=rad") as page:
        page.get_by_role("textbox", name="velocity: joint2", exact=True).fill("1/3")
        page.get_by_role("textbox", name="velocity: joint2", exact=True).press("Enter")
        page.get_by_role("button", name="accelerations", exact=True).click()
        for name, text in (("acceleration of all joints", "-0.2"), ("acceleration: joint3", "1.7")):
            page.get_by_role("textbox", name=name, exact=True).fill(text)
            page.get_by_role("textbox", name=name, exact=True).press("Enter")
        qd, qdd = [0.5, 1 / 3, *[0.5] * 4], [-0.2, -0.2, 1.7, *[-0.2] * 3]
        t, dt, w, collected, tau = arm.inverse_recursion(Q, qd, qdd)
        page.locator(".steps button").nth(3).click()
        expected = np.concatenate([t[3], dt[3], w[3]])
        assert_close(numbers(page, ".working"), expected, 1e-12 * np.abs(expected).max(), "fourth body outward")
        page.locator(".steps button").last.click()
        expected = np.append(collected[0], tau[0])
        assert_close(numbers(page, ".working"), expected, 1e-12 * np.abs(expected).max(), "first body inward")
        page.get_by_role("button", name="forward", exact=True).click()
        assert page.get_by_role("button", name="torques", exact=True).get_attribute("aria-pressed") == "true"
        qdd = arm.forward_recursion(Q, qd, qdd)[5]
        page.locator(".steps button").last.click()
        assert_close(numbers(page, ".working")[-1], qdd[5], 1e-11 * np.abs(qdd).max(), "last acceleration")


@pytest.mark.parametrize("name", ["stanford", "quadruped"])
def test_the_blocks_have_the_numbers_of_the_matrices(chromium, tmp_path, name):
    """Choose blocks of N_l and N_d by a click and by lists, and save both matrices: those of `denoc`."""
    arm = kt.load(name)
    q = Q if name == "stanford" else np.asarray(arm.random_state(4)[0])
    denoc = arm.denoc(q)
    N_l, N_d = np.asarray(denoc.N_l), np.asarray(denoc.N_d)
    bodies = [body.name for body in arm.mechanism.bodies]
    i = len(bodies) - 1
    j = bodies.index(arm.mechanism.joints[i].parent)
    with opened(chromium, arm.page(q=q).save(tmp_path / "arm.html"), after="#mode=Understand") as page:
        page.locator(".grid").first.locator("i").nth(i * len(bodies) + j).click()
        assert page.get_by_label("body of the block's row").input_value() == str(i)
        found = numbers(page, ".blocks")
        columns = N_d[6 * j : 6 * j + 6, np.abs(N_d[6 * j : 6 * j + 6]).max(axis=0) > 0]
        block = N_l[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]
        expected = [block.ravel(), *(x for p in columns.T for x in (p, block @ p))]
        assert_close(found, np.concatenate(expected), 1e-12, "a block and its columns")
        page.get_by_label("body of the block's column").select_option(str(i))
        assert_close(numbers(page, ".blocks")[:36], np.eye(6).ravel(), 1e-12, "the block of a body and itself")
        with page.expect_download() as saved:
            page.get_by_role("button", name="N_l and N_d (CSV)").click()
        rows = [line.split(",")[1:] for line in saved.value.path().read_text().splitlines()]
        table = np.array(rows[1:], dtype=float)
        assert rows[0][0] == f"N_l {bodies[0]} wx" and rows[0][-1].startswith("N_d ")
        assert_close(table, np.hstack([N_l, N_d]), 1e-12, "both matrices")


def test_the_factors_of_the_page_are_those_of_the_elimination(chromium, tmp_path):
    """Eliminate the inertia matrix in the page, and find the pivots of forward_recursion on its diagonal."""
    arm = kt.load("puma560")
    with opened(chromium, arm.page(q=Q).save(tmp_path / "arm.html")) as page:
        page.get_by_role("button", name="Understand").click()
        page.get_by_role("button", name="forward", exact=True).click()
        page.locator(".steps button").nth(5).click()
        shown = page.eval_on_selector_all(
            ".block:nth-of-type(3) .done", "all => all.map((x) => Number(x.title.split(' ')[0]))"
        )
        pivots = arm.forward_recursion(Q, [0.5] * 6, [0.3] * 6)[2]
        assert_close(np.array(shown) / pivots, np.ones(6), 1e-3, "pivots as shown")
