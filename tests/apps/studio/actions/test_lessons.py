"""Lessons of the studio: their list, one opened, and the way back."""

from __future__ import annotations

from importlib import import_module

import pytest

import kinetree as kt
from kinetree.apps import lessons
from kinetree.apps.studio.server import call_action, outcome
from kinetree.apps.studio.tabs import Folder, Studio, open_system


@pytest.fixture
def plain_lessons(monkeypatch, plain_data):
    """Let lessons be opened without the functions of their pages."""
    monkeypatch.setattr(
        import_module("kinetree.apps.studio.actions.files"),  # the package has a function of this name
        "lesson_content",
        lambda lesson, progress: (kt.load(lesson.mechanism), {"title": lesson.title, "lesson": {}}),
    )


@pytest.mark.usefixtures("plain_lessons")
def test_lessons_lead_back(tmp_path):
    """Go from a mechanism to a lesson, to another one, and back; without a mechanism before, to that of the lesson."""
    studio = Studio(Folder.of(tmp_path))
    found = call_action(studio, "lessons", {})["lessons"]
    assert [row["name"] for row in found] == list(lessons.names())
    assert all(row["title"] and row["summary"] and row["minutes"] > 0 for row in found)
    arm = kt.load("planar_3r")
    open_system(studio, arm, source="folder/mine.toml")
    for name in ("pendulum", "four_bar_linkage"):
        data = call_action(studio, "open_lesson", {"name": name})["data"]
        assert data["source"] == f"lesson/{name}" and studio.tab.shown().mechanism.name == lessons.find(name).mechanism
    back = call_action(studio, "leave_lesson", {})["data"]
    assert back["title"] == "planar_3r" and back["source"] == "folder/mine.toml" and studio.tab.system is arm
    fresh = Studio(Folder.of(tmp_path))
    call_action(fresh, "open_lesson", {"name": "pendulum"})
    assert call_action(fresh, "leave_lesson", {})["data"]["source"] == "library/pendulum"


def test_unknown_lessons_are_refused(tmp_path):
    """Open lessons that do not exist."""
    for name in ("none", "../pendulum", 3, None):
        found = outcome(Studio(Folder.of(tmp_path)), "open_lesson", {"name": name})
        assert found["error"].startswith("no lesson")
