"""Derivatives at singular positions of loops: an error for those that do not exist, and numbers for all others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...errors import InputError
from ..derive.singular_loops import is_guarded, ranks_of


class SingularPositionError(InputError):
    """Derivatives that do not exist at a position; `fact` is the message without its remedies."""

    fact: str = ""


def complete(function: Any, arguments: tuple, result: Any) -> None:
    """Raise InputError for the first sample at a singular position of the loops, if the function is a derivative.

    Samples in a branch of motion in which the loops have a smaller rank everywhere get their derivatives in `result`.
    """
    mechanism, request = function.mechanism, function.request
    if not is_guarded(mechanism, request):
        return
    arrays = [np.asarray(a, dtype=float) for a in arguments]
    lead = np.broadcast_shapes(
        *(a.shape[: a.ndim - len(i.shape)] for a, i in zip(arrays, function.inputs, strict=True))
    )
    named = {i.name: np.broadcast_to(a, (*lead, *i.shape)) for a, i in zip(arrays, function.inputs, strict=True)}
    q, values, known = named["q"], named.get("parameters", np.zeros((*lead, 0))), ranks_of(mechanism, request)
    ranks = np.broadcast_to(known.at(q, values), lead)
    low = ranks < known.usual
    for index in map(tuple, np.argwhere(low)):
        _refuse(function, index, q[index], int(ranks[index]), known.nearby(q[index], values[index]))
    if low.any():
        other = function.of(replace(request, derivative=replace(request.derivative, everywhere=True)))
        found = other.gufunc(*(x[low] for x in named.values()))
        pairs = [(result, found)] if len(function.outputs) == 1 else zip(result, found, strict=True)
        for place, x in pairs:
            place[low] = x


def _refuse(function: Any, index: tuple, q: Numbers, rank: int, nearby: int) -> None:
    """Raise InputError if the rank is larger nearby."""
    if rank >= nearby:
        return
    sample = f"sample [{', '.join(map(str, index))}], " if index else ""
    numbers = ", ".join(f"{x:.6g}" for x in q[:12]) + (", ..." if len(q) > 12 else "")
    held = " in the joints that are not driven" if function.request.driven else ""
    fact = (
        f"{function.mechanism.name!r} is at a singular position of its loops ({sample}q = [{numbers}]): their "
        f"equations have rank {rank}{held} there and {nearby} nearby"
    )
    remedy = "leave this sample out, " if index else ""
    error = SingularPositionError(
        f"{function.name}: {fact}, so there are no derivatives; move it away from there, {remedy}or give check=False, "
        "which returns NaN there"
    )
    error.fact = fact
    raise error
