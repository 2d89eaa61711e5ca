"""The bounded XML reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetree.errors import ModelError
from kinetree.formats import xml
from kinetree.formats.xml import Element, parse_xml, read_bytes, read_xml


def test_elements_carry_lines_and_text():
    """Keep tags, attributes, children, text and line numbers."""
    root = parse_xml('<?xml version="1.0"?>\n<a x="1">\n <!-- no -->\n <b y="&lt;2"/>\n <b>t\n<c/>u</b></a>')
    assert (root.tag, root.attributes, root.line, root.text) == ("a", {"x": "1"}, 2, "")
    first, second = root.all("b")
    assert (first.attributes, first.line) == ({"y": "<2"}, 4)
    assert (second.text, second.line, second.children) == ("t\nu", 5, [Element("c", {}, [], 6)])


def test_namespaces_are_tolerated():
    """Keep prefixes of tags, declared or not, and drop the declarations."""
    root = parse_xml('<robot xmlns:xacro="http://x" xmlns="y" name="r"><xacro:if p:v="1"/></robot>')
    assert root.attributes == {"name": "r"}
    assert root.children == [Element("xacro:if", {"p:v": "1"}, [], 1)]


@pytest.mark.parametrize("data", [b"<a/>", b"\xef\xbb\xbf<a/>", "<a/>".encode("utf-16"), '<?xml encoding="x"?><a/>'])
def test_encodings(data):
    """Read UTF-8 and UTF-16 bytes; read a string as text, whatever encoding it declares."""
    if isinstance(data, str):
        data = data.replace("encoding", 'version="1.0" encoding')
    assert parse_xml(data).tag == "a"


@pytest.mark.parametrize(
    ("data", "line", "what"),
    [
        (b"", 1, "is not well-formed XML: no element found"),
        (b"<a>\n<b>\n</a>", 3, "mismatched tag"),
        (b"<a>\n<b x='1' x='2'/></a>", 2, "duplicate attribute"),
        (b"<a/>\n<b/>", 2, "junk after document element"),
        (b"\x00\x01", 1, "not well-formed"),
        (b"<a>\xff</a>", 1, "not well-formed"),
        (b"<a>&nothing;</a>", 1, "undefined entity"),
        (b"<a", 1, "unclosed token"),
        (b'<?xml version="1.0" encoding="utf-7"?><a/>', 1, "its encoding cannot be read"),
        (b'<?xml version="1.0" encoding="no-such"?><a/>', 1, "unknown encoding"),
        (b'<?xml version="1.0"?>\n<!DOCTYPE a><a/>', 2, "declares a document type or an entity; remove the <!DOCTYPE"),
        (b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', 1, "declares a document type"),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', 1, "declares a document type"),
        (b"<a>" * 201, 1, "nested more than 200 levels deep"),
        (b"<a><b " + b" ".join(b"a%d=''" % i for i in range(1001)) + b"/></a>", 1, "the element 'b' is too large"),
        (b"<a x='" + b"y" * 1_000_001 + b"'/>", 1, "the attribute 'x' of <a> has 1000001 characters"),
        (b"<a>" + b"y" * 1_000_001 + b"</a>", 1, "the text of <a> is too long"),
        (b"<a x='" + b"y" * 10_000_000 + b"'/>", 1, "a tag or comment is longer than 2097152 bytes"),
        (b"<!--" + b"y" * 10_000_000, 1, "a tag or comment is longer"),
        (b"<" + b"y" * 1001 + b"/>", 1, "is too large"),
    ],
)
def test_bad_bytes_are_refused(data, line, what):
    """Refuse malformed, dangerous or too large texts, with file, line and remedy."""
    with pytest.raises(ModelError) as caught:
        parse_xml(data, file="m.xml")
    assert what in str(caught.value)
    assert str(caught.value).startswith(f"m.xml:{line}: ")
    assert caught.value.remedy


def test_too_many_elements(monkeypatch):
    """Refuse more elements than the bound."""
    monkeypatch.setattr(xml, "MAX_ELEMENTS", 10)
    assert len(parse_xml("<a>" + "<b/>" * 9 + "</a>").children) == 9
    with pytest.raises(ModelError, match="has more than 10 elements"):
        parse_xml("<a>" + "<b/>" * 10 + "</a>")


def test_too_large(monkeypatch, tmp_path):
    """Refuse a file and a text that are larger than the bound."""
    monkeypatch.setattr(xml, "MAX_BYTES", 10)
    with pytest.raises(ModelError, match="is larger than 10 bytes"):
        parse_xml("<a>12345678</a>")
    path = tmp_path / "a.xml"
    path.write_bytes(b"<a/>" + b" " * 100)
    with pytest.raises(ModelError, match="a.xml: is larger than 20 bytes; split"):
        read_bytes(path, most=20)


def test_strings_that_are_not_text():
    """Refuse a string with half of a surrogate pair."""
    with pytest.raises(ModelError, match="is not text: surrogates not allowed"):
        parse_xml("<a>\ud800</a>")


def test_paths_that_are_no_files(tmp_path):
    """Refuse folders, devices, missing files and impossible names with the reason of the operating system."""
    for path, what in [
        (tmp_path, "is not a regular file"),
        ("/dev/zero", "is not a regular file"),
        (tmp_path / "none.xml", "cannot be read: No such file"),
        ("a\x00b", "cannot be read: embedded null"),
        ("x" * 5000, "cannot be read: File name too long"),
    ]:
        with pytest.raises(ModelError, match=what):
            read_xml(path)
    (tmp_path / "a.xml").write_text("<a/>")
    assert read_xml(tmp_path / "a.xml").tag == "a"


def test_text_in_many_pieces_is_joined_at_once():
    """Join text between children in linear time."""
    assert parse_xml("<a>" + "t<b/>" * 100_000 + "</a>").text == "t" * 100_000


@given(st.binary(max_size=300) | st.text(max_size=100))
def test_any_bytes_give_an_element_or_a_model_error(data):
    """Get an element or a ModelError only from any bytes."""
    try:
        assert parse_xml(data).tag
    except ModelError as error:
        assert error.remedy
