"""One step of an implicit Runge-Kutta method in reverse.

The cotangents v_s of the stages k_s satisfy v_s = h (b_s c + sum of a_js f_y^T v_j), with the cotangent c of the end
and the Jacobian f_y at the point of stage j: the transposed linear equations of the stages. They are solved by the
iteration that finds the stages. It converges at the same rate, because a matrix and its transpose have the same
eigenvalues.
"""

from __future__ import annotations

import math

from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kind
from ..tableaus import Tableau
from .implicit_steps import FixedPoint, ImplicitStages
from .lane_states import LaneStates
from .reverse_steps import ReverseStep


class ReverseImplicit(ReverseStep):
    """The writer of one step in reverse; the memory of the states has twice the stages of the method."""

    def __init__(self, states: LaneStates, method: Tableau, parameters: int) -> None:
        """Declare the memory."""
        super().__init__(states, method, parameters)
        k = states.k
        self.method, self.stages = method, ImplicitStages(states, method, patient=True)
        self.iteration = FixedPoint(k, states.dtype, prefix="back_", patient=True)
        self.solved, self.added = k.block("solved", states.n * self.count), k.block("added", max(parameters, 1))

    def repeat_step(self, begin: Value, h: Value) -> None:
        """Write the stages of the step and its end `z`, before quaternions are scaled and loops are closed."""
        states, k = self.states, self.k
        wide = k.cast(h, Kind.LANE)
        self.stages.find(begin, h, k.constant(0, Kind.COUNT))
        with k.loop(self.count) as s:
            states.stage(s, self.method.a, wide)
            with k.loop(states.n) as j:
                self.points[s * states.n + j] = states.inputs[j + 1]
        states.advance(self.method.b, wide, self.z, 0)

    def reverse_stages(self, begin: Value, h: Value) -> None:
        """Write the cotangents of the stages, then those of the state before the step and of parameters."""
        k, n = self.k, self.states.n
        wide = k.cast(h, Kind.LANE)
        with k.loop(n * self.count) as j:
            self.pulled[j] = 0.0
        self.start(wide)
        self.iteration.start()
        with k.repeat() as turn:
            turn.again = self.iterate_stages(begin, h, wide)
        lost = ~self.iteration.found.value
        with k.loop(self.parameters) as j:
            self.total[j] = self.total[j] + lost.where(math.nan, self.added[j])
        self.add_stages()
        self.states.lose(lost, self.cotangent)

    def start(self, h: Value) -> None:
        """Write the first cotangents of the stages: those by the end of the step alone."""
        for s in range(self.count):
            with self.k.loop(self.states.n) as j:
                self.solved[j + s * self.states.n] = self.wanted(s, j, h)

    def wanted(self, s: int, j: Value, h: Value) -> Value:
        """Return the cotangent of entry j of stage s by the end of the step and by what all stages add to points."""
        total = self.cotangent[j] * self.method.b[s]
        for other in range(self.count):
            if self.method.a[other][s]:
                total = total + self.pulled[j + other * self.states.n] * self.method.a[other][s]
        return total * h

    def iterate_stages(self, begin: Value, h: Value, wide: Value) -> Value:
        """Write one iteration of all stages; return whether a lane must continue.

        The last one begins when all lanes are at their end, so that it changes no stage: the bits of a lane, with those
        of its parameters, do not depend on other lanes.
        """
        k, n = self.k, self.states.n
        self.iteration.begin()
        with k.loop(self.parameters) as j:
            self.added[j] = 0.0
        with k.loop(self.count) as s:
            with k.loop(n) as j:
                self.image[j] = self.points[s * n + j]
            with k.loop(n) as j:
                self.z[j] = self.solved[s * n + j]
            self.pull_stage(s, begin + h * k.choose(s, self.method.c), h, self.added)
        for s in range(self.count):
            with k.loop(n) as j:
                self.iteration.renew(self.solved, j + s * n, self.wanted(s, j, wide))
        before, _, more = self.iteration.end()
        return k.any(~before) & more
