"""Singular positions of loops, at which accelerations and forces have no derivatives: these are NaN there.

A position is singular where the equations of the loops have a smaller rank than at closed positions nearby. The rank is
the number of pivots that the code itself takes, so that it costs a comparison per equation. Generated code compares it
with the usual rank of the mechanism. A mechanism may have branches of motion with more freedom, where the rank is
smaller and no position nearby has a larger one: `Ranks.nearby` tells these from singular positions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...algebra.scalars import Scalar, where
from ...dynamics import closed
from ...model.mechanism import Mechanism, kept_with_mechanism
from ..ir.program import Array, Program
from ..lower.build import Request, signature, tree_maker
from ..lower.loop_pattern import CLOSE, STRIDE, PlainLoops
from .recorded import Recorded, trace_inputs

SOLVED = ("forward_dynamics", "implicit_dynamics", "multipliers", "closing_speed", "closing_step", "hybrid_dynamics")
"""The functions that solve the equations of the loops: of positions for closing_step, of all loops otherwise."""
WALKS = 3
"""The steps of each length to closed positions near a position."""


def is_guarded(mechanism: Mechanism, request: Request) -> bool:
    """Return whether a request is a derivative that does not exist at singular positions of the loops."""
    wanted = request.derivative
    return request.name in SOLVED and bool(mechanism.closures) and wanted is not None and not wanted.everywhere


def required_rank(mechanism: Mechanism, request: Request) -> int:
    """Return the rank of the equations of loops below which a derivative is NaN; 0 if it exists everywhere."""
    return ranks_of(mechanism, request).usual if is_guarded(mechanism, request) else 0


def guard_rank(mechanism: Mechanism, request: Request, program: Program, rank: int) -> Program:
    """Return the Program of a derivative with NaN at positions of less than a rank, and the same bits elsewhere."""
    if not rank:
        return program
    trace, given = trace_inputs(program.inputs)
    results = list(Recorded(program, given).outputs().values())
    inputs = signature(mechanism, replace(request, derivative=None))[0]
    here = ranks_of(mechanism, request).of({a.name: given[a.name] for a in inputs})
    one = where(here < rank - 0.5, math.nan, 1.0)
    return Program.of_trace(
        program.name, program.inputs, program.outputs, trace, [[x * one for x in entries] for entries in results]
    )


def ranks_of(mechanism: Mechanism, request: Request) -> Ranks:
    """Return the ranks of the equations that a function solves."""
    return Ranks(mechanism, request.dtype, frozenset(request.driven), positions=request.name == "closing_step")


@dataclass(frozen=True)
class Ranks:
    """The rank of the equations of a mechanism's loops, in the precision of the code.

    Driven degrees of freedom, by label, are held. With `positions`, only the equations of positions take part.
    """

    mechanism: Mechanism
    dtype: str = "float64"
    driven: frozenset = frozenset()
    positions: bool = False

    @cached_property
    def usual(self) -> int:
        """The largest rank at closed positions near the guess; 0 if the loops do not close from there."""
        values = np.array([p.value for p in self.mechanism.free_parameters], dtype=float)
        return max((int(self.at(q, values)) for q in _closed_positions(self.mechanism)), default=0)

    def at(self, q: Numbers, values: Numbers) -> Numbers:
        """Return the ranks [...] at positions [..., nq] for values [..., np] of the free parameters."""
        (found,) = self._program.interpret(*((q, values) if self.mechanism.free_parameters else (q,)))
        return found

    def nearby(self, q: Numbers, values: Numbers) -> int:
        """Return the largest rank at q and at closed positions around it.

        The joint that moves most is held there, so that Newton's method cannot return to q.
        """
        loops = PlainLoops(self.mechanism.fixed(values) if self.mechanism.free_parameters else self.mechanism)
        rng = np.random.default_rng(3)
        most = here = int(self.at(q, values))
        with_all = replace(self, driven=frozenset(), positions=False) if self.driven or self.positions else self
        free = np.linalg.svd(loops.of_positions(q))[2][int(with_all.at(q, values)) :]
        for length in (STRIDE, STRIDE / 10) * WALKS:
            step = rng.normal(size=len(free)) @ free
            step *= length / max(np.abs(step).max(initial=0.0), 1e-300)
            held = np.abs(step) == np.abs(step).max(initial=0.0)
            around, gap = loops.closed(loops.move(q, step), held=held)
            if gap <= CLOSE:
                most = max(most, int(self.at(around, values)))
            if most > here:
                break
        return most

    def of(self, given: Mapping[str, Sequence[Scalar]]) -> Any:
        """Return the number of pivots of J I^-1 J^T that the functions of SOLVED take, by the same arithmetic."""
        tree = tree_maker(self.mechanism, self.dtype)(self.mechanism, given)
        return closed.at_rest(tree, self.driven, positions=self.positions).rank()

    @cached_property
    def _program(self) -> Program:
        arrays = signature(self.mechanism, Request("forward_dynamics"))[0]
        inputs = [a for a in arrays if a.name in ("q", "parameters")]
        trace, given = trace_inputs(inputs)
        return Program.of_trace("rank", inputs, [Array("rank", ())], trace, [[self.of(given)]])


@kept_with_mechanism
def _closed_positions(mechanism: Mechanism) -> list[Numbers]:
    loops = PlainLoops(mechanism)
    return [q for q, _ in loops.positions() if np.abs(loops.residual(q)).max(initial=0.0) <= CLOSE]
