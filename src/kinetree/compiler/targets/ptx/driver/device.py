"""Devices: GPUs with their primary context, properties, code, launches and memory."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_int, c_size_t, c_void_p
from functools import cached_property
from typing import Any

from .library import Library
from .memory import DeviceMemory, PinnedMemory
from .module import Module
from .streams import Event, Stream

ATTRIBUTES = {
    "warp": 10,
    "threads_per_block": 1,
    "shared_per_block": 97,  # with opt-in, see Module.find
    "shared_per_multiprocessor": 81,
    "registers_per_multiprocessor": 82,
    "threads_per_multiprocessor": 39,
    "clock_khz": 13,
    "l2_cache": 38,
}
"""Properties of a device, with the driver's numbers for them."""
MAJOR, MINOR = 75, 76  # the driver's numbers for the two parts of the compute capability

RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


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

    @property
    def code_name(self) -> str:
        """The name of the code that the driver makes: the type of the GPU and the version of the driver."""
        major, minor = self.capability
        return f"sm_{major}{minor} driver {self._library.number('cuDriverGetVersion')}"

    @contextmanager
    def beside_captures(self) -> Iterator[None]:
        """Let this thread load code while a CUDA graph is captured, which would otherwise fail."""
        mode = c_int(RELAXED)
        self._library.call("cuThreadExchangeStreamCaptureMode", byref(mode))
        try:
            yield
        finally:
            self._library.call("cuThreadExchangeStreamCaptureMode", byref(mode))

    def captures(self, stream: int) -> bool:
        """Return whether a stream is captured in a CUDA graph."""
        status = c_int()
        with self.current():
            self._library.call("cuStreamIsCapturing", stream, byref(status))
        return bool(status.value)

    def launch(
        self,
        function: int,
        blocks: int,
        threads: int,
        arguments: Sequence[Any],
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


def _packed(arguments: Sequence[Any]) -> bytes:
    """Return arguments as bytes, eight for each."""
    try:
        return struct.pack(f"{len(arguments)}q", *arguments)
    except struct.error:
        return b"".join(map(_slot, arguments))


def _slot(argument: Any) -> bytes:
    if isinstance(argument, float):
        return struct.pack("d", argument)
    if isinstance(argument, ctypes._SimpleCData):
        return bytes(argument).ljust(8, b"\0")
    return struct.pack("q", argument)
