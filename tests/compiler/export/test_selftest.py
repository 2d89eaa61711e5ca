"""Self-tests: samples with finite results, and tolerances that follow from the arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from kinetree.compiler.export.exportable import SAMPLES, selftest
from kinetree.errors import InputError
from native_program import traced

EPS = float(np.finfo(float).eps)


def test_tolerances_follow_the_growth_of_rounding():
    """Compare the tolerances of a sum and of a difference of nearly equal numbers, in both precisions."""
    program = traced(lambda x, y: [x + y], 2)
    near = traced(lambda x, y: [(x * 1e6 + y) - x * 999999.0], 2)
    x = np.array([[0.37, 0.61], [0.52, 0.23], [0.91, 0.11]])
    plain, cancelling = selftest(program, "float64", {"x": x}), selftest(near, "float64", {"x": x})
    scale = 20 * EPS * np.abs(plain.outputs["y"][:, 0])
    assert (plain.tolerances["y"] <= scale).all() and (plain.tolerances["y"] > 0.2 * scale).all()
    assert (cancelling.tolerances["y"] > 1e5 * scale).all()
    single = selftest(program, "float32", {"x": x})
    assert (single.tolerances["y"] > 1e8 * plain.tolerances["y"]).all()
    np.testing.assert_array_equal(single.inputs["x"], x.astype("float32").astype(float))


def test_the_best_conditioned_samples_are_taken():
    """Give candidates with infinite and with badly conditioned results, and find the others."""
    program = traced(lambda x, y: [1.0 / (x - y)], 2)
    x = np.array([[1.0, 1.0], [0.37, 0.61], [1.0, 1.0 + 1e-9], [0.52, 0.23], [0.91, 0.11]])
    found = selftest(program, "float64", {"x": x})
    assert found.count == SAMPLES == 3
    np.testing.assert_array_equal(found.inputs["x"], x[[1, 3, 4]])
    with pytest.raises(InputError, match="function: no sample state has finite results"):
        selftest(program, "float64", {"x": x[:1]})
