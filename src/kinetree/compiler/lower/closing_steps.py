"""Newton's method on the loops of a mechanism: a step on traced scalars, and the loop of steps in compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import ceil, log10
from typing import Any

import numpy as np

from ...algebra.scalars import Scalar, absolute, maximum
from ...dynamics import closed, closure, kinematics
from ...model.mechanism import Mechanism
from ...model.scales import largest_length
from ..ir.program import Array, Program
from ..lanes.expressions import Array as Lanes
from ..lanes.expressions import Block, Builder, Value
from ..lanes.form import Kernel, Kind
from .build import tree_maker
from .sweeps import Tree

# --- Gaps of loops that are attributed to rounding, in proportion to the size of a mechanism ---

GAP = {"float64": 1e-13, "float32": 5e-6}
"""The largest gap that runs do not correct, in radians and relative to the largest length: the size of rounding."""

ASTRAY = {"float64": 1e6, "float32": 1e3}
"""The gap relative to the allowed one above which loops of runs count as open; smaller gaps may remain near singular
positions."""

NEAR_ROUNDS = 10
"""The most full steps of Newton's method from near a closed position; after a time step, two are usual."""


def allowed_gaps(mechanism: Mechanism, dtype: str = "float64") -> np.ndarray:
    """Return the largest gap of every equation that is not corrected [rad or m]: rounding in a mechanism of this size.

    Gaps in meters are relative to the largest length of the mechanism. A length below one meter is rounded up to a
    power of ten.
    """
    size = largest_length(mechanism)
    size = size if size >= 1.0 else 10.0 ** ceil(log10(size))
    gap = GAP[dtype]
    return np.array([gap * size if e.unit == "m" else gap for e in mechanism.closures])


Scalars = list[Scalar]


def gap_in_parts(mechanism: Mechanism, residual: Sequence[Scalar], dtype: str = "float64") -> Scalar:
    """Return the largest residual relative to the allowed gap."""
    allowed = allowed_gaps(mechanism, dtype).tolist()
    return largest([x * (1.0 / a) for x, a in zip(residual, allowed, strict=True)])


def closing_step(
    mechanism: Mechanism, given: dict[str, Any], locked: frozenset[int], dtype: str = "float64"
) -> tuple[Scalars, Scalars]:
    """Return the residual at the given q, and the step in qd that closes the loops to first order."""
    residual = closure.closure_residual(Tree(mechanism, given))
    return residual, closed.closing_step(tree_maker(mechanism, dtype)(mechanism, given), locked)


def displace(mechanism: Mechanism, given: dict[str, Any], step: Scalars) -> Scalars:
    """Return q displaced by a step."""
    return kinematics.integrate(Tree(mechanism, given | {"qd": step}))


def largest(xs: Sequence[Scalar]) -> Scalar:
    """Return the largest absolute value."""
    return maximum(*map(absolute, xs))


# --- Newton's method until the loops are closed to rounding, for each lane by itself ---

ROUNDS = 60
"""The most steps, of which some are halved, from a start that may be far from a closed position."""
FINE, NEARLY = GAP["float64"] / 10, 1e-10
"""Gaps that are not corrected, and gaps that are not corrected if a step does not halve them [lengths, rad].

The first is finer than the gap that runs leave, so that a run does not change the positions that it starts from."""
SHORTEST = 2.0**-12
"""The part of a step below which a search ends: no step in its direction reduces the gap."""


class ClosingLoop:
    """Newton's method in an unfinished kernel: its memory, and the statements that repeat the Program `step`.

    The Program is (q, part[, parameters]) -> (q, gap): q after a part of one step of Newton's method, and the gap
    before it. `state` has its inputs, and `left` the gap of the q that was found.
    """

    def __init__(self, k: Builder, step: Program) -> None:
        """Declare the memory; the kernel calls the Program by the name "step"."""
        nq = self.nq = step.inputs[0].size
        self.k, self.firsts = k, {a.name: n for n, a in _firsts(step)}
        self.state, self.found = k.block("in", sum(a.size for a in step.inputs)), k.block("found", nq + 1)
        self.back, self.left, self.part = k.block("back", nq), k.block("left"), k.block("part")
        self.done, self.again = k.block("done", kind=Kind.MASK), k.block("again", kind=Kind.MASK)
        self.rounds = k.block("rounds", kind=Kind.COUNT)

    def close(self, ended: Value | None = None, enough: float = FINE) -> None:
        """Repeat the step until no gap is above `enough`, in all lanes but those that have `ended` before.

        A step that does not reduce the gap is halved.
        """
        k, nq, state, found, back = self.k, self.nq, self.state, self.found, self.back
        done, again, rounds, left, part = self.done, self.again, self.rounds, self.left, self.part
        left.value = 1e300 if ended is None else ended.where(left.value, 1e300)
        done.value = False if ended is None else ended
        again.value, rounds.value, part.value = False, 0, 1.0
        with k.repeat() as turn:
            state[nq] = part.value
            k.call("step", state, found)
            gap, before, ended, retried = found[nq], left.value, done.value, again.value
            worse = ~ended & ~retried & (gap > NEARLY) & ~(gap < before)
            stuck = (gap <= NEARLY) & (gap > before * 0.5) & ~retried  # rounding errors, which no step reduces
            still = (worse | ((gap > enough) & ~stuck)) & ~(worse & (part.value <= SHORTEST))
            rounds.value = rounds.value + 1
            after = ended | ~(still & (rounds.value <= ROUNDS))
            moves = ~after & ~worse
            with k.loop(nq) as j:
                here = worse.where(back[j], state[j])
                back[j] = here
                state[j] = moves.where(found[j], here)
            left.value = (worse | ended).where(before, gap)
            longer = retried.where(part.value, part.value * 2.0)
            part.value = worse.where(part.value * 0.5, (longer > 1.0).where(1.0, longer))
            again.value, done.value = worse, after
            turn.again = k.any(~after)


def closing_kernel(step: Program) -> Kernel:
    """Return the kernel (q[, parameters]) -> (q, gap) that repeats a step until the loops are closed to rounding.

    The Program `step` is that of `ClosingLoop`. The resulting gap is that of the resulting q.
    """
    nq = step.inputs[0].size
    k = Builder("closing", {"step": step})
    given = [k.array(a.name, a.size) for a in step.inputs if a.name != "part"]
    closed, gaps = k.array("closed", nq, output=True), k.array("gap", 1, output=True)
    newton = ClosingLoop(k, step)
    with k.each_lane():
        for array in given:
            load(k, newton.state, array, newton.firsts[array.argument.name])
    newton.close()
    with k.each_lane():
        with k.loop(nq) as j:
            closed[j] = newton.state[j]
        gaps[0] = newton.left.value
    return k.kernel()


def load(k: Builder, block: Block, array: Lanes, first: int) -> None:
    """Write the entries of an array of each lane into a block, from entry `first`."""
    with k.loop(array.argument.shape[-1]) as j:
        block[j + first] = array[j]


def _firsts(program: Program) -> list[tuple[int, Array]]:
    """Return the inputs of a program, each with the number of entries before it."""
    ends = accumulate((a.size for a in program.inputs), initial=0)
    return list(zip(ends, program.inputs, strict=False))
