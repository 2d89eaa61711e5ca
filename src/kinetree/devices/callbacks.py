"""Functions of NumPy arrays with their products of Jacobians as functions of JAX arrays, called back from XLA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.runtime import optional
from ..compiler.runtime.gradients import summed_to
from ..errors import InputError
from .autograd import TWICE

Arrays = tuple[np.ndarray, ...]
"""Arrays with the same leading shape."""


def called_back(
    run: Callable[..., Arrays], pull: Callable[..., Arrays], inputs: Sequence[int], outputs: Sequence[tuple[int, ...]]
) -> Callable[..., tuple[Any, ...]]:
    """Return a function of JAX arrays with gradients, for jit and vmap, in float64.

    `run` takes arrays with one leading shape and returns arrays with the shapes `outputs` behind it. `pull` also takes
    their cotangents and returns those of its arrays. `inputs` are the numbers of axes of the arrays that are not
    leading ones; leading shapes that fit together are repeated.
    """
    jax = optional.jax()

    def wide(arrays: Sequence[Any]) -> tuple[tuple[int, ...], list[Any]]:
        cores = [x.shape[x.ndim - n :] for x, n in zip(arrays, inputs, strict=True)]
        lead = np.broadcast_shapes(*(x.shape[: x.ndim - n] for x, n in zip(arrays, inputs, strict=True)))
        return lead, [jax.numpy.broadcast_to(x, lead + core) for x, core in zip(arrays, cores, strict=True)]

    def back(function: Callable[..., Arrays], shapes: Sequence[tuple[int, ...]], arrays: Sequence[Any]) -> Any:
        if not any(isinstance(x, jax.core.Tracer) for x in arrays):  # errors then reach the caller as they are
            return tuple(map(jax.numpy.asarray, function(*map(np.asarray, arrays))))
        found = tuple(jax.ShapeDtypeStruct(shape, "float64") for shape in shapes)
        return jax.pure_callback(
            lambda *given: function(*map(np.asarray, given)), found, *arrays, vmap_method="broadcast_all"
        )

    @jax.custom_vjp
    def call(*arrays: Any) -> Any:
        lead, repeated = wide(arrays)
        return back(run, [lead + shape for shape in outputs], repeated)

    def forward(*arrays: Any) -> tuple[Any, Any]:
        return call(*arrays), arrays

    @once
    def pulled(*arrays: Any) -> tuple[Any, ...]:
        count = len(inputs)
        _, repeated = wide(arrays[:count])
        found = back(pull, [x.shape for x in repeated], (*repeated, *arrays[count:]))
        return tuple(summed_to(x, a.shape) for x, a in zip(found, arrays[:count], strict=True))

    def backward(arrays: Any, cotangents: Any) -> tuple[Any, ...]:
        return pulled(*arrays, *cotangents)

    call.defvjp(forward, backward)
    return call


def once(gradient: Callable[..., Any]) -> Callable[..., Any]:
    """Return a gradient that JAX refuses to differentiate again, with the reason."""
    guarded = optional.jax().custom_vjp(gradient)

    def refused(*_: Any) -> Any:
        raise InputError(TWICE.format("JAX"))

    guarded.defvjp(refused, refused)
    return guarded
