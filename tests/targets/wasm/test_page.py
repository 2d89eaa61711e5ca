"""The page of the guide: exported modules in Chromium, from a local server."""

from __future__ import annotations

import re
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import kinetree as kt
from wasm_hosts import dump, needs_chromium

PAGE = Path(__file__).resolve().parents[3] / "examples" / "falling_arm" / "index.html"
GUIDE = PAGE.parents[2] / "docs" / "browser.md"


class Quiet(SimpleHTTPRequestHandler):
    """A server of files without a log."""

    def log_message(self, format: str, *arguments) -> None:
        """Write nothing."""


@pytest.mark.slow
@needs_chromium
def test_the_page_of_the_guide_passes_its_self_tests(tmp_path, monkeypatch):
    """Export the modules as the guide does, open the page, and read its self-tests and its energy."""
    monkeypatch.chdir(tmp_path)
    block = re.search(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert block is not None
    exec(compile(block[1], str(GUIDE), "exec"), {})
    shutil.copy(PAGE, tmp_path / "page")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "page")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        shown = dump(f"http://127.0.0.1:{server.server_port}/index.html", tmp_path)
    finally:
        server.shutdown()
        server.server_close()
    assert re.search(r'id="tests">passed<', shown), shown[:4000]
    arm = kt.load("planar_3r")
    energy = float(arm.potential_energy([0.15, 0.15, 0.15]))
    found = re.search(r'id="energy">(-?[\d.]+) J<', shown)
    assert found is not None and abs(float(found[1]) - energy) < 1e-5
