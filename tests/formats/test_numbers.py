"""Strict parsing of numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetree.errors import ModelError, quote
from kinetree.formats.fields import strict_float, strict_floats


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0.0), ("-1.5e-3", -0.0015), (" +2. ", 2.0), (".5", 0.5), ("1E5\n", 1e5), ("1e-400", 0.0), ("007", 7.0)],
)
def test_decimals_are_read(text, value):
    """Read the spellings of a decimal that files use."""
    assert strict_float(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *[
            "nan",
            "inf",
            "-Infinity",
            "1_000",
            "0x1p3",
            "0x10",
            "\u0661\u0662",
            "\uff11",
            "1,5",
            "1.2.3",
            "e5",
            ".",
            "+-1",
        ],
        *["1e", "1 m", "1\u00a0", "True", "--1", "1" * 401, "1\x00"],
    ],
)
def test_other_spellings_are_refused(text):
    """Refuse texts that are not plain decimals, with the location and a remedy."""
    with pytest.raises(ModelError, match=r"^a\.toml:7: joint 'x': .* is not a number; give a decimal such as -1\.5e-3"):
        strict_float(text, where="joint 'x'", file="a.toml", line=7)


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_no_number_is_refused(text):
    """Report a missing number if the text is blank."""
    with pytest.raises(ModelError, match="^a number is missing; give a decimal"):
        strict_float(text)


@pytest.mark.parametrize("text", ["1e400", "-1e309", "9" * 310])
def test_overflow_is_refused(text):
    """Refuse a number that is too large for a double."""
    with pytest.raises(ModelError, match="is too large for a double; give a number below 1.8e308"):
        strict_float(text)


def test_several_numbers():
    """Split a text at spaces of every sort, and check the count."""
    assert strict_floats(" 1 \t2\n-3e0 ", 3) == (1.0, 2.0, -3.0)
    assert strict_floats("", 0) == ()
    with pytest.raises(ModelError, match="^f: 2 numbers in '1 2'; give 3 decimals with spaces between them"):
        strict_floats("1 2", 3, file="f")
    with pytest.raises(ModelError, match="more than 3 numbers"):
        strict_floats("1 " * 1_000_000, 3)
    with pytest.raises(ModelError, match="'nan' is not a number"):
        strict_floats("1 nan 2", 3)


def test_shown_is_short_ascii():
    """Quote a text for a message in short ASCII."""
    assert quote("\u0661") == r"'\u0661'"
    assert len(quote("x" * 10_000_000)) < 70


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_doubles_come_back(x):
    """Parse the repr of a number to the same bits."""
    assert math.copysign(1, strict_float(repr(x))) == math.copysign(1, x)
    assert strict_float(repr(x)) == x


@given(st.text(max_size=20))
def test_any_text_gives_a_number_or_a_model_error(text):
    """Get a finite number or a ModelError only from any text."""
    try:
        assert math.isfinite(strict_float(text))
    except ModelError as error:
        assert error.remedy
