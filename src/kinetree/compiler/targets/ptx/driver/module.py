"""Modules: code in the memory of a device."""

from __future__ import annotations

import ctypes
import re
import weakref
from ctypes import byref, c_size_t, c_uint, c_void_p
from typing import TYPE_CHECKING

from .....errors import InputError
from .library import DriverError, Library, too_old

if TYPE_CHECKING:
    from .device import Device

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
            raise explained(self._library, self.device, error, code, log.text) from None
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


def explained(library: Library, device: Device, error: DriverError, code: bytes, log: str) -> Exception:
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
