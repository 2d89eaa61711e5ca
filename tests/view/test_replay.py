"""The page that replays a run: its content, no escape of names from its data, and its behavior in a browser."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from closed_form_runs import batch, swinging
from kinetree.results import Trajectory
from kinetree.view import replay as replay_module
from kinetree.view.replay import replay, replay_data
from tolerance import assert_close

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
EVIL = "</script><script>document.body.dataset.evil='yes'</script><img src=x onerror=alert(1)>@@SCRIPT@@&amp;"


def evil_run() -> Trajectory:
    """Return a run in which every name contains HTML elements."""
    body = kt.Body(EVIL, mass=1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    system = kt.System(kt.assemble(EVIL, [body], [kt.Joint(EVIL, "revolute", kt.GROUND, EVIL)]))
    t = np.linspace(0.0, 1.0, 5)
    return Trajectory(system, t, t[:, None], np.ones((5, 1)), status=f"stopped: {EVIL}")


def data_of(page: str) -> dict:
    """Return the data in a page."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_data_are_the_motion():
    """Decode positions and rotations of a page and find the poses of the run, to single precision."""
    run = swinging("biped")
    data = replay_data(run, 20.0)
    assert (data["frames"], data["start"], data["step"]) == (41, 0.0, pytest.approx(0.05))
    rows = np.frombuffer(base64.b64decode(data["poses"]), dtype="<f4").reshape(41, 7, 7).astype(float)
    poses = run.at(data["step"] * np.arange(41.0))["poses"]
    assert_close(rows[..., :3], poses[..., :3, 3], 1e-6, "positions")
    x, y, z, w = np.moveaxis(rows[..., 3:], -1, 0)
    assert_close(1.0 - 2.0 * (y * y + z * z), poses[..., 0, 0], 1e-6, "rotation xx")
    assert_close(2.0 * (x * y + z * w), poses[..., 1, 0], 1e-6, "rotation yx")
    assert ((rows[1:, :, 3:] * rows[:-1, :, 3:]).sum(axis=-1) > 0.9).all()


def test_the_ranges_cover_the_faces():
    """Find a range of faces for each body, the ground and the rod, one after the other, inside the vertices."""
    data = replay_data(swinging())
    faces = np.frombuffer(base64.b64decode(data["faces"]), dtype="<u4")
    vertices = np.frombuffer(base64.b64decode(data["vertices"]), dtype="<f4").reshape(-1, 9)
    assert len(data["ranges"]) == 6 + 1 + 1
    assert data["ranges"][-1][0] + data["ranges"][-1][1] == len(faces)
    assert faces.max() == len(vertices) - 1
    assert (vertices[:, 6:] >= 0).all() and (vertices[:, 6:] <= 1).all()


def test_the_page_needs_nothing_else(tmp_path):
    """Find no address in the page, and a policy that lets only its own script and style run."""
    page = replay(swinging(), tmp_path / "run.html").read_text()
    assert page.isascii()
    around = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)
    assert not re.search(r"https?:|[\"'(]//|\bsrc=|\bhref=|@import|url\(", around)
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
    for element in ("script", "style"):
        text = re.search(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)[1]
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none';")


def test_names_cannot_get_out(tmp_path):
    """Write names with elements, entities and our own marks, and find them only as text."""
    page = evil_run().replay(tmp_path / "run.html").read_text()
    assert EVIL not in page
    assert page.count("<script") == 2
    assert page.count("<img") == 0
    assert html.escape(EVIL) in page
    assert data_of(page)["bodies"] == [EVIL]


def test_a_batch_is_refused(tmp_path):
    """Replay a batch and read how to choose a run."""
    with pytest.raises(kt.InputError, match=r"choose one of its runs with run\(i\)"):
        batch().replay(tmp_path / "run.html")
    assert list(tmp_path.iterdir()) == []


def test_what_stands_still_is_replayed(tmp_path):
    """Write pages of one sample and of a mechanism without coordinates."""
    system = kt.System(kt.assemble("m", [kt.Body("b", mass=2.0)], [kt.Joint("j", "fixed", kt.GROUND, "b")]))
    run = Trajectory(system, [0.0, 1.0], np.zeros((2, 0)), np.zeros((2, 0)))
    assert data_of(run.replay(tmp_path / "a.html").read_text())["frames"] == 61
    assert data_of(swinging()[:1].replay(tmp_path / "b.html").read_text())["step"] == 0.0


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_keys_work_whatever_has_the_focus():
    """Press keys with the focus on each kind of control: arrows seek, except in a list, which uses them."""
    script = Path(replay_module.__file__).parent / "replay_page" / "player.js"
    command = ["node", str(Path(__file__).parent / "player_keys.mjs"), str(script)]
    done = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
    for focus in ("body", "play", "time", "loop"):
        assert done[f"{focus} ArrowLeft"] == {"frame": 98, "playing": False, "taken": True}
        assert done[f"{focus} ArrowRight"] == {"frame": 102, "playing": False, "taken": True}
    assert done["speed ArrowLeft"] == {"frame": 100, "playing": False, "taken": False}
    plays = {focus: done[f"{focus}  "]["taken"] for focus in ("body", "play", "time", "loop", "speed")}
    assert plays == {"body": True, "play": False, "time": True, "loop": False, "speed": False}


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("flags", [[], ["--disable-3d-apis"]], ids=["webgl", "plain"])
def test_a_browser_runs_the_page(flags, tmp_path):
    """Open pages in a browser, with and without WebGL: they draw, show the requested time, and run no name."""
    for run in (swinging("biped"), evil_run()):
        path = run.replay(tmp_path / "run.html")
        command = [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader", "--virtual-time-budget=2000", f"--user-data-dir={tmp_path / 'profile'}",
            *flags, "--dump-dom", f"{path.as_uri()}#t=0.5",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert re.search(r'data-ready="(webgl|plain)"', done.stdout)
        if flags:
            assert 'data-ready="plain"' in done.stdout
        assert re.search(r">0\.500? / \d\.000? s</output>", done.stdout)
        assert 'data-evil="yes"' not in done.stdout
