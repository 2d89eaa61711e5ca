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

CLIPPED = """() => [...document.querySelectorAll("header button, .left button, .plots button, .player button")]
    .filter((x) => x.checkVisibility() && x.textContent && x.scrollWidth > x.clientWidth + 1)
    .map((x) => x.textContent)"""
"""Buttons that are narrower than their text."""


@pytest.mark.parametrize("width", [390, 800, 920, 1100])
def test_no_control_is_cut_off(width, tmp_path):
    """Open all modes in a narrow window: every button, number and unit is inside its panel, and holds its text."""
    path = tmp_path / "arm.html"
    kt.load("stanford").page(path)
    with browser() as chromium, opened(chromium, path, size=(width, 900)) as page:
        for mode in ("Build", "Move", "Transform", "Motion", "Torques", "Simulate", "Understand"):
            page.get_by_role("button", name=mode, exact=True).click()
            assert page.evaluate(CUT) == [], mode
            assert page.evaluate(CLIPPED) == [], mode
            assert mode != "Build" or page.evaluate(ALPHA)
            if width < 900:
                page.evaluate("document.querySelectorAll('.phone button')[1].click()")
                assert page.evaluate(CLIPPED) == [], f"plots of {mode}"
                page.evaluate("document.querySelectorAll('.phone button')[0].click()")
        page.evaluate("kinetree.store.set({ theme: 'projector' })")  # larger type
        assert page.evaluate(CUT) == [] and page.evaluate(CLIPPED) == []


WHOLE = """() => [...document.querySelectorAll(".left .control .name, .bodies .pick span")]
    .filter((x) => x.checkVisibility())
    .map((x) => [x.textContent, x.scrollWidth > x.clientWidth + 1 || x.scrollHeight > x.clientHeight + 1])"""


def test_long_names_are_whole(tmp_path):
    """Read long names of joints, with and without separators, in windows of 390 to 1,600 pixels."""
    names = ["left_shoulder_abduction_and_rotation_motor", "namewithoutanyseparatoratall_17", "elbow_of_left_arm"]
    bodies = [kt.Body(f"link_{k}_of_the_left_arm", 1.1, (0.1, 0, 0), (0.01, 0.01, 0.01, 0, 0, 0)) for k in range(3)]
    parents = [kt.GROUND, bodies[0].name, bodies[1].name]
    joints = [
        kt.Joint(name, "revolute", parent, body.name, kt.Placement((0.2, 0, 0)), axis="y")
        for name, parent, body in zip(names, parents, bodies, strict=True)
    ]
    path = tmp_path / "arm.html"
    kt.System(kt.build_mechanism("arm", bodies, joints)).page(path, editable=False)
    with browser() as chromium:
        for width in (390, 800, 1280, 1600):
            with opened(chromium, path, size=(width, 900)) as page:
                found = page.evaluate(WHOLE)
                assert set(names) <= {name for name, _ in found}
                assert [name for name, is_cut in found if is_cut] == [], width


ENDS = """() => [...document.querySelectorAll(".left .slide")].filter((x) => x.checkVisibility()).map((x) => {
    const [low, track, high] = [...x.children].map((part) => part.getBoundingClientRect());
    return low.right <= track.left && track.right <= high.left
        && high.right <= document.querySelector(".left > *").getBoundingClientRect().right + 0.5;
})"""
WIDER = """() => [".left", ".left .peaks"].map((x) => document.querySelector(x)).filter((x) => x)
    .map((x) => x.scrollWidth - x.clientWidth)"""


@pytest.mark.parametrize("width", [390, 1280])
def test_long_numbers_and_names_fit_the_panel(width, tmp_path):
    """Open a flexible arm: the ends of its sliders are beside them, and its table of peaks is inside the panel."""
    path = tmp_path / "arm.html"
    kt.load("flexible_arm").page(path)
    with browser() as chromium, opened(chromium, path, size=(width, 720)) as page:
        for mode in ("Move", "Torques", "Simulate"):
            page.get_by_role("button", name=mode, exact=True).click()
            ends = page.evaluate(ENDS)
            assert all(ends) and (ends or mode == "Torques"), mode
            assert max(page.evaluate(WIDER)) <= 0, mode
