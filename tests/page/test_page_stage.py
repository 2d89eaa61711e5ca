"""The stage of pages, in a real browser: the mechanism stays in the picture, arrows stay short, clouds stay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kinetree as kt
from browser import browser, drawn, needs_browser, opened, typed, until

pytestmark = [pytest.mark.slow, needs_browser]

SEEN = """() => {
    const { stage } = kinetree;
    stage.draw();
    const scene = stage.compose();
    const middle = stage.follow ? stage.middle(scene.matrices) : [0, 0, 0];
    return stage.framing.seen(stage.framing.extent(scene).map((p) => p.map((x, k) => x - middle[k])));
}"""
"""The part of the mechanism in the picture, and half of its span there."""
PAINTED = """() => {
    const { canvas } = kinetree.stage;
    const sheet = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
    kinetree.stage.draw();
    sheet.drawImage(canvas, 0, 0);
    const { data } = sheet.getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((x, k) => k % 4 === 3 && x > 250).length / (canvas.width * canvas.height);
}"""
"""The part of the picture that solids cover."""


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    """Return pages of library mechanisms."""
    folder = tmp_path_factory.mktemp("pages")
    names = ("planar_2r", "stanford", "quadruped")
    return {name: kt.load(name).page().save(folder / f"{name}.html") for name in names}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Return a browser for all tests of this module."""
    with browser() as found:
        yield found


def assert_seen(page: Any) -> None:
    """Find the whole mechanism in the picture, neither small nor cut off."""
    seen = page.evaluate(SEEN)
    assert seen["inside"] == 1, seen
    assert 0.1 < seen["span"] < 1, seen


def test_the_arm_stays_in_the_picture(chromium, files):
    """Jog an arm, open plots, change the window, and make a link 1,000 times longer and short again."""
    with opened(chromium, files["planar_2r"]) as page:
        assert_seen(page)
        page.evaluate("kinetree.moveTo(Float64Array.from([1.5, 0.1]))")
        assert_seen(page)
        page.evaluate("kinetree.store.set({ mode: 'Simulate' })")
        drawn(page)
        assert_seen(page)
        page.set_viewport_size({"width": 1010, "height": 700})
        drawn(page)
        assert_seen(page)
        page.evaluate("kinetree.store.set({ mode: 'Build' })")
        for length in ("300", "0.3"):
            typed(page, "a of link1", length)
            typed(page, "a of link2", length)
            drawn(page)
            assert_seen(page)


def test_extreme_lengths_leave_a_usable_picture(chromium, files):
    """Type lengths of 1e30 and 1e-30 m: the arm is in the picture, and ordinary lengths bring it back as it was."""
    with opened(chromium, files["planar_2r"]) as page:
        page.evaluate("kinetree.store.set({ mode: 'Build' })")
        before = page.evaluate(PAINTED)
        for length in ("1e30", "1e-30", "0.3"):
            for label in ("a of link1", "a of link2", "a of the tool"):
                if page.get_by_label(label, exact=True).count():
                    typed(page, label, length)
            drawn(page)
            assert page.evaluate(SEEN)["inside"] == 1
            assert page.evaluate(PAINTED) > 0.2 * before
        assert page.evaluate("kinetree.stage.scene.size") < 2


def test_the_camera_of_the_reader_is_left_alone(chromium, files):
    """Zoom in, and find the view unchanged while the arm moves out of it, until a chip brings it back."""
    with opened(chromium, files["planar_2r"]) as page:
        page.mouse.move(640, 300)
        for _ in range(12):
            page.mouse.wheel(0, -200)
        drawn(page)
        own = page.evaluate("kinetree.stage.view.state")
        page.evaluate("kinetree.moveTo(Float64Array.from([3.1, 0]))")
        drawn(page)
        assert page.evaluate("kinetree.stage.view.state") == own
        assert page.evaluate(SEEN)["inside"] < 0.5
        page.get_by_role("button", name="bring back", exact=True).click()
        drawn(page)
        assert_seen(page)
        assert not page.get_by_role("button", name="bring back", exact=True).is_visible()


@pytest.mark.parametrize(("part", "moved"), [("view=0.3,0.2,2,0,0,0,0", False), ("view=0.3,0.2,2,0,0,0", True)])
def test_links_keep_whose_view_it_is(chromium, files, part, moved):
    """Open a link with a view that the page chose, and one with a view of a reader, which stays as it is."""
    with opened(chromium, files["planar_2r"], after=f"#{part}") as page:
        assert page.evaluate("kinetree.stage.view.isMoved") is moved
        assert page.evaluate("kinetree.stage.view.state.azimuth") == 0.3


