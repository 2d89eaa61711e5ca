"""Kernels of the lane language as functions of arrays: direct calls, `out`, threads, and errors of shapes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler.ir.program import Array
from ..compiler.lanes.form import Kernel
from ..errors import InputError
from ..targets import target
from .arguments import call_error, refuse_masked
from .cache import digest
from .native import NativeKernel, direct_call, load_code, register
from .threads import SUPPORTED, THREADS, Shared, thread_count


@dataclass(frozen=True)
class Precision:
    """What errors and threads ask of the request of a function: its name and its precision."""

    name: str
    dtype: str = "float64"


class KernelFunction:
    """A kernel in a precision as a function of its inputs, without an axis of times.

    It has the attributes of a `Function` that errors, threads and direct calls need. A direct call computes the samples
    again if NumPy has to report an error, so that only kernels without changes in place take it.
    """

    def __init__(self, kernel: Kernel, dtype: str = "float64") -> None:
        """Load the code of a kernel, or compile it, and register it with NumPy."""
        self.unit, self.name, self.request = kernel, kernel.name, Precision(kernel.name, dtype)
        arrays = [Array(a.name, tuple(int(n) for n in a.shape)) for a in kernel.arguments]
        self.inputs, self.outputs = arrays[: kernel.arity[0]], arrays[kernel.arity[0] :]
        self.counts = (ctypes.c_int64 * 2)()
        self.dtypes = [a.type or dtype for a in kernel.arguments]
        code = load_code(digest(kernel.hash, dtype, target().fingerprint()), lambda: kernel, dtype)
        address, signature = code.find("kernel"), kernel.signature
        self.gufunc = register(address, self.counts, kernel.name, signature, signature, kernel.arity, self.dtypes, code)
        self.kernel = NativeKernel(tuple(self.inputs), tuple(self.outputs), address, self.counts, code)
        self.shares: dict[int, Shared] = {}

    @property
    def output(self) -> Array:
        """The first output."""
        return self.outputs[0]

    @property
    def executor(self) -> KernelFunction:
        """What runs the samples: the function itself."""
        return self

    def run(self, arguments: tuple, constants: tuple[np.ndarray, ...], out: Any, threads: int | None) -> Any:
        """Run on arrays and, for the last inputs, constants; InputError for unsuitable ones."""
        for x in arguments:
            if type(x) is not np.ndarray:  # the usual arguments take no time here
                refuse_masked(self._shown(constants), arguments)
                break
        try:
            call = self.gufunc if threads is None or threads == 1 else self._on_threads(thread_count(threads))
            return call(*arguments, *constants) if out is None else call(*arguments, *constants, out=out)
        except InputError:
            raise
        except (ValueError, TypeError, RuntimeError) as error:
            raise call_error(self._shown(constants), arguments, out, error) from None

    def _shown(self, constants: tuple[np.ndarray, ...]) -> Any:
        """Return the function as errors show it, with the inputs that a caller gives."""
        return _Shown(self, self.inputs[: len(self.inputs) - len(constants)])

    def _on_threads(self, threads: int) -> Callable[..., Any]:
        """Return the gufunc on a number of threads: each sample is computed once, since kernels may change arrays."""
        if not SUPPORTED:
            return self.gufunc
        if threads > THREADS.size or threads not in self.shares:
            THREADS.start(threads)
            this: Any = self
            self.shares[threads] = self.shares.get(threads) or Shared(this, threads, self.dtypes)
        return self.shares[threads].once

    def direct(
        self, owner: object, constants: tuple[np.ndarray, ...], fallback: Callable[..., object]
    ) -> Callable[..., Any]:
        """Return a function of the inputs before the constants; it leaves unusual arguments to `fallback`."""
        return direct_call(self.kernel, owner, "_call", "", constants, fallback) or fallback


class _Shown:
    """A function with the inputs that a caller gives, for errors."""

    def __init__(self, function: KernelFunction, inputs: list[Array]) -> None:
        self.name, self.request, self.inputs, self.outputs = function.name, function.request, inputs, function.outputs
