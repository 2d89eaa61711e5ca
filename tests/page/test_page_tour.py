"""The tour of the page in a real browser: offered once, it stops at real controls and leaves the page as it was."""

from __future__ import annotations

import pytest

import kinetree as kt
from browser import browser, needs_browser, opened

pytestmark = [pytest.mark.slow, needs_browser]
RING = """() => {
    const ring = document.querySelector(".ring").getBoundingClientRect();
    const card = document.querySelector(".tourcard").getBoundingClientRect();
    const inside = card.left >= 0 && card.right <= innerWidth && card.top >= 0 && card.bottom <= innerHeight;
    return [ring.width > 20 && ring.height > 10, inside];
}"""


@pytest.mark.parametrize("size", [(1280, 800), (390, 800)])
def test_a_tour_shows_the_parts_of_the_page(tmp_path, size):
    """Take the tour by the keyboard: each stop is around a visible part, Esc leaves, and it is not offered again."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    path = kt.load("planar_2r").page().save(tmp_path / "arm.html")
    with browser() as chromium, opened(chromium, path, size=size) as page:
        mode = page.evaluate("kinetree.store.get('mode')")
        page.get_by_role("button", name="Tour in two minutes").click()
        card = page.get_by_role("dialog")
        titles = []
        while True:
            titles.append(page.inner_text(".tourcard h2"))
            assert page.evaluate(RING) == [True, True], titles
            found = axe.Axe().run(page).response["violations"]
            assert [(x["id"], titles[-1]) for x in found if x["impact"] in ("serious", "critical")] == []
            if page.inner_text(".tourcard .main") == "Done":
                break
            page.keyboard.press("ArrowRight")
        assert len(titles) == 8 and titles[0] == "The mechanism"
        page.keyboard.press("ArrowLeft")
        assert page.inner_text(".tourcard h2") == titles[-2]
        page.keyboard.press("Escape")
        assert card.count() == 0 and page.evaluate("kinetree.store.get('mode')") == mode
        page.reload()
        page.wait_for_selector("body[data-ready]", state="attached")
        assert page.locator(".offer").count() == 0
        page.keyboard.press("?")
        page.get_by_role("button", name="Tour in two minutes").click()
        assert page.inner_text(".tourcard h2") == "The mechanism"
        page.get_by_role("button", name="End").click()
        assert page.locator(".tour").count() == 0
