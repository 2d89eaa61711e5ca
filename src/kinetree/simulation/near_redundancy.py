"""Nearly redundant equations of loops: they would follow from others except for a small contradiction.

The usual case is a third rod of a parallelogram that is slightly too long. The equations that come first are enforced.
The others stay open by the contradiction g, in parts of the mechanism's length. Near a singular position the enforced
equations become weak: positions are off by g / s and velocities by g / s^2, with s^2 the weakest pivot.
(docs/theory/closed-loops.md)
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from ..algebra.scalars import where
from ..compiler.lower.build import Request
from ..compiler.lower.gaps import allowed_gaps
from ..compiler.lower.loop_pattern import closing
from ..compiler.runtime.function import Function
from ..dynamics import closed
from ..model.mechanism import Mechanism
from ..model.scales import loop_units
from .run_states import Run

NEAR = 1e-8
"""The largest contradiction that a run tolerates [rad, or parts of the mechanism's length]."""

EXACT = 1e-12
"""The largest contradiction that is tolerated at singular positions: velocities are off by 1e-4 at most, since
equations with pivots below 1e-8 are not enforced."""

FAITHFUL = 1e-4
"""The largest relative error of velocities that a contradiction may cause."""


def contradicts(mechanism: Mechanism) -> bool:
    """Return whether a mechanism has nearly redundant equations whose contradiction must be checked at every step."""
    return closing(mechanism).misfit > EXACT


def contradiction(tree: Any, residual: list[Any], locked: frozenset[int] = frozenset()) -> Any:
    """Return the contradiction of the equations, in parts of the tolerated one, as a traced scalar."""
    units = loop_units(tree.mechanism)[0].tolist()
    gap = _largest([x * (1.0 / u) for x, u in zip(residual, units, strict=True)])
    gap = _larger(gap, tree.closing.misfit)
    return _larger(gap * (1.0 / NEAR), gap * (1.0 / FAITHFUL) / closed.at_rest(tree, locked).factors().weakest)


def guarded(tree: Any, accelerations: list[Any], locked: frozenset[int] = frozenset()) -> list[Any]:
    """Return accelerations, not finite if the contradiction would change velocities by more than FAITHFUL."""
    if not tree.closing.misfit > EXACT:
        return accelerations
    weakest = closed.at_rest(tree, locked).factors().weakest
    fine = where(weakest < tree.closing.misfit / FAITHFUL, 0.0, 1.0)
    return [a / fine for a in accelerations]


def explained(mechanism: Mechanism, run: Run, parameters: np.ndarray | None) -> Run:
    """Return a run whose failures name the nearly redundant equations that caused them."""
    if not (run.failures and mechanism.closures and contradicts(mechanism)):
        return run
    residual = Function(mechanism, Request("closure_residual")).gufunc

    def text(q: np.ndarray, last: int, own: np.ndarray | None) -> str:
        return named(mechanism, residual(q[last], *(() if own is None else (own,))))

    return run.explained(parameters, text)


def named(mechanism: Mechanism, residual: np.ndarray) -> str:
    """Return a text that names the nearly redundant equation with the largest gap at a position; "" if none is open."""
    parts = np.abs(residual) / allowed_gaps(mechanism)
    k = int(np.argmax(parts))
    if not parts[k] > 1.0:
        return ""
    e = mechanism.closures[k]
    return (
        f"loop {e.name!r} ({e.label}) is nearly redundant and stays open by {abs(residual[k]):.3g} {e.unit}, more than "
        f"the run can follow; correct its lengths, or leave it out"
    )


def _larger(x: Any, y: Any) -> Any:
    return where(x < y, y, x)


def _largest(xs: list[Any]) -> Any:
    return reduce(_larger, [where(x < 0.0, -x, x) for x in xs])
