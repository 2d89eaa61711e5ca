"""Exact sums: equal if and only if their terms are."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from kinetree.analysis import fourier
from kinetree.analysis.fourier import Sum, exact
from kinetree.errors import InputError

x, y, m = Sum.symbol("x"), Sum.symbol("y"), Sum.symbol("m")
ONE = Sum.number(1)


def test_trigonometry_comes_out_by_itself():
    """Find sin^2 + cos^2 = 1, sums and multiples of angles, and odd and even functions."""
    assert (x.sin() * x.sin() + x.cos() * x.cos()).terms == ONE.terms
    assert ((x + y).sin() - x.sin() * y.cos() - x.cos() * y.sin()).terms == {}
    assert ((x + x).cos() - ONE + x.sin() * x.sin() + x.sin() * x.sin()).terms == {}
    assert (x.sin() + (-x).sin()).terms == {}
    assert Sum({}).cos().terms == ONE.terms and Sum({}).sin().terms == {}


def test_division_by_a_product():
    """Divide by a product, exactly, and refuse to divide by a sum."""
    assert ((m * x * x + m * y) / m).terms == (x * x + y).terms
    assert (ONE / m * m).terms == ONE.terms
    with pytest.raises(InputError, match="a quotient by a sum of terms has no short form"):
        ONE / (x + y)


def test_harmonics_are_real():
    """Read cosines and sines of each angle with real coefficients."""
    found = list((Sum.number(3) + m * (x - y).cos() - y * x.sin()).harmonics())
    assert found == [
        ({}, "cos", {(): Fraction(3)}),
        ({"x": 1}, "sin", {(("y", 1),): Fraction(-1)}),
        ({"x": -1, "y": 1}, "cos", {(("m", 1),): Fraction(1)}),
    ]


def test_products_keep_one_square():
    """Write cos 2x in cosines, and in sines."""
    double = (x + x).cos()
    assert double.products("cos").terms == {(("cos x", 2),): (2, 0), (): (-1, 0)}
    assert double.products("sin").terms == {(("sin x", 2),): (-2, 0), (): (1, 0)}
    assert (x + y).sin().products("cos").terms == {
        (("cos x", 1), ("sin y", 1)): (1, 0),
        (("cos y", 1), ("sin x", 1)): (1, 0),
    }


def test_angles_must_be_whole():
    """Refuse the sine of half an angle and of a product."""
    for angle in (x / Sum.number(2), x * y):
        with pytest.raises(InputError, match="not a sum of integer multiples"):
            angle.sin()


def test_floats_become_what_they_meant():
    """Convert floats to short fractions, roots, or their decimals."""
    assert exact(0.1).terms == {(): (Fraction(1, 10), 0)}
    assert exact(1 / 3).terms == {(): (Fraction(1, 3), 0)}
    assert exact(0.0).terms == {}
    assert exact(0.123456789).terms == {(): (Fraction(123456789, 10**9), 0)}
    seen = []
    exact(-math.sqrt(0.5), lambda square, negative: seen.append((square, negative)) or ONE)
    assert seen == [(Fraction(1, 2), True)]


def test_too_many_terms_stop(monkeypatch):
    """Grow a sum beyond its limit and read to print a smaller mechanism."""
    monkeypatch.setattr(fourier, "TERMS", 3)
    with pytest.raises(InputError, match="more than 3 terms; print those of a smaller mechanism"):
        _ = (ONE + x) * (ONE + y)
