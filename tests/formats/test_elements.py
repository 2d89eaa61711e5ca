"""Strict reading of XML elements."""

from __future__ import annotations

import pytest

from kinetree.errors import ModelError
from kinetree.formats.report import Report
from kinetree.formats.xml import Source, describe_element, parse_xml

TEXT = """<a name="top" x="1 2" n="3" empty="">
<b/><b name="second"/><c y="1"/><xacro:d/>words</a>"""


@pytest.fixture
def source():
    """Return a source with an empty report."""
    return Source("f.xml", Report("f.xml"))


def test_attributes(source):
    """Read texts, names and numbers, with and without defaults."""
    root = parse_xml(TEXT)
    assert source.name(root) == "top"
    assert source.text(root, "empty") == ""
    assert source.text(root, "none", "default") == "default"
    assert source.numbers(root, "x", 2) == (1.0, 2.0)
    assert source.numbers(root, "none", 2, ()) == ()
    assert source.number(root, "n") == 3.0
    assert source.number(root, "none", 0.5) == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, e: s.text(e, "none"), "f.xml:1: <a name='top'>: the attribute 'none' is missing; add none="),
        (lambda s, e: s.name(e, "empty"), "f.xml:1: <a name='top'>: the attribute 'empty' is empty; give a name"),
        (lambda s, e: s.number(e, "name"), "f.xml:1: <a name='top'> attribute 'name': 'top' is not a number"),
        (lambda s, e: s.number(e, "x"), "attribute 'x': more than 1 number in '1 2'; give one decimal"),
        (lambda s, e: s.needed(e, "z"), "f.xml:1: <a name='top'>: has no <z>; add a <z> to it"),
    ],
)
def test_errors(source, call, message):
    """Name file, line, element, cause and remedy."""
    with pytest.raises(ModelError) as caught:
        call(source, parse_xml(TEXT))
    assert message in str(caught.value)


def test_one_child_of_a_sort(source):
    """Take the first child of a tag and report the others."""
    root = parse_xml(TEXT)
    assert source.one(root, "b") is root.children[0]
    assert source.one(root, "z") is None
    assert [str(e) for e in source.report.of("dropped")] == [
        "f.xml:2: <b name='second'>: <a name='top'> has one already"
    ]


def test_the_rest_is_reported(source):
    """Report attributes, children and text that are not read, and leftovers of xacro as suspect."""
    source.rest(parse_xml(TEXT), ("name", "x", "n"), ("b",))
    assert [str(e) for e in source.report.of("dropped")] == [
        "f.xml:1: attribute 'empty' = '' of <a name='top'>",
        "f.xml:2: <c> in <a name='top'>",
        "f.xml:1: text 'words' in <a name='top'>",
    ]
    assert [str(e) for e in source.report.of("suspect")] == [
        "f.xml:2: <xacro:d> in <a name='top'> is left over from xacro and is not read; "
        "name it .xacro, or expand the file with xacro first"
    ]


def test_descriptions_are_short():
    """Shorten enormous names in messages."""
    assert len(describe_element(parse_xml(f'<a name="{"x" * 100_000}"/>'))) < 100
