"""The CUDA driver by ctypes: devices, code, launches, memory, streams and events; no CUDA toolkit is required."""

from __future__ import annotations

from functools import cache, cached_property

from ....errors import InputError
from . import library
from .device import Device, DeviceMemory, Event, Module, PinnedMemory, Prepared, Stream
from .library import DriverError, Library

__all__ = [
    "Device", "DeviceMemory", "Driver", "DriverError", "Event", "Module", "PinnedMemory", "Prepared", "Stream",
    "driver",
]  # fmt: skip

ORDINAL = 9  # the driver's number for the attribute of an address that is the number of its GPU


class Driver:
    """The CUDA driver of this machine."""

    def __init__(self, functions: Library) -> None:
        """Store the driver's functions."""
        self._library = functions
        self._devices: dict[int, Device] = {}

    @cached_property
    def version(self) -> int:
        """The CUDA version of the driver: 12040 for 12.4."""
        return self._library.number("cuDriverGetVersion")

    @cached_property
    def count(self) -> int:
        """The number of GPUs."""
        return self._library.number("cuDeviceGetCount")

    def device(self, index: int = 0) -> Device:
        """Return a GPU by its number, with its primary context, which other libraries in this process also use."""
        if index not in self._devices:
            if not 0 <= index < self.count:
                raise InputError(f"there is no GPU cuda:{index}; this machine has {self.count}, numbered from 0")
            self._devices[index] = Device(self._library, index)
        return self._devices[index]

    def holding(self, address: int) -> Device:
        """Return the GPU in whose memory an address lies."""
        return self.device(self._library.number("cuPointerGetAttribute", ORDINAL, address))


@cache
def driver() -> Driver:
    """Return the driver; InputError if this machine has none, or one that is too old."""
    return Driver(library.library())
