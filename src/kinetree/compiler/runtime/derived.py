"""Derivatives of a compiled function as compiled functions: methods of functions on the CPU and on GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...errors import InputError
from ..lower.derivatives import Derivative, inputs_of

Wrt = str | Iterable[str] | None
"""The names of inputs, None for all."""


def jacobian(self, wrt: Wrt = None) -> Any:
    """Return the compiled function of the Jacobians with respect to inputs by name, by default all.

    Its inputs are those of this function. Its outputs are arrays [..., *output, *input], for every output and then for
    every input. Coordinates q are displaced in the tangent space, by dq at integrate(q, dq), [..., nv].
    """
    return derived(self, "jacobian", wrt)


def jvp(self, wrt: Wrt = None) -> Any:
    """Return the compiled function of the derivatives of the outputs along a tangent of each input in `wrt`.

    Its inputs are those of this function, then the tangents. Its outputs have the shapes of this function's.
    """
    return derived(self, "jvp", wrt)


def vjp(self, wrt: Wrt = None) -> Any:
    """Return the compiled function of the gradients of all outputs times cotangents, for each input in `wrt`.

    Its inputs are those of this function, then a cotangent of each output. Its outputs are the derivatives of the sum
    of all outputs, each entry times its cotangent.
    """
    return derived(self, "vjp", wrt)


def hvp(self, wrt: Wrt = None) -> Any:
    """Return the compiled function of second derivatives: those of `vjp` along a tangent of each input in `wrt`.

    Its inputs are those of this function, then a cotangent of each output, then the tangents.
    """
    return derived(self, "hvp", wrt)


def derived(function: Any, kind: str, wrt: Wrt, *, tangent: bool = True) -> Any:
    """Return a derivative of a function, which keeps it; `function.of` makes functions of other requests."""
    request = function.request
    if request.derivative is not None:
        raise InputError(
            f"{function.name} of {function.mechanism.name!r} is a derivative and has none itself; hvp of the function "
            "returns second derivatives"
        )
    wanted = Derivative(kind, inputs_of(wrt), tangent)
    found = function.derivatives.get(wanted)
    if found is None:
        found = function.derivatives[wanted] = function.of(replace(request, derivative=wanted))
    return found
