"""Functions on floats, arrays and traced values: the values of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from kinetree.simulation.acting import smooth
from native_program import gufunc, traced
from tolerance import assert_close

X = np.array([-3.0, -1.0, -0.7, -1e-3, -1e-5, -0.9e-5, -1e-9, 0.0, 1e-9, 0.9e-5, 1e-5, 1e-3, 0.4, 0.9, 1.0, 2.5, 6.0])
FUNCTIONS = {
    "absolute": (smooth.absolute, np.abs),
    "expm1": (smooth.expm1, np.expm1),
    "sinh": (smooth.sinh, np.sinh),
    "cosh": (smooth.cosh, np.cosh),
    "tanh": (smooth.tanh, np.tanh),
    "sin": (smooth.sin, np.sin),
    "atan": (smooth.atan, np.arctan),
    "exp": (smooth.exp, np.exp),
    "clip": (lambda x: smooth.clip(x, -0.5, 1.0), lambda x: np.clip(x, -0.5, 1.0)),
    "maximum": (lambda x: smooth.maximum(x, 0.3), lambda x: np.maximum(x, 0.3)),
    "minimum": (lambda x: smooth.minimum(0.3, x), lambda x: np.minimum(x, 0.3)),
    "atan2": (lambda x: smooth.atan2(x, -0.4), lambda x: np.arctan2(x, -0.4)),
    "log1p": (lambda x: smooth.log1p(smooth.clip(x, -0.9, 9.0)), lambda x: np.log1p(np.clip(x, -0.9, 9.0))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree_with_numpy(name):
    """Compare relative to each value, so that small ones count, on floats, arrays, traces and native code."""
    function, plain = FUNCTIONS[name]
    expected = plain(X)
    scale = np.where(expected == 0.0, 1.0, np.abs(expected))
    program = traced(lambda x: [function(x)])
    found = {
        "floats": np.array([function(float(x)) for x in X]),
        "arrays": function(X),
        "traced": program.interpret(X[:, None])[0][:, 0],
        "native": gufunc(program)(X[:, None])[:, 0],
    }
    for label, values in found.items():
        assert_close((values - expected) / scale, np.zeros(len(X)), 1e-15, label)  # 4.5e-16


def test_tanh_does_not_overflow():
    """Find one for large arguments, without a warning."""
    assert smooth.tanh(1e4) == 1.0 and smooth.tanh(-1e4) == -1.0
    assert smooth.tanh(np.array([-1e300, 1e300])).tolist() == [-1.0, 1.0]


def test_smooth_sign():
    """Find zero at zero, 0.71 at the width, and nearly one for large arguments."""
    assert smooth.smooth_sign(0.0, 0.1) == 0.0
    assert_close(smooth.smooth_sign(np.array([-0.1, 0.1, 1e3]), 0.1), [-(0.5**0.5), 0.5**0.5, 1.0], 1e-8)


def test_soft_ramp_belongs_together():
    """Differentiate the integral and the ramp by complex steps, and find their formulas."""
    x, w, step = np.linspace(-0.5, 1.5, 41), 0.4, 1e-30
    H, h, slope = smooth.soft_ramp(x + 1j * step, w)
    assert_close(np.imag(H) / step, np.real(h), 1e-15, "ramp")
    assert_close(np.imag(h) / step, np.real(slope), 1e-15, "slope")
    expected = np.where(x < 0, 0.0, np.where(x < w, x * x / (2 * w), x - w / 2))
    assert_close(np.real(h), expected, 1e-15, "formula")


def test_where_folds_equal_numbers():
    """Record no selection between two equal numbers."""
    assert len(traced(lambda x: [smooth.where(x < 1.0, 2.0, 2.0)]).ops) == 1
