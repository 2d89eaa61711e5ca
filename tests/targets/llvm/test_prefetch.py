"""Prefetch by the body: one request per cache line, spread over the operations, without effect on the numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kinetree.targets import target
from kinetree.targets.llvm import cache_lines
from native_program import gufunc, traced

LONG = 37
"""Entries of a row: more than four vectors hold."""


def powers(count: int, exponent: int):
    """Return a Program of rows with some operations per entry: x[k]^exponent - x[k + 1]."""

    def entry(x, k):
        y = x[k]
        for _ in range(exponent - 1):
            y = y * x[k]
        return y - x[(k + 1) % count]

    return traced(lambda *x: [entry(x, k) for k in range(count)], count)


def requested(code: str, write: int) -> list[int]:
    """Return the lines of the code with requests."""
    found = re.finditer(rf"call void @llvm.prefetch.p0\(ptr %\w+, i32 {write},", code)
    return [code.count("\n", 0, m.start()) for m in found]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_requests_are_spread_over_the_body(dtype):
    """Find one request per cache line of a block, with operations between each two."""
    code = target().emit(powers(LONG, 30), dtype)
    body = code[: code.index("\n}")]
    inputs, outputs = requested(body, 0), requested(body, 1)
    assert len(inputs) == len(outputs) == LONG
    places = np.array(sorted(inputs + outputs))
    assert np.diff(places).min() > cache_lines.SPACING
    assert requested(code[len(body) :], 0) == requested(code[len(body) :], 1) == []


def test_long_rows_and_short_bodies_are_not_prefetched():
    """Find no request for rows of matrices, nor in a body with few operations per line."""
    assert requested(target().emit(powers(LONG, 3), "float64"), 0) == []
    assert requested(target().emit(powers(cache_lines.LONGEST + 1, 30), "float64"), 0) == []


def test_prefetch_keeps_all_bits(monkeypatch):
    """Run batches of any size and layout with prefetch, and get the same bits as without it."""
    program = powers(LONG, 30)
    x = np.random.default_rng(5).normal(size=(50, LONG + 3))
    f = gufunc(program)
    monkeypatch.setattr(cache_lines, "SPACING", 2**62)
    assert requested(target().emit(program, "float64"), 0) == []
    expected = gufunc(program)(x[:, :LONG])
    for n in range(51):
        assert np.array_equal(f(x[:n, :LONG]), expected[:n])
        assert np.array_equal(f(x[:n, :LONG].copy()), expected[:n])
        assert np.array_equal(f(x[:n, :LONG][::-1]), expected[:n][::-1])
        assert np.array_equal(f(np.asfortranarray(x[:n, :LONG])), expected[:n])
