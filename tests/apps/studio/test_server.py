"""The server of a studio: its page in a real browser, its socket, and requests of others."""

from __future__ import annotations

import numpy as np

import kinetree as kt
from browser import browser, needs_browser, served
from kinetree.apps.studio.server import running
from kinetree.apps.studio.tabs import Folder
from tolerance import assert_close


@needs_browser
def test_a_page_opens_another_mechanism(tmp_path):
    """Open a mechanism of the library in a served page: its functions are those of the library, units stay."""
    arm = kt.load("planar_2r")
    with running(lambda: arm, Folder.of(tmp_path)) as address, browser() as chromium:
        with served(chromium, address) as page:
            page.keyboard.press("u")
            page.evaluate(OPEN, "planar_3r")
            assert page.inner_text("h1") == "planar_3r"
            assert page.evaluate("kinetree.store.get('units')") == "rad"
            q = [0.3, -0.7, 1.1]
            poses = page.evaluate("(q) => Array.from(kinetree.kernel.poses(q))", q)
            expected = kt.load("planar_3r").poses(q)
            assert_close(np.reshape(poses, (-1, 4, 4)), expected, 1e-12, "poses")
            page.keyboard.press("f")
            assert page.evaluate("kinetree.store.get('mode')") == "Simulate"


OPEN = """async (name) => {
    const { server } = kinetree;
    const { data } = await server.call("open_library", { name });
    await kinetree.open(data);
}"""
