"""The functions of the CUDA driver's shared library, and the messages of its errors."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_void_p
from functools import cache
from typing import Any

from ....errors import InputError, KinetreeError

MINIMUM = 11080
"""The oldest CUDA version (11.8) of drivers that are accepted; CuPy, torch and JAX require this or a newer one."""

FUNCTIONS: dict[str, Sequence[Any]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (c_void_p,),
    "cuGetErrorName": (c_int, c_void_p),
    "cuGetErrorString": (c_int, c_void_p),
    "cuDeviceGetCount": (c_void_p,),
    "cuDeviceGet": (c_void_p, c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceTotalMem_v2": (c_void_p, c_int),
    "cuDeviceGetAttribute": (c_void_p, c_int, c_int),
    "cuDevicePrimaryCtxRetain": (c_void_p, c_int),
    "cuCtxGetCurrent": (c_void_p,),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuModuleLoadDataEx": (c_void_p, c_char_p, c_uint, c_void_p, c_void_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (c_void_p, c_void_p, c_char_p),
    "cuModuleGetGlobal_v2": (c_void_p, c_void_p, c_void_p, c_char_p),
    "cuFuncGetAttribute": (c_void_p, c_int, c_void_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuLaunchKernel": (c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p),
    "cuLaunchKernelEx": (c_void_p, c_void_p, c_void_p, c_void_p),
    "cuPointerGetAttribute": (c_void_p, c_int, c_void_p),
    "cuMemGetInfo_v2": (c_void_p, c_void_p),
    "cuMemAlloc_v2": (c_void_p, c_size_t),
    "cuMemFree_v2": (c_void_p,),
    "cuMemHostAlloc": (c_void_p, c_size_t, c_uint),
    "cuMemFreeHost": (c_void_p,),
    "cuMemcpyHtoDAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_void_p, ctypes.c_ubyte, c_size_t, c_void_p),
    "cuStreamCreate": (c_void_p, c_uint),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamQuery": (c_void_p,),
    "cuThreadExchangeStreamCaptureMode": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuEventCreate": (c_void_p, c_uint),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventQuery": (c_void_p,),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (ctypes.POINTER(c_float), c_void_p, c_void_p),
}
"""The driver's functions that are called, with the types of their arguments."""

NOT_READY = 600  # CUDA_ERROR_NOT_READY: queued work is not finished, which is no error
OUT_OF_MEMORY = 2
REMEDIES = {
    3: "if this process was forked after the GPU was used, start it with multiprocessing's method 'spawn'",
    35: "install a newer driver",
    100: "check with nvidia-smi that a GPU is visible, and that CUDA_VISIBLE_DEVICES names one",
    999: "check with nvidia-smi that the driver works; a restart of the machine may be required",
    700: "a kernel accessed memory that is not allocated; the arrays must stay alive until the stream has finished",
    803: "the driver in the kernel and its library differ; restart the machine after an update of the driver",
    900: "the first call of a function loads its code, which a CUDA graph cannot capture; call it once before",
    901: "the first call of a function loads its code, which a CUDA graph cannot capture; call it once before",
}
"""What to do about errors of the driver, by their number."""


class DriverError(KinetreeError, RuntimeError):
    """A failure of the GPU or its driver: the message gives the driver's function, error and a remedy."""


class Library:
    """The driver's shared library; `call` runs a function and raises DriverError if it fails."""

    def __init__(self, shared: object) -> None:
        """Look up all functions; InputError if the driver is too old to have one."""
        self._functions: dict[str, Any] = {}
        for name, arguments in FUNCTIONS.items():
            try:
                function = getattr(shared, name)
            except AttributeError:
                raise too_old(_version(shared)) from None
            function.argtypes, function.restype = arguments, c_int
            self._functions[name] = function
        self.launch_kernel = self._functions["cuLaunchKernel"]
        self.launch_prepared = self._functions["cuLaunchKernelEx"]

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the driver."""
        self.check(self._functions[name](*arguments), name)

    def current_context(self) -> int:
        """Return the context that is current in this thread, 0 without one."""
        context = c_void_p()
        self.check(self._functions["cuCtxGetCurrent"](byref(context)), "cuCtxGetCurrent")
        return context.value or 0

    def ready(self, name: str, handle: int) -> bool:
        """Call a query function and return whether the queued work is finished."""
        status = self._functions[name](handle)
        if status == NOT_READY:
            return False
        self.check(status, name)
        return True

    def handle(self, name: str, *arguments: object) -> int:
        """Call a function that writes a pointer or handle to its first argument, and return that."""
        value = c_void_p()
        self.call(name, byref(value), *arguments)
        return value.value or 0

    def number(self, name: str, *arguments: object) -> int:
        """Call a function that writes an int to its first argument, and return that."""
        value = c_int()
        self.call(name, byref(value), *arguments)
        return value.value

    def check(self, status: int, name: str) -> None:
        """Raise the error of a status that is not zero."""
        if status:
            raise self.error(status, name)

    def error(self, status: int, name: str, detail: str = "") -> Exception:
        """Return the error of a status: MemoryError if the GPU has no memory left, otherwise DriverError."""
        text = f"{name} failed: {self._text('cuGetErrorName', status)} ({self._text('cuGetErrorString', status)})"
        if status == OUT_OF_MEMORY:
            return MemoryError(f"{text}; run fewer samples at once, or free arrays on the GPU")
        remedy = f"; {REMEDIES[status]}" if status in REMEDIES else ""
        return DriverError(text + detail + remedy)

    def _text(self, name: str, status: int) -> str:
        text = c_char_p()
        self._functions[name](status, byref(text))
        return (text.value or b"error %d" % status).decode(errors="replace")


@cache
def library() -> Library:
    """Return the initialized driver; InputError if this machine has none, or one that is too old."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        shared = ctypes.WinDLL(name) if sys.platform == "win32" else ctypes.CDLL(name)
    except OSError as error:
        raise InputError(
            f"this machine has no NVIDIA driver ({error}); install one of CUDA {_named(MINIMUM)} or newer, "
            "or use the CPU: system.on('cpu')"
        ) from None
    version = _version(shared)
    if version < MINIMUM:
        raise too_old(version)
    found = Library(shared)
    try:
        found.call("cuInit", 0)
    except DriverError as error:
        raise InputError(f"the NVIDIA driver cannot be used: {error}") from None
    return found


def too_old(version: int, needed: int = MINIMUM) -> InputError:
    """Return the error for a driver that is too old."""
    return InputError(
        f"the NVIDIA driver supports CUDA {_named(version)}; CUDA {_named(needed)} or newer is required: "
        "install a newer driver"
    )


def _version(shared: Any) -> int:
    """Return the CUDA version of a driver, 12040 for 12.4; 0 if it has none."""
    value = c_int()
    try:
        shared.cuDriverGetVersion(byref(value))
    except AttributeError:
        return 0
    return value.value


def _named(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
