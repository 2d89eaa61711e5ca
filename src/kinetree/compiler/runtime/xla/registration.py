"""Registration of functions with XLA, each once per process and for all platforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from .. import optional
from ..function import Function
from .on_cpu import CpuHandler
from .on_gpu import GpuHandler

Native = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
"""A function of JAX arrays with the same leading shape and of the shapes of the results."""

_names: dict[tuple, str] = {}
_kept: list[Any] = []
"""Handlers, which XLA may call as long as the process lives."""
_number = count()


def registered(function: Function, constants: tuple[float, ...] | None) -> Native:
    """Return the call of a function by XLA, with its last input replaced by constants if they are given.

    Functions that are Python around compiled sweeps, or have arrays without entries, are called back from XLA.
    """
    jax = optional.jax()
    if not isinstance(function.gufunc, np.ufunc):
        more = () if constants is None else (np.array(constants, function.request.dtype),)

        def run(*arrays: Any) -> tuple[Any, ...]:
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
