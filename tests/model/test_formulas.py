"""Formulas as text: structure from Python's parser, tokens and errors from Kinetree."""

from __future__ import annotations

import pytest

from kinetree import ModelError
from kinetree.model import Expression, parse


@pytest.mark.parametrize("name", ["lambda", "if", "None", "t1", "sin", "_"])
def test_words_of_python_are_names_of_parameters(name):
    """Parse a Python keyword, or a function without parentheses, as the name of a parameter."""
    made = parse(f"2*{name} - 1")
    assert isinstance(made, Expression)
    assert made.value({name: 0.7}) == 2 * 0.7 - 1


@pytest.mark.parametrize(
    "text", ["a if b else c", "a, b", "a = 1", "a < b", "f(a)", "2(3)", "[a]", "sin(a, b)", "1j", "~a"]
)
def test_what_else_python_reads_is_refused(text):
    """Refuse all other constructions of Python."""
    with pytest.raises(ModelError, match=r"unexpected .* in the expression .*; use numbers, parameter names"):
        parse(text)


def test_many_signs_are_no_depth():
    """Parse hundreds of signs in a row, and a number too large for a double."""
    assert parse("-" * 701 + "0.3") == -0.3
    assert parse("1e400") == float("inf")
    assert parse("007.50") == 7.5
    with pytest.raises(ModelError, match=r"an exponent is not a number in the expression '2\^3\^2'"):
        parse("2^3^2")
