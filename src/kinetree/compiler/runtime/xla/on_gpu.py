"""Handlers for GPUs: Python that launches kernels on the stream of a call."""

from __future__ import annotations

import ctypes
from ctypes import c_int32, c_int64, c_void_p
from typing import Any

from ....errors import KinetreeError
from ...targets.ptx.driver import driver
from ...targets.xla_frame import (
    ARGUMENTS,
    DATA,
    DIMENSIONS,
    EXTENSION,
    EXTENSION_TYPE,
    MAJOR,
    METADATA,
    METADATA_TYPE,
    RANK,
    RESULTS,
    VERSION,
)
from ..cuda.function import Constants, CudaFunction
from ..cuda.views import Layout
from ..function import Function
from .version import minor_version

API, CONTEXT = 16, 24  # places of fields in a call frame [bytes]
CREATE_ERROR, GET_STREAM = 48, 80  # places of functions in the table of the interface
UNKNOWN = 2  # the code of an error without a kind of its own


class GpuHandler:
    """A handler that loads the function's code on the device of its first call."""

    def __init__(self, function: Function, constants: tuple[float, ...] | None) -> None:
        """Store a function, whose last input is `constants` if they are given."""
        self._of, self._constants = function, constants
        self._function: CudaFunction | None = None
        self.pointer: Any = ctypes.CFUNCTYPE(c_void_p, c_void_p)(self._handle)

    def _handle(self, frame: int) -> int | None:
        """Answer a call of XLA: describe the handler, or launch; return an error of the interface, or None."""
        extension = _pointer(frame + EXTENSION)
        if extension and c_int32.from_address(extension + EXTENSION_TYPE).value == METADATA_TYPE:
            metadata = _pointer(extension + METADATA)
            c_int32.from_address(metadata + VERSION).value = MAJOR
            c_int32.from_address(metadata + VERSION + 4).value = minor_version()
            return None
        try:
            self._launch(frame)
        except Exception as error:  # no exception may pass through the frames of XLA
            return _error(frame, f"{type(error).__name__}: {error}")
        return None

    def _launch(self, frame: int) -> None:
        if self._function is None:
            self._function = CudaFunction(self._of.mechanism, self._of.request)
        function = self._function
        arguments, results = _pointer(frame + ARGUMENTS), _pointer(frame + RESULTS)
        given = len(function.inputs) - (self._constants is not None)
        buffers = [_pointer(arguments + 8 * k) for k in range(given)]
        outputs = [_pointer(results + 8 * k) for k in range(len(function.outputs))]
        samples = _entries(outputs[0]) // function.outputs[0].size
        if not samples:
            return
        device = driver().holding(_pointer(outputs[0] + DATA))
        inputs = [Layout(_pointer(b + DATA), a.size, 1) for b, a in zip(buffers, function.inputs, strict=False)]
        written = [Layout(_pointer(b + DATA), a.size, 1) for b, a in zip(outputs, function.outputs, strict=True)]
        constants = None if self._constants is None else Constants(self._constants)
        launch = function.launch(device.index, function.request.dtype, inputs, constants, written, samples)
        launch.start(_stream(frame))


def _pointer(address: int) -> int:
    return c_void_p.from_address(address).value or 0


def _entries(buffer: int) -> int:
    """Return the number of entries of a buffer."""
    count, dimensions = 1, _pointer(buffer + DIMENSIONS)
    for k in range(c_int64.from_address(buffer + RANK).value):
        count *= c_int64.from_address(dimensions + 8 * k).value
    return count


class _StreamArguments(ctypes.Structure):
    _fields_ = (("size", c_int64), ("extension", c_void_p), ("context", c_void_p), ("stream", c_void_p))


class _ErrorArguments(ctypes.Structure):
    _fields_ = (("size", c_int64), ("extension", c_void_p), ("message", ctypes.c_char_p), ("code", c_int32))


def _stream(frame: int) -> int:
    """Return the stream of a call."""
    get = ctypes.CFUNCTYPE(c_void_p, c_void_p)(_pointer(_pointer(frame + API) + GET_STREAM))
    arguments = _StreamArguments(ctypes.sizeof(_StreamArguments), None, _pointer(frame + CONTEXT), None)
    if get(ctypes.addressof(arguments)):
        raise KinetreeError("XLA has no stream for this call")
    return arguments.stream or 0


def _error(frame: int, message: str) -> int:
    """Return an error of the interface."""
    create = ctypes.CFUNCTYPE(c_void_p, c_void_p)(_pointer(_pointer(frame + API) + CREATE_ERROR))
    arguments = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, message.encode(), UNKNOWN)
    return create(ctypes.addressof(arguments)) or 0
