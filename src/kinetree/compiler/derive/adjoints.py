"""Reverse mode: the derivatives of one combination of outputs with respect to all inputs, from outputs to inputs."""

from __future__ import annotations

from collections.abc import Mapping

from ...algebra.scalars import Scalar, is_number
from .recorded import Recorded, Row, add_to, times


def reverse(recorded: Recorded, weights: Mapping[int, Scalar], sources: set[int]) -> Row:
    """Return the derivatives of the weighted sum of output operations with respect to input operations."""
    active = recorded.active(sources, set(weights))
    adjoints: Row = {k: x for k, x in weights.items() if active[k]}
    out: Row = {}
    for k in reversed(range(max(weights, default=-1) + 1)):
        adjoint = adjoints.pop(k, None)
        if adjoint is None or (is_number(adjoint) and adjoint == 0.0):
            continue
        if k in sources:
            out[k] = adjoint
        else:
            for i, factor in recorded.partials(k):
                if active[i]:
                    add_to(adjoints, i, times(factor, adjoint))
    return out
