"""Handlers of XLA's foreign function interface, called with frames as XLA makes them; JAX is not needed."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int32, c_int64, c_void_p

import numpy as np
import pytest

import kinetree as kt
from kinetree.runtime.native import loop_of
from kinetree.targets import target
from kinetree.targets.abi import Handler


class Buffer(ctypes.Structure):
    _fields_ = (
        ("size", c_int64), ("extension", c_void_p), ("dtype", c_int32), ("data", c_void_p), ("rank", c_int64),
        ("dimensions", POINTER(c_int64)),
    )  # fmt: skip


class Group(ctypes.Structure):
    _fields_ = (
        ("size", c_int64), ("extension", c_void_p), ("count", c_int64), ("types", c_void_p),
        ("buffers", POINTER(POINTER(Buffer))),
    )  # fmt: skip


class Frame(ctypes.Structure):
    _fields_ = (
        ("size", c_int64), ("extension", c_void_p), ("api", c_void_p), ("context", c_void_p), ("stage", c_int32),
        ("arguments", Group), ("results", Group),
    )  # fmt: skip


class Metadata(ctypes.Structure):
    _fields_ = (
        ("size", c_int64), ("version_size", c_int64), ("version_extension", c_void_p), ("major", c_int32),
        ("minor", c_int32), ("traits", c_int32),
    )  # fmt: skip


class Extension(ctypes.Structure):
    _fields_ = (("size", c_int64), ("type", c_int32), ("next", c_void_p), ("metadata", POINTER(Metadata)))


def group(arrays: list[np.ndarray]) -> Group:
    """Return the buffers of arrays."""
    made = [Buffer(48, None, 0, x.ctypes.data, x.ndim, (c_int64 * max(x.ndim, 1))(*x.shape)) for x in arrays]
    pointers = (POINTER(Buffer) * len(made))(*map(ctypes.pointer, made))
    found = Group(40, None, len(made), None, pointers)
    found.kept = made, pointers, arrays
    return found


def handler(function, constants: np.ndarray | None = None):
    """Return a handler with the objects that it needs."""
    shapes = tuple(a.shape for a in (*function.inputs, *function.outputs))
    size = np.dtype(function.request.dtype).itemsize
    address = 0 if constants is None else constants.ctypes.data
    unit = Handler(*loop_of(function.gufunc), shapes, len(function.outputs), size, address, 3)
    code = target().load(target().build(target().emit(unit, function.request.dtype)))
    call = ctypes.CFUNCTYPE(c_void_p, c_void_p)(code.find("handler"))
    call.kept = code, function, constants
    return call


@pytest.mark.parametrize("lead", [(), (5,), (2, 3, 4), (0,)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_run(lead, dtype):
    """Run a function on the buffers of a frame, of any leading shape, with the bits of the gufunc."""
    arm = kt.load("planar_3r")
    rng = np.random.default_rng(3)
    q, qd = (np.asarray(x, dtype) for x in arm.random_state(rng, lead))
    function = arm.function("convective_matrix", dtype=dtype)
    out = np.full((*lead, 3, 3), np.nan, dtype)
    frame = Frame(200, None, None, None, 3, group([q, qd]), group([out]))
    assert handler(function)(ctypes.addressof(frame)) is None
    np.testing.assert_array_equal(out, arm.convective_matrix(q, qd, dtype=dtype))


def test_constants():
    """Share one last input between all samples, which no buffer holds."""
    arm = kt.load("planar_3r")
    q = arm.random_state(np.random.default_rng(4), 7)[0]
    qd = np.array([0.3, -0.7, 1.1])
    out = np.full((7, 3), np.nan)
    frame = Frame(200, None, None, None, 3, group([q]), group([out]))
    assert handler(arm.function("bias_torque"), qd)(ctypes.addressof(frame)) is None
    np.testing.assert_array_equal(out, arm.bias_torque(q, qd))


def test_metadata():
    """Answer the question for the version of the interface without running, and run despite other extensions."""
    arm = kt.load("planar_3r")
    q, out = np.array([0.4, 0.5, -0.6]), np.full(3, np.nan)
    call = handler(arm.function("gravity_torque"))
    metadata = Metadata(56, 24, None, -1, -1, 0)
    extension = Extension(32, 1, None, ctypes.pointer(metadata))
    frame = Frame(200, ctypes.addressof(extension), None, None, 3, group([q]), group([out]))
    assert call(ctypes.addressof(frame)) is None
    assert (metadata.major, metadata.minor) == (0, 3) and np.isnan(out).all()
    extension.type = 2
    assert call(ctypes.addressof(frame)) is None
    np.testing.assert_array_equal(out, arm.gravity_torque(q))
