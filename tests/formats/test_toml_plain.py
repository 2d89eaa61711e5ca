"""The fast reader of plain TOML against Python's own, and the bounds of both."""

from __future__ import annotations

import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinetree as kt
from kinetree import library
from kinetree.errors import ModelError
from kinetree.formats import toml, toml_lines
from kinetree.formats.toml_lines import read_tables
from kinetree.formats.toml_writer import write_toml
from strategies import examples


def read_by_python(text: str):
    """Return the tables of a text by Python's reader, or the words that it is not TOML."""
    try:
        return tomllib.loads(text)
    except ValueError:
        return "not TOML"


def read_here(text: str):
    """Return the same by `read_tables`."""
    try:
        return read_tables(text)
    except ValueError:
        return "not TOML"


WORDS = st.sampled_from(["a", "b", "a-1", "2", "_"])
VALUES = st.sampled_from(
    [
        "1", "-0", "01", "+1", "1e5", "-0.25", "1.", ".5", "1_000", "0x1f", "true", "false", "null", "nan", "inf",
        "NaN", "Infinity", "[-Infinity]", '"x"', "'x'", '"a\\n"', '"\\/"', '"#"', '"{"', '"null"', '"""x"""', '"""',
        "[]", "[1, 2]", "[1, 2,]", "[1,", '[["x"], [0.5e-3]]', "[null]", "{}", "{ a = 1, b = [2] }", '{"a": 1}',
        "1 # c", "2020-01-01", "[1] # c", '"\t"', '"\x7f"', "1 2", "", "\u00e4", '"\u00e4"', "[\u0661]",
    ]
)  # fmt: skip
OTHERS = ["", "# c", "  # \t", "a", "= 1", '"a" = 1', "a.b = 1", "[[a]", "[a]]", "[ a ]", "[a] # c", "\r", "\0"]
LINES = st.one_of(
    st.builds("{} = {}".format, WORDS, VALUES),
    st.builds(" {}={}  ".format, WORDS, VALUES),
    st.builds("[{}]".format, WORDS),
    st.builds("[[{}]]".format, WORDS),
    st.builds("[{}.{}]".format, WORDS, WORDS),
    st.builds("[[{}.{}]]".format, WORDS, WORDS),
    st.sampled_from(OTHERS),
)


@given(st.lists(LINES, max_size=8).map("\n".join))
@examples(2400)
def test_plain_text_is_read_as_python_reads_it(text):
    """Read random lines as tables, equal to those of Python's reader in types too, or refuse what it refuses."""
    found, expected = read_here(text), read_by_python(text)
    assert repr(found) == repr(expected), text


@pytest.mark.parametrize("name", library.names())
def test_mechanisms_of_the_library_are_read_as_python_reads_them(name):
    """Read the files of the library, and the text that is written of them."""
    source = library.path(name).read_text(encoding="utf-8")
    assert read_tables(source) == tomllib.loads(source)
    text = write_toml(toml.read_toml_text(source)[0])
    assert read_tables(text.replace("\n", "\r\n")) == tomllib.loads(text)


def test_written_text_does_not_reach_pythons_reader(monkeypatch):
    """Read a rope, whose file repeats lines for every link, without Python's slow reader."""
    text = write_toml(kt.rope(2.0, 30, mass_per_metre=0.3, radius=0.01).mechanism)
    expected = tomllib.loads(text)
    monkeypatch.setattr(toml_lines, "MAX_SIGNS", 0)
    assert read_tables(text) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = 2\n\nc = 3\nd = 4\n", 5),
        ("[[body]]\n" * 4, 4),
        ("[dh]\na = 1\nb = 2\nc = 3\nd = 4\n", 5),
        ("[a]\n[b]\n[c]\n[d]\n", 4),
    ],
    ids=["keys", "tables of a list", "keys of a table", "tables"],
)
def test_long_tables_are_refused_at_once(text, line, monkeypatch):
    """Name the line of the first entry of a table or list that is too many."""
    monkeypatch.setattr(toml_lines, "MAX_ENTRIES", 3)
    message = f"f.toml:{line}: a table or list has more than 3 entries; give fewer; long chains are built by kt.rope"
    with pytest.raises(ModelError, match="^" + message):
        toml.read_toml_text(text, file="f.toml")


