"""Calls of a page: actions by name, their errors as sentences, and arguments that are refused."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

import kinetree as kt
from kinetree import library
from kinetree.apps.studio import server
from kinetree.apps.studio.actions import ACTIONS
from kinetree.apps.studio.server import outcome
from kinetree.apps.studio.tabs import MOST, Cancelled, Folder, Studio, Tab, Tabs, open_system
from kinetree.page.file import unpack
from kinetree.targets import target


@pytest.fixture
def studio(tmp_path):
    """Return a studio with an empty folder."""
    return Studio(Folder.of(tmp_path))


def result(studio: Studio, name: str, /, **arguments) -> dict:
    """Return the result of a call as a page unpacks it."""
    found = outcome(studio, name, arguments)
    assert "error" not in found, found
    return unpack(found["result"])


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("opne_library", {}, "no action 'opne_library'; did you mean 'open_library'? available: gallery, "),
        (7, {}, "no action '7'"),
        ("__import__", {}, "no action '__import__'"),
        ("open_library", [], "the arguments of open_library are []; expected a table"),
        ("open_library", {}, "open_library: missing a required argument: 'name'; it takes name"),
        ("gallery", {"x": 1}, "gallery: got an unexpected keyword argument 'x'; it takes no arguments"),
        ("open_library", {"studio": 1, "name": "x"}, "open_library: multiple values for argument 'studio'"),
        ("open_library", {"name": "../stanford"}, "no library mechanism '../stanford'"),
        ("open_library", {"name": ["stanford"]}, "no library mechanism "),
        ("open_file", {"name": "arm.toml"}, "no file 'arm.toml' in the folder "),
        ("open_file", {"name": "arm.toml", "base": "loose"}, "base is 'loose'; expected one of fixed, free"),
        ("page_file", {}, "no mechanism is open in this tab; open one first"),
        ("simulate", {"q": [], "qd": [], "duration": 1}, "no mechanism is open in this tab; open one first"),
        ("save_file", {"name": "a.toml", "content": 7}, "the content is 7; expected a text, or bytes in base64"),
        ("save_file", {"name": "a.png", "content": "?", "encoding": "base64"}, "the content is not valid base64"),
    ],
)
def test_wrong_calls_are_one_sentence(studio, name, arguments, message):
    """Call what does not exist, with arguments that do not fit."""
    found = outcome(studio, name, arguments)
    assert set(found) == {"error"} and found["error"].startswith(message)


def test_unexpected_errors_are_logged(studio, monkeypatch, caplog):
    """Let an action fail in a way that nobody foresaw: the terminal has the traceback, the page a sentence."""
    monkeypatch.setitem(ACTIONS, "break", lambda studio: {"x": 1 // 0})
    with caplog.at_level(logging.ERROR):
        assert outcome(studio, "break", {}) == {"error": server.UNEXPECTED}
    assert "ZeroDivisionError" in caplog.text and "the action 'break' failed" in caplog.text


def test_a_cancelled_call_is_marked(studio, monkeypatch):
    """Cancel a call at its report."""

    def work(studio):
        raise Cancelled("cancelled")

    monkeypatch.setitem(ACTIONS, "work", work)
    assert outcome(studio, "work", {}) == {"error": "cancelled", "cancelled": True}


def test_cancelling_reaches_compilations(studio, monkeypatch):
    """Cancel a call that compiles and reports nothing."""

    def report(share):
        raise Cancelled("cancelled")

    monkeypatch.setitem(ACTIONS, "work", lambda studio: {"code": target().build("no assembly")})
    assert outcome(replace(studio, report=report), "work", {}) == {"error": "cancelled", "cancelled": True}


def test_the_gallery_lists_the_library(studio):
    """List all mechanisms with their sizes and pictures."""
    rows = result(studio, "gallery")["mechanisms"]
    assert [row["name"] for row in rows] == list(library.names())
    assert {bytes(row["picture"][:4]) for row in rows if row["picture"] is not None} == {b"\x89PNG"}
    by_name = {row["name"]: row for row in rows}
    assert by_name["space_robot_3r"]["floats"] and not by_name["stanford"]["floats"]
    groups = {name: by_name[name]["group"] for name in ("puma560", "four_bar", "quadruped", "spatial_biped", "car")}
    assert list(groups.values()) == ["Arms and chains", "Linkages", "Walkers", "Walkers", "Vehicles"]
    assert by_name["space_robot_3r"]["group"] == "Arms and chains"
    assert by_name["stewart"]["loops"] > 0 and by_name["stanford"]["nv"] == 6


@pytest.mark.slow
def test_pictures_are_up_to_date():
    """Compare the mechanisms that were drawn with those of the library."""
    drawn = json.loads((files("kinetree.apps.studio") / "pictures" / "hashes.json").read_text())
    now = {name: kt.load(name).mechanism.hash for name in library.names()}
    assert drawn == now, "run python docs/gallery_pictures.py NAME for those that differ"


def test_files_are_saved_and_opened_again(studio):
    """Save a mechanism into the folder, list it, and open it: its data are those of the library's page."""
    arm = kt.load("planar_2r")
    text = library.path("planar_2r").read_text()
    saved = result(studio, "save_file", name="mine.toml", content=text)
    assert saved["path"] == str(studio.folder.root / "mine.toml")
    assert result(studio, "files") == {"folder": str(studio.folder.root), "files": ["mine.toml"]}
    data = result(studio, "open_file", name="mine.toml")["data"]
    assert data["model"]["bodies"][1]["mass"] == arm.mechanism.bodies[1].mass
    assert np.array_equal(data["first"]["q"], arm.neutral())
    page = result(studio, "page_file", state="#mode=Simulate&q=0.1,<0.2")["text"]
    assert 'data-state="#mode=Simulate&amp;q=0.1,&lt;0.2"' in page and 'name="kinetree-studio" content=""' in page
    assert "connect-src" not in page


@pytest.mark.usefixtures("plain_data")
def test_tabs_are_independent(studio, tmp_path):
    """Open two mechanisms in two tabs; the least recently used tab is forgotten when there are many."""
    other = Studio(studio.folder, Tab())
    for tab, name in ((studio, "planar_2r"), (other, "planar_3r")):
        open_system(tab, kt.load(name))
    assert (studio.tab.shown().nv, other.tab.shown().nv) == (2, 3)
    tabs = Tabs()
    keys = [tabs.add(Tab()) for _ in range(MOST)]
    assert tabs.get(keys[0]) is not None
    tabs.add(Tab())
    assert tabs.get(keys[1]) is None and tabs.get(keys[0]) is not None and tabs.get("x") is None
