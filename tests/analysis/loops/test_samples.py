"""Tests of src/kinetree/analysis/loops/samples.py: arrays of a leading shape, read in pieces."""

from __future__ import annotations

import numpy as np

from kinetree.analysis.loops import samples as module
from kinetree.analysis.loops.samples import Samples


def test_pieces_are_rows_of_broadcast_arrays(monkeypatch):
    """Read arrays of three shapes in pieces, and find the rows of the arrays broadcast against each other."""
    monkeypatch.setattr(module, "CHUNK", 4)
    rng = np.random.default_rng(0)
    q, parameters, held = rng.normal(size=(5, 1, 3)), rng.normal(size=(2,)), rng.normal(size=(3,))
    samples = Samples.of({"q": q, "parameters": parameters, "none": None}, {"hold": {(1,): held[:, None]}})
    assert samples.lead == (5, 3) and samples.steps == 1
    whole = np.broadcast_to(q, (5, 3, 3)).copy()
    rows = [piece.array("q") for piece in samples.pieces()]
    assert [len(x) for x in rows] == [4, 4, 4, 3]
    assert (np.concatenate(rows) == whole.reshape(15, 3)).all()
    placed = np.concatenate([piece.placed("hold", piece.array("q")) for piece in samples.pieces()])
    whole[..., 1] = held
    assert (placed == whole.reshape(15, 3)).all()
    piece = next(samples.pieces())
    assert piece.array("none") is None and (piece.array("parameters") == parameters).all()


def test_motions_are_read_instant_by_instant():
    """Read a motion that is the same for all runs as views of one row, and measure its steps."""
    held, values = np.array([0.1, 0.3, 0.7, 0.6]), np.arange(10.0).reshape(5, 1, 2)
    samples = Samples.of({"parameters": values}, {"hold": {(0,): held[:, None]}}, motion=True)
    assert samples.runs == (5,) and samples.steps == 4
    (piece,) = samples.pieces()
    zeros = np.broadcast_to(0.0, (5, 2))
    row = piece.placed("hold", zeros, 2)
    assert row.strides[0] == 0 and row[0].tolist() == [0.7, 0.0]
    assert (piece.array("parameters", 3) == values[:, 0]).all()
    assert np.allclose(samples.strides("hold", np.array([2.0, 1.0])), [0.0, 0.1, 0.2, 0.05])
