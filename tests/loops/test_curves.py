"""Pieces of curves: the choice by number against the choice of the pieces themselves."""

from __future__ import annotations

import math

import numpy as np

import kinetree as kt
from kinetree.loops import curves


def test_pieces_by_number_are_the_pieces_themselves():
    """Choose among 40 pieces, and among pairs of them, by scores with ties: the same pieces by both ways."""
    angles = [0.157 * k for k in range(40)]
    first = curves.pieces(kt.Curve(points=tuple((math.cos(a) * 1.3, math.sin(a)) for a in angles)))
    second = curves.pieces(kt.Curve.ellipse(0.3, 0.2))
    rng = np.random.default_rng(7)
    single = [(float(rng.integers(12)), (p,)) for p in first]
    both = [(float(rng.integers(90)), (p, q)) for p in first for q in second]
    for entries in (single, both):
        expected = curves._winner(entries, curves._either)
        for a, b in zip(curves.best(entries), expected, strict=True):
            assert (a.numbers, a.below, a.above, a.at) == (b.numbers, b.below, b.above, b.at)
