"""Lines of a TOML text by key path: headers, keys, lists, and other paths of the same tables."""

from __future__ import annotations

import pytest

from kinetree.errors import ModelError, at, below
from kinetree.formats.toml_lines import Places, lines_by_path

TEXT = """\
[mechanism]
name = "arm"

[[body]]
name = "upper"
  "mass" = 1.5
[[ body . shape ]]
kind = "box"
[[body]]
name = "lower"
[[body.shape]]
kind = "ball"
[[body.shape]]
size.x = 0.25
size.y = 0.5
[dh]
row = [  # one per body
  { joint = "revolute" },
  { joint = "fixed" },
]
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("mechanism", "name"), 2),
        (("mechanism", "gravity"), 1),
        (("body",), 4),
        (("body", 0, "mass"), 6),
        (("body", 0, "shape", 0, "kind"), 8),
        (("body", 1), 9),
        (("body", 1, "shape", 0, "size"), 11),
        (("body", 1, "shape", 1, "size"), 14),
        (("body", 1, "shape", 1, "size", "y"), 15),
        (("dh", "row", 0, "joint"), 18),
        (("dh", "row", 1), 19),
        (("dh", "row", 2), 17),
        (("joint",), None),
        ((), None),
    ],
)
def test_paths_lead_to_lines(path, line):
    """Find keys, or else the innermost table around them."""
    assert Places(TEXT).line(path) == line


def test_every_table_and_key_has_a_line():
    """Count the paths of a small text."""
    assert lines_by_path("a = 1\n[[b]]\nc.d = 2\n") == {
        ("a",): 1, ("b",): 2, ("b", 0): 2, ("b", 0, "c"): 3, ("b", 0, "c", "d"): 3,
    }  # fmt: skip


def test_tables_are_also_known_by_name():
    """Find the line of a body by its name; of two bodies with one name, that of the one noted last."""
    places = Places(TEXT)
    places.note(("body", "upper"), ("body", 0))
    assert places.line(("body", "upper", "mass")) == 6
    places.note(("body", "upper"), ("body", 1))
    assert places.line(("body", "upper", "name")) == 10


def test_errors_are_located_by_their_path_whatever_their_words():
    """Raise an error at a key and read file and line in its message; a line that is known already stays."""
    error = ModelError("anything", where=below(at("mechanism"), "name"))
    assert str(Places(TEXT).locate(error, "f.toml")) == "f.toml:2: mechanism, name: anything"
    assert str(Places(TEXT).locate(ModelError("anything", where="mechanism"), "f")) == "f: mechanism: anything"
    assert Places(TEXT).locate(ModelError("anything", line=7, path=("body", 1)), "f.toml").line == 7
