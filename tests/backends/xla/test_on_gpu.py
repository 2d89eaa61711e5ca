"""Handlers of XLA for GPUs, called by XLA on the CPU, with a driver that interprets kernels in host memory."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from complete import import_jax
from fake_cuda import install
from kinetree.backends import xla
from kinetree.backends.xla import GpuHandler
from tolerance import assert_close


@pytest.fixture(scope="module", autouse=True)
def library():
    """Import JAX, or skip; not when tests are collected, because it takes seconds."""
    global jax
    jax = import_jax()


def call(name: str, handler: GpuHandler, shape: tuple[int, ...], *arrays):
    """Register a handler for the CPU and call it by XLA."""
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler.pointer), platform="cpu")
    wanted = jax.ShapeDtypeStruct(shape, "float32")
    return jax.jit(jax.ffi.ffi_call(name, wanted))(*(np.asarray(x, "float32") for x in arrays))


@pytest.fixture
def driver(monkeypatch):
    """Install the stand-in for the driver; the CPU has no stream."""
    driver = install(monkeypatch)
    monkeypatch.setattr(xla, "driver", lambda: driver)
    monkeypatch.setattr(xla, "_stream", lambda frame: 7003)
    return driver


def test_launch_by_xla(driver):
    """Launch one kernel on XLA's stream with the buffers of the call."""
    arm, rng = kt.load("planar_3r"), np.random.default_rng(3)
    q, qd = arm.random_state(rng, (2, 3))
    handler = GpuHandler(arm.function("bias_torque", dtype="float32"), None)
    result = call("kinetree_test_launch", handler, (2, 3, 3), q, qd)
    assert_close(result, arm.bias_torque(q, qd), 1e-4, "bias torque")
    last = driver.launches[-1]
    assert (last.entry, last.samples, last.stream, last.strides) == ("rows", 6, 7003, [(3, 1)] * 3)
    assert last.device == 1


def test_failures_reach_jax(driver, monkeypatch):
    """Report a failure of the driver as an error of JAX, with the message."""

    def fail(frame):
        raise kt.KinetreeError("the GPU is lost")

    monkeypatch.setattr(xla, "_stream", fail)
    arm = kt.load("planar_3r")
    handler = GpuHandler(arm.function("gravity_torque", dtype="float32"), None)
    with pytest.raises(Exception, match="KinetreeError: the GPU is lost"):
        call("kinetree_test_failure", handler, (3,), np.zeros(3)).block_until_ready()
