"""Pages in narrow windows, in a real browser: every control can be reached and read."""

from __future__ import annotations

import pytest

import kinetree as kt
from browser import browser, needs_browser, opened

pytestmark = [pytest.mark.slow, needs_browser]

CUT = """() => {
    const right = (x) => x.getBoundingClientRect().right;
    return [...document.querySelectorAll("header button, .left button, .left input, .left .unit, .inspector td")]
    .filter((x) => x.checkVisibility() && !x.closest(".jacobian, .dh"))
    .map((x) => [x, x.closest(".left, .inspector")])
    .filter(([x, panel]) => right(x) > right(panel || document.body) + 0.5)
    .map(([x]) => x.getAttribute("aria-label") || x.textContent);
}"""
ALPHA = """() => {
    const [box, panel] = ["input[aria-label='alpha of link1']", ".left"].map((x) => document.querySelector(x));
    return box.getBoundingClientRect().right <= panel.getBoundingClientRect().right;
}"""


@pytest.mark.parametrize("width", [390, 800, 920, 1100])
def test_no_control_is_cut_off(width, tmp_path):
    """Open all modes in a narrow window, and find every button, number and unit inside its panel."""
    path = tmp_path / "arm.html"
    kt.load("stanford").page(path)
    with browser() as chromium, opened(chromium, path, size=(width, 900)) as page:
        for mode in ("Model", "Kinematics", "Inverse", "Forward", "Recursion"):
            page.get_by_role("button", name=mode, exact=True).click()
            assert page.evaluate(CUT) == [], mode
            assert mode != "Model" or page.evaluate(ALPHA)
