"""Devices: GPUs with their primary context, properties, code, launches and memory."""

from __future__ import annotations

import ctypes
import re
import struct
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_float, c_int, c_int64, c_size_t, c_uint, c_void_p
from functools import cached_property
from math import prod
from threading import Lock

import numpy as np
from numpy.typing import DTypeLike

from ....errors import InputError
from .library import DriverError, Library, too_old

# --- Memory of devices, and page-locked memory of the host; both are freed with their objects ---


class DeviceMemory:
    """Memory of a device. Freeing it waits for the device, so that no kernel uses freed memory."""

    def __init__(self, library: Library, device: Device, size: int) -> None:
        """Allocate bytes."""
        self.device, self.size = device, size
        with device.current():
            self.address = library.handle("cuMemAlloc_v2", max(size, 1))
        weakref.finalize(self, _free, library, device, "cuMemFree_v2", self.address).atexit = False

    def fill(self, data: bytes) -> None:
        """Copy data here and wait for it."""
        self.device.copy(self.address, _address(data), len(data), kind="to device")
        self.device.synchronize(0)

    def read(self) -> bytes:
        """Return the content, after all work of the default stream."""
        data = ctypes.create_string_buffer(self.size)
        self.device.copy(ctypes.addressof(data), self.address, self.size, kind="to host")
        self.device.synchronize(0)
        return data.raw


