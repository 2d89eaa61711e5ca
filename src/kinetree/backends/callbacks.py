"""Functions of NumPy arrays with their products of Jacobians as functions of JAX arrays, called back from XLA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._support import optional
from ..errors import InputError
from .autograd import TWICE
from .jax_products import FORWARD, REVERSE, VALUE, call_differentiably

Arrays = tuple[np.ndarray, ...]
"""Arrays with the same leading shape."""


def called_back(
    run: Callable[..., Arrays],
    pull: Callable[..., Arrays],
    inputs: Sequence[tuple[int, ...]],
    outputs: Sequence[tuple[int, ...]],
    *,
    forward: str,
) -> Callable[..., tuple[Any, ...]]:
    """Return a function of JAX arrays with gradients, for jit and vmap, in float64.

    `run` takes arrays with one leading shape, and the shapes `inputs` behind it, and returns arrays with the shapes
    `outputs` behind it. `pull` also takes their cotangents and returns those of its arrays. Leading shapes that fit
    together are repeated. `forward` is the message of the error for derivatives in forward mode.
    """
    native = _CalledBack(run, pull, tuple(inputs), tuple(outputs), forward)

    def call(*arrays: Any) -> tuple[Any, ...]:
        pairs = list(zip(arrays, inputs, strict=True))
        lead = np.broadcast_shapes(*(x.shape[: x.ndim - len(core)] for x, core in pairs))
        return call_differentiably(native, [optional.jax().numpy.broadcast_to(x, lead + core) for x, core in pairs])

    return call


class _CalledBack:
    """The products of a function of NumPy arrays."""

    def __init__(
        self,
        run: Callable[..., Arrays],
        pull: Callable[..., Arrays],
        cores: Sequence[tuple[int, ...]],
        outputs: Sequence[tuple[int, ...]],
        forward: str,
    ) -> None:
        self.cores, self.outputs, self._run, self._pull, self._forward = cores, outputs, run, pull, forward

    def run(self, kind: str, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the results of a kind of call for arrays with the same leading shape."""
        if kind not in (VALUE, REVERSE):
            raise InputError(self._forward if kind == FORWARD else TWICE.format("JAX"))
        jax = optional.jax()
        function, cores = (self._run, self.outputs) if kind == VALUE else (self._pull, self.cores)
        if not any(isinstance(x, jax.core.Tracer) for x in arrays):  # errors then reach the caller as they are
            return tuple(map(jax.numpy.asarray, function(*map(np.asarray, arrays))))
        lead = arrays[0].shape[: arrays[0].ndim - len(self.cores[0])]
        shapes = tuple(jax.ShapeDtypeStruct(lead + core, "float64") for core in cores)
        return jax.pure_callback(
            lambda *given: function(*map(np.asarray, given)), shapes, *arrays, vmap_method="broadcast_all"
        )
