"""Memory of devices, and page-locked memory of the host; both are freed with their objects."""

from __future__ import annotations

import ctypes
import weakref
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from .library import Library

if TYPE_CHECKING:
    from .device import Device


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
    def __array_interface__(self) -> dict[str, Any]:
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
