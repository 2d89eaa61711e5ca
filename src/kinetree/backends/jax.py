"""A mechanism under JAX, returned by `system.jax`: functions for jit and vmap, on the CPU and on GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._support import optional
from ..errors import InputError
from ..runtime.arguments import wrong_count, wrong_shape
from ..runtime.compiled import CompiledMechanism
from ..runtime.derived import entry_product
from ..runtime.function import Function
from ..runtime.methods import CallOptions, mirror
from .jax_products import VALUE, call_differentiably
from .mirrored import Mirrored, parameter_argument
from .xla import Native, register_with_xla

DTYPES = ("float64", "float32")


class JaxSystem(Mirrored):
    """A mechanism with its functions for JAX, the same methods as a System.

    Every method takes arrays with any leading shapes that fit together, all float64 or all float32, and can be part of
    functions under `jax.jit`, `jax.vmap`, `jax.grad`, `jax.jvp` and `jax.hessian`. Options, by keyword: `wrenches` and
    `parameters` as for NumPy. Numbers that are not finite pass through.
    """

    place = "JAX"

    def __init__(self, system: CompiledMechanism) -> None:
        """Store the system."""
        super().__init__(system)
        self._plain: dict[tuple[str, object], Callable[..., Any]] = {}
        self._calls: dict[tuple[Function, tuple[float, ...] | None], Callable[..., Any]] = {}

    def __reduce__(self):
        """Pickle the system."""
        return (JaxSystem, (self.system,))

    def _call(self, name: str, arrays: tuple, options: dict[str, Any]) -> Any:
        jax = optional.jax()
        dtype = getattr(arrays[0], "dtype", None)
        call = None if options else self._plain.get((name, dtype))
        if call is not None and all(isinstance(x, jax.Array) and x.dtype == dtype for x in arrays):
            return call(*arrays)
        return self._chosen(name, arrays, CallOptions.of(name, options, self.without))

    def _chosen(self, name: str, arrays: tuple, options: CallOptions) -> Any:
        jnp, arrays = optional.jax().numpy, options.arrays(arrays)
        constants: list[tuple[float, ...]] = []

        def numbers(values: tuple[float, ...]) -> None:
            constants.append(values)

        def columns(values: Sequence[object]) -> Any:
            return jnp.stack(jnp.broadcast_arrays(*(jnp.asarray(x, arrays[0].dtype) for x in values)), axis=-1)

        more = parameter_argument(self.mechanism, options.parameters, numbers=numbers, columns=columns)
        arrays = tuple(jnp.asarray(x) for x in (*arrays, *(() if constants else more)))
        function = self.system.function(name, **options.code(), dtype=common_dtype(name, arrays))
        call = self._prepared(function, constants[0] if constants else None)
        if options.plain:
            self._plain[name, arrays[0].dtype] = call
        return call(*arrays)

    def _prepared(self, function: Function, constants: tuple[float, ...] | None) -> Callable[..., Any]:
        """Return a function jitted, without its last input if constants are given."""
        key = function, constants
        if key not in self._calls:
            self._calls[key] = differentiable(*key)
        return self._calls[key]


def differentiable(function: Function, constants: tuple[float, ...] | None) -> Callable[..., Any]:
    """Return a function of JAX arrays, jitted, with derivatives in forward and reverse mode, also second ones."""
    jax = optional.jax()
    native = _Native(function, constants)

    def call(*arrays: Any) -> Any:
        if wrong := wrong_count(function.name, native.inputs, len(arrays)):
            raise wrong
        if wrong := wrong_shape(function.name, native.inputs, [x.shape for x in arrays]):
            raise wrong
        pairs = list(zip(native.inputs, arrays, strict=True))
        lead = np.broadcast_shapes(*(x.shape[: x.ndim - len(a.shape)] for a, x in pairs))
        results = call_differentiably(native, [jax.numpy.broadcast_to(x, lead + a.shape) for a, x in pairs])
        return results[0] if len(results) == 1 else results

    return jax.jit(call)


class _Native:
    """A compiled function and its products by XLA; with constants, these are its last input."""

    def __init__(self, function: Function, constants: tuple[float, ...] | None) -> None:
        self.function, self.constants = function, constants
        self.inputs = function.inputs if constants is None else function.inputs[:-1]
        self.cores = tuple(a.shape for a in self.inputs)
        self.outputs = tuple(a.shape for a in function.outputs)
        self._functions: dict[str, tuple[Function, Native]] = {}

    def run(self, kind: str, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the results of a kind of call for arrays with the same leading shape."""
        function, native = self._of(kind)
        lead = arrays[0].shape[: arrays[0].ndim - len(self.cores[0])]
        if self.constants is not None and kind != VALUE:
            jnp, n = optional.jax().numpy, len(self.cores)
            values = jnp.broadcast_to(jnp.asarray(self.constants, arrays[0].dtype), (*lead, len(self.constants)))
            arrays = (*arrays[:n], values, *arrays[n:])
        shapes = [optional.jax().ShapeDtypeStruct(lead + a.shape, function.request.dtype) for a in function.outputs]
        return native(arrays, shapes)

    def _of(self, kind: str) -> tuple[Function, Native]:
        """Return the function of a kind, compiled when it is first called."""
        if kind not in self._functions:
            names = [a.name for a in self.inputs]
            function = self.function if kind == VALUE else entry_product(self.function, kind, names)
            self._functions[kind] = function, register_with_xla(function, self.constants if kind == VALUE else None)
        return self._functions[kind]


def common_dtype(name: str, arrays: Sequence[Any]) -> str:
    """Return the precision of all arrays."""
    dtypes = [x.dtype.name for x in arrays]
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise InputError(f"{name}: an array has dtype {dtype}; expected float64 or float32")
    if len(set(dtypes)) > 1:
        raise InputError(f"{name}: the arrays have dtypes {', '.join(dtypes)}; give all arrays of one dtype")
    return dtypes[0]


mirror(JaxSystem, CompiledMechanism, "check", "threads", "dtype", "out")
