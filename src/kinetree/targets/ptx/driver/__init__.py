"""The CUDA driver by ctypes: devices, code, launches, memory, streams and events; no CUDA toolkit is required."""

from .device import Device, DeviceMemory, Event, Module, PinnedMemory, Stream
from .driver import Driver, driver
from .library import DriverError

__all__ = ["Device", "DeviceMemory", "Driver", "DriverError", "Event", "Module", "PinnedMemory", "Stream", "driver"]
