"""Gradients of compiled functions: the one place from which automatic differentiation obtains them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import InputError
from ...model.mechanism import Mechanism
from ..lower.build import Request

Pullback = Callable[..., tuple[Any, ...]]
"""A function of all inputs and the cotangents of all outputs that returns the cotangents of all inputs."""


def pullback(mechanism: Mechanism, request: Request) -> Pullback:
    """Return the vector-Jacobian product of a function; InputError, because no function has one yet."""
    raise InputError(
        f"{request.name} of {mechanism.name!r} has no gradient; call it without gradients, by torch.no_grad() or "
        "x.detach() for torch, jax.lax.stop_gradient(x) for JAX"
    )
