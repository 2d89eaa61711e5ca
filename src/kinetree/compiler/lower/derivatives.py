"""Requests for derivatives: their kinds, the inputs that they are with respect to, and their arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...errors import InputError, unknown_name
from ..ir.program import Array

KINDS = ("jacobian", "jvp", "vjp", "hvp")
"""Jacobians, products of the Jacobian with tangents and with cotangents, and derivatives of the latter."""
COORDINATES = ("q", "q2")
"""The inputs that are coordinates, whose directions are those of joint velocities."""


@dataclass(frozen=True)
class Derivative:
    """A derivative of a function with respect to the inputs `wrt`; () in a request stands for all.

    Coordinates are displaced in the tangent space, as `integrate` does. Otherwise, with `tangent=False`, they are
    displaced entry by entry. Derivatives that do not exist at singular positions of loops are NaN there, unless they
    are wanted `everywhere`.
    """

    kind: str
    wrt: tuple[str, ...] = ()
    tangent: bool = True
    everywhere: bool = False

    def checked(self, name: str, inputs: Sequence[str]) -> Derivative:
        """Return the derivative with its inputs filled in; InputError with the possible ones for an unknown input."""
        for x in self.wrt:
            if x not in inputs:
                raise unknown_name(f"input of {name}", x, inputs)
        if len(set(self.wrt)) < len(self.wrt):
            raise InputError(f"wrt is {', '.join(self.wrt)}; expected each input once")
        return replace(self, wrt=self.wrt or tuple(inputs))


def inputs_of(wrt: Any) -> tuple[str, ...]:
    """Return the inputs of a derivative as names, given as None, one name or several."""
    names = () if wrt is None else (wrt,) if isinstance(wrt, str) else tuple(wrt) if isinstance(wrt, Iterable) else None
    if names is None or not all(isinstance(x, str) for x in names) or (wrt is not None and not names):
        raise InputError(f"wrt is {repr(wrt)[:60]}; give the names of inputs, such as 'q' or ('q', 'qd')")
    return names


def derived_arrays(
    derivative: Derivative, inputs: Sequence[Array], outputs: Sequence[Array], nv: int
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return the inputs and outputs of a derivative of a function with these inputs and outputs."""
    known = {a.name: a for a in inputs}
    along = [_directions(known[name], derivative.tangent, nv) for name in derivative.wrt]
    tangents = [Array(f"tangent_{a.name}", a.shape) for a in along]
    cotangents = [Array(f"cotangent_{a.name}", a.shape) for a in outputs]
    gradients = tuple(Array(f"cotangent_{a.name}", a.shape) for a in along)
    if derivative.kind == "jacobian":
        return tuple(inputs), tuple(Array(f"d{o.name}_d{a.name}", (*o.shape, *a.shape)) for o in outputs for a in along)
    if derivative.kind == "jvp":
        return (*inputs, *tangents), tuple(Array(f"tangent_{a.name}", a.shape) for a in outputs)
    if derivative.kind == "vjp":
        return (*inputs, *cotangents), gradients
    return (*inputs, *cotangents, *tangents), tuple(Array(f"tangent_{a.name}", a.shape) for a in gradients)


def _directions(a: Array, tangent: bool, nv: int) -> Array:
    return Array(a.name, (nv,)) if tangent and a.name in COORDINATES else a
