"""A real browser for tests of pages: Chromium, headless, driven through playwright, with the network off."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = [
    "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-sync", "--disable-background-networking",
    "--disable-component-update", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
]  # fmt: skip

needs_browser = pytest.mark.skipif(
    CHROMIUM is None or find_spec("playwright") is None,
    reason="no Chromium on the PATH, or playwright is not installed",
)


@contextmanager
def browser(*flags: str) -> Iterator[Any]:
    """Yield a browser; `flags` are further arguments of Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, headless=True, args=[*ARGUMENTS, *flags])
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def opened(
    chromium: Any, path: Path, *, after: str = "", size: tuple[int, int] = (1280, 800), **options: Any
) -> Iterator[Any]:
    """Yield a page of a file once it has drawn; `after` is the part of the address after the file name.

    Errors of its scripts, and requests for anything but the file itself, fail the test.
    """
    context = chromium.new_context(
        viewport={"width": size[0], "height": size[1]}, offline=True, accept_downloads=True, **options
    )
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on(
        "request", lambda request: errors.append(f"request of {request.url}") if not _own(request.url, path) else None
    )
    try:
        page.goto(f"{path.as_uri()}{after}")
        page.wait_for_selector("body[data-ready]", state="attached", timeout=30_000)
        yield page
        assert errors == []
    finally:
        context.close()


def _own(address: str, path: Path) -> bool:
    return address.split("#")[0] == path.as_uri() or address.startswith(("blob:", "data:"))
