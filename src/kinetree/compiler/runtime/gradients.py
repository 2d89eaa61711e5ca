"""Gradients of compiled functions for automatic differentiation, which displaces coordinates entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .derived import derived

Pullback = Callable[..., tuple[Any, ...]]
"""A function of all inputs and the cotangents of all outputs that returns the cotangents of all inputs."""
Pushforward = Callable[..., Any]
"""A function of all inputs and their tangents that returns the tangents of the outputs."""


def entry_product(function: Any, kind: str, inputs: Sequence[str] | None = None) -> Any:
    """Return a compiled product ("jvp", "vjp" or "hvp") of a function with respect to inputs by name, by default all.

    Coordinates are displaced entry by entry, because those libraries know nothing of the tangent space. InputError if
    the function has no derivatives.
    """
    return derived(function, kind, inputs, tangent=False)


def pullback(function: Any, run: Callable[..., Any], constants: Sequence[Any] = ()) -> Pullback:
    """Return the vector-Jacobian product of a function as automatic differentiation calls it.

    `run(function, *arrays)` runs a compiled function. `constants` are the last inputs of the function, which get no
    cotangents; those of the others have their shapes.
    """
    names = [a.name for a in function.inputs[: len(function.inputs) - len(constants)]]
    gradient = entry_product(function, "vjp", names)

    def pull(*arrays: Any) -> tuple[Any, ...]:
        given, cotangents = arrays[: len(names)], arrays[len(names) :]
        results = run(gradient, *given, *constants, *cotangents)
        each = results if isinstance(results, tuple) else (results,)
        return tuple(summed_to(x, tuple(a.shape)) for x, a in zip(each, given, strict=True))

    return pull


def pushforward(function: Any, run: Callable[..., Any], constants: Sequence[Any] = ()) -> Pushforward:
    """Return the Jacobian-vector product of a function, with the arguments of `pullback`."""
    names = [a.name for a in function.inputs[: len(function.inputs) - len(constants)]]
    product = entry_product(function, "jvp", names)
    return lambda *arrays: run(product, *arrays[: len(names)], *constants, *arrays[len(names) :])


def summed_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an array summed over the axes along which an array of a given shape was repeated."""
    more = x.ndim - len(shape)
    axes = (*range(more), *(more + k for k, n in enumerate(shape) if n == 1 and x.shape[more + k] != 1))
    return x.sum(axis=axes).reshape(shape) if axes else x
