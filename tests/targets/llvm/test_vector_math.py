"""Sine and cosine of native code against long doubles, and the C library's functions lane by lane."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import everyday
from kinetree.algebra import scalars
from kinetree.targets.llvm.vector_math import LIMIT
from native_program import gufunc, traced
from tolerance import assert_close

RANGES = (1e-300, 1e-8, 0.5, 1.0, 3.2, 100.0, 1e4, 1e6, 0.99e8, 1.01e8, 1e10, 1e15, 1e18, 1e300)


def angles(size: float, count: int = 100_000) -> np.ndarray:
    """Return random angles up to a limit, with the limit and angles nearest to multiples of pi/2."""
    x = np.random.default_rng(1).uniform(-size, size, count)
    k = np.rint(x[: count // 10] / (math.pi / 2))
    x[: count // 10] = k * (math.pi / 2)
    x[0] = size
    return x


@cache
def compiled(form: str, dtype: str):
    """Return native sine and cosine, of a bare angle or of a computed value."""

    def bare(x):
        return [scalars.sin(x), scalars.cos(x)]

    def guarded(x):
        return [scalars.sin(x), scalars.cos(x), x]  # a result needs x itself, so that the kernel may not turn it

    return gufunc(traced({"bare": bare, "guarded": guarded}[form]), dtype)


@pytest.mark.parametrize("form", ["bare", "guarded"])
@pytest.mark.parametrize("size", everyday.some(RANGES))
def test_sines_are_good_to_an_ulp(size, form):
    """Compare with sines of long doubles, for angles from tiny to huge."""
    x = angles(size)
    out = compiled(form, "float64")(x[:, None])
    wide = x.astype(np.longdouble)
    for k, exact in enumerate((np.sin(wide), np.cos(wide))):
        # Up to LIMIT: 1.27e-16. Beyond, the angle within a turn is rounded once: 2.9e-16.
        bound = 1.4e-16 if size <= LIMIT[64] else 4.5e-16
        residual = np.abs(out[:, k].astype(np.longdouble) - exact).astype(float)
        assert_close(residual, np.zeros(len(x)), bound, f"{'sc'[k]} up to {size:g}")
    assert np.abs(out[:, :2]).max() <= 1.0


@pytest.mark.parametrize("form", ["bare", "guarded"])
@pytest.mark.parametrize("size", (1e-30, 1.0, 100.0, 0.99e4, 1.01e4, 1e8, 1e30))
def test_sines_in_single_precision(size, form):
    """Compare with sines of doubles."""
    x = angles(size, 20_000).astype(np.float32)
    out = compiled(form, "float32")(x[:, None])
    for k, exact in enumerate((np.sin(x.astype(float)), np.cos(x.astype(float)))):
        bound = 8e-8 if size <= LIMIT[32] else 2.4e-7  # 6.3e-8; 1.5e-7
        assert_close(np.abs(out[:, k].astype(float) - exact), np.zeros(len(x)), bound, f"{'sc'[k]} up to {size:g}")


def test_small_angles_keep_their_relative_accuracy():
    """Find sin x = x for tiny x, and zero for zero, with its sign."""
    x = np.array([5e-324, 1e-300, 1e-160, 1e-20, -1e-9])
    assert np.array_equal(compiled("bare", "float64")(x[:, None])[:, 0], x)
    zero = compiled("bare", "float64")(np.array([[0.0], [-0.0]]))[:, 0]
    assert np.array_equal(zero, [0.0, 0.0])


@pytest.mark.parametrize("form", ["bare", "guarded"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_angle_gives_nan_and_nothing_else(bad, dtype, form):
    """Put NaN or an infinity into each lane and find NaN only there, with the bits of the others unchanged."""
    x = np.linspace(-30, 30, 35, dtype=dtype)
    function = compiled(form, dtype)
    expected = function(x[:, None])
    for lane in range(len(x)):
        y = x.copy()
        y[lane] = bad
        with np.errstate(invalid="ignore"):
            out = function(y[:, None])
        assert np.isnan(out[lane, :2]).all()
        assert np.array_equal(np.delete(out, lane, 0), np.delete(expected, lane, 0)), f"neighbours of lane {lane}"


@pytest.mark.parametrize("form", ["bare", "guarded"])
def test_a_huge_angle_leaves_its_neighbours_their_bits(form):
    """Put an angle beyond the limit into one lane and find the bits of the others unchanged."""
    x = np.linspace(-30, 30, 64)
    expected = compiled(form, "float64")(x[:, None])
    y = x.copy()
    y[5] = 1e12
    out = compiled(form, "float64")(y[:, None])
    assert np.array_equal(np.delete(out, 5, 0), np.delete(expected, 5, 0))


FUNCTIONS = {
    "asin": (math.asin, lambda x: scalars.asin(x * 0.3)),
    "acos": (math.acos, lambda x: scalars.acos(x * 0.3)),
    "atan": (math.atan, lambda x: scalars.atan(x)),
    "tan": (math.tan, lambda x: scalars.tan(x)),
    "exp": (math.exp, lambda x: scalars.exp(x)),
    "log": (math.log, lambda x: scalars.log(x * x + 0.1)),
    "sqrt": (math.sqrt, lambda x: scalars.sqrt(x * x + 0.1)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_c_library(name, dtype):
    """Compare the other functions with the interpreter's."""
    program = traced(lambda x: [FUNCTIONS[name][1](x)])
    x = np.random.default_rng(2).normal(size=(1000, 1)).clip(-3, 3).astype(dtype)
    expected = program.interpret(x)[0]
    size = np.maximum(np.abs(expected), 1.0)
    bound = 1e-15 if dtype == "float64" else 1e-6  # 2.2e-16, 3e-7 (the argument's rounding)
    if name == "tan":
        bound *= 1e3  # its slope at the largest argument is some 1e3
    assert_close(gufunc(program, dtype)(x) / size, expected / size, bound, name)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_selection_and_atan2(dtype):
    """Choose by comparison, and find the angle of points in all quadrants."""
    program = traced(lambda x, y: [scalars.where(x < y, x, y), scalars.where(x > y, 1.0, -1.0), scalars.atan2(x, y)], 2)
    x = np.random.default_rng(3).normal(size=(1000, 2)).astype(dtype)
    x[:4] = [[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [2.0, 2.0]]
    out = gufunc(program, dtype)(x)
    assert np.array_equal(out[:, 0], x.min(axis=1))
    assert np.array_equal(out[:, 1], np.where(x[:, 0] > x[:, 1], 1.0, -1.0))
    assert_close(out[:, 2], np.arctan2(x[:, 0].astype(float), x[:, 1].astype(float)), 2 * np.finfo(dtype).eps, "atan2")
