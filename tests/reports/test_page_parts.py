"""Charts as SVG: ticks, curves that keep their extremes, and labels as text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from kinetree.reports.page_parts import POINTS, Curve, Mark, chart, ticks
from tolerance import assert_close


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0.0, 1.0, 5, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-3.97, 2.2, 5, [-2.0, 0.0, 2.0]),
        (0.0, 0.00031, 4, [0.0, 0.0001, 0.0002, 0.0003]),
        (7.0, 7.0, 4, [7.0]),
    ],
)
def test_ticks_are_round_numbers_in_the_range(low, high, most, expected):
    """Find multiples of 1, 2 or 5 in ranges of all sizes."""
    assert_close(ticks(low, high, most), expected, 1e-12 * max(map(abs, expected)), "ticks")


def test_a_chart_is_one_element_without_styles():
    """Parse a chart: names are text, and no attribute needs another policy of the page."""
    t = np.linspace(0.0, 2.0, 51)
    evil = "<b>&\"'x"
    text = chart([Curve(t, np.sin(t), evil)], title=evil, ylabel=f"y {evil}", marks=[Mark(1.0, 0.84, evil)])
    root = ElementTree.fromstring(text)
    assert root.tag == "figure"
    assert root.findtext("figcaption") == evil
    assert "style=" not in text and "<b>" not in text and "onclick" not in text


def test_long_curves_keep_their_extremes():
    """Draw a curve of many samples with few points, among them its peak and both ends."""
    t = np.linspace(0.0, 1.0, 20_001)
    y = np.sin(7.0 * t)
    y[12_345] = 9.0
    text = chart([Curve(t, y)], title="t", ylabel="y", yspan=(-2.0, 10.0))
    points = re.search(r'class="curve c0" d="M(.*?)"', text)[1].split("L")
    assert len(points) <= POINTS + 4
    lowest = min(float(p.split()[1]) for p in points)
    expected = 190 - 34 - (9.0 + 2.0) / 12.0 * (190 - 24 - 34)
    assert_close(lowest, expected, 0.06, "height of the peak")


def test_constant_and_single_values_have_room():
    """Draw a constant zero and a single sample without dividing by zero."""
    for t, y in ((np.linspace(0.0, 1.0, 5), np.zeros(5)), (np.zeros(1), np.array([3.0]))):
        text = chart([Curve(t, y)], title="t", ylabel="y", marks=[Mark(0.0, float(y[0]), "here")], filled=True)
        assert "nan" not in text and "inf" not in text
