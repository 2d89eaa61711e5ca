"""Streams, in which work is queued, and events, which mark a point of a stream."""

from __future__ import annotations

import weakref
from ctypes import byref, c_float
from typing import TYPE_CHECKING

from .library import Library

if TYPE_CHECKING:
    from .device import Device

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
