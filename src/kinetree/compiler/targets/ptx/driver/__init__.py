"""The CUDA driver by ctypes: devices, code, launches, memory, streams and events; no CUDA toolkit is required."""

from .device import Device
from .driver import Driver, driver
from .library import DriverError
from .memory import DeviceMemory, PinnedMemory
from .module import Module
from .streams import Event, Stream

__all__ = ["Device", "DeviceMemory", "Driver", "DriverError", "Event", "Module", "PinnedMemory", "Stream", "driver"]