class PinnedMemory:
    """Page-locked memory of the host, also as NumPy arrays."""

    def __init__(self, library: Library, device: Device, size: int) -> None:
        """Allocate bytes."""
        self.size = size
        with device.current():
            self.address = library.handle("cuMemHostAlloc", max(size, 1), 0)
        weakref.finalize(self, _free, library, device, "cuMemFreeHost", self.address).atexit = False

    @property
    def __array_interface__(self) -> dict[str, object]:
        """The memory as an array of bytes, for NumPy."""
        return {"shape": (self.size,), "typestr": "|u1", "data": (self.address, False), "version": 3}

    def array(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Return the memory as an array, which keeps it alive."""
        count = prod(shape) * np.dtype(dtype).itemsize
        return np.asarray(self)[:count].view(dtype).reshape(shape)


def _address(data: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def _free(library: Library, device: Device, function: str, address: int) -> None:
    with device.current():
        library.call(function, address)


# --- Streams, in which work is queued, and events, which mark a point of a stream ---

NON_BLOCKING = 1  # a stream that does not wait for the default one
WITHOUT_TIMING = 2


class Event:
    """A point of a stream, for which other streams or the host can wait."""

    def __init__(self, library: Library, device: Device, timing: bool) -> None:
        """Create an event, which is not yet recorded."""
        self._library, self._device = library, device
        with device.current():
            self.handle = library.handle("cuEventCreate", 0 if timing else WITHOUT_TIMING)
        weakref.finalize(self, _destroy, library, device, "cuEventDestroy_v2", self.handle).atexit = False

    def record(self, stream: int = 0) -> None:
        """Mark the point after all work that is now queued in a stream."""
        with self._device.current():
            self._library.call("cuEventRecord", self.handle, stream)

    def wait(self, stream: int) -> None:
        """Let a stream wait for this event; the host goes on."""
        with self._device.current():
            self._library.call("cuStreamWaitEvent", stream, self.handle, 0)

    @property
    def reached(self) -> bool:
        """Whether all work before the event is finished."""
        with self._device.current():
            return self._library.ready("cuEventQuery", self.handle)

    def synchronize(self) -> None:
        """Wait for the event."""
        with self._device.current():
            self._library.call("cuEventSynchronize", self.handle)

    def since(self, start: Event) -> float:
        """Return the time from another event to this one [s]; both have timing and are reached."""
        elapsed = c_float()
        with self._device.current():
            self._library.call("cuEventElapsedTime", byref(elapsed), start.handle, self.handle)
        return elapsed.value * 1e-3


class Stream:
    """A stream of this library's own; `handle` is what launches and copies take."""

    def __init__(self, library: Library, device: Device) -> None:
        """Create a stream that does not wait for the default one."""
        self._library, self._device = library, device
        with device.current():
            self.handle = library.handle("cuStreamCreate", NON_BLOCKING)
        weakref.finalize(self, _destroy, library, device, "cuStreamDestroy_v2", self.handle).atexit = False

    def synchronize(self) -> None:
        """Wait for all work of the stream."""
        self._device.synchronize(self.handle)

    @property
    def idle(self) -> bool:
        """Whether all work of the stream is finished."""
        with self._device.current():
            return self._library.ready("cuStreamQuery", self.handle)


def _destroy(library: Library, device: Device, function: str, handle: int) -> None:
    with device.current():
        library.call(function, handle)


# --- Modules: code in the memory of a device ---

ERROR_LOG, ERROR_LOG_SIZE = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size in bytes
LOG_SIZE = 8192
SHARED_DEFAULT = 48 * 1024
"""The dynamic shared memory [bytes] that a kernel may use without asking for more."""
MAX_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
STATIC_SHARED, LOCAL, REGISTERS, MAX_THREADS = 1, 3, 4, 0
CUDA_OF_PTX = {(8, 6): 12070, (8, 7): 12080, (8, 8): 12090}
"""CUDA versions by PTX versions, where the rule PTX 7.x = CUDA 11.x, 8.x = CUDA 12.x, 9.x = CUDA 13.x does not hold."""


class Module:
    """Loaded code; `find` returns handles of its kernels for `Device.launch`."""

    def __init__(self, library: Library, device: Device, code: bytes) -> None:
        """Load code in the current context, compiled by the driver if it is PTX."""
        self._library = library
        self.device = device
        self._handle = self._loaded(code)
        self._kernels: dict[str, int] = {}
        weakref.finalize(self, _unload, library, device, self._handle).atexit = False

    def find(self, name: str) -> int:
        """Return the handle of a kernel, which may use all shared memory that the device has for a block."""
        if name not in self._kernels:
            with self.device.current():
                handle = self._library.handle("cuModuleGetFunction", self._handle, name.encode())
                static = self.attribute(handle, STATIC_SHARED)
                most = self.device.properties["shared_per_block"] - static
                if most > SHARED_DEFAULT:
                    self._library.call("cuFuncSetAttribute", handle, MAX_SHARED, most)
            self._kernels[name] = handle
        return self._kernels[name]

    def resources(self, name: str) -> dict[str, int]:
        """Return what a kernel takes: registers, local memory and shared memory [bytes], and its most threads."""
        numbers = {"registers": REGISTERS, "local": LOCAL, "shared": STATIC_SHARED, "threads": MAX_THREADS}
        handle = self.find(name)
        with self.device.current():
            return {key: self.attribute(handle, k) for key, k in numbers.items()}

    def attribute(self, kernel: int, number: int) -> int:
        """Return an attribute of a kernel by the driver's number for it."""
        return self._library.number("cuFuncGetAttribute", number, kernel)

    def variable(self, name: str) -> tuple[int, int]:
        """Return the address and the size [bytes] of a global variable."""
        address, size = c_void_p(), c_size_t()
        with self.device.current():
            self._library.call("cuModuleGetGlobal_v2", byref(address), byref(size), self._handle, name.encode())
        return address.value or 0, size.value

    def _loaded(self, code: bytes) -> int:
        log, handle = Log(), c_void_p()
        try:
            # the driver reads PTX up to a zero byte, which ctypes appends
            self._library.call("cuModuleLoadDataEx", byref(handle), code, *log.options)
        except DriverError as error:
            raise explain_refused_code(self._library, self.device, error, code, log.text) from None
        return handle.value or 0


class Log:
    """The messages of the driver's compiler; `options` are the arguments of a call that writes them."""

    def __init__(self) -> None:
        """Start without messages."""
        self._buffer = ctypes.create_string_buffer(LOG_SIZE)
        values = (c_void_p * 2)(ctypes.addressof(self._buffer), LOG_SIZE)
        self.options = 2, (c_uint * 2)(ERROR_LOG, ERROR_LOG_SIZE), values

    @property
    def text(self) -> str:
        """The messages."""
        return self._buffer.value.decode(errors="replace").strip()


def explain_refused_code(library: Library, device: Device, error: DriverError, code: bytes, log: str) -> Exception:
    """Return the error of code that the driver refuses: too new for it, for other GPUs, or wrong."""
    version, target = re.search(rb"\.version (\d+)\.(\d+)", code), re.search(rb"\.target sm_(\d+)", code)
    major, minor = device.capability
    if "UNSUPPORTED_PTX" in str(error) and version:
        return too_old(library.number("cuDriverGetVersion"), _cuda(int(version[1]), int(version[2])))
    if target and int(target[1]) > 10 * major + minor:
        return InputError(
            f"{device.name} is of type sm_{major}{minor}; GPUs of type sm_{target[1].decode()} or newer are required"
        )
    return DriverError(f"{error}; the driver's compiler reports: {log or 'nothing'}")


def _cuda(major: int, minor: int) -> int:
    """Return the CUDA version that introduced a PTX version."""
    return CUDA_OF_PTX.get((major, minor), 1000 * (major + 4) + 10 * minor)


def _unload(library: Library, device: Device, handle: int) -> None:
    with device.current():
        library.call("cuModuleUnload", handle)


ATTRIBUTES = {
    "warp": 10,
    "threads_per_block": 1,
    "shared_per_block": 97,  # with opt-in, see Module.find
    "shared_per_multiprocessor": 81,
    "registers_per_multiprocessor": 82,
    "threads_per_multiprocessor": 39,
    "clock_khz": 13,
    "l2_cache": 38,
    "multiprocessors": 16,
}
"""Properties of a device, with the driver's numbers for them."""
MAJOR, MINOR = 75, 76  # the driver's numbers for the two parts of the compute capability

RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


WRONG_CONTEXT = (201, 400)  # CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_HANDLE


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig: the grid, the blocks, dynamic shared memory [bytes], the stream, and further attributes."""

    _fields_ = (
        *((name, c_uint) for name in ("blocks", "blocks_y", "blocks_z", "threads", "threads_y", "threads_z", "shared")),
        ("stream", c_void_p), ("attributes", c_void_p), ("count", c_uint),
    )  # fmt: skip


class Prepared:
    """A launch whose arguments are in place: to repeat it, with some of them changed, takes the host some 4 us."""

    def __init__(
        self, library: Library, device: Device, function: int, grid: tuple[int, int], arguments: Sequence[int]
    ) -> None:
        """Store the numbers of blocks and of threads of each, and the arguments, all integers of 64 bits."""
        count, (blocks, threads) = len(arguments), grid
        self._library, self._device, self._lock, self._launch = library, device, Lock(), library.launch_prepared
        self.slots = (c_int64 * count)(*arguments)
        start = ctypes.addressof(self.slots)
        self._pointers = (c_void_p * count)(*range(start, start + 8 * count, 8))
        self._config = LaunchConfig(blocks, 1, 1, threads, 1, 1, 0, None, None, 0)
        self._given = c_void_p(ctypes.addressof(self._config)), c_void_p(function), self._pointers

    def start(self, changes: Iterable[tuple[int, int]], stream: int) -> None:
        """Change some arguments, given by their numbers, and queue the launch on a stream."""
        with self._lock:  # the driver has copied the arguments when it returns
            for k, x in changes:
                self.slots[k] = x
            self._config.stream = stream
            status = self._launch(*self._given, None)
            if status in WRONG_CONTEXT:  # to ask for the context first takes as long as a quarter of the launch
                with self._device.current():
                    status = self._launch(*self._given, None)
        if status:
            raise self._library.error(status, "cuLaunchKernelEx")


class Device:
    """A GPU. Streams are given by their handles (int), as other libraries have them; 0 is the default stream."""

    def __init__(self, library: Library, index: int) -> None:
        """Retain the primary context until the process ends."""
        self._library = library
        self.index = index
        self.handle = library.number("cuDeviceGet", index)
        self.context = library.handle("cuDevicePrimaryCtxRetain", self.handle)

    def __repr__(self) -> str:
        """Return the number and the name."""
        return f"<cuda:{self.index} {self.name}>"

    @cached_property
    def name(self) -> str:
        """The product's name."""
        buffer = ctypes.create_string_buffer(256)
        self._library.call("cuDeviceGetName", buffer, len(buffer), self.handle)
        return buffer.value.decode(errors="replace")

    @cached_property
    def capability(self) -> tuple[int, int]:
        """The compute capability: (9, 0) for sm_90."""
        major, minor = (self._library.number("cuDeviceGetAttribute", k, self.handle) for k in (MAJOR, MINOR))
        return major, minor

    @cached_property
    def properties(self) -> dict[str, int]:
        """The properties of ATTRIBUTES by name, and the `memory` in bytes."""
        total = c_size_t()
        self._library.call("cuDeviceTotalMem_v2", byref(total), self.handle)
        found = {name: self._library.number("cuDeviceGetAttribute", k, self.handle) for name, k in ATTRIBUTES.items()}
        return found | {"memory": total.value}

    def free_memory(self) -> int:
        """Return the memory that is not allocated [bytes]."""
        free, total = c_size_t(), c_size_t()
        with self.current():
            self._library.call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the context of this device current in this thread, and the previous one again afterwards."""
        if self._library.current_context() == self.context:
            yield
            return
        self._library.call("cuCtxPushCurrent_v2", self.context)
        try:
            yield
        finally:
            self._library.call("cuCtxPopCurrent_v2", byref(c_void_p()))

    def load(self, code: bytes) -> Module:
        """Load PTX text (or a cubin); the driver compiles it and caches the result on disk.

        Launches in other threads wait meanwhile.
        """
        with self.current():
            return Module(self._library, self, code)

    @contextmanager
    def beside_captures(self) -> Iterator[None]:
        """Let this thread load code while a CUDA graph is captured, which would otherwise fail."""
        mode = c_int(RELAXED)
        self._library.call("cuThreadExchangeStreamCaptureMode", byref(mode))
        try:
            yield
        finally:
            self._library.call("cuThreadExchangeStreamCaptureMode", byref(mode))

    def launch(
        self,
        function: int,
        blocks: int,
        threads: int,
        arguments: Sequence[object],
        *,
        shared: int = 0,
        stream: int = 0,
    ) -> None:
        """Start a function of a module on a stream without waiting for it.

        `arguments` are integers (64 bits, also pointers), floats (64 bits), or ctypes scalars for other types.
        `shared` is the size of dynamic shared memory per block [bytes].
        """
        count = len(arguments)
        slots = ctypes.create_string_buffer(_packed(arguments), 8 * count)
        start = ctypes.addressof(slots)
        pointers = (c_void_p * count)(*range(start, start + 8 * count, 8))
        given = (function, blocks, 1, 1, threads, 1, 1, shared, stream, ctypes.addressof(pointers), None)
        if self._library.current_context() == self.context:
            status = self._library.launch_kernel(*given)
        else:
            with self.current():
                status = self._library.launch_kernel(*given)
        if status:
            raise self._library.error(status, "cuLaunchKernel")

    def prepare(self, function: int, blocks: int, threads: int, arguments: Sequence[int]) -> Prepared:
        """Return a launch of a function of a module that is repeated."""
        return Prepared(self._library, self, function, (blocks, threads), arguments)

    def allocate(self, size: int) -> DeviceMemory:
        """Return memory of this device [bytes], freed with the object; waits for the device."""
        return DeviceMemory(self._library, self, size)

    def upload(self, data: bytes) -> DeviceMemory:
        """Return memory of this device with some content; waits until it is copied."""
        memory = self.allocate(len(data))
        memory.fill(data)
        return memory

    def pinned(self, size: int) -> PinnedMemory:
        """Return page-locked memory of the host [bytes], from and to which copies run beside kernels."""
        return PinnedMemory(self._library, self, size)

    def copy(self, target: int, source: int, size: int, *, kind: str, stream: int = 0) -> None:
        """Queue a copy of bytes between addresses; `kind` is "to device", "to host" or "on device".

        From or to memory of the host that is not pinned, the driver waits for the copy.
        """
        name = {
            "to device": "cuMemcpyHtoDAsync_v2",
            "to host": "cuMemcpyDtoHAsync_v2",
            "on device": "cuMemcpyDtoDAsync_v2",
        }[kind]
        with self.current():
            self._library.call(name, target, source, size, stream)

    def clear(self, address: int, size: int, *, stream: int = 0) -> None:
        """Queue the setting of bytes to zero."""
        with self.current():
            self._library.call("cuMemsetD8Async", address, 0, size, stream)

    def stream(self) -> Stream:
        """Return a new stream that does not wait for the default one."""
        return Stream(self._library, self)

    def event(self, *, timing: bool = False) -> Event:
        """Return a new event; with `timing`, it stores the time at which it is reached."""
        return Event(self._library, self, timing)

    def synchronize(self, stream: int | None = None) -> None:
        """Wait for a stream, or for all work of the device."""
        with self.current():
            if stream is None:
                self._library.call("cuCtxSynchronize")
            else:
                self._library.call("cuStreamSynchronize", stream)


def _packed(arguments: Sequence[object]) -> bytes:
    """Return arguments as bytes, eight for each."""
    try:
        return struct.pack(f"{len(arguments)}q", *arguments)
    except struct.error:
        return b"".join(map(_slot, arguments))


def _slot(argument: object) -> bytes:
    if isinstance(argument, float):
        return struct.pack("d", argument)
    if isinstance(argument, ctypes._SimpleCData):
        return bytes(argument).ljust(8, b"\0")
    return struct.pack("q", argument)
