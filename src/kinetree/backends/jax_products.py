"""Native functions as one primitive of JAX, with rules for forward mode, reverse mode and second derivatives.

A function y = f(x) has the products J dx (forward), J^T c (reverse), and the derivative of J^T c along dx, which is a
symmetric matrix times dx. The first two are transposes of each other, and the third is its own transpose, so that JAX
composes both modes twice. All arrays of a call have the same leading shape; JAX repeats and sums them around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from .._support import optional
from ..errors import InputError
from .autograd import TWICE

VALUE, FORWARD, REVERSE, SECOND = "value", "jvp", "vjp", "hvp"
"""The kinds of calls. Their arguments are x; x and dx; x and c; x, c and dx."""
BEYOND = (
    "JAX differentiates functions of a mechanism at most twice, the first time in reverse mode, as jax.hessian does: "
    "use jax.jacfwd(jax.jacrev(f)); third derivatives are not available"
)
"""The error for derivatives without a product."""


class Native(Protocol):
    """A function with its products, and the shapes of its arrays behind their leading axes."""

    @property
    def cores(self) -> Sequence[tuple[int, ...]]:
        """The shapes of x."""
        ...

    @property
    def outputs(self) -> Sequence[tuple[int, ...]]:
        """The shapes of y."""
        ...

    def run(self, kind: str, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the results of a kind of call for arrays with the same leading shape, also traced ones."""
        ...


def call_differentiably(native: Native, arrays: Sequence[object]) -> tuple[Any, ...]:
    """Return y of arrays x with the same leading shape; JAX can differentiate the call."""
    return tuple(_bind(native, VALUE, arrays))


def _bind(native: Native, kind: str, arrays: Sequence[object]) -> list[Any]:
    return _primitive().bind(*arrays, native=native, kind=kind)


@cache
def _primitive() -> Any:
    """Return the primitive with all its rules."""
    jax = optional.jax()
    from jax.extend.core import Primitive  # pyright: ignore[reportMissingImports]
    from jax.interpreters import ad, batching, mlir  # pyright: ignore[reportMissingImports]

    p = Primitive("kinetree")
    p.multiple_results = True

    def run(*arrays: object, native: Native, kind: str) -> list[Any]:
        return list(native.run(kind, arrays))

    def shapes(*arrays: Any, native: Native, kind: str) -> list[Any]:
        first = arrays[0]
        lead = first.shape[: first.ndim - len(native.cores[0])]
        cores = native.outputs if kind in (VALUE, FORWARD) else native.cores
        return [jax.core.ShapedArray(lead + core, first.dtype) for core in cores]

    def batched(arrays: Sequence[Any], axes: Sequence[Any], *, native: Native, kind: str) -> Any:
        pairs = list(zip(arrays, axes, strict=True))
        size = next(x.shape[k] for x, k in pairs if k is not None)
        wide = [
            jax.numpy.broadcast_to(x, (size, *x.shape)) if k is None else jax.numpy.moveaxis(x, k, 0) for x, k in pairs
        ]
        found = _bind(native, kind, wide)
        return found, [0] * len(found)

    p.def_impl(run)
    p.def_abstract_eval(shapes)
    mlir.register_lowering(p, mlir.lower_fun(run, multiple_results=True))
    batching.primitive_batchers[p] = batched
    ad.primitive_jvps[p] = _forward
    ad.primitive_transposes[p] = _transposed
    return p


def _forward(given: Sequence[object], tangents: Sequence[object], *, native: Native, kind: str) -> tuple[Any, Any]:
    """Return the results of a call, and their derivative along tangents of its arguments."""
    from jax.interpreters import ad  # pyright: ignore[reportMissingImports]

    n, m = len(native.cores), len(native.outputs)
    found = _bind(native, kind, given)
    x, rest = given[:n], given[n:]
    dx, changes = tangents[:n], tangents[n:]

    def moved(parts: Sequence[object]) -> bool:
        return any(type(t) is not ad.Zero for t in parts)

    def whole(parts: Sequence[object]) -> list[Any]:
        return [ad.instantiate_zeros(t) for t in parts]

    if moved(dx) and kind in (FORWARD, SECOND):
        raise InputError(BEYOND)
    terms = []
    if moved(dx):
        terms.append(_bind(native, FORWARD if kind == VALUE else SECOND, [*x, *rest, *whole(dx)]))
    if kind in (FORWARD, REVERSE) and moved(changes):  # linear in the other arguments
        terms.append(_bind(native, kind, [*x, *whole(changes)]))
    if kind == SECOND:  # linear in cotangents, and in tangents
        for own, other in ((slice(0, m), slice(m, None)), (slice(m, None), slice(0, m))):
            if moved(changes[own]):
                parts = {own.start: whole(changes[own]), other.start: list(rest[other])}
                terms.append(_bind(native, kind, [*x, *parts[0], *parts[m]]))
    return found, [sum(each[1:], start=each[0]) for each in zip(*terms, strict=True)]


def _transposed(cotangents: Sequence[object], *arguments: object, native: Native, kind: str) -> list[Any]:
    """Return the cotangents of the arguments in which a call is linear, and None for the others."""
    from jax.interpreters import ad  # pyright: ignore[reportMissingImports]

    n = len(native.cores)
    linear = [ad.is_undefined_primal(a) for a in arguments]
    first = n + (len(native.outputs) if kind == SECOND else 0)
    if kind == VALUE or any(linear[:first]):
        raise InputError(BEYOND)
    given = [*arguments[:first], *(ad.instantiate_zeros(c) for c in cotangents)]
    found = _bind(native, {FORWARD: REVERSE, REVERSE: FORWARD, SECOND: SECOND}[kind], given)
    return [None] * first + [c if own else None for c, own in zip(found, linear[first:], strict=True)]


# --- Functions of NumPy arrays, called back from XLA ---


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
    `outputs` behind it. `pull` also takes their cotangents and returns the cotangents of its arrays. Leading shapes
    that fit together are repeated. `forward` is the message of the error for derivatives in forward mode.
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
