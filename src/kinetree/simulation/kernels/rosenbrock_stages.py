"""Stages of Rosenbrock methods in the lane language, and their linear equations.

A stage solves (I - h gamma J) k = r. Where the rates of the coordinates are dq = m qd plus a function of time, this is
a system for the velocities alone: (I - h gamma J_qd - (h gamma)^2 J_q m) k_qd = r_qd + h gamma J_q r_q, and
k_q = r_q + h gamma m k_qd.
"""

from __future__ import annotations

from ...compiler.lanes.expressions import Block, Value
from ...compiler.lanes.form import Kind
from ..rosenbrock import Rosenbrock
from ..slopes import Slopes
from .lane_solves import LaneSolver
from .lane_states import LaneStates


class RosenbrockStages:
    """The writer of the stages of a step from the state `y`.

    `slopes` has the rates, df/dt and the Jacobian at the beginning of the step. The kernel calls their Program
    "slopes".
    """

    def __init__(self, states: LaneStates, method: Rosenbrock, slopes: Slopes) -> None:
        """Declare the memory, and add the Program to the kernel."""
        k = states.k
        k.programs["slopes"] = slopes.program
        self.states, self.k, self.method, self.moves = states, k, method, slopes.moves
        self.slopes = k.block("slopes", sum(a.size for a in slopes.program.outputs))
        self.solver = LaneSolver(k, states.n if slopes.moves is None else states.nv)

    def linearize(self, now: Value) -> None:
        """Write the rates, df/dt and the Jacobian at the beginning of a step."""
        states = self.states
        states.copy(states.y, states.inputs, shift=1)
        states.inputs[0] = now
        self.k.call("slopes", states.inputs, self.slopes)

    def write(self, now: Value, tried: Value, reached: Value) -> None:
        """Write all stages of a step; `reached` is the time at its end."""
        states, k, method = self.states, self.k, self.method
        implicit = tried * method.gamma
        self.fill(implicit)
        self.solver.factor()
        last = method.c.index(1.0)
        with k.loop(len(method.b)) as s:
            states.stage(s, method.a, tried)
            with k.when(s.equals(0)):
                states.copy(self.slopes, states.stages)
            with k.when(s > 0):
                states.rates((s >= last).where(reached, now + tried * k.choose(s, method.c)), s)
            self.couple(s, tried)
            self.solve(s, implicit)

    def slope(self, i: Value, j: Value) -> Value:
        """Return an entry of the Jacobian, in the rows that the slopes have."""
        return self.slopes[(i + 2) * self.states.n + j]

    def fill(self, implicit: Value) -> None:
        """Write the matrix I - h gamma J, reduced to the velocities where possible."""
        k, solver, nq = self.k, self.solver, self.states.nq
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
        states, k, method = self.states, self.k, self.method
        for i, (weights, d) in enumerate(zip(method.g, method.d, strict=True)):
            with k.when(s.equals(i)), k.loop(states.n) as j:
                total = states.stages[j + i * states.n]
                if (others := states.combine(weights, j)) is not None:
                    total = total + others
                if d:
                    total = total + self.slopes[j + states.n] * (tried * d)
                states.stages[j + i * states.n] = total * method.gamma

    def solve(self, s: Value, implicit: Value) -> None:
        """Write stage s over its right-hand side."""
        states, k, first = self.states, self.k, s * self.states.n
        if self.moves is None:
            self.solver.solve(states.stages, first)
            return
        below = first + states.nq
        with k.loop(states.nq) as j:
            moved = implicit * states.stages[first + j]
            with k.loop(states.nv) as i:
                states.stages[below + i] = states.stages[below + i] + self.slope(i, j) * moved
        self.solver.solve(states.stages, below)
        with k.loop(states.nq) as j:
            moved = implicit * k.choose(j, self.moves) * states.stages[below + j]
            states.stages[first + j] = states.stages[first + j] + moved

    def solve_transposed(self, block: Block, implicit: Value) -> None:
        """Write the solution of (I - h gamma J)^T u = r over r, a block of the size of a state."""
        states, k = self.states, self.k
        if self.moves is None:
            self.solver.solve_transposed(block)
            return
        nq, nv, reduced = states.nq, states.nv, k.block("reduced", states.nv)
        with k.loop(nv) as i:
            reduced[i] = block[i + nq] + implicit * k.choose(i, self.moves) * block[i]
        self.solver.solve_transposed(reduced)
        with k.loop(nv) as i:
            block[i + nq] = reduced[i]
        with k.loop(nq) as j, k.loop(nv) as i:
            block[j] = block[j] + implicit * self.slope(i, j) * reduced[i]
