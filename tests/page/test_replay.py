"""The page that replays a run: its content, no escape of names from its data, and its behavior in a browser."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from browser import browser, needs_browser, opened
from closed_form_runs import batch, swinging
from kinetree.page import writer as replay_module
from kinetree.page.data import run_data
from kinetree.page.file import decompress, unpack
from kinetree.page.writer import replay
from kinetree.results import Trajectory
from kinetree.simulation.outcomes import Ending, Endings, Outcome
from tolerance import assert_close
from wasm_hosts import NODE, needs_node

EVIL = "</script><script>document.body.dataset.evil='yes'</script><img src=x onerror=alert(1)>@@SCRIPT@@&amp;"


def evil_run() -> Trajectory:
    """Return a run in which every name contains HTML elements."""
    body = kt.Body(EVIL, mass=1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    system = kt.System(kt.build_mechanism(EVIL, [body], [kt.Joint(EVIL, "revolute", kt.GROUND, EVIL)]))
    t = np.linspace(0.0, 1.0, 5)
    return Trajectory(system, t, t[:, None], np.ones((5, 1)), endings=Endings(whole=Ending(Outcome.STOPPED, EVIL)))


def data_of(page: str) -> dict:
    """Return the data in a page."""
    return unpack(
        json.loads(re.search(r'<script type="application/json" id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    )


def test_the_data_are_the_motion():
    """Decode positions and rotations of a page and find the poses of the run, to single precision."""
    run = swinging("biped")
    shown = run_data(run, 20.0)["run"]
    assert_close(shown["t"], 0.05 * np.arange(41.0), 1e-12, "times")
    rows = shown["poses"].reshape(41, 7, 7).astype(float)
    poses = run.at(shown["t"])["poses"]
    assert_close(rows[..., :3], poses[..., :3, 3], 1e-6, "positions")
    x, y, z, w = np.moveaxis(rows[..., 3:], -1, 0)
    assert_close(1.0 - 2.0 * (y * y + z * z), poses[..., 0, 0], 1e-6, "rotation xx")
    assert_close(2.0 * (x * y + z * w), poses[..., 1, 0], 1e-6, "rotation yx")
    assert ((rows[1:, :, 3:] * rows[:-1, :, 3:]).sum(axis=-1) > 0.9).all()


def test_the_ranges_cover_the_faces():
    """Find a range of faces for each body, the ground and each solid, one after the other, inside the vertices."""
    data = run_data(swinging())["scene"]
    faces, vertices = np.cumsum(data["faces"], dtype=np.uint32), data["vertices"].reshape(9, -1).T
    assert set(data["solids"]) >= {"rod", "cone", "ball", *(rod["solid"] for rod in data["rods"])}
    assert len(data["ranges"]) == 6 + 1 + len(data["solids"])
    assert data["ranges"][-1][0] + data["ranges"][-1][1] == faces.size
    assert faces.max() == len(vertices) - 1
    assert (vertices[:, 6:] >= 0).all() and (vertices[:, 6:] <= 1).all()


def test_the_page_needs_nothing_else(tmp_path):
    """Find no address in the page, and a policy that lets only its own script and style run."""
    page = replay(swinging(), tmp_path / "run.html").read_text()
    assert page.isascii()
    around = re.sub(r'<script type="application/.*?</script>', "", page, flags=re.DOTALL)
    assert not re.search(r"https?:|[\"'(]//|\bsrc=|\bhref=|@import|url\(", around)
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
    loader = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    packed = [re.search(rf'id="{x}">(.*?)</script>', page)[1] for x in ("look", "code")]
    for text in (loader, *(decompress(x).decode() for x in packed)):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none';")


def test_names_cannot_get_out(tmp_path):
    """Write names with elements, entities and our own marks, and find them only as text."""
    page = evil_run().replay(tmp_path / "run.html").read_text()
    assert EVIL not in page
    assert page.count("<script") == 4
    assert page.count("<img") == 0
    assert html.escape(EVIL) in page
    assert [body["name"] for body in data_of(page)["model"]["bodies"]] == [EVIL]


def test_a_batch_is_refused(tmp_path):
    """Replay a batch and read how to choose a run."""
    with pytest.raises(kt.InputError, match=r"choose one of its runs with run\(i\)"):
        batch().replay(tmp_path / "run.html")
    assert list(tmp_path.iterdir()) == []


def test_what_stands_still_is_replayed(tmp_path):
    """Write pages of one sample and of a mechanism without coordinates."""
    system = kt.System(kt.build_mechanism("m", [kt.Body("b", mass=2.0)], [kt.Joint("j", "fixed", kt.GROUND, "b")]))
    run = Trajectory(system, [0.0, 1.0], np.zeros((2, 0)), np.zeros((2, 0)))
    assert data_of(run.replay(tmp_path / "a.html").read_text())["run"]["t"].size == 61
    assert data_of(swinging()[:1].replay(tmp_path / "b.html").read_text())["run"]["t"].size == 1


@needs_node
def test_controls_keep_their_keys():
    """Ask which keys a control with the focus keeps: lists and boxes all of them, buttons the space bar."""
    script = (Path(replay_module.__file__).parent / "js" / "keys.js").as_uri()
    kinds = {"body": ["BODY", ""], "play": ["BUTTON", ""], "loop": ["INPUT", "checkbox"], "speed": ["SELECT", ""],
             "box": ["INPUT", "text"], "slider": ["INPUT", "range"]}  # fmt: skip
    text = f"""
        import {{ keepsKey }} from "{script}";
        const kept = ([tagName, type]) => [" ", "ArrowLeft", "f"].map((key) => keepsKey({{ tagName, type }}, key));
        console.log(JSON.stringify(Object.values({json.dumps(kinds)}).map(kept)));"""
    command = [str(NODE), "--input-type=module", "--no-warnings", "-e", text]
    done = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
    assert dict(zip(kinds, done, strict=True)) == {
        "body": [False, False, False], "play": [True, False, False], "loop": [True, False, False],
        "speed": [True, True, True], "box": [True, True, True], "slider": [False, True, False],
    }  # fmt: skip


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("flags", [[], ["--disable-3d-apis"]], ids=["webgl", "plain"])
def test_a_browser_runs_the_page(flags, tmp_path):
    """Open pages in a browser, with and without WebGL: they draw, show the requested time, and run no name."""
    with browser(*flags) as chromium:
        for k, run in enumerate((swinging("biped"), evil_run())):
            with opened(chromium, run.replay(tmp_path / f"{k}.html"), after="#t=0.5") as page:
                assert page.evaluate("document.body.dataset.ready") == ("plain" if flags else "webgl")
                assert re.match(r"0\.500? / \d\.000? s", page.inner_text("#clock"))
                assert page.evaluate("document.body.dataset.evil") is None
                page.keyboard.press("ArrowRight")
                expected = 0.5 + run.t[-1] / 100
                assert abs(page.evaluate("kinetree.store.get('time')") - expected) < 1e-12
