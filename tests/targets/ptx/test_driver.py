"""The CUDA driver by ctypes: its errors, by a library that stands in for the driver's, and a GPU where there is one."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from kinetree.errors import InputError
from kinetree.targets.ptx.driver import Driver, DriverError, driver
from kinetree.targets.ptx.driver import library as library_module
from kinetree.targets.ptx.driver.device import _packed
from kinetree.targets.ptx.driver.library import FUNCTIONS, Library

ADD = b"""
.version 7.8
.target sm_50
.address_size 64
.visible .entry kernel(.param .u64 x, .param .f64 c, .param .f32 d)
{
  .reg .b64 %p; .reg .f64 %a, %c, %e; .reg .f32 %d; .reg .u32 %t; .reg .u64 %o;
  ld.param.u64 %p, [x]; ld.param.f64 %c, [c]; ld.param.f32 %d, [d];
  cvt.f64.f32 %e, %d;
  mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 8; add.u64 %p, %p, %o;
  ld.global.f64 %a, [%p]; add.f64 %a, %a, %c; add.f64 %a, %a, %e; st.global.f64 [%p], %a;
  ret;
}
"""


def stand_in(**functions):
    """Return a library in which every function of the driver succeeds, except those that are given."""
    texts = {"cuGetErrorName": b"CUDA_ERROR_", "cuGetErrorString": b"trouble "}

    def writes(value):
        def function(place, *_):
            place._obj.value = value
            return 0

        return function

    def names(start):
        def function(status, place):
            place._obj.value = start + str(status).encode()
            return 0

        return function

    made = {name: lambda *_: 0 for name in FUNCTIONS}
    made |= {name: names(text) for name, text in texts.items()}
    made |= {"cuDriverGetVersion": writes(12040), "cuDeviceGetCount": writes(2), "cuDevicePrimaryCtxRetain": writes(7)}
    return SimpleNamespace(**{name: f for name, f in (made | functions).items() if f is not None})


@pytest.fixture
def without_memory():
    """Forget the loaded library before and after a test."""
    library_module.library.cache_clear()
    yield
    library_module.library.cache_clear()


def opened(monkeypatch, shared):
    """Let the library be found as this object."""

    def load(name):
        if isinstance(shared, Exception):
            raise shared
        return shared

    monkeypatch.setattr(ctypes, "WinDLL" if sys.platform == "win32" else "CDLL", load, raising=False)
    return library_module.library()


def test_without_a_driver(monkeypatch, without_memory):
    """Refuse a machine without a driver and name the CPU as the alternative."""
    with pytest.raises(InputError, match=r"no NVIDIA driver \(not there\); install one of CUDA 11.8 or newer, or "):
        opened(monkeypatch, OSError("not there"))


def test_old_driver(monkeypatch, without_memory):
    """Refuse an old driver with its version and the one that is required."""

    def old(place):
        place._obj.value = 10020
        return 0

    with pytest.raises(InputError, match="supports CUDA 10.2; CUDA 11.8 or newer is required: install a newer driver"):
        opened(monkeypatch, stand_in(cuDriverGetVersion=old))


def test_missing_function(monkeypatch, without_memory):
    """Refuse a driver that lacks a function as too old."""
    with pytest.raises(InputError, match="supports CUDA 12.4; CUDA 11.8 or newer is required"):
        opened(monkeypatch, stand_in(cuMemcpyDtoDAsync_v2=None))


def test_no_gpu(monkeypatch, without_memory):
    """Report a driver without a GPU with a remedy."""
    with pytest.raises(
        InputError, match=r"cannot be used: cuInit failed: CUDA_ERROR_100 \(trouble 100\); check with n"
    ):
        opened(monkeypatch, stand_in(cuInit=lambda flags: 100))


def test_driver_fails(monkeypatch):
    """Raise DriverError with the driver's words and a remedy, and MemoryError if the GPU has no memory."""
    device = Driver(Library(stand_in(cuMemAlloc_v2=lambda *_: 2, cuLaunchKernel=lambda *_: 700))).device(0)
    with pytest.raises(MemoryError, match=r"cuMemAlloc_v2 failed: CUDA_ERROR_2 .*; run fewer samples at once"):
        device.allocate(8)
    with pytest.raises(DriverError, match=r"cuLaunchKernel failed: CUDA_ERROR_700 .*; a kernel accessed memory that"):
        device.launch(1, 1, 1, [0])


