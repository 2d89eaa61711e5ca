"""Compiled functions as targets of XLA's foreign function interface, by which JAX calls them."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from ctypes import c_int32, c_int64, c_void_p
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from .._support import optional
from ..errors import InputError, KinetreeError
from ..runtime.function import Function
from ..runtime.native import loop_of
from ..targets import target
from ..targets.abi import (
    ARGUMENTS,
    DATA,
    EXTENSION,
    EXTENSION_TYPE,
    FRAME_DIMENSIONS,
    MAJOR,
    METADATA,
    METADATA_TYPE,
    RANK,
    RESULTS,
    VERSION,
    Handler,
)
from ..targets.ptx.driver import driver
from .cuda.libraries import Layout
from .cuda.system import Constants, CudaFunction

# --- The version of XLA's foreign function interface in the installed jaxlib ---


@cache
def minor_version() -> int:
    """Return the minor version; InputError if the major version is another one."""
    jax = optional.jax()
    header = (Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
    found = [re.search(rf"#define XLA_FFI_API_{part} (\d+)", header) for part in ("MAJOR", "MINOR")]
    major, minor = (-1 if x is None else int(x[1]) for x in found)
    if major != MAJOR or minor < 0:
        raise InputError(
            f"the foreign function interface of jax {jax.__version__} has version {major}.{minor}; version {MAJOR}.x "
            "is required: install another version of jax"
        )
    return minor


# --- Handlers for the CPU: native code that runs a gufunc's inner loop on the buffers of a call ---


class CpuHandler:
    """A handler in memory, with all that its code refers to."""

    def __init__(self, function: Function, constants: tuple[float, ...] | None) -> None:
        """Compile the handler of a function, whose last input is `constants` if they are given."""
        self._function, dtype = function, function.request.dtype
        self._constants = None if constants is None else np.array(constants, dtype)
        kernel, data = loop_of(function.gufunc)
        shapes = tuple(a.shape for a in (*function.inputs, *function.outputs))
        address = 0 if self._constants is None else self._constants.ctypes.data
        size = np.dtype(dtype).itemsize
        unit = Handler(kernel, data, shapes, len(function.outputs), size, address, minor_version())
        self._code = target().load(target().build(target().emit(unit, dtype)))
        self.pointer: Any = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self._code.find("handler"))


# --- Handlers for GPUs: Python that launches kernels on the stream of a call ---

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
    count, dimensions = 1, _pointer(buffer + FRAME_DIMENSIONS)
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


# --- Registration of functions with XLA, each once per process and for all platforms ---

Native = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
"""A function of JAX arrays with the same leading shape and of the shapes of the results."""

_names: dict[tuple, str] = {}
_kept: list[Any] = []
"""Handlers, which XLA may call as long as the process lives."""
_number = count()


def register_with_xla(function: Function, constants: tuple[float, ...] | None) -> Native:
    """Return the call of a function by XLA, with its last input replaced by constants if they are given.

    Functions that are Python around compiled sweeps, or have arrays without entries, are called back from XLA.
    """
    jax = optional.jax()
    if not isinstance(function.gufunc, np.ufunc):
        more = () if constants is None else (np.array(constants, function.request.dtype),)

        def run(*arrays: object) -> tuple[Any, ...]:
            result = function.unchecked((*map(np.asarray, arrays), *more))
            return result if isinstance(result, tuple) else (result,)

        return lambda arrays, shapes: jax.pure_callback(run, tuple(shapes), *arrays, vmap_method="broadcast_all")
    name = _name(function, constants)
    return lambda arrays, shapes: jax.ffi.ffi_call(name, tuple(shapes), vmap_method="broadcast_all")(*arrays)


def _name(function: Function, constants: tuple[float, ...] | None) -> str:
    """Return the name of a function's target, which is registered first if it is new."""
    jax = optional.jax()
    key = function.mechanism.motion_hash, function.request, constants
    if key not in _names:
        name = f"kinetree_{function.name}_{next(_number)}"
        for platform, handler in (("cpu", CpuHandler(function, constants)), ("CUDA", GpuHandler(function, constants))):
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler.pointer), platform=platform)
            _kept.append(handler)
        _names[key] = name
    return _names[key]
