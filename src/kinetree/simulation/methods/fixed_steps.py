"""Fixed steps: explicit Runge-Kutta methods, and Programs that are a step themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Block, Value
from ...compiler.lanes.form import Kernel, Kind
from ..acting.rates import ForcedMechanism, centered_rates, euler_step
from .lane_states import LaneStates, RunsOfLanes, builder_of
from .protocol import Centering, FixedScheme, Row, Step
from .reverse_steps import ReverseExplicit, ReverseStep, StepInputs
from .tangent_states import TangentRuns, Varied

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

Advance = Callable[[Callable[[Value], Value], Value], None]
"""The code that advances y by a step; its arguments are the time of a stage and the length of the step."""


def fixed_runs(
    name: str, program: Program, stages: int, quaternions: Sequence[int], closing: Program | None, dtype: str
) -> RunsOfLanes:
    """Return an unfinished kernel with the arguments of fixed steps."""
    return RunsOfLanes(name, program, stages, quaternions, closing, dtype=dtype, shared=SETTINGS, report=REPORT)


class FixedSteps:
    """What methods with fixed steps have in common: kernels around a `step`, which each of them writes."""

    adaptive, on_gpu = False, True

    def tangent_kernel(self: FixedScheme, program: Program, varied: Varied, quaternions: Sequence[int]) -> Kernel:
        """Return the kernel of fixed steps with derivatives."""
        return _tangent_steps(self, varied, quaternions)

    def recording_kernel(
        self: FixedScheme, program: Program, quaternions: Sequence[int], closing: Program | None, *, held: int
    ) -> Kernel:
        """Return the kernel that keeps every state."""
        return _recorded_steps(self, program, quaternions, closing, held=held)


@dataclass(frozen=True)
class RungeKutta(FixedSteps):
    """A tableau of stages k_s = f(t + c_s h, y + h sum a_sj k_j), then y + h sum b_s k_s.

    With a `centering`, y is the centered state, and f are its rates.
    """

    name: str
    a: tuple[Row, ...]
    b: Row
    c: Row
    centering: Centering | None = None

    make_program = staticmethod(centered_rates)

    @property
    def evaluations(self) -> int:
        """The number of stages, each of which is counted once."""
        return len(self.b)

    def centered(self, centering: Centering) -> Self:
        """Return the method with steps in centered states."""
        return replace(self, centering=centering)


@dataclass(frozen=True)
class Explicit(RungeKutta):
    """An explicit Runge-Kutta method, in which a stage depends on those before it."""

    @property
    def memory(self) -> int:
        """The number of stages."""
        return len(self.b)

    @property
    def chain(self) -> Row:
        """The weights of stages each of which follows from the one before it alone; empty for other methods."""
        if not all(self.b) or any(any(row[:-1]) for row in self.a):
            return ()
        return tuple(row[-1] for row in self.a[1:])

    def kernel(
        self, program: Program, quaternions: Sequence[int], closing: Program | None, *, dtype: str, in_registers: bool
    ) -> Kernel:
        """Return the kernel of fixed steps.

        With `in_registers`, a method whose stages form a chain keeps one stage and the sum of the step instead of all
        stages, which fits into the registers of a graphics card. The bits are the same if the weights of the chain are
        powers of two, as those of rk4 are.
        """
        chain = in_registers and bool(self.chain)
        runs = fixed_runs(self.name, program, 1 if chain else len(self.b), quaternions, closing, dtype)
        return steps_between(runs, self._step(runs, _chain(runs, self) if chain else _stages(runs, self)))

    def step(self, states: LaneStates, program: Program, *, patient: bool = False) -> Step:
        """Return the code of one step, which keeps all its stages."""
        return self._step(states, _stages(states, self))

    def _step(self, states: LaneStates, advance: Advance) -> Step:
        k = states.k

        def explicit(begin: Value, h: Value, m: Value) -> None:
            number = k.number(m)
            advance(lambda s: begin + (number + k.choose(s, self.c)) * h, k.cast(h, Kind.LANE))

        return whole_step(states, self.centering, explicit)

    def reverse_step(self, states: LaneStates, parameters: int) -> ReverseStep:
        """Return the writer of one step in reverse."""
        return ReverseExplicit(states, self, parameters)


RK4 = Explicit("rk4", ((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6), (0.0, 0.5, 0.5, 1.0))
"""The classical Runge-Kutta method."""


def whole_step(states: LaneStates, centering: Centering | None, advance: Step) -> Step:
    """Return the step of a method whose stages `advance` the state y, or the centered one."""
    k = states.k

    def step(begin: Value, h: Value, m: Value) -> None:
        number = k.number(m)
        if centering and centering.center:
            states.convert(centering.center, states.y, begin + number * h)
        advance(begin, h, m)
        end_step(states, centering, begin + (number + 1.0) * h)

    return step


def end_step(states: LaneStates, centering: Centering | None, now: Value, *, scales: bool = True) -> None:
    """Write the scaling of quaternions, unless it was done, the closing of loops and the way back from centered states.

    Loops are closed before the way back if they leave the centers of mass alone: the momentum then stays as it is.
    """
    early = centering is not None and centering.kept is None
    if centering and early:
        states.convert(centering.uncenter, states.y, now)
    if scales:
        states.normalize(states.y)
    states.close_or_lose(states.y, now)
    if centering and not early:
        states.convert(centering.uncenter, states.y, now)


def _stages(runs: LaneStates, method: Explicit) -> Advance:
    """Return the code of a step that keeps all its stages."""

    def advance(moment: Callable[[Value], Value], h: Value) -> None:
        with runs.k.loop(len(method.b)) as s:
            now = moment(s)
            runs.stage(s, method.a, h)
            runs.rates(now, s)
        runs.advance(method.b, h, runs.y, 0)

    return advance


def _chain(runs: LaneStates, method: Explicit) -> Advance:
    """Return the code of a step whose stages each follow from the one before alone."""
    k, total = runs.k, runs.k.block("sum", runs.n)

    def advance(moment: Callable[[Value], Value], h: Value) -> None:
        runs.copy(runs.y, runs.inputs, shift=1)
        with k.loop(runs.n) as j:
            total[j] = -0.0  # the only number whose sum with any other is that other, to the bit
        with k.loop(len(method.b)) as s:
            runs.rates(moment(s), 0)
            a, b = h * k.choose(s, (*method.chain, 0.0)), k.choose(s, method.b)
            with k.loop(runs.n) as j:
                total[j] = total[j] + runs.stages[j] * b
                runs.inputs[j + 1] = runs.y[j] + runs.stages[j] * a
        with k.loop(runs.n) as j:
            runs.y[j] = runs.y[j] + total[j] * h

    return advance


# --- Programs (t, q, qd[, ...], h) -> (q, qd) that are a step themselves ---


@dataclass(frozen=True)
class TimeStep(FixedSteps):
    """A method whose Program is a step; its last input is the length of the step."""

    name: str
    make_program: Callable[[ForcedMechanism], Program]
    centering: Centering | None = None

    evaluations = memory = 1

    def centered(self, centering: Centering) -> TimeStep:
        """Return the method whose Program ends with a centered state; it begins with a plain one."""
        return replace(self, make_program=partial(euler_step, ends_centered=True), centering=centering)

    def kernel(
        self, program: Program, quaternions: Sequence[int], closing: Program | None, *, dtype: str, in_registers: bool
    ) -> Kernel:
        """Return the kernel of fixed steps."""
        runs = fixed_runs(self.name, program, 1, quaternions, closing, dtype)
        return steps_between(runs, self.step(runs, program))

    def step(self, states: LaneStates, program: Program, *, patient: bool = False) -> Step:
        """Return the code of one step."""
        k = states.k
        place = sum(a.size for a in program.inputs) - 1

        def step(begin: Value, h: Value, m: Value) -> None:
            number = k.number(m)
            states.copy(states.y, states.inputs, shift=1)
            states.inputs[place] = h
            states.rates(begin + number * h, 0)
            states.copy(states.stages, states.y)
            end_step(states, self.centering, begin + (number + 1.0) * h, scales=False)

        return step

    def reverse_step(self, states: LaneStates, parameters: int) -> ReverseStep:
        """Return the writer of one step in reverse."""
        return _ReverseTimeStep(states, 1, parameters, self.centering)


class _ReverseTimeStep(ReverseStep):
    """The writer of one step in reverse of a Program that is a step."""

    def write(self, begin: Value, h: Value) -> None:
        """Write the cotangent of the state before a step over the one after it."""
        self.copy(self.states.y, self.points)
        self.repeat_step(begin, h)
        self.reverse_end(begin + h)
        self.place(self.points, begin, h)
        self.pull("rates_back", self.cotangent)
        self.add_parameters(None)
        self.copy(self.image, self.cotangent)

    def repeat_step(self, begin: Value, h: Value) -> None:
        """Write the end of the step `z`, before loops are closed."""
        states = self.states
        states.copy(states.y, states.inputs, shift=1)
        states.inputs[1 + states.n + self.tail - 1] = h
        states.rates(begin, 0)
        self.copy(states.stages, self.z)

    def scale(self, state: Block) -> None:
        """Write nothing: the Program scales quaternions."""

    def unscale(self) -> None:
        """Write nothing: the Program scales quaternions."""

    def place(self, state: Block, now: object, h: object) -> None:
        """Write the inputs of a product, with the length of the step as the last one."""
        super().place(state, now, h)
        self.given[self.states.n + self.tail] = h


EULER = TimeStep("euler", euler_step)
"""Semi-implicit Euler: velocities first, then positions with the new velocities."""


# --- Loops over steps ---


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


def _tangent_steps(scheme: FixedScheme, varied: Varied, quaternions: Sequence[int]) -> Kernel:
    """Return the kernel of a run with the derivatives of its states."""
    runs = TangentRuns(scheme.name, varied, scheme.memory, quaternions, dtype="float64", shared=SETTINGS, report=REPORT)
    return steps_between(runs, scheme.step(runs, varied.frame, patient=True))


def _recorded_steps(
    scheme: FixedScheme, program: Program, quaternions: Sequence[int], closing: Program | None, *, held: int
) -> Kernel:
    """Return (q0, qd0[, parameters], times, lengths[, torques]) -> (q, qd): the states at all times, one step apart."""
    k = builder_of("recorded", program, closing)
    nq, nv = program.inputs[1].size, program.inputs[2].size
    start = k.array("q0", nq), k.array("qd0", nv)
    given = StepInputs(k, program, held)
    kept = k.array("q", "t", nq, output=True), k.array("qd", "t", nv, output=True)
    states = LaneStates(k, program, scheme.memory, quaternions, closing, "float64")
    step = scheme.step(states, program, patient=True)
    with k.each_lane():
        states.read(start, states.y)
        given.fill(states)
        states.write(states.y, kept, 0)
    with k.loop(k.extent() - 1) as j:
        with k.each_lane():
            given.hold(states, j)
        begin, h = given.span(j)
        step(begin, h, k.constant(0, Kind.COUNT))
        with k.each_lane():
            states.write(states.y, kept, j + 1)
    return k.kernel()
