"""One step of Newton's method on the loops of a mechanism, on traced scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...algebra.scalars import where
from ...dynamics import closed, closure, states
from ...model.mechanism import Mechanism
from .build import tree_maker
from .gaps import allowed_gaps
from .sweeps import Tree

Scalars = list[Any]


def gap_in_parts(mechanism: Mechanism, residual: Sequence[Any], dtype: str = "float64") -> Any:
    """Return the largest residual in parts of the allowed gap."""
    allowed = allowed_gaps(mechanism, dtype).tolist()
    return largest([x * (1.0 / a) for x, a in zip(residual, allowed, strict=True)])


def closing_step(
    mechanism: Mechanism, given: dict[str, Any], locked: frozenset[int], dtype: str = "float64"
) -> tuple[Scalars, Scalars]:
    """Return the residual at the given q, and the step in qd that closes the loops to first order."""
    residual = closure.closure_residual(Tree(mechanism, given))
    return residual, closed.closing_step(tree_maker(mechanism, dtype)(mechanism, given), locked)


def moved(mechanism: Mechanism, given: dict[str, Any], step: Scalars) -> Scalars:
    """Return q displaced by a step."""
    return states.integrate(Tree(mechanism, given | {"qd": step}))


def largest(xs: Sequence[Any]) -> Any:
    """Return the largest absolute value."""
    sizes = [where(x < 0.0, -x, x) for x in xs]
    top = sizes[0]
    for x in sizes[1:]:
        top = where(top < x, x, top)
    return top
