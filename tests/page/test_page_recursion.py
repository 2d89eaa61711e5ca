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
