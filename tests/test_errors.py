"""Errors: places with key paths, which errors keep across processes."""

from __future__ import annotations

import pickle

import pytest

from kinetree.errors import KeyPath, ModelError, Where, at, below, part_at, path_of, unknown_name


@pytest.mark.parametrize(
    ("where", "text", "path"),
    [
        (at("run", "times"), "run, times", ("run", "times")),
        (part_at("body", "hand"), "body 'hand'", ("body", "hand")),
        (below(part_at("body", "hand"), "mass"), "body 'hand', mass", ("body", "hand", "mass")),
        (below(Where("body 3", ("body", 2)), "shape", 0), "body 3, shape 1", ("body", 2, "shape", 0)),
        (below("tool", "rpy"), "tool, rpy", ("rpy",)),
        ("a plain text", "a plain text", ()),
    ],
)
def test_places_have_words_and_a_path(where: str, text: str, path: KeyPath):
    """Read the words of a place, its path, and both in an error."""
    assert where == text and path_of(where) == path
    error = ModelError("fault", where=where)
    assert str(error) == f"{text}: fault" and error.path == path and type(error.where) is str


def test_errors_keep_their_path():
    """Locate and pickle an error: its path stays."""
    error = unknown_name("key", "mas", ["mass"], where=at("body"), path=("body", 2, "mas"))
    for copy in (error.located("f.toml", 7), pickle.loads(pickle.dumps(error))):
        assert copy.path == ("body", 2, "mas") and type(copy) is type(error)
