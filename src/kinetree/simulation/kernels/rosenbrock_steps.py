"""Rosenbrock methods with step control and dense output; every lane has its own time and step.

A stage solves (I - h gamma J) k = r. Where the rates of the coordinates are dq = m qd plus a function of time, this is
a system for the velocities alone: (I - h gamma J_qd - (h gamma)^2 J_q m) k_qd = r_qd + h gamma J_q r_q, and
k_q = r_q + h gamma m k_qd.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kernel, Kind
from ..rosenbrock import Rosenbrock
from ..slopes import Slopes, slopes_of
from .adaptive_steps import OWN, REPORT, SETTINGS, Adaptive
from .lane_solves import LaneSolver
from .runs_of_lanes import RunsOfLanes


def rosenbrock_kernel(
    program: Program, method: Rosenbrock, quaternions: Sequence[int], closing: Program | None = None, *, dtype: str
) -> Kernel:
    """Return the kernel of an adaptive method, with the arguments and the report of `adaptive_kernel`.

    The rates at the beginning of a step, which come with their Jacobian, count as an evaluation.
    """
    slopes = slopes_of(program)
    runs = RunsOfLanes(
        method.name, program, len(method.b), quaternions, closing,
        dtype=dtype, shared=SETTINGS, own=OWN, report=REPORT,
    )  # fmt: skip
    runs.k.programs["slopes"] = slopes.program
    return _Rosenbrock(runs, method, slopes).kernel()


class _Rosenbrock(Adaptive):
    """The writer of one kernel; `slopes` has the rates, df/dt and the Jacobian at the beginning of a step."""

    def __init__(self, runs: RunsOfLanes, method: Rosenbrock, slopes: Slopes) -> None:
        super().__init__(runs, method)
        k = runs.k
        self.method, self.moves = method, slopes.moves
        self.slopes = k.block("slopes", sum(a.size for a in slopes.program.outputs))
        self.solver = LaneSolver(k, runs.n if slopes.moves is None else runs.nv)
        self.fresh = k.block("fresh", kind=Kind.MASK)

    def begin(self) -> None:
        """Write that the Jacobian is required."""
        self.fresh.value = True

    def advance(self, now: Value, tried: Value, reached: Value) -> None:
        """Write the stages of a step and its end `z`.

        A Jacobian is computed if a lane has taken a step. In a lane whose step was rejected it has the same bits again.
        """
        runs, k, method = self.runs, self.k, self.method
        with k.when(k.any(self.fresh.value)):
            runs.copy(runs.y, runs.inputs, shift=1)
            runs.inputs[0] = now
            k.call("slopes", runs.inputs, self.slopes)
        implicit = tried * method.gamma
        self.fill(implicit)
        self.solver.factor()
        last = method.c.index(1.0)
        with k.loop(len(method.b)) as s:
            runs.stage(s, method.a, tried)
            with k.when(s.equals(0)):
                runs.copy(self.slopes, runs.stages)
            with k.when(s > 0):
                runs.rates((s >= last).where(reached, now + tried * k.choose(s, method.c)), s)
            self.couple(s, tried)
            self.solve(s, implicit)
        runs.advance(method.b, tried, self.z, 0)
        runs.normalize(self.z)
        runs.close(self.z, reached)

    def slope(self, i: Value, j: Value) -> Value:
        """Return an entry of the Jacobian, in the rows that the slopes have."""
        return self.slopes[(i + 2) * self.runs.n + j]

    def fill(self, implicit: Value) -> None:
        """Write the matrix I - h gamma J, reduced to the velocities where possible."""
        k, solver, nq = self.k, self.solver, self.runs.nq
        with k.loop(solver.size) as i:
            with k.loop(solver.size) as j:
                if self.moves is None:
                    entry = self.slope(i, j)
                else:
                    entry = self.slope(i, j + nq) + implicit * k.choose(j, self.moves) * self.slope(i, j)
                unit = i.equals(j).where(k.constant(1.0, Kind.LANE), 0.0)
                solver.matrix[i * solver.size + j] = unit - implicit * entry

    def couple(self, s: Value, tried: Value) -> None:
        """Write the right-hand side of stage s over the rates there."""
        runs, k, method = self.runs, self.k, self.method
        for i, (weights, d) in enumerate(zip(method.g, method.d, strict=True)):
            with k.when(s.equals(i)), k.loop(runs.n) as j:
                total = runs.stages[j + i * runs.n]
                if (others := runs.combine(weights, j)) is not None:
                    total = total + others
                if d:
                    total = total + self.slopes[j + runs.n] * (tried * d)
                runs.stages[j + i * runs.n] = total * method.gamma

    def solve(self, s: Value, implicit: Value) -> None:
        """Write stage s over its right-hand side."""
        runs, k, first = self.runs, self.k, s * self.runs.n
        if self.moves is None:
            self.solver.solve(runs.stages, first)
            return
        below = first + runs.nq
        with k.loop(runs.nq) as j:
            moved = implicit * runs.stages[first + j]
            with k.loop(runs.nv) as i:
                runs.stages[below + i] = runs.stages[below + i] + self.slope(i, j) * moved
        self.solver.solve(runs.stages, below)
        with k.loop(runs.nq) as j:
            moved = implicit * k.choose(j, self.moves) * runs.stages[below + j]
            runs.stages[first + j] = runs.stages[first + j] + moved

    def count(self, active: Value, good: Value, bad: Value) -> None:
        """Write the counts of evaluations, accepted and rejected steps; a rejected step takes no new Jacobian."""
        super().count(active, good, bad)
        v = self.v["evaluations"]
        v.value = v.value - bad.where(self.k.constant(1.0, Kind.LANE), 0.0)
        self.fresh.value = good

    def next_step(self, after: Value, h: Value, tried: Value, good: Value) -> Value:
        """Return the next step; one that was shortened to end at an output time does not shorten the next."""
        kept = good & ((tried < h) & (after < h))
        return kept.where(h, after)

    def take(self, good: Value, j: Value) -> None:
        """Write accepted steps into the state."""
        self.runs.y[j] = good.where(self.z[j], self.runs.y[j])
