"""Fixed steps: explicit Runge-Kutta methods, and Programs that are a step themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kernel, Kind
from ..tableaus import Tableau
from .lane_states import LaneStates
from .runs_of_lanes import RunsOfLanes

ROUNDING = {"float64": 1e-9, "float32": 1e-2}
"""The difference from a whole number of steps that is attributed to rounding of times; times in float32 of some ten
seconds are a hundredth of a short step apart."""

MANY = 2.0**62
"""The largest number of steps between two times, within the range of 64-bit integers."""

SETTINGS = ("dt", "skip", "budget")
"""The settings that all runs share: the longest step [s], the finished steps of the first interval, and the most steps
of the call."""

REPORT = ("steps", "reached", "skip", "interval")
"""The entries of the report of a kernel with fixed steps: the steps of this call, the number of output times reached,
and the finished and all steps of the interval in which the budget ended, both 0 if all times were reached.

A call that continues an earlier one takes the times from the last one reached, q_end and qd_end, and this `skip`.
Numbers have the precision of the kernel: whole numbers are exact up to 2^53 in float64, 2^24 in float32.
"""

Step = Callable[[Value, Value, Value], None]
"""The code of a step; its arguments are the time at the beginning of an interval, the length of a step, its number."""

Advance = Callable[[Callable[[Value], Value], Value], None]
"""The code that advances y by a step; its arguments are the time of a stage and the length of the step."""


def fixed_runs(
    name: str, program: Program, stages: int, quaternions: Sequence[int], closing: Program | None, dtype: str
) -> RunsOfLanes:
    """Return an unfinished kernel with the arguments of fixed steps."""
    return RunsOfLanes(name, program, stages, quaternions, closing, dtype=dtype, shared=SETTINGS, report=REPORT)


def explicit_kernel(
    program: Program,
    tableau: Tableau,
    quaternions: Sequence[int],
    closing: Program | None = None,
    *,
    dtype: str,
    in_registers: bool = False,
) -> Kernel:
    """Return (q0, qd0[, parameters], times, dt, skip, budget) -> (q, qd, q_end, qd_end, report).

    With `in_registers`, a method whose stages form a chain keeps one stage and the sum of the step instead of all
    stages, which fits into the registers of a graphics card. The bits are the same if the weights of the chain are
    powers of two, as those of rk4 are.
    """
    chain = in_registers and bool(tableau.chain)
    runs = fixed_runs(tableau.name, program, 1 if chain else len(tableau.b), quaternions, closing, dtype)
    advance = _chain(runs, tableau) if chain else _stages(runs, tableau)
    return steps_between(runs, _explicit_step(runs, tableau, advance))


def explicit_step(states: LaneStates, tableau: Tableau) -> Step:
    """Return the step of an explicit method that keeps all its stages."""
    return _explicit_step(states, tableau, _stages(states, tableau))


def _explicit_step(states: LaneStates, tableau: Tableau, advance: Advance) -> Step:
    k = states.k

    def step(begin: Value, h: Value, m: Value) -> None:
        number = k.number(m)
        advance(lambda s: begin + (number + k.choose(s, tableau.c)) * h, k.cast(h, Kind.LANE))
        states.normalize(states.y)
        states.close_or_lose(states.y, begin + (number + 1.0) * h)

    return step


def _stages(runs: LaneStates, tableau: Tableau) -> Advance:
    """Return the code of a step that keeps all its stages."""

    def advance(moment: Callable[[Value], Value], h: Value) -> None:
        with runs.k.loop(len(tableau.b)) as s:
            now = moment(s)
            runs.stage(s, tableau.a, h)
            runs.rates(now, s)
        runs.advance(tableau.b, h, runs.y, 0)

    return advance


def _chain(runs: LaneStates, tableau: Tableau) -> Advance:
    """Return the code of a step whose stages each follow from the one before alone."""
    k, total = runs.k, runs.k.block("sum", runs.n)

    def advance(moment: Callable[[Value], Value], h: Value) -> None:
        runs.copy(runs.y, runs.inputs, shift=1)
        with k.loop(runs.n) as j:
            total[j] = -0.0  # the only number whose sum with any other is that other, to the bit
        with k.loop(len(tableau.b)) as s:
            runs.rates(moment(s), 0)
            a, b = h * k.choose(s, (*tableau.chain, 0.0)), k.choose(s, tableau.b)
            with k.loop(runs.n) as j:
                total[j] = total[j] + runs.stages[j] * b
                runs.inputs[j + 1] = runs.y[j] + runs.stages[j] * a
        with k.loop(runs.n) as j:
            runs.y[j] = runs.y[j] + total[j] * h

    return advance


def map_kernel(program: Program, quaternions: Sequence[int], closing: Program | None = None, *, dtype: str) -> Kernel:
    """Return the same kernel for a Program that is a step; its last input is the length of the step."""
    runs = fixed_runs(program.name, program, 1, quaternions, closing, dtype)
    return steps_between(runs, map_step(runs, program))


def map_step(states: LaneStates, program: Program) -> Step:
    """Return the step of a Program that is one; its last input is the length of the step."""
    k = states.k
    place = sum(a.size for a in program.inputs) - 1

    def step(begin: Value, h: Value, m: Value) -> None:
        number = k.number(m)
        states.copy(states.y, states.inputs, shift=1)
        states.inputs[place] = h
        states.rates(begin + number * h, 0)
        states.copy(states.stages, states.y)
        states.close_or_lose(states.y, begin + (number + 1.0) * h)

    return step


def steps_between(runs: RunsOfLanes, step: Step) -> Kernel:
    """Write the loops over the times, at least two, and over the steps between them.

    Between two times the steps are equal, as few as possible, and not longer than dt. `step` advances the state; its
    arguments are the time at the beginning of the interval, the length of the step and its number.
    """
    k, times = runs.k, runs.times
    dt, skip, budget = (runs.shared[name][()] for name in SETTINGS)
    done, reached = (k.block(name, kind=Kind.COUNT) for name in ("done", "reached"))
    at, needed = (k.block(name, kind=Kind.COUNT) for name in ("at", "needed"))
    skipped, most = _count(runs, skip), _count(runs, budget)
    done.value, reached.value, at.value, needed.value = 0, 1, 0, 0
    runs.keep(0)
    with k.loop(k.extent() - 1) as j:
        begin = times[j]
        span = times[j + 1] - begin
        steps = _count(runs, span / dt - ROUNDING[runs.dtype]) + 1
        steps = (steps < 1).where(1, steps)
        h = span / k.number(steps)
        first = (j < 1).where(skipped, 0)
        left, allowed = steps - first, most - done.value
        now = (left < allowed).where(left, allowed)
        with k.loop(now) as m:
            step(begin, h, m + first)
        done.value = done.value + now
        finished = now >= left
        with k.when(finished):
            runs.keep(j + 1)
            reached.value = j + 2
        with k.when(~finished):
            with k.each_lane():
                runs.blank(j + 1)
            with k.when((j + 1).equals(reached.value)):
                at.value, needed.value = first + now, steps
    values = [k.number(x.value) for x in (done, reached, at, needed)]
    with k.each_lane():
        for i, x in enumerate(values):
            runs.report[i] = x
    return runs.kernel()


def _count(runs: RunsOfLanes, x: Value) -> Value:
    """Return a number as a count, at most MANY; MANY for a number that is not finite."""
    return runs.k.whole((x < MANY).where(x, MANY))
