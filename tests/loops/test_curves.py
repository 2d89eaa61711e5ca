"""Pieces of curves: the first one with the smallest score, by numbers and by code."""

from __future__ import annotations

import math

import numpy as np

import kinetree as kt
from kinetree.compiler.derive.recorded import trace_inputs
from kinetree.compiler.ir.program import Array, Program
from kinetree.loops import curves


def test_the_first_of_the_best_pieces_is_chosen():
    """Choose among 40 pieces, and among pairs of them, by scores with ties: the first of the best."""
    angles = [0.157 * k for k in range(40)]
    first = curves.pieces(kt.Curve(points=tuple((math.cos(a) * 1.3, math.sin(a)) for a in angles)))
    second = curves.pieces(kt.Curve.ellipse(0.3, 0.2))
    rng = np.random.default_rng(7)
    for candidates, most in (([(p,) for p in first], 12), ([(p, q) for p in first for q in second], 90)):
        scores = [float(x) for x in rng.integers(most, size=len(candidates))]
        by_ids = {tuple(map(id, c)): score for c, score in zip(candidates, scores, strict=True)}
        expected = candidates[scores.index(min(scores))]
        found = curves.best(candidates, lambda *c, by_ids=by_ids: by_ids[tuple(map(id, c))])
        assert all(a is b for a, b in zip(found, expected, strict=True))


def test_traced_choices_are_those_of_numbers():
    """Choose the nearest of 40 points by code and by numbers, also between ties."""
    wide = kt.Curve(points=tuple((math.cos(a) * 1.3, math.sin(a)) for a in np.arange(40) * math.pi / 20))
    program = chosen_by(wide)
    for x, y in ((0.3, -0.2), (1.7, 0.4), (0.0, 0.0), (-0.9, 1.1), (0.0, 3.0), (math.nan, 1.0)):
        (found,) = program.interpret(np.array([x, y]))
        piece = curves.chosen(curves.pieces(wide), lambda p, at=(x, y): distance(at, p.start))
        assert found.tolist() == [*piece.numbers, piece.below, piece.above]


def distance(a, b):
    """Return the square of the distance of two points."""
    return (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1])


def chosen_by(curve: kt.Curve) -> Program:
    """Return a Program with the numbers of the piece of a curve that is nearest to a point."""
    inputs = [Array("at", (2,))]
    trace, given = trace_inputs(inputs)
    piece = curves.chosen(curves.pieces(curve), lambda p: distance(given["at"], p.start))
    numbers = [*piece.numbers, piece.below, piece.above]
    return Program.of_trace("chosen", inputs, [Array("numbers", (len(numbers),))], trace, [numbers])
