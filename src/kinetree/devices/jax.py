"""A mechanism under JAX, returned by `system.jax`: functions for jit and vmap, on the CPU and on GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiled import CompiledMechanism
from ..compiler.lower.build import Request, names_of
from ..compiler.runtime import optional
from ..compiler.runtime.function import Function
from ..compiler.runtime.gradients import pullback
from ..compiler.runtime.methods import mirror
from ..compiler.runtime.misfits import wrong_count, wrong_shape
from ..compiler.runtime.xla.registration import registered
from ..errors import InputError
from .callbacks import once
from .mirrored import Mirrored
from .parameters import parameter_argument

DTYPES = ("float64", "float32")


class JaxSystem(Mirrored):
    """A mechanism with its functions for JAX, the same methods as a System.

    Every method takes arrays with any leading shapes that fit together, all float64 or all float32, and can be part of
    functions under `jax.jit` and `jax.vmap`. Options, by keyword: `wrenches` and `parameters` as for NumPy. Numbers
    that are not finite pass through.
    """

    place = "JAX"

    def __init__(self, system: CompiledMechanism) -> None:
        """Store the system."""
        super().__init__(system)
        self._plain: dict[tuple[str, Any], Callable[..., Any]] = {}
        self._calls: dict[tuple[Request, tuple[float, ...] | None], Callable[..., Any]] = {}

    def __reduce__(self):
        """Pickle the system."""
        return (JaxSystem, (self.system,))

    def _call(self, name: str, arrays: tuple, options: dict[str, Any]) -> Any:
        jax = optional.jax()
        dtype = getattr(arrays[0], "dtype", None)
        call = None if options else self._plain.get((name, dtype))
        if call is not None and all(isinstance(x, jax.Array) and x.dtype == dtype for x in arrays):
            return call(*arrays)
        return self._chosen(name, arrays, **options)

    def _chosen(
        self,
        name: str,
        arrays: tuple,
        *,
        frame: str | None = None,
        axes: str | None = None,
        wrenches: Any = None,
        parameters: Any = None,
        driven: Any = (),
    ) -> Any:
        jnp = optional.jax().numpy
        if wrenches is not None:
            arrays = (*arrays, wrenches)
        constants: list[tuple[float, ...]] = []

        def numbers(values: tuple[float, ...]) -> None:
            constants.append(values)

        def columns(values: Sequence[Any]) -> Any:
            return jnp.stack(jnp.broadcast_arrays(*(jnp.asarray(x, arrays[0].dtype) for x in values)), axis=-1)

        more = parameter_argument(self.mechanism, parameters, numbers=numbers, columns=columns)
        arrays = tuple(jnp.asarray(x) for x in (*arrays, *(() if constants else more)))
        dtype = common_dtype(name, arrays)
        request = Request(name, frame, axes, wrenches is not None, dtype, driven=names_of(driven))
        call = self._prepared(request, constants[0] if constants else None)
        if frame is axes is wrenches is parameters is None and not driven:
            self._plain[name, arrays[0].dtype] = call
        return call(*arrays)

    def _prepared(self, request: Request, constants: tuple[float, ...] | None) -> Callable[..., Any]:
        """Return the jitted function of a request, without its last input if constants are given."""
        key = request, constants
        if key not in self._calls:
            r = request
            options = {"frame": r.frame, "axes": r.axes, "wrenches": r.wrenches, "dtype": r.dtype, "driven": r.driven}
            function = self.system.function(r.name, lowering=r.lowering, **options)
            self._calls[key] = differentiable(function, constants)
        return self._calls[key]


def differentiable(function: Function, constants: tuple[float, ...] | None) -> Callable[..., Any]:
    """Return a function of JAX arrays, jitted, whose gradients are those of `gradients.pullback`."""
    jax = optional.jax()
    call = jax.custom_vjp(_broadcast_call(function, constants))

    def forward(*arrays: Any) -> tuple[Any, Any]:
        return call(*arrays), arrays

    def backward(arrays: Any, cotangents: Any) -> tuple[Any, ...]:
        fixed = () if constants is None else (jax.numpy.asarray(constants, function.request.dtype),)
        pull = once(pullback(function, lambda f, *given: _broadcast_call(f, None)(*given), fixed))
        return pull(*arrays, *(cotangents if isinstance(cotangents, tuple) else (cotangents,)))

    call.defvjp(forward, backward)
    return jax.jit(call)


def _broadcast_call(function: Function, constants: tuple[float, ...] | None) -> Callable[..., Any]:
    """Return a function that checks shapes, broadcasts leading axes and calls native code."""
    jax = optional.jax()
    inputs = function.inputs if constants is None else function.inputs[:-1]
    native = registered(function, constants)

    def call(*arrays: Any) -> Any:
        if wrong := wrong_count(function.name, inputs, len(arrays)):
            raise wrong
        if wrong := wrong_shape(function.name, inputs, [x.shape for x in arrays]):
            raise wrong
        pairs = list(zip(inputs, arrays, strict=True))
        lead = np.broadcast_shapes(*(x.shape[: x.ndim - len(a.shape)] for a, x in pairs))
        wide = [jax.numpy.broadcast_to(x, lead + a.shape) for a, x in pairs]
        shapes = [jax.ShapeDtypeStruct(lead + a.shape, function.request.dtype) for a in function.outputs]
        results = native(wide, shapes)
        return results[0] if len(results) == 1 else tuple(results)

    return call


def common_dtype(name: str, arrays: Sequence[Any]) -> str:
    """Return the precision of all arrays."""
    dtypes = [x.dtype.name for x in arrays]
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise InputError(f"{name}: an array has dtype {dtype}; expected float64 or float32")
    if len(set(dtypes)) > 1:
        raise InputError(f"{name}: the arrays have dtypes {', '.join(dtypes)}; give all arrays of one dtype")
    return dtypes[0]


mirror(JaxSystem, CompiledMechanism, "forces", "check", "threads", "dtype", "out")
