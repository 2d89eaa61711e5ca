"""Code on devices: interpreted first, compiled beside calls, stored for later processes."""

from __future__ import annotations

import threading

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
    made = fake_cuda.install(monkeypatch)
    made.compiles.clear()
    yield made
    made.compiles.set()


def arm():
    """Return a system on the GPU, with inputs of its inertia matrix and the result."""
    system = kt.load("planar_2r")
    q = np.array([[0.3, -0.8], [1.1, 0.4], [-2.0, 0.7]])
    return system.on("cuda"), fake_cuda.on_gpu(q)[0], system.inertia_matrix(q)


def test_large_functions_are_interpreted_until_they_are_compiled(driver):
    """Answer calls before the code is compiled, in another thread, and run the compiled code afterwards."""
    gpu, q, expected = arm()
    function = gpu.function("inertia_matrix")
    for _ in range(2):
        np.testing.assert_allclose(function(q).host, expected, rtol=1e-15)
    assert [launch.entry for launch in driver.launches] == [ENTRY, ENTRY]
    driver.compiles.set()
    function.settle()
    np.testing.assert_allclose(function(q).host, expected, rtol=1e-15)
    assert driver.launches[-1].entry == "rows"
    assert [thread is not threading.main_thread() for thread in driver.compilations] == [True]


def test_compiled_code_is_stored(driver):
    """Load the code that an earlier process compiled, without interpretation."""
    gpu, q, _ = arm()
    driver.compiles.set()
    gpu.function("inertia_matrix")(q)
    gpu.function("inertia_matrix").settle()
    other, q, expected = arm()
    np.testing.assert_allclose(other.function("inertia_matrix")(q).host, expected, rtol=1e-15)
    assert driver.launches[-1].entry == "rows" and len(driver.compilations) == 1


def test_small_functions_are_compiled_at_once(driver, monkeypatch):
    """Compile a small function in its first call."""
    monkeypatch.setattr(code, "LARGE", 10_000)
    driver.compiles.set()
    gpu, q, _ = arm()
    gpu.function("inertia_matrix")(q)
    assert driver.launches[-1].entry == "rows"
    assert driver.compilations == [threading.main_thread()]


def test_graphs_wait_for_compiled_code(driver):
    """Wait for the compiled code if a CUDA graph is captured, which keeps its kernel."""
    gpu, q, _ = arm()
    gpu.function("inertia_matrix")(q)
    driver.captured = STREAM
    threading.Timer(0.05, driver.compiles.set).start()
    gpu.function("inertia_matrix")(q)
    assert [launch.entry for launch in driver.launches] == [ENTRY, "rows"]


def test_failed_compilation_is_reported(driver):
    """Warn once that the code cannot be compiled, and go on with interpretation."""
    gpu, q, expected = arm()
    driver.broken = True
    function = gpu.function("inertia_matrix")
    function(q)
    driver.compiles.set()
    with pytest.warns(RuntimeWarning, match="inertia_matrix: the code could not be compiled, .* slow: no memory"):
        function.settle()
    np.testing.assert_allclose(function(q).host, expected, rtol=1e-15)
    assert {launch.entry for launch in driver.launches} == {ENTRY}
