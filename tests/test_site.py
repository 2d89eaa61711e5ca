"""The site that `./dev docs` builds, walked in a browser: four doors, the front page, the gallery, the search.

`KINETREE_PICTURES=FOLDER` keeps a picture of every page.
"""

from __future__ import annotations

import functools
import http.server
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from browser import needs_browser

ROOT = Path(__file__).resolve().parents[1]
SITE = Path(os.environ.get("KINETREE_SITE", ROOT / "site"))
PICTURES = os.environ.get("KINETREE_PICTURES", "")
DOORS = ("student", "robot-engineer", "mechanism-designer", "researcher")
LIVE = 20
"""Mechanisms of the gallery with pages that compute."""

pytestmark = [
    pytest.mark.slow,
    needs_browser,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason=f"no site in {SITE}; `./dev docs` builds it"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Yield the address of the site on this machine."""
    handler = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@contextmanager
def visited(chromium: Any, address: str) -> Iterator[Any]:
    """Yield the front page; errors of scripts and requests to elsewhere fail the test."""
    page = chromium.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(60_000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(f"{page.url}: {error}"))
    page.on("console", lambda m: errors.append(f"{page.url}: {m.text}") if m.type == "error" else None)
    page.on(
        "request",
        lambda r: errors.append(f"request of {r.url}") if not r.url.startswith((address, "data:", "blob:")) else None,
    )
    page.goto(address, wait_until="load")
    yield page
    page.context.close()
    assert not errors


def keep_picture(page: Any, name: str) -> None:
    """Write a picture of what the reader sees, if a folder is given."""
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"))


def computing_frame(page: Any) -> Any:
    """Return the first live page within a page of the site once its mechanism is drawn."""
    element = page.locator("iframe.live").first
    element.scroll_into_view_if_needed()
    frame = element.element_handle().content_frame()
    frame.wait_for_selector(".stage canvas", state="attached")
    return frame


@pytest.mark.parametrize("door", DOORS)
def test_a_door_leads_through_five_pages(chromium, address, door):
    """Click the door on the front page, then each of its five steps: every one has a heading, text and links back."""
    with visited(chromium, address) as page:
        page.locator(f'article a[href*="doors/{door}"]').first.click()
        page.wait_for_url(f"**/doors/{door}/**")
        keep_picture(page, f"{door}-0")
        steps = page.locator("article ol > li > strong > a")
        assert steps.count() == 5
        for k in range(5):
            title = steps.nth(k).inner_text()
            steps.nth(k).click()
            page.wait_for_url(lambda url: f"/doors/{door}" not in url)
            heading = page.locator("article h1").first
            heading.wait_for()
            assert len(page.locator("article").inner_text()) > 800, title
            if page.locator("iframe.live").count():
                assert computing_frame(page).locator("body").inner_text()
            keep_picture(page, f"{door}-{k + 1}")
            page.go_back()
            page.wait_for_url(f"**/doors/{door}/**")


def test_the_mechanism_of_the_front_page_computes(chromium, address):
    """Find the arm of the front page drawn, and numbers in its panel."""
    with visited(chromium, address) as page:
        frame = computing_frame(page)
        assert re.search(r"\d\.\d", frame.locator("body").inner_text())
        keep_picture(page, "front")


def test_the_gallery_has_live_pages(chromium, address):
    """Find twenty cards that open pages of mechanisms, and open one of each tenth."""
    with visited(chromium, address) as page:
        cards = page.locator('.gallery .card[href*="live/"]')
        addresses = [cards.nth(k).get_attribute("href") for k in range(cards.count())]
        assert len(addresses) >= LIVE
        page.locator(".gallery").scroll_into_view_if_needed()
        keep_picture(page, "gallery")
        for each in addresses[::10]:
            page.goto(f"{address}{each}", wait_until="load")
            page.wait_for_selector(".stage canvas", state="attached")


def test_the_search_finds_pages(chromium, address):
    """Type words into the search, and read titles of pages that have them."""
    with visited(chromium, address) as page:
        page.locator(".md-search__input").first.click()
        page.keyboard.type("four-bar loads", delay=30)
        page.wait_for_selector(".md-search-result__item a")
        keep_picture(page, "search")
        found = page.locator(".md-search-result__item").all_inner_texts()
        assert any("four-bar" in text.lower() for text in found)