@pytest.mark.parametrize("name", ["stanford", "quadruped"])
def test_what_falls_stays_in_the_picture(chromium, files, name):
    """Play for three seconds without drives: a sliding arm and a floating base fall far, and are followed."""
    with opened(chromium, files[name]) as page:
        page.evaluate("kinetree.store.set({ mode: 'Simulate' }); kinetree.player.play(true)")
        assert page.evaluate("kinetree.stage.follow") == (name == "quadruped"), "only what floats is followed"
        until(page, "kinetree.store.get('time') > 2.5")
        page.evaluate("kinetree.player.play(false)")
        drawn(page)
        assert_seen(page)
        chosen = page.evaluate("kinetree.plots.shownCharts.map((c) => c.title)")
        assert "displacement" in chosen, "the chart that is shown first has what moves"
        kept = page.evaluate("kinetree.stage.compose().trails.map((x) => x.points.length)")
        assert kept and sum(kept) < 3 * 5000


def test_arrows_are_at_most_a_fifth_of_the_picture(chromium, files):
    """Show reactions of an arm that rotates very fast: the longest arrow is a fifth of the picture."""
    with opened(chromium, files["planar_2r"]) as page:
        page.evaluate("""() => {
            const { store } = kinetree;
            store.set({ mode: "Simulate", show: { ...store.get("show"), reactions: true } });
            store.set({ start: { q: [0.4, 0.3], qd: [300, -100] } }, { by: "test" });
        }""")
        drawn(page)
        places = page.evaluate("""() => {
            const { stage } = kinetree;
            const { both } = stage.view.shown;
            const at = (p) => [0, 1].map((i) => {
                const row = (j) => both[j] * p[0] + both[4 + j] * p[1] + both[8 + j] * p[2] + both[12 + j];
                return 0.5 * row(i) / row(3);
            });
            const arrows = stage.arrows.map((x) => [x.size, ...[x.origin, x.tip].map(at)]);
            return arrows;
        }""")
        assert max(size for size, _, _ in places) > 1e4, "forces are large"
        long = [((b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2) ** 0.5 for _, a, b in places]
        assert 0.05 < max(long) < 0.25, long


def test_an_ellipsoid_leaves_the_cloud_of_the_workspace(chromium, files):
    """Sample the workspace, show the ellipsoid of velocities, and find all points again."""
    count = "kinetree.part.layer().lines.reduce((n, line) => n + line.points.length / 6, 0)"
    with opened(chromium, files["planar_2r"]) as page:
        page.evaluate("kinetree.store.set({ mode: 'Move' })")
        page.get_by_role("button", name="Sample", exact=True).click()
        until(page, f"{count} >= 4000")
        page.get_by_role("button", name="ellipsoid", exact=True).click()
        drawn(page)
        assert page.evaluate(count) >= 4000
        page.evaluate("""() => {
            const select = document.querySelector(".panel select");
            select.value = [...select.options].find((o) => o.value !== select.value).value;
            select.dispatchEvent(new Event("change"));
        }""")
        assert page.evaluate(count) < 4000, "points of another frame are removed"


def test_phones_keep_the_stage_and_have_large_targets(chromium, files):
    """Scroll a phone down to the last control: the stage is still there, and buttons are at least 44 pixels."""
    with opened(chromium, files["stanford"], size=(390, 800), has_touch=True) as page:
        for mode in ("Simulate", "Move"):
            page.evaluate(f"kinetree.store.set({{ mode: '{mode}' }})")
            page.evaluate("scrollTo(0, document.scrollingElement.scrollHeight)")
            drawn(page)
            top, bottom, scrolled = page.evaluate("""() => {
                const box = document.querySelector(".stage").getBoundingClientRect();
                return [box.top, box.bottom, document.scrollingElement.scrollTop];
            }""")
            assert scrolled > 300 and abs(top) < 1 and 200 < bottom < 400, (mode, top, bottom, scrolled)
            small = page.evaluate("""() => [...document.querySelectorAll("button, select, input")]
                .filter((x) => x.checkVisibility() && !x.closest(".jacobian, .dh"))
                .map((x) => [x.textContent || x.getAttribute("aria-label") || x.id, x.closest("label") || x])
                .filter(([, x]) => x.getBoundingClientRect().height < 43.5)
                .map(([name]) => name)""")
            assert small == [], mode
