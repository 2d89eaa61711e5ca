"""Handlers for the CPU: native code that runs a gufunc's inner loop on the buffers of a call."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...targets import target
from ...targets.xla_frame import Handler
from ..function import Function
from ..gufunc import loop_of
from .version import minor_version


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
