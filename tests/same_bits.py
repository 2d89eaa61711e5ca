"""Random arguments of compiled functions, and results that must have the same bits."""

from __future__ import annotations

import numpy as np

from kinetree.runtime.function import Function


def arguments(f: Function, batch: tuple[int, ...]) -> list[np.ndarray]:
    """Return random arrays for the inputs of a function."""
    rng = np.random.default_rng(len(batch))
    return [rng.normal(size=(*batch, *a.shape)).astype(f.request.dtype) for a in f.inputs]


def assert_same_bits(found, wanted) -> None:
    """Fail unless all arrays have the same shapes and bits."""
    for a, b in zip(_each(found), _each(wanted), strict=True):
        assert np.shape(a) == np.shape(b) and a.dtype == b.dtype
        assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def _each(results) -> tuple:
    """Return one output, or several, as a tuple."""
    return results if isinstance(results, tuple) else (results,)
