"""Stages of Rosenbrock methods in the lane language, and their linear equations.

A stage solves (I - h gamma J) k = r. Where the rates of the coordinates are dq = m qd plus a function of time, this is
a system for the velocities alone: (I - h gamma J_qd - (h gamma)^2 J_q m) k_qd = r_qd + h gamma J_q r_q, and
k_q = r_q + h gamma m k_qd.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...compiler.derive.jacobians import jvp
from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Block, Builder, Value
from ...compiler.lanes.form import Kind
from ..acting.rates import Slopes, slopes_of
from .lane_states import LaneSolver, LaneStates
from .tangent_states import TangentRuns

if TYPE_CHECKING:
    from .rosenbrock import Rosenbrock


class ShiftedJacobian:
    """The matrix I - h gamma J of a step; `slopes` has the rates, df/dt and the Jacobian at its beginning.

    The kernel calls the Program of the slopes "slopes".
    """

    def __init__(self, k: Builder, slopes: Slopes) -> None:
        """Declare the memory, and add the Program to the kernel."""
        k.programs["slopes"] = slopes.program
        self.k, self.moves = k, slopes.moves
        self.nq, self.nv = (a.size for a in slopes.program.inputs[1:3])
        self.n = self.nq + self.nv
        self.slopes = k.block("slopes", sum(a.size for a in slopes.program.outputs))
        self.solver = LaneSolver(k, self.n if slopes.moves is None else self.nv)

    def evaluate(self, inputs: Block) -> None:
        """Write the rates, df/dt and the Jacobian."""
        self.k.call("slopes", inputs, self.slopes)

    def slope(self, i: Value, j: Value) -> Value:
        """Return an entry of the Jacobian, in the rows that the slopes have."""
        return self.slopes[(i + 2) * self.n + j]

    def by_time(self, j: Value) -> Value:
        """Return an entry of df/dt."""
        return self.slopes[j + self.n]

    def factor(self, implicit: Value) -> None:
        """Write the factors of the matrix, reduced to the velocities where possible; `implicit` is h gamma."""
        k, solver = self.k, self.solver
        with k.loop(solver.size) as i:
            with k.loop(solver.size) as j:
                if self.moves is None:
                    entry = self.slope(i, j)
                else:
                    entry = self.slope(i, j + self.nq) + implicit * k.choose(j, self.moves) * self.slope(i, j)
                unit = i.equals(j).where(k.constant(1.0, Kind.LANE), 0.0)
                solver.matrix[i * solver.size + j] = unit - implicit * entry
        solver.factor()

    def solve(self, block: Block, first: Value, implicit: Value) -> None:
        """Write the solution over a right-hand side, which begins at the entry `first` of a block."""
        k = self.k
        if self.moves is None:
            self.solver.solve(block, first)
            return
        below = first + self.nq
        with k.loop(self.nq) as j:
            moved = implicit * block[first + j]
            with k.loop(self.nv) as i:
                block[below + i] = block[below + i] + self.slope(i, j) * moved
        self.solver.solve(block, below)
        with k.loop(self.nq) as j:
            moved = implicit * k.choose(j, self.moves) * block[below + j]
            block[first + j] = block[first + j] + moved

    def solve_transposed(self, block: Block, implicit: Value) -> None:
        """Write the solution of the transposed equations over a right-hand side, a block of the size of a state."""
        k, nq, nv = self.k, self.nq, self.nv
        if self.moves is None:
            self.solver.solve_transposed(block)
            return
        reduced = k.block("reduced", nv)
        with k.loop(nv) as i:
            reduced[i] = block[i + nq] + implicit * k.choose(i, self.moves) * block[i]
        self.solver.solve_transposed(reduced)
        with k.loop(nv) as i:
            block[i + nq] = reduced[i]
        with k.loop(nq) as j, k.loop(nv) as i:
            block[j] = block[j] + implicit * self.slope(i, j) * reduced[i]


class RosenbrockStages:
    """The writer of the stages of a step from the state `y`."""

    def __init__(self, states: LaneStates, method: Rosenbrock, slopes: Slopes) -> None:
        """Declare the memory of the matrix."""
        self.states, self.k, self.method = states, states.k, method
        self.matrix = ShiftedJacobian(states.k, slopes)

    def linearize(self, now: Value) -> None:
        """Write the rates, df/dt and the Jacobian at the beginning of a step."""
        states = self.states
        states.copy(states.y, states.inputs, shift=1)
        states.inputs[0] = now
        self.matrix.evaluate(states.inputs)

    def write(self, now: Value, tried: Value, reached: Value) -> None:
        """Write all stages of a step; `reached` is the time at its end."""
        states, k, method = self.states, self.k, self.method
        implicit = tried * method.gamma
        self.matrix.factor(implicit)
        last = method.c.index(1.0)
        with k.loop(len(method.b)) as s:
            states.stage(s, method.a, tried)
            with k.when(s.equals(0)):
                states.copy(self.matrix.slopes, states.stages)
            with k.when(s > 0):
                states.rates((s >= last).where(reached, now + tried * k.choose(s, method.c)), s)
            couple(states, method, s, lambda j, d: self.matrix.by_time(j) * (tried * d))
            self.matrix.solve(states.stages, s * states.n, implicit)


def couple(
    states: LaneStates, method: Rosenbrock, s: Value, by_time: Callable[[Value, float], Value] | None = None
) -> None:
    """Write the right-hand side of stage s over the rates there; `by_time(j, d)` returns h d df/dt, if it is added."""
    for i, (weights, d) in enumerate(zip(method.g, method.d, strict=True)):
        with states.k.when(s.equals(i)), states.k.loop(states.n) as j:
            total = states.stages[j + i * states.n]
            if (others := states.combine(weights, j)) is not None:
                total = total + others
            if d and by_time is not None:
                total = total + by_time(j, d)
            states.stages[j + i * states.n] = total * method.gamma


# --- Stages of states with their derivatives ---
#
# A column of derivatives x of the state has stages of its own: (I - h gamma J) x_s = gamma (f_y X_s + sum g_sj x_j)
# plus the derivative of J and df/dt along x, multiplied by (h gamma k_s, gamma d_s h). The matrix is that of the state.


class TangentStages:
    """The writer of the stages of a step; the kernel calls the Programs "slopes" and "bend"."""

    def __init__(self, runs: TangentRuns, program: Program, method: Rosenbrock) -> None:
        """Declare the memory, and add the Programs to the kernel."""
        k = runs.k
        self.runs, self.k, self.method = runs, k, method
        self.matrix = ShiftedJacobian(k, slopes_of(program))
        k.programs["bend"] = bent_along(program)
        self.n0, self.count = runs.nq0 + runs.nv0, sum(a.size for a in program.inputs if a.name == "parameters")
        self.given = k.block("bending", 2 + 3 * self.n0 + runs.tail + self.count)
        self.image, self.work = k.block("bent", self.n0), k.block("work", self.n0)

    def linearize(self, now: Value) -> None:
        """Write the rates, df/dt and the Jacobian at the beginning of a step."""
        self.runs.place(self.runs.y, now)
        self.matrix.evaluate(self.runs.at)

    def write(self, now: Value, tried: Value, reached: Value) -> None:
        """Write all stages of a step, first of the state, then of its derivatives."""
        runs, k, method = self.runs, self.k, self.method
        implicit = tried * method.gamma
        self.matrix.factor(implicit)
        last = method.c.index(1.0)
        with k.loop(len(method.b)) as s:
            runs.stage(s, method.a, tried)
            runs.rates((s >= last).where(reached, now + tried * k.choose(s, method.c)), s)
            couple(runs, method, s)
            by_time = tried * k.choose(s, [d * method.gamma for d in method.d])
            self.solve_state(s, implicit, by_time)
            self.place(s, now, implicit, by_time)
            with k.loop(runs.columns) as c:
                self.solve_column(s, c, implicit)

    def solve_state(self, s: Value, implicit: Value, by_time: Value) -> None:
        """Write the stage of the state over its right-hand side."""
        k, runs, first = self.k, self.runs, s * self.runs.n
        with k.loop(runs.nq0) as j:
            self.work[j] = runs.stages[first + j] + self.matrix.by_time(j) * by_time
        with k.loop(runs.nv0) as j:
            at = j + runs.nq0
            self.work[at] = runs.stages[first + (j + runs.nq)] + self.matrix.by_time(at) * by_time
        self.matrix.solve(self.work, k.constant(0, Kind.COUNT), implicit)
        with k.loop(runs.nq0) as j:
            runs.stages[first + j] = self.work[j]
        with k.loop(runs.nv0) as j:
            runs.stages[first + (j + runs.nq)] = self.work[j + runs.nq0]

    def place(self, s: Value, now: Value, implicit: Value, by_time: Value) -> None:
        """Write the state before the step, and the tangent along which its Jacobian and df/dt are multiplied."""
        k, runs, n0, given = self.k, self.runs, self.n0, self.given
        runs.place(runs.y, now)
        at = 1 + n0 + runs.tail
        with k.loop(at) as j:
            given[j] = runs.at[j]
        given[at] = by_time
        with k.loop(n0) as j:
            given[j + (at + 1)] = self.work[j] * implicit

    def solve_column(self, s: Value, c: Value, implicit: Value) -> None:
        """Write the stage of one column over its right-hand side."""
        k, runs, n0, given, first = self.k, self.runs, self.n0, self.given, s * self.runs.n
        at = 2 + 2 * n0 + runs.tail
        with k.loop(runs.nq0) as j:
            given[j + at] = runs.y[runs.of_q(c, j)]
        with k.loop(runs.nv0) as j:
            given[j + (at + runs.nq0)] = runs.y[runs.of_qd(c, j)]
        runs.moving.units(given, at + n0, c)
        k.call("bend", given, self.image)
        with k.loop(runs.nq0) as j:
            self.work[j] = runs.stages[first + runs.of_q(c, j)] + self.image[j]
        with k.loop(runs.nv0) as j:
            self.work[j + runs.nq0] = runs.stages[first + runs.of_qd(c, j)] + self.image[j + runs.nq0]
        self.matrix.solve(self.work, k.constant(0, Kind.COUNT), implicit)
        with k.loop(runs.nq0) as j:
            runs.stages[first + runs.of_q(c, j)] = self.work[j]
        with k.loop(runs.nv0) as j:
            runs.stages[first + runs.of_qd(c, j)] = self.work[j + runs.nq0]


def bent_along(program: Program) -> Program:
    """Return the derivative of the product of rates with a tangent of t, q and qd, along q, qd and parameters.

    Its inputs are those of the rates, the tangent that is multiplied, and the one along which is differentiated.
    """
    inner, names = along_all(program)
    given = len(program.inputs)
    named = [replace(a, name=f"multiplied_{a.name}") if k >= given else a for k, a in enumerate(inner.inputs)]
    return jvp(replace(inner, inputs=tuple(named)), names)


def along_all(program: Program) -> tuple[Program, list[str]]:
    """Return the product of rates with a tangent of t, q and qd, and the names of the inputs that may vary."""
    inner = jvp(replace(program, outputs=program.outputs[:2], results=program.results[:2]), ("t", "q", "qd"))
    names = [a.name for a in program.inputs]
    return inner, [name for name in ("q", "qd", "parameters") if name in names]