def test_unknown_device():
    """Refuse the number of a GPU that does not exist."""
    found = Driver(Library(stand_in()))
    assert found.version == 12040
    with pytest.raises(InputError, match="no GPU cuda:2; this machine has 2, numbered from 0"):
        found.device(2)


def test_refused_code():
    """Report code that the driver's compiler refuses with its log, or that is too new for the driver or the GPU."""

    def refusing(status, capability):
        def load(handle, code, count, options, values):
            ctypes.memmove(values[0], b"bad:7", 5)
            return status

        def attribute(place, number, device):
            place._obj.value = {75: capability // 10, 76: capability % 10}.get(number, 0)
            return 0

        named = {222: b"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 218: b"CUDA_ERROR_INVALID_PTX"}

        def name(status, place):
            place._obj.value = named[status]
            return 0

        shared = stand_in(cuModuleLoadDataEx=load, cuDeviceGetAttribute=attribute, cuGetErrorName=name)
        return Driver(Library(shared)).device(0)

    with pytest.raises(InputError, match="supports CUDA 12.4; CUDA 12.8 or newer is required"):
        refusing(222, 90).load(b".version 8.7\n.target sm_90\n")
    with pytest.raises(InputError, match="is of type sm_52; GPUs of type sm_70 or newer are required"):
        refusing(218, 52).load(b".version 7.8\n.target sm_70\n")
    with pytest.raises(DriverError, match=r"CUDA_ERROR_INVALID_PTX .*; the driver's compiler reports: bad:7"):
        refusing(218, 90).load(b".version 7.8\n.target sm_70\n")


def test_arguments_in_memory():
    """Pack each argument of a launch into eight bytes by its type."""
    whole = np.frombuffer(_packed([2**40, -3]), np.int64)
    assert whole.tolist() == [2**40, -3]
    mixed = _packed([5, 0.7, ctypes.c_float(0.3), ctypes.c_int32(-2)])
    assert np.frombuffer(mixed[:8], np.int64)[0] == 5
    assert np.frombuffer(mixed[8:16], np.float64)[0] == 0.7
    assert np.frombuffer(mixed[16:20], np.float32)[0] == np.float32(0.3)
    assert np.frombuffer(mixed[24:28], np.int32)[0] == -2
    assert len(mixed) == 32


@pytest.mark.gpu
def test_code_runs():
    """Load code, copy numbers through pinned memory, launch on a stream of its own and read the sum."""
    device = driver().device(0)
    stream, host, memory = device.stream(), device.pinned(32), device.allocate(32)
    numbers = host.array((4,), float)
    numbers[:] = [0.1, -2.0, 3.5, 7.25]
    expected = numbers + 0.7 + float(np.float32(0.3))
    device.copy(memory.address, host.address, 32, kind="to device", stream=stream.handle)
    module = device.load(ADD)
    device.launch(module.find("kernel"), 1, 4, [memory.address, 0.7, ctypes.c_float(0.3)], stream=stream.handle)
    device.copy(host.address, memory.address, 32, kind="to host", stream=stream.handle)
    done = device.event()
    done.record(stream.handle)
    done.synchronize()
    assert done.reached and stream.idle
    np.testing.assert_array_equal(numbers, expected)
    np.testing.assert_array_equal(np.frombuffer(memory.read()), expected)
    assert module.resources("kernel")["registers"] > 0
    assert driver().holding(memory.address + 8) is device


@pytest.mark.gpu
def test_failures_of_a_gpu():
    """Report bad code, unknown kernels and too much memory of a real driver."""
    device = driver().device(0)
    with pytest.raises(DriverError, match="the driver's compiler reports: .*nonsense"):
        device.load(ADD.replace(b"ret;", b"nonsense;"))
    with pytest.raises(DriverError, match="cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND"):
        device.load(ADD).find("absent")
    with pytest.raises(MemoryError, match="run fewer samples at once"):
        device.allocate(1 << 50)


def test_library_is_opened_once(monkeypatch, without_memory):
    """Return the same initialized library on every call."""
    assert opened(monkeypatch, stand_in()) is library_module.library()
