"""Errors: places with key paths, which errors keep across processes."""

from __future__ import annotations

import pickle

import pytest

from kinetree.errors import (
    Advice,
    InputError,
    KeyPath,
    ModelError,
    Where,
    at,
    below,
    naming,
    part_at,
    path_of,
    unknown_name,
)


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


def test_advice_is_for_python_or_for_the_command_line():
    """Name options in both wordings, in every sort of error, also after a file is added and after pickling."""
    text = naming("rk4 needs {dt}; or take {method}, up to {max_steps}", dt="", method="bdf", max_steps="")
    assert text == "rk4 needs dt; or take method='bdf', up to max_steps"
    assert text.command_line == "rk4 needs --dt; or take --method bdf, up to --max-steps"
    remedy = Advice("give roots=[...]", "give --root")
    located = ModelError("no mesh", where="body 'b'", remedy=remedy).located("f.urdf", 3)
    for error, python, command in (
        (InputError(text), str(text), text.command_line),
        (located, "f.urdf:3: body 'b': no mesh; give roots=[...]", "f.urdf:3: body 'b': no mesh; give --root"),
        (ModelError(text), str(text), text.command_line),
        (InputError("plain"), "plain", "plain"),
        (unknown_name("frame", "tol", ["tool"]), *["no frame 'tol'; did you mean 'tool'? available: tool"] * 2),
        (InputError(), "", ""),
    ):
        for copy in (error, pickle.loads(pickle.dumps(error))):
            assert (str(copy), copy.command_line) == (python, command)


def test_errors_keep_their_path():
    """Locate and pickle an error: its path stays."""
    error = unknown_name("key", "mas", ["mass"], where=at("body"), path=("body", 2, "mas"))
    for copy in (error.located("f.toml", 7), pickle.loads(pickle.dumps(error))):
        assert copy.path == ("body", 2, "mas") and type(copy) is type(error)


def test_letters_of_the_other_case_are_recognized():
    """Suggest the name that differs in the case of its letters alone, however short or different it then is."""
    for name, known in (("u", "U"), ("KUKA", "kuka"), ("i", "I")):
        assert f"did you mean {known!r}?" in str(unknown_name("matrix", name, ("D", "U", "kuka", "I", "KUKAs")))
