"""Rosenbrock methods: implicit in the Jacobian of the rates alone, for stiff systems.

Their steps are adaptive, and their dense output is that of an embedded pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ...compiler.derive.jacobians import vjp
from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kernel, Kind
from ..acting.rates import slopes_of
from .adaptive_steps import Adaptive, Pair, RecordedSteps, adaptive_runs, adaptive_tangents, step_after_output
from .lane_states import LaneStates, RunsOfLanes
from .protocol import Row
from .reverse_steps import ReverseStep
from .rosenbrock_stages import RosenbrockStages, TangentStages, along_all
from .tangent_states import Varied


@dataclass(frozen=True)
class Rosenbrock(Pair):
    """An embedded method whose stages solve a linear system each, with the same matrix I - h gamma J.

    The stages are (I - h gamma J) k_s = gamma (f(t + c_s h, y + h sum a_sj k_j) + sum g_sj k_j + d_s h df/dt), where J
    is the Jacobian of the rates f at the beginning of the step. The other fields are those of a Pair.
    """

    gamma: float
    g: tuple[Row, ...]
    d: Row

    on_gpu = False

    def kernel(
        self, program: Program, quaternions: Sequence[int], closing: Program | None, *, dtype: str, in_registers: bool
    ) -> Kernel:
        """Return the kernel of adaptive steps.

        The rates at the beginning of a step, which come with their Jacobian, count as an evaluation.
        """
        runs = adaptive_runs(self.name, program, self.memory, quaternions, closing, dtype)
        return RosenbrockRuns(runs, self, RosenbrockStages(runs, self, slopes_of(program))).kernel()

    def tangent_kernel(self, program: Program, varied: Varied, quaternions: Sequence[int]) -> Kernel:
        """Return the kernel of runs with the derivatives of their states."""
        runs = adaptive_tangents(self.name, varied, self.memory, quaternions)
        return RosenbrockRuns(runs, self, TangentStages(runs, program, self)).kernel()

    def recording_kernel(
        self, program: Program, quaternions: Sequence[int], closing: Program | None, *, held: int
    ) -> Kernel:
        """Return the kernel that keeps every accepted step."""
        assert not held, "adaptive steps are not known before the run"
        runs = adaptive_runs(f"{self.name}_recorded", program, self.memory, quaternions, closing, "float64")
        return _RecordedRosenbrock(runs, self, RosenbrockStages(runs, self, slopes_of(program))).kernel()

    def reverse_step(self, states: LaneStates, parameters: int) -> ReverseStep:
        """Return the writer of one step in reverse."""
        return ReverseRosenbrock(states, self, parameters)


def _rodas5p() -> Rosenbrock:
    """Return Rodas5P: order 5 with an error estimate of order 4, stiffly accurate, dense output of order 4.

    The coefficients are those of G. Steinebach, BIT Numerical Mathematics 63:27 (2023), for k_s without the factor h.
    """
    sixth = (-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946)
    a = (
        (),
        (3.0,),
        (2.849394379747939, 0.45842242204463923),
        (-6.954028509809101, 2.489845061869568, -10.358996098473584),
        (2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641),
        sixth,
        (*sixth, 1.0),
        (*sixth, 1.0, 1.0),
    )
    g = (
        (),
        (-14.155112264123755,),
        (-17.97296035885952, -2.859693295451294),
        (147.12150275711716, -1.41221402718213, 71.68940251302358),
        (165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306),
        (24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471),
        (
            30.91273214028599,
            -3.1208243349937974,
            77.79954646070892,
            34.28646028294783,
            -19.097331116725623,
            -28.087943162872662,
        ),
        (
            37.80277123390563,
            -3.2571969029072276,
            112.26918849496327,
            66.9347231244047,
            -40.06618937091002,
            -54.66780262877968,
            -9.48861652309627,
        ),
    )
    gamma = 0.21193756319429014
    d = (gamma, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069, 0.0, 0.0, 0.0)
    c = (0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1.0, 1.0, 1.0)
    dense = (
        (
            25.948786856663858,
            -2.5579724845846235,
            10.433815404888879,
            -2.3679251022685204,
            0.524948541321073,
            1.1241088310450404,
            0.4272876194431874,
            -0.17202221070155493,
        ),
        (
            -9.91568850695171,
            -0.9689944594115154,
            3.0438037242978453,
            -24.495224566215796,
            20.176138334709044,
            15.98066361424651,
            -6.789040303419874,
            -6.710236069923372,
        ),
        (
            11.419903575922262,
            2.8879645146136994,
            72.92137995996029,
            80.12511834622643,
            -52.072871366152654,
            -59.78993625266729,
            -0.15582684282751913,
            4.883087185713722,
        ),
    )
    b = (*a[-1], 1.0)
    e = (0.0,) * 7 + (1.0,)
    p = tuple(_polynomial(*weights) for weights in zip(b, *dense, strict=True))
    return Rosenbrock("rodas5p", a, b, c, e, (), 5, (), (), p, gamma, g, d)


def _polynomial(b: float, x: float, y: float, z: float) -> Row:
    """Return the coefficients of theta (b + (1 - theta) (x + theta (y + theta z))), that of theta^1 first."""
    return (b + x, y - x, z - y, -z)


RODAS5P = _rodas5p()


class Stages(Protocol):
    """The writer of the stages of a step: `RosenbrockStages`, or the one of states with their derivatives."""

    def linearize(self, now: Value) -> None:
        """Write the Jacobian at the beginning of a step."""
        ...

    def write(self, now: Value, tried: Value, reached: Value) -> None:
        """Write all stages of a step; `reached` is the time at its end."""
        ...


class RosenbrockRuns(Adaptive):
    """The writer of one kernel; `stages` writes the stages of a step."""

    def __init__(self, runs: RunsOfLanes, method: Rosenbrock, stages: Stages) -> None:
        """Declare the variables."""
        super().__init__(runs, method)
        self.method, self.stages = method, stages
        self.fresh = runs.k.block("fresh", kind=Kind.MASK)

    def begin(self) -> None:
        """Write that the Jacobian is required."""
        self.fresh.value = True

    def advance(self, now: Value, tried: Value, reached: Value) -> None:
        """Write the stages of a step and its end `z`.

        A Jacobian is computed if a lane has taken a step. In a lane whose step was rejected it has the same bits again.
        """
        runs, k = self.runs, self.k
        with k.when(k.any(self.fresh.value)):
            self.stages.linearize(now)
        self.stages.write(now, tried, reached)
        runs.advance(self.method.b, tried, self.z, 0)
        runs.normalize(self.z)
        runs.close(self.z, reached)

    def count(self, active: Value, good: Value, bad: Value) -> None:
        """Write the counts of evaluations, accepted and rejected steps; a rejected step takes no new Jacobian."""
        super().count(active, good, bad)
        v = self.v["evaluations"]
        v.value = v.value - bad.where(self.k.constant(1.0, Kind.LANE), 0.0)
        self.fresh.value = good

    def next_step(self, after: Value, h: Value, tried: Value, good: Value) -> Value:
        """Return the next step; one that was shortened to end at an output time does not shorten the next."""
        return step_after_output(after, h, tried, good)

    def take(self, good: Value, j: Value) -> None:
        """Write accepted steps into the state."""
        self.runs.y[j] = good.where(self.z[j], self.runs.y[j])


class _RecordedRosenbrock(RecordedSteps, RosenbrockRuns):
    """The writer of one kernel that keeps accepted steps."""


# --- One step of a Rosenbrock method in reverse ---
#
# The cotangent c_s of stage k_s gives u_s, the solution of (I - h gamma J)^T u_s = c_s. The point of the stage gets
# gamma f_y^T u_s, and an earlier stage k_j gets gamma g_sj u_s. The Jacobian J and df/dt depend on the state before the
# step as well: their derivatives along (gamma d_s h, h gamma k_s), multiplied by u_s, are added to its cotangent.


class ReverseRosenbrock(ReverseStep):
    """The writer of one step in reverse; the kernel calls the Programs "slopes" and "bend" as well."""

    def __init__(self, states: LaneStates, method: Rosenbrock, parameters: int) -> None:
        """Declare the memory, and add the Programs to the kernel."""
        super().__init__(states, len(method.b), parameters, None)
        k, n, rates = states.k, states.n, states.k.programs["rates"]
        k.programs["bend"] = vjp(*along_all(rates))  # the gradient of a product: cotangents of q, qd and parameters
        self.method, self.stages = method, RosenbrockStages(states, method, slopes_of(rates))
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
                total = self.arriving(method.a, method.b, stage, j) * h
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
