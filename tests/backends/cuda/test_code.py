"""Code on devices: compiled in the first call, from the cache if an earlier system wrote it."""

from __future__ import annotations

import numpy as np
import pytest

import fake_cuda
import kinetree as kt
from kinetree.backends.cuda import code


@pytest.fixture
def driver(monkeypatch, tmp_path):
    """Return a stand-in for the driver; the cache is empty."""
    monkeypatch.setenv("KINETREE_CACHE_DIR", str(tmp_path))
    return fake_cuda.install(monkeypatch)


def arm():
    """Return a system on the GPU, with inputs of its inertia matrix and the result."""
    system = kt.load("planar_2r")
    q = np.array([[0.3, -0.8], [1.1, 0.4], [-2.0, 0.7]])
    return system.on("cuda"), fake_cuda.on_gpu(q)[0], system.inertia_matrix(q)


def test_code_is_compiled_in_the_first_call(driver):
    """Compile once, and find the same results in all calls."""
    gpu, q, expected = arm()
    for _ in range(3):
        np.testing.assert_allclose(gpu.function("inertia_matrix")(q).host, expected, rtol=1e-15)
    assert [launch.entry for launch in driver.launches] == ["rows"] * 3
    assert driver.compilations == 1


def test_later_systems_find_code_in_the_cache(driver, monkeypatch):
    """Give the driver the PTX that an earlier system wrote, without writing it again."""
    gpu, q, expected = arm()
    gpu.function("inertia_matrix")(q)
    monkeypatch.delattr(code, "emit")
    other, q, _ = arm()
    np.testing.assert_allclose(other.function("inertia_matrix")(q).host, expected, rtol=1e-15)
    assert driver.compilations == 2


def test_failed_compilation_is_reported(driver):
    """Raise the error of the driver's compiler, and compile in the next call."""
    gpu, q, expected = arm()
    driver.broken = True
    with pytest.raises(RuntimeError, match="no memory"):
        gpu.function("inertia_matrix")(q)
    driver.broken = False
    np.testing.assert_allclose(gpu.function("inertia_matrix")(q).host, expected, rtol=1e-15)
