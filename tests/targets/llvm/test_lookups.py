"""Tables in memory: native code against the selections themselves."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from kinetree.targets.llvm import Loaded, compile_assembly
from kinetree.targets.llvm.arithmetic import emit
from kinetree.targets.llvm.scalar import OwnFunctions, scalar_function
from native_program import gufunc, traced, tree

RNG = np.random.default_rng(2)


def of_size(count: int):
    """Return a Program with two tables of one number, and their thresholds and leaves."""
    at = np.cumsum(RNG.uniform(0.01, 0.3, count - 1)).tolist()
    leaves = RNG.normal(size=(2, count)).tolist()
    return traced(lambda u: [tree(u, at, leaves[0]) * u, tree(u, at, leaves[1])]), at, leaves


@pytest.mark.parametrize("count", [32, 33, 64, 65, 200])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_leaf_is_found(count, dtype):
    """Look up numbers between, at and next to all thresholds, infinities and NaN, in batches of any length."""
    program, at, leaves = of_size(count)
    exact = np.array(at, dtype=dtype)
    steps = np.array([math.inf], dtype=dtype)
    u = np.concatenate(
        [exact, np.nextafter(exact, steps), np.nextafter(exact, -steps), [-1.5, 1e9, math.inf, -math.inf, math.nan]]
    ).astype(dtype)
    k = np.sum(~(u[:, None] < exact), axis=1)
    numbers = np.array(leaves, dtype=dtype)
    with np.errstate(invalid="ignore"):
        found = gufunc(program, dtype)(u[:, None])
    assert found.dtype == dtype
    assert np.array_equal(found[:, 1], numbers[1][k])
    assert np.array_equal(found[:, 0], numbers[0][k] * u, equal_nan=True)


def test_code_hardly_grows_with_the_table():
    """Count the instructions of a table of 40 and of one of 4,000 entries: six more steps of the search."""

    def instructions(count: int) -> int:
        body = emit(of_size(count)[0], "float64").split("void @body")[1].split("\n}")[0]
        return body.count("\n")

    assert instructions(4000) - instructions(40) == 6 * (12 - 6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_single_sample_looks_up_the_same(dtype):
    """Call the scalar code of one sample, as object code has it, at all thresholds and between them."""
    program, at, leaves = of_size(50)
    loaded = Loaded(compile_assembly(scalar_function(program, dtype, "f", OwnFunctions())))
    real = ctypes.c_double if dtype == "float64" else ctypes.c_float
    f = ctypes.CFUNCTYPE(None, ctypes.POINTER(real), ctypes.POINTER(real))(loaded.find("f"))
    exact, numbers = np.array(at, dtype=dtype), np.array(leaves, dtype=dtype)
    for u in np.concatenate([exact, exact - exact.dtype.type(0.004), [1e6]]).astype(dtype):
        y = (real * 2)()
        f((real * 1)(u), y)
        k = int(np.sum(~(u < exact)))
        assert np.array_equal(np.array(y, dtype=dtype), [numbers[0][k] * u, numbers[1][k]])
