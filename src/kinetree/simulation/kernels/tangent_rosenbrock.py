"""Stages of a Rosenbrock method for states with their derivatives.

A column of derivatives x of the state has stages of its own: (I - h gamma J) x_s = gamma (f_y X_s + sum g_sj x_j) plus
the derivative of J and df/dt along x, multiplied by (h gamma k_s, gamma d_s h). The matrix is that of the state.
"""

from __future__ import annotations

from dataclasses import replace

from ...compiler.derive.products import jvp
from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kernel, Kind
from ..rosenbrock import Rosenbrock
from ..slopes import slopes_of
from .rosenbrock_stages import ShiftedJacobian, couple
from .rosenbrock_steps import RosenbrockRuns
from .tangent_states import TangentRuns


def tangent_rosenbrock_kernel(runs: TangentRuns, program: Program, method: Rosenbrock) -> Kernel:
    """Return the kernel of runs with derivatives; `program` are the rates of the states alone."""
    return RosenbrockRuns(runs, method, _TangentStages(runs, program, method)).kernel()


class _TangentStages:
    """The writer of the stages of a step; the kernel calls the Programs "slopes" and "bend"."""

    def __init__(self, runs: TangentRuns, program: Program, method: Rosenbrock) -> None:
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
        """Write all stages of a step, those of the state before those of its derivatives."""
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
    inner = jvp(replace(program, outputs=program.outputs[:2], results=program.results[:2]), ("t", "q", "qd"))
    given = len(program.inputs)
    named = [replace(a, name=f"multiplied_{a.name}") if k >= given else a for k, a in enumerate(inner.inputs)]
    names = [a.name for a in program.inputs]
    return jvp(
        replace(inner, inputs=tuple(named)), [name for name in ("q", "qd", "parameters") if name in names]
    )  # fmt: skip
