"""Derivatives of compiled functions, which are compiled functions themselves, on the CPU and on GPUs alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

from ..compiler.ir.program import Program
from ..compiler.lower.build import Derivative, Request, build, inputs_of, signature
from ..dynamics import ALGORITHMS
from ..errors import InputError
from ..model.mechanism import Mechanism
from .singularity import refuse_singular

Wrt = str | Iterable[str] | None
"""The names of inputs, None for all."""


def program_of(mechanism: Mechanism, request: Request) -> Program:
    """Return the Program of a checked request; only derivatives need the rules of differentiation."""
    if request.derivative is None:
        return build(mechanism, request)
    from ..compiler.derive.build import build as build_derivative

    return build_derivative(mechanism, request)


class Derivable:
    """An algorithm or a derivative on a mechanism, with its arrays and the derivatives that were taken of it.

    Subclasses add what runs it.
    """

    def __init__(self, mechanism: Mechanism, request: Request) -> None:
        """Check a request; ModelError if it divides by inertias that are zero."""
        self.mechanism, self.request = mechanism, request.checked(mechanism)
        if ALGORITHMS[self.request.name].inverts:
            refuse_singular(mechanism, self.request)
        self.inputs, self.outputs = signature(mechanism, self.request)
        self.derivatives: dict[Derivative, Self] = {}

    @property
    def name(self) -> str:
        """The name of the algorithm, or of its derivative."""
        return self.request.title

    def of(self, request: Request) -> Self:
        """Return another function of the same mechanism in the same place."""
        raise NotImplementedError

    def jacobian(self, wrt: Wrt = None) -> Self:
        """Return the compiled function of the Jacobians with respect to inputs by name, by default all.

        It has the inputs of this function. Its outputs are arrays [..., *output, *input], for every output and then
        for every input. Coordinates q are displaced in the tangent space, by dq at integrate(q, dq), [..., nv].
        """
        return derive(self, "jacobian", wrt)

    def jvp(self, wrt: Wrt = None) -> Self:
        """Return the compiled function of the derivatives of the outputs along a tangent of each input in `wrt`.

        It takes the inputs of this function, then the tangents. Its outputs have the shapes of this function's outputs.
        """
        return derive(self, "jvp", wrt)

    def vjp(self, wrt: Wrt = None) -> Self:
        """Return the compiled function of the gradients of all outputs times cotangents, for each input in `wrt`.

        It takes the inputs of this function, then a cotangent of each output. Its outputs are the derivatives of the
        sum of all outputs, each entry times its cotangent.
        """
        return derive(self, "vjp", wrt)

    def hvp(self, wrt: Wrt = None) -> Self:
        """Return the compiled function of second derivatives: `vjp` differentiated along a tangent of each input.

        It takes the inputs of this function, then a cotangent of each output, then the tangents.
        """
        return derive(self, "hvp", wrt)

    def arrays(self) -> str:
        """Return the names and shapes of the inputs and outputs, for messages."""
        inputs, outputs = (", ".join(f"{a.name}{list(a.shape)}" for a in x) for x in (self.inputs, self.outputs))
        return f"{self.name}({inputs}) -> {outputs} of {self.mechanism.name}"


D = TypeVar("D", bound=Derivable)


def derive(function: D, kind: str, wrt: Wrt, *, tangent: bool = True) -> D:
    """Return a derivative of a function, which keeps it; with `tangent=False`, coordinates move entry by entry."""
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


# --- Gradients of compiled functions for automatic differentiation, which displaces coordinates entry by entry.

Pullback = Callable[..., tuple[Any, ...]]
"""A function of all inputs and the cotangents of all outputs that returns the cotangents of all inputs."""
Pushforward = Callable[..., Any]
"""A function of all inputs and their tangents that returns the tangents of the outputs."""


def entry_product(function: D, kind: str, inputs: Sequence[str] | None = None) -> D:
    """Return a compiled product ("jvp", "vjp" or "hvp") of a function with respect to inputs by name, by default all.

    Coordinates are displaced entry by entry, because those libraries know nothing of the tangent space. InputError if
    the function has no derivatives.
    """
    return derive(function, kind, inputs, tangent=False)


def pullback(function: Derivable, run: Callable[..., Any], constants: Sequence[Any] = ()) -> Pullback:
    """Return the vector-Jacobian product of a function as automatic differentiation calls it.

    `run(function, *arrays)` runs a compiled function. `constants` are the last inputs of the function, which get no
    cotangents; the cotangent of every other input has its shape.
    """
    names = [a.name for a in function.inputs[: len(function.inputs) - len(constants)]]
    gradient = entry_product(function, "vjp", names)

    def pull(*arrays: Any) -> tuple[Any, ...]:
        given, cotangents = arrays[: len(names)], arrays[len(names) :]
        results = run(gradient, *given, *constants, *cotangents)
        each = results if isinstance(results, tuple) else (results,)
        return tuple(summed_to(x, tuple(a.shape)) for x, a in zip(each, given, strict=True))

    return pull


def pushforward(function: Derivable, run: Callable[..., object], constants: Sequence[object] = ()) -> Pushforward:
    """Return the Jacobian-vector product of a function, with the arguments of `pullback`."""
    names = [a.name for a in function.inputs[: len(function.inputs) - len(constants)]]
    product = entry_product(function, "jvp", names)
    return lambda *arrays: run(product, *arrays[: len(names)], *constants, *arrays[len(names) :])


def summed_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an array summed over the axes along which an array of a given shape was repeated."""
    more = x.ndim - len(shape)
    axes = (*range(more), *(more + k for k, n in enumerate(shape) if n == 1 and x.shape[more + k] != 1))
    return x.sum(axis=axes).reshape(shape) if axes else x
