"""Stages of Rosenbrock methods in the lane language, and their linear equations.

A stage solves (I - h gamma J) k = r. Where the rates of the coordinates are dq = m qd plus a function of time, this is
a system for the velocities alone: (I - h gamma J_qd - (h gamma)^2 J_q m) k_qd = r_qd + h gamma J_q r_q, and
k_q = r_q + h gamma m k_qd.
"""

from __future__ import annotations

from typing import Any

from ...compiler.lanes.builder import Builder
from ...compiler.lanes.expressions import Block, Value
from ...compiler.lanes.form import Kind
from ..rosenbrock import Rosenbrock
from ..slopes import Slopes
from .lane_solves import LaneSolver
from .lane_states import LaneStates


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

    def solve(self, block: Block, first: Any, implicit: Value) -> None:
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


def couple(states: LaneStates, method: Rosenbrock, s: Value, by_time: Any = None) -> None:
    """Write the right-hand side of stage s over the rates there; `by_time(j, d)` returns h d df/dt, if it is added."""
    for i, (weights, d) in enumerate(zip(method.g, method.d, strict=True)):
        with states.k.when(s.equals(i)), states.k.loop(states.n) as j:
            total = states.stages[j + i * states.n]
            if (others := states.combine(weights, j)) is not None:
                total = total + others
            if d and by_time is not None:
                total = total + by_time(j, d)
            states.stages[j + i * states.n] = total * method.gamma
