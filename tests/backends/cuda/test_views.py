"""Strides of arrays on devices, against NumPy's own views."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from kinetree.backends.cuda.libraries import Layout, View, layout, one_stride, overlaps
from kinetree.compiler.ir.program import Array


def viewed(x: np.ndarray) -> View:
    """Return the view of a NumPy array."""
    return View(x.ctypes.data, x.shape, tuple(s // x.itemsize for s in x.strides), x.dtype.name, 0)


def gathered(memory: np.ndarray, at: Layout, samples: int, size: int) -> np.ndarray:
    """Return the numbers that a kernel reads."""
    start = (at.pointer - memory.ctypes.data) // memory.itemsize
    flat = memory.reshape(-1)
    return np.array([[flat[start + i * at.sample + k * at.entry] for k in range(size)] for i in range(samples)])


@st.composite
def views_of_memory(draw) -> tuple[np.ndarray, np.ndarray]:
    """Return memory and a view of it: axes transposed, sliced, reversed, of length one."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    memory = np.arange(float(np.prod(shape))).reshape(shape)
    view = memory.transpose(draw(st.permutations(range(len(shape)))))
    for axis in range(view.ndim):
        step = draw(st.sampled_from([1, 1, 2, -1]))
        view = view[(slice(None),) * axis + (slice(None, None, step),)]
    return memory, view


@hypothesis.given(views_of_memory(), st.integers(0, 2), st.integers(0, 2), st.integers(1, 3))
def test_layouts_of_broadcast_views(case, core, more, repeat):
    """Read the numbers that NumPy reads, or report that two strides do not suffice."""
    memory, x = case
    core = min(core, x.ndim)
    array = Array("x", x.shape[x.ndim - core :])
    own = x.shape[: x.ndim - core]
    lead = (2,) * more + tuple(repeat if n == 1 else n for n in own)
    expected = np.broadcast_to(x, lead + array.shape)
    samples, size = int(np.prod(lead)), array.size
    at = layout(viewed(x), array, lead)
    wide = viewed(expected)
    two = one_stride(lead, wide.strides[: len(lead)]), one_stride(array.shape, wide.strides[len(lead) :])
    if None in two:
        assert at is None
    else:
        assert at is not None
        np.testing.assert_array_equal(gathered(memory, at, samples, size), expected.reshape(samples, size))


def test_dense_arrays_have_two_strides():
    """Return the strides of row-major and of column-major arrays, and none for a transposed matrix."""
    rows = np.zeros((5, 7, 6))
    assert layout(viewed(rows), Array("q", (6,)), (5, 7))[1:] == (6, 1)
    assert layout(viewed(np.zeros((6, 35)).T), Array("q", (6,)), (35,))[1:] == (1, 35)
    assert layout(viewed(np.zeros((5, 3, 4)).swapaxes(1, 2)), Array("I", (4, 3)), (5,)) is None
    assert layout(viewed(rows.swapaxes(0, 1)), Array("q", (6,)), (7, 5)) is None


@pytest.mark.parametrize(
    ("out", "other", "expected"),
    [
        ((0, 6, 1, 6), (0, 6, 1, 6), True),
        ((0, 6, 1, 6), (8 * 60, 6, 1, 6), False),
        ((0, 6, 1, 6), (8 * 59, 6, 1, 6), True),
        ((0, 12, 1, 6), (8 * 6, 12, 1, 6), False),
        ((8 * 6, 12, 1, 6), (0, 12, 1, 6), False),
        ((8 * 5, 12, 1, 6), (0, 12, 1, 6), True),
        ((0, 12, 1, 7), (8 * 6, 12, 1, 6), True),
        ((0, 1, 100, 6), (8 * 300, 0, 1, 6), True),
        ((0, 6, 1, 6), (8 * 60, 0, 1, 6), False),
        ((0, 6, 1, 6), (0, 6, 1, 0), False),
        ((8 * 54, -6, 1, 6), (0, 6, 1, 6), True),
    ],
)
def test_overlaps(out, other, expected):
    """Recognize arrays with common numbers, and columns of one array that have none."""
    assert overlaps(Layout(*out[:3]), out[3], Layout(*other[:3]), other[3], 10, 8) is expected
