"""Code on devices: interpreted in the first call, compiled in the second, and known to later processes."""

from __future__ import annotations

import numpy as np
import pytest

import fake_cuda
import kinetree as kt
from kinetree.compiler.runtime.cuda import code
from kinetree.compiler.targets.ptx.interpreter import ENTRY

STREAM = 7001
"""The current stream of the stand-in for CuPy."""


@pytest.fixture
def driver(monkeypatch, tmp_path):
    """Return a stand-in for the driver on which every function counts as large, with an empty cache."""
    monkeypatch.setenv("KINETREE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(code, "LARGE", 1)
    return fake_cuda.install(monkeypatch)


def arm():
    """Return a system on the GPU, with inputs of its inertia matrix and the result."""
    system = kt.load("planar_2r")
    q = np.array([[0.3, -0.8], [1.1, 0.4], [-2.0, 0.7]])
    return system.on("cuda"), fake_cuda.on_gpu(q)[0], system.inertia_matrix(q)


def test_large_functions_are_interpreted_in_their_first_call(driver):
    """Interpret the first call, compile in the second one, and find the same results."""
    gpu, q, expected = arm()
    for _ in range(3):
        np.testing.assert_allclose(gpu.function("inertia_matrix")(q).host, expected, rtol=1e-15)
    assert [launch.entry for launch in driver.launches] == [ENTRY, "rows", "rows"]
    assert driver.compilations == 1


def test_code_can_be_compiled_before_the_second_call(driver):
    """Compile an interpreted function by `settle`, once."""
    gpu, q, _ = arm()
    function = gpu.function("inertia_matrix")
    function(q)
    for _ in range(2):
        function.settle()
        assert driver.compilations == 1
    function(q)
    assert driver.launches[-1].entry == "rows" and driver.compilations == 1


def test_code_in_the_driver_s_cache_is_loaded_at_once(driver, monkeypatch):
    """Load the code that an earlier process compiled, without interpretation, unless the driver keeps none."""
    gpu, q, _ = arm()
    for _ in range(2):
        gpu.function("inertia_matrix")(q)
    other, q, expected = arm()
    np.testing.assert_allclose(other.function("inertia_matrix")(q).host, expected, rtol=1e-15)
    assert driver.launches[-1].entry == "rows"
    monkeypatch.setenv("CUDA_CACHE_DISABLE", "1")
    other, q, _ = arm()
    other.function("inertia_matrix")(q)
    assert driver.launches[-1].entry == ENTRY


def test_small_functions_are_compiled_at_once(driver, monkeypatch):
    """Compile a small function in its first call."""
    monkeypatch.setattr(code, "LARGE", 10_000)
    gpu, q, _ = arm()
    gpu.function("inertia_matrix")(q)
    assert driver.launches[-1].entry == "rows"
    assert driver.compilations == 1


def test_graphs_capture_compiled_code(driver):
    """Compile in the first call if a CUDA graph is captured, which keeps its kernel."""
    gpu, q, _ = arm()
    driver.captured = STREAM
    gpu.function("inertia_matrix")(q)
    assert [launch.entry for launch in driver.launches] == ["rows"]


def test_failed_compilation_is_reported(driver):
    """Raise the error of the driver's compiler in the second call."""
    gpu, q, _ = arm()
    driver.broken = True
    gpu.function("inertia_matrix")(q)
    with pytest.raises(RuntimeError, match="no memory"):
        gpu.function("inertia_matrix")(q)
