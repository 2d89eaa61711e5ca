"""One step of a Rosenbrock method in reverse.

The cotangent c_s of stage k_s gives u_s, the solution of (I - h gamma J)^T u_s = c_s. The point of the stage gets gamma
f_y^T u_s, and an earlier stage k_j gets gamma g_sj u_s. The Jacobian J and df/dt depend on the state before the step as
well: their derivatives along (gamma d_s h, h gamma k_s), multiplied by u_s, are added to its cotangent.
"""

from __future__ import annotations

from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kind
from ..rosenbrock import Rosenbrock
from ..slopes import Slopes
from .lane_states import LaneStates
from .reverse_steps import ReverseStep
from .rosenbrock_stages import RosenbrockStages


class ReverseRosenbrock(ReverseStep):
    """The writer of one step in reverse; the kernel calls the Programs "slopes" and "bend" as well."""

    def __init__(self, states: LaneStates, method: Rosenbrock, parameters: int, slopes: Slopes) -> None:
        """Declare the memory."""
        super().__init__(states, method, parameters)
        k, n = states.k, states.n
        self.method, self.stages = method, RosenbrockStages(states, method, slopes)
        self.before, self.solved = k.block("before", n), k.block("solved", n * self.count)
        self.bent, self.bending = k.block("bent", n), k.block("bending", 2 + 3 * n + self.tail)

    def repeat_step(self, begin: Value, h: Value) -> None:
        """Write the stages of the step and its end `z`, before quaternions are scaled and loops are closed."""
        states = self.states
        self.copy(states.y, self.before)  # the closing of loops takes the place of y
        self.stages.linearize(begin)
        self.stages.write(begin, h, begin + h)
        states.advance(self.method.b, h, self.z, 0)

    def reverse_stages(self, begin: Value, h: Value) -> None:
        """Write the stages in reverse, and the cotangent of the state before the step."""
        k, n, states, method = self.k, self.states.n, self.states, self.method
        implicit = h * method.gamma
        self.copy(self.before, states.y)
        with k.loop(n) as j:
            self.bent[j] = 0.0
        with k.loop(self.count) as i:
            s = (self.count - 1) - i
            self.gather(s, h)
            self.stages.matrix.solve_transposed(self.z, implicit)
            with k.loop(n) as j:
                self.solved[s * n + j] = self.z[j]
            self.bend(s, begin, h)
            with k.loop(n) as j:
                self.z[j] = self.z[j] * method.gamma
            states.stage(s, method.a, h)
            with k.loop(n) as j:
                self.image[j] = states.inputs[j + 1]
            self.pull_stage(s, begin + h * k.choose(s, method.c), h)
        with k.loop(n) as j:
            self.cotangent[j] = self.cotangent[j] + self.bent[j]
        self.add_stages()

    def gather(self, s: Value, h: Value) -> None:
        """Write the cotangent of stage s: from the end of the step, and from later points and stages."""
        k, n, method = self.k, self.states.n, self.method
        for stage in range(self.count):
            with k.when(s.equals(stage)), k.loop(n) as j:
                total = self.cotangent[j] * method.b[stage]
                for later in range(stage + 1, self.count):
                    if method.a[later][stage]:
                        total = total + self.pulled[j + later * n] * method.a[later][stage]
                total = total * h
                for later in range(stage + 1, self.count):
                    if method.g[later][stage]:
                        total = total + self.solved[j + later * n] * (method.gamma * method.g[later][stage])
                self.z[j] = total

    def bend(self, s: Value, begin: Value, h: Value) -> None:
        """Write the cotangents by the Jacobian and df/dt, with u_s in `z`."""
        k, n, states, method = self.k, self.states.n, self.states, self.method
        at, given = 1 + n + self.tail, self.bending
        given[0] = begin
        with k.loop(n) as j:
            given[j + 1] = self.before[j]
        with k.loop(self.tail) as j:
            given[j + (1 + n)] = states.inputs[j + (1 + n)]
        given[at] = k.cast(h * k.choose(s, [d * method.gamma for d in method.d]), Kind.LANE)
        with k.loop(n) as j:
            given[j + (at + 1)] = states.stages[s * n + j] * (h * method.gamma)
        with k.loop(n) as j:
            given[j + (at + 1 + n)] = self.z[j]
        k.call("bend", given, self.image)
        self.add_parameters(None)
        with k.loop(n) as j:
            self.bent[j] = self.bent[j] + self.image[j]
