"""Elementary functions without a C library, in units in the last place of the exact result."""

from __future__ import annotations

import ctypes
from functools import cache

import mpmath
import numpy as np
import pytest

from kinetree.algebra import scalars
from kinetree.targets.llvm import Loaded, compile_assembly
from kinetree.targets.llvm.scalar import OwnFunctions, scalar_function
from native_program import traced
from tolerance import assert_close

NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
SPECIAL = (0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -2.0, 5e-324, 1e-310, 1.7e308)


@cache
def compiled(name: str, dtype: str = "float64"):
    """Return a function of a row of arguments as a function of arrays [samples, arguments]."""
    count = 2 if name == "atan2" else 1
    program = traced(lambda *x: [getattr(scalars, name)(*x)], count)
    loaded = Loaded(compile_assembly(scalar_function(program, dtype, "f", OwnFunctions())))
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(loaded.find("f"))

    def run(x: np.ndarray) -> np.ndarray:
        x = np.ascontiguousarray(np.reshape(x, (len(x), count)), dtype)
        out = np.empty(len(x), dtype)
        for k in range(len(x)):
            call(x[k:].ctypes.data, out[k:].ctypes.data)
        return out

    run.code = loaded  # type: ignore[attr-defined]
    return run


def exact(name: str, x: np.ndarray) -> list:
    """Return a function of doubles to 60 digits."""
    with mpmath.workdps(60):
        return [getattr(mpmath, name)(*map(mpmath.mpf, np.atleast_1d(a).tolist())) for a in x]


def units(found: np.ndarray, expected: list) -> np.ndarray:
    """Return the errors in units in the last place."""
    with mpmath.workdps(60):
        return np.array(
            [
                float(abs(mpmath.mpf(float(a)) - e) / float(np.spacing(abs(float(e)))))
                for a, e in zip(found, expected, strict=True)
            ]
        )


def domain(name: str) -> np.ndarray:
    """Return random arguments of a function, of ordinary and of extreme size."""
    rng, n = np.random.default_rng(5), 400
    if name == "atan2":
        far = 10 ** rng.uniform(-150, 150, (n, 2)) * rng.choice([-1, 1], (n, 2))
        return np.concatenate([rng.normal(size=(n, 2)), far])
    wide = {
        "exp": [rng.uniform(-708, 709, n), rng.normal(size=n) * 1e-3],
        "log": [10 ** rng.uniform(-320, 308, n), rng.uniform(0.5, 2, n)],
        "asin": [rng.uniform(-1, 1, n), 1 - 10 ** rng.uniform(-16, -1, n)],
        "atan": [rng.normal(size=n), 10 ** rng.uniform(-300, 300, n)],
    }
    wide["acos"], wide["tan"] = wide["asin"], [rng.uniform(-1.5, 1.5, n), rng.uniform(-9e7, 9e7, n)]
    wide["sin"] = wide["cos"] = wide["tan"]
    return np.concatenate(wide[name])


@pytest.mark.parametrize(
    ("name", "bound"),
    # 1.0, 1.3, 2.4, 0.9, 0.7, 1.9, 1.7, 2.0, 2.0
    [
        ("sin", 1.5), ("cos", 1.5), ("tan", 3.0), ("exp", 1.2), ("log", 1.2), ("asin", 2.5), ("acos", 2.5),
        ("atan", 2.5), ("atan2", 2.5),
    ],
)  # fmt: skip
def test_functions_are_good_to_some_units(name, bound):
    """Compare with 60 digits."""
    x = domain(name)
    error = units(compiled(name)(x), exact(name, x))
    assert_close(error, np.zeros(len(x)), bound, name)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_angles(name):
    """Reduce angles up to the largest double, and the double that is nearest to a multiple of pi/2."""
    rng = np.random.default_rng(6)
    x = np.concatenate([rng.uniform(1e8, 1e9, 100), -(10 ** rng.uniform(8, 308, 300)), [6381956970095103 * 2.0**797]])
    expected = exact(name, x)
    scale = np.maximum(1.0, np.array([float(e) ** 2 + 1 for e in expected]) if name == "tan" else 1.0)
    difference = np.array([float(mpmath.mpf(float(a)) - e) for a, e in zip(compiled(name)(x), expected, strict=True)])
    # 2.9e-16: the angle within a revolution is rounded once.
    assert_close(difference / scale, np.zeros(len(x)), 4.5e-16, name)


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "exp", "log", "asin", "acos", "atan"])
def test_special_arguments(name):
    """Return what NumPy returns for zeros, infinities, NaN, and arguments without a result."""
    x = np.array(SPECIAL)
    with np.errstate(all="ignore"):
        expected = getattr(np, NUMPY.get(name, name))(x)
    found = compiled(name)(x)
    assert np.array_equal(np.isfinite(found), np.isfinite(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0)


def test_the_angle_of_special_points():
    """Return what NumPy returns for points on the axes, at the origin and at infinity, with signs of zeros."""
    v = (*SPECIAL, -0.0)
    x = np.array([(a, b) for a in v for b in v])
    expected = np.arctan2(x[:, 0], x[:, 1])
    found = compiled("atan2")(x)
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=0)
    number = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found)[number], np.signbit(expected)[number])


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "exp", "log", "asin", "acos", "atan", "atan2"])
def test_functions_in_single_precision(name):
    """Compare with NumPy's functions of the same numbers as doubles."""
    shape = (2000, 2) if name == "atan2" else (2000, 1)
    x = np.random.default_rng(7).uniform(0.01, 0.99, shape).astype(np.float32)
    wide = [c.astype(float) for c in x.T]
    expected = np.arctan2(*wide) if name == "atan2" else getattr(np, NUMPY.get(name, name))(*wide)
    # Sine and cosine are computed in float32, 1.1 units; the others in double and rounded.
    error = (compiled(name, "float32")(x) - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert_close(error, np.zeros(len(x)), 1.5 if name in ("sin", "cos") else 0.51, name)
