"""Tables with named blocks: their text, their splitting, and the other two formats."""

from __future__ import annotations

import numpy as np

from kinetree.formulations import tables

ROWS = [("a", "x"), ("a", "y"), ("b", "x")]


def test_zeros_and_noise_are_dots():
    """Show rounding relative to the largest entry as zero, and small numbers in full."""
    assert tables.entries(np.array([[1.0, 1e-15], [0.0, -2.5e-7]])) == [["1", "."], [".", "-2.5e-07"]]
    assert tables.entries(np.zeros((1, 2))) == [[".", "."]]


def test_blocks_are_named_once():
    """Read a block's name only at its first row and over its first column."""
    text = tables.text(np.arange(9.0).reshape(3, 3), ROWS, ROWS, heading="N: numbers")
    assert text.splitlines() == [
        "N: numbers",
        "     a     b",
        "     x  y  x",
        "a x  .  1  2",
        "  y  3  4  5",
        "b x  6  7  8",
    ]


def test_wide_tables_are_cut_between_blocks():
    """Allow less width than the table needs and find each block of columns whole, with its rows beside it."""
    text = tables.text(np.ones((3, 3)), ROWS, ROWS, width=10)
    first = ["     a", "     x  y", "a x  1  1", "  y  1  1", "b x  1  1"]
    assert text.splitlines() == [*first, "     b", "     x", "a x  1", "  y  1", "b x  1"]


def test_long_tables_are_counted():
    """Print 100 rows and columns and read how many are not shown."""
    labels = [(f"n{k}", "") for k in range(100)]
    text = tables.text(np.eye(100), labels, labels)
    assert text.endswith("... and 40 more rows and 40 more columns")
    assert "n59" in text and "n60" not in text


def test_html_and_latex_name_and_escape():
    """Find names escaped, blocks divided, and powers of ten written out."""
    matrix = np.array([[1e-5, 0.0], [2.0, 3.0]])
    labels = [("<arm>", ""), ("hand_1", "2")]
    html = tables.html(matrix, labels, labels, heading="I & C")
    assert "&lt;arm&gt;" in html and "<caption>I &amp; C</caption>" in html and html.count("<td") == 4
    latex = tables.latex(matrix, labels, labels)
    assert r"1\cdot 10^{-5} & \cdot \\" in latex and r"\text{hand\_1}_{2}" in latex
    assert latex.startswith(r"\begin{array}{r|r|r}") and latex.count(r"\hline") == 2