TWO = '[[body]]\nname = "a"\nmass = 2.5\n\n[[body]]\nname = "b"\nshape = [\n  { kind = "box" },\n]\n'


def test_large_texts_are_refused(monkeypatch):
    """Name the count, the limit and the remedy: lines, brackets, and signs outside of plain lines."""
    monkeypatch.setattr(toml_lines, "MAX_LINES", 5)
    with pytest.raises(ModelError, match=r"^f\.toml: the text has 9 lines; give no more than 5; long chains are built"):
        toml.read_toml_text(TWO, file="f.toml")
    monkeypatch.setattr(toml_lines, "MAX_LINES", 9)
    with pytest.raises(ModelError, match=r"^the text has 10 brackets; give no more than 9"):
        read_tables("a = [[], [], [], [], [], [], [], [], []]")
    assert read_tables(TWO)["body"][0] == {"name": "a", "mass": 2.5}
    monkeypatch.setattr(toml_lines, "MAX_SIGNS", 20)
    with pytest.raises(
        ModelError, match=r"^the text has \d+ commas, brackets and other signs that are not in plain li"
    ):
        read_tables(TWO)
    with pytest.raises(
        ModelError, match=r"and 20 can be read; write each key = value on one line"
    ):  # many values of one line each
        read_tables("\n".join(f"k{i} = {{ a = [1] }}" for i in range(9)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[parameters]\np = 1\nr = 2\ns = 3\n",
            "f.toml:1: parameters: 3 tables or keys; give no more than 2, or build",
        ),
        ("[[loop]]\n[[loop]]\n[[loop]]\n", "f.toml:1: loop: 3 tables or keys; give no more than 2"),
        ("[[frame]]\n" * 5, "f.toml:1: frame: 5 tables or keys; give no more than 4"),
        ("[[body]]\n" * 5, "f.toml:1: body: 5 tables or keys; give no more than 4"),
        ("[dh]\n" + "[[dh.row]]\n" * 5, "f.toml:2: dh, row: 5 tables or keys; give no more than 4"),
        (
            '[[body]]\nname = "a"\n' + "[[body.shape]]\n" * 5,
            "f.toml:1: body, shape: 5 tables or keys; give no more than 4",
        ),
    ],
)
def test_counts_of_parts_are_bounded(text, message, monkeypatch):
    """Refuse more parts than can be read in seconds, before any of them is read."""
    monkeypatch.setattr(toml, "FEW", 2)
    monkeypatch.setattr(toml, "MANY", 4)
    with pytest.raises(ModelError) as caught:
        toml.read_toml_text(text, file="f.toml")
    assert str(caught.value).startswith(message)


def test_a_formula_that_is_too_deep_for_python_is_refused(tmp_path):
    """Load a mass that is a sum of 790 free parameters, whose checks would exhaust Python's stack."""
    file = tmp_path / "deep.toml"
    file.write_text(
        '[parameters]\na = { value = 0.3, free = true }\n[[body]]\nname = "b"\nmass = "' + "+".join(["a"] * 790) + '"\n'
        '[[joint]]\nname = "j"\nkind = "revolute"\nparent = "ground"\nchild = "b"\n'
    )
    with pytest.raises(
        ModelError, match=r"deep\.toml: a formula is too long or too deeply nested; shorten it by param"
    ):
        kt.load(file)


def test_numbers_keep_their_bits():
    """Read the shortest decimals of awkward numbers back to the same bits."""
    numbers = [math.pi, 5e-324, 1.7976931348623157e308, -1e-7, 123456789012345680.0]
    assert read_tables(f"a = {numbers!r}")["a"] == numbers
