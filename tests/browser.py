"""A real browser for tests of pages: Chromium, headless, driven through playwright, with the network off."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from complete import CHROMIUM
from complete import needs_browser as needs_browser

ARGUMENTS = [
    "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-sync", "--disable-background-networking",
    "--disable-component-update", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
]  # fmt: skip

_PROJECTED = """(point) => {
    const m = kinetree.stage.view.shown.both;
    const [x, y, w] = [0, 1, 3].map((i) => m[i] * point[0] + m[4 + i] * point[1] + m[8 + i] * point[2] + m[12 + i]);
    const box = document.querySelector(".stage").getBoundingClientRect();
    return [box.left + box.width * (0.5 + 0.5 * x / w), box.top + box.height * (0.5 - 0.5 * y / w)];
}"""

_DROP = """([name, content]) => {
    const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], name));
    const options = { dataTransfer: transfer, bubbles: true, cancelable: true };
    const stage = document.querySelector(".stage");
    for (const type of ["dragover", "drop"]) stage.dispatchEvent(new DragEvent(type, options));
}"""


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
    uri = path.as_uri()
    with _watched(chromium, f"{uri}{after}", lambda url: url == uri, size=size, offline=True, **options) as page:
        yield page


@contextmanager
def served(chromium: Any, address: str, *, size: tuple[int, int] = (1280, 800), **options: Any) -> Iterator[Any]:
    """Yield a page of a studio once it has drawn; errors of its scripts, and requests to elsewhere, fail the test."""
    origin = address.partition("?")[0]
    with _watched(chromium, address, lambda url: url.startswith(origin), size=size, **options) as page:
        yield page


@contextmanager
def _watched(
    chromium: Any, address: str, own: Callable[[str], bool], *, size: tuple[int, int], **options: Any
) -> Iterator[Any]:
    context = chromium.new_context(viewport={"width": size[0], "height": size[1]}, accept_downloads=True, **options)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if _own(request.url, own) else errors.append(f"request of {request.url}"))
    try:
        page.goto(address)
        page.wait_for_selector("body[data-ready]", state="attached", timeout=60_000)
        yield page
        assert errors == [], errors
    finally:
        context.close()


def until(page: Any, condition: str) -> None:
    """Wait until a condition holds in the page, whose policy forbids playwright's own way to wait."""
    for _ in range(600):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not within 30 s: {condition}")


def drawn(page: Any) -> None:
    """Wait until the picture shows the present state: two frames, of which the first may have begun before it."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def typed(page: Any, label: str, text: str) -> None:
    """Type into a box, given by its label, and press Enter."""
    box = page.get_by_label(label, exact=True)
    box.fill(text)
    box.press("Enter")


def drop(page: Any, name: str, content: str) -> None:
    """Drop a file on the stage."""
    page.evaluate(_DROP, [name, base64.b64encode(content.encode()).decode()])


def projected(page: Any, point: list[float]) -> tuple[float, float]:
    """Return the place in the window at which a point of the ground is drawn [px]."""
    x, y = page.evaluate(_PROJECTED, point)
    return x, y


def _own(address: str, own: Callable[[str], bool]) -> bool:
    return own(address.split("#")[0]) or address.startswith(("blob:", "data:"))
