"""Functions of the present state, compiled: those of events and of sampled control."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir.program import Array, Program
from ..compiler.ir.trace import Trace
from ..model.mechanism import Mechanism
from .instants import Instant

HINT = (
    "write it with the functions of kinetree.simulation.smooth (sin, cos, sqrt, where, clip, ...) "
    "in the place of if, abs, min, max and those of math"
)
"""The remedy for a function that cannot be compiled."""


def observed(name: str, mechanism: Mechanism, function: Callable[[Instant], Sequence[Any]], size: int) -> Program:
    """Return the Program (t, q, qd[, parameters]) -> values [size] of a function of `now`."""
    trace = Trace()
    inputs = [Array("t", (1,)), Array("q", (mechanism.nq,)), Array("qd", (mechanism.nv,))]
    if free := len(mechanism.free_parameters):
        inputs.append(Array("parameters", (free,)))
    t, q, qd, *more = ([trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs))
    values = function(Instant(mechanism, t[0], q, qd, more[0] if more else None))
    return Program.of_trace(name, inputs, [Array("values", (size,))], trace, [values])
