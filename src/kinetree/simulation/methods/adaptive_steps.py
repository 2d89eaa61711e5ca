"""Embedded Runge-Kutta pairs with step control and dense output; every lane has its own time and step.

Lanes that are finished or failed continue with steps of length zero until all lanes of their block are finished.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kernel, Kind
from ..acting.rates import rates
from ..outcomes import KERNEL_CODES, Outcome
from .lane_states import LaneStates, RunsOfLanes
from .protocol import Centering, Row
from .reverse_steps import ReverseExplicit, ReverseStep
from .tangent_states import TangentRuns, Varied

if TYPE_CHECKING:
    from ...compiler.lanes.expressions import Block

SAFETY, LEAST, MOST = 0.9, 0.2, 5.0
"""The next step is the last one times SAFETY err^(-1/q), bounded by LEAST and MOST (by 1 after a rejected step)."""

TOO_SHORT, TOO_MANY = KERNEL_CODES[Outcome.TOO_SHORT], KERNEL_CODES[Outcome.TOO_MANY]
"""The status of a run whose step fell below rounding, or that used up its attempts; 0 without a fault."""

SETTINGS, OWN = ("rtol", "atol"), ("first", "most", "begin")
"""The arguments that all runs share: relative and absolute tolerance. Those of each run: its first step [s], the most
attempts at steps in this call, and the time of its state [s], which is the first of the times unless a call continues
an earlier one."""

REPORT = ("evaluations", "accepted", "rejected", "status", "time", "step")
"""The entries of the report of each run: evaluations of the rates (one at the beginning of every call), accepted and
rejected steps, the status, the time of q_end and qd_end [s], and the next step [s].

A call that continues an earlier one takes the same times, q_end and qd_end, `time` as `begin` and `step` as `first`.
Its states at times up to `begin` are NaN, since the earlier call returned them.
"""

LIMITS = {"float64": (16 * 2.0**-52, 1e-300, 1e300), "float32": (16 * 2.0**-23, 1e-37, 1e30)}
"""By precision: the shortest step relative to the time (16 units of rounding), the shortest step at time zero [s], and
the largest error whose power can be computed."""

ONE = {"float64": float(1023 << 52), "float32": float(127 << 23)}
"""The bit pattern of the number 1, by precision."""


@dataclass(frozen=True)
class Pair:
    """An embedded pair of explicit Runge-Kutta methods, with step control and dense output.

    `e` (and `e3` for an 8(5,3) pair) are the error weights, and `q` is the order of the error. `a_extra` and `c_extra`
    are stages for the dense output only. `p` are the polynomials of the dense output y + h sum_s k_s p_s(theta), with
    the coefficient of theta^1 first. The rates at the end of a step are its last regular stage and the first stage of
    the next step.
    """

    name: str
    a: tuple[Row, ...]
    b: Row
    c: Row
    e: Row
    e3: Row
    q: int
    a_extra: tuple[Row, ...]
    c_extra: Row
    p: tuple[Row, ...]

    adaptive, on_gpu = True, True
    make_program = staticmethod(rates)
    centering = None

    @property
    def evaluations(self) -> int:
        """The number of stages of a step."""
        return len(self.b)

    @property
    def memory(self) -> int:
        """The number of stages of a step of given length."""
        return len(self.b)

    def centered(self, centering: Centering) -> Pair:
        """Return the method itself: its steps keep momentum to their tolerance alone."""
        return self

    def kernel(
        self, program: Program, quaternions: Sequence[int], closing: Program | None, *, dtype: str, in_registers: bool
    ) -> Kernel:
        """Return (q0, qd0[, parameters], times, rtol, atol, first, most, begin) -> (q, qd, q_end, qd_end, report)."""
        stages = len(self.b) + 1 + len(self.a_extra)
        return Adaptive(adaptive_runs(self.name, program, stages, quaternions, closing, dtype), self).kernel()

    def tangent_kernel(self, program: Program, varied: Varied, quaternions: Sequence[int]) -> Kernel:
        """Return the kernel of runs with the derivatives of their states."""
        stages = len(self.b) + 1 + len(self.a_extra)
        return Adaptive(adaptive_tangents(self.name, varied, stages, quaternions), self).kernel()

    def recording_kernel(
        self, program: Program, quaternions: Sequence[int], closing: Program | None, *, held: int
    ) -> Kernel:
        """Return the kernel that keeps every accepted step; see RecordedSteps. No parameters are those of a step."""
        assert not held, "adaptive steps are not known before the run"
        stages = len(self.b) + 1
        runs = adaptive_runs(f"{self.name}_recorded", program, stages, quaternions, closing, "float64")
        return RecordedSteps(runs, self).kernel()

    def reverse_step(self, states: LaneStates, parameters: int) -> ReverseStep:
        """Return the writer of one step in reverse."""
        return ReverseExplicit(states, self, parameters)


def adaptive_runs(
    name: str, program: Program, stages: int, quaternions: Sequence[int], closing: Program | None, dtype: str
) -> RunsOfLanes:
    """Return an unfinished kernel with the arguments of adaptive steps."""
    return RunsOfLanes(
        name, program, stages, quaternions, closing, dtype=dtype, shared=SETTINGS, own=OWN, report=REPORT
    )


def adaptive_tangents(name: str, varied: Varied, stages: int, quaternions: Sequence[int]) -> TangentRuns:
    """Return the same for states with their derivatives."""
    return TangentRuns(name, varied, stages, quaternions, dtype="float64", shared=SETTINGS, own=OWN, report=REPORT)


class Adaptive:
    """The writer of one kernel; `v` has the variables of a lane."""

    def __init__(self, runs: RunsOfLanes, pair: Pair) -> None:
        """Declare the variables."""
        k = runs.k
        self.runs, self.k, self.pair, self.dtype, self.regular = runs, k, pair, runs.dtype, len(pair.b)
        self.v = {name: k.block(name) for name in (*REPORT, "old", "tried", "most")}
        self.z, self.sums = k.block("z", runs.n), k.block("sum", 2)
        self.index, self.good = k.block("index", kind=Kind.INDEX), k.block("good", kind=Kind.MASK)
        self.due, self.tries = k.block("due", kind=Kind.MASK), k.block("tries", kind=Kind.COUNT)

    def kernel(self) -> Kernel:
        """Write the whole loop and return the finished kernel."""
        runs, k, v = self.runs, self.k, self.v
        self.rtol, self.atol = (k.cast(runs.shared[name][()], Kind.LANE) for name in SETTINGS)
        self.end = k.cast(runs.times[k.extent() - 1], Kind.LANE)
        runs.keep(0)
        for x in v.values():
            x.value = 0.0
        with k.each_lane():
            v["step"].value = runs.own["first"][()]
            v["most"].value = runs.own["most"][()]
            v["time"].value = runs.own["begin"][()]
        v["evaluations"].value = 1.0
        self.index.value, self.tries.value = 1, 0
        self.resume()
        self.begin()
        with k.repeat() as turn:
            turn.again = self.attempt()
        self.finish()
        return runs.kernel()

    def resume(self) -> None:
        """Write NaN at the times whose states an earlier call returned."""
        with self.k.each_lane():
            self.blanks(lambda: self.v["time"].value >= self.runs.times[self.next_time()])

    def begin(self) -> None:
        """Write the rates at the beginning of a call as the first stage."""
        self.runs.copy(self.runs.y, self.runs.inputs, shift=1)
        self.runs.rates(self.v["time"].value, 0)

    def advance(self, now: Value, tried: Value, reached: Value) -> None:
        """Write the stages of a step, its end `z`, and the rates there."""
        runs, k, pair = self.runs, self.k, self.pair
        with k.loop(self.regular) as i:
            s = i + 1
            runs.stage(s, pair.a, tried)
            at_end = s.equals(self.regular)
            with k.when(at_end):
                runs.advance(pair.b, tried, self.z, 0)
                runs.normalize(self.z)
                runs.close(self.z, reached)
                runs.copy(self.z, runs.inputs, shift=1)
            runs.rates(at_end.where(reached, now + tried * k.choose(s, (*pair.c, 1.0))), s)

    def attempt(self) -> Value:
        """Write one attempt at a step in all lanes; return whether a lane is unfinished."""
        runs, k, v = self.runs, self.k, self.v
        now, h, status = v["time"].value, v["step"].value, v["status"].value
        left = self.end - now
        active = (left > 0.0) & status.equals(0.0)
        tried = active.where((h < left).where(h, left), 0.0)
        reached = (tried >= left).where(self.end, now + tried)
        self.advance(now, tried, reached)
        error = self.error(tried)
        if runs.closing:  # a step whose loops do not close is too long
            error = runs.astray().where(1e3, error)
        good = (error <= 1.0) & active
        factor = self.factor(error, good)
        v["old"].value, v["tried"].value = now, tried
        bad = active & ~good
        self.count(active, good, bad)
        self.outputs(good, now, tried, reached)
        with k.loop(runs.n) as j:
            self.take(good, j)
        v["time"].value = good.where(reached, now)
        after = self.next_step(tried * factor, h, tried, good)
        v["step"].value = active.where(after, h)
        self.fail(bad, now, after)
        return k.any((self.end - v["time"].value > 0.0) & v["status"].value.equals(0.0))

    def error(self, h: Value) -> Value:
        """Return the error of a step relative to atol + rtol |y|, as the root mean square of the entries."""
        runs, k, sums = self.runs, self.k, self.sums
        sums[0], sums[1] = 0.0, 0.0
        with k.loop(runs.n) as j:
            y, z = abs(runs.y[j]), abs(self.z[j])
            scale = self.atol + self.rtol * (y > z).where(y, z)
            for i, weights in enumerate((self.pair.e, self.pair.e3)):
                if weights:
                    total = runs.combine(weights, j)
                    assert total is not None, "an error estimate has weights"
                    x = total * h / scale
                    sums[i] = sums[i] + x * x
        five, three = sums[0], sums[1]
        count = float(runs.n)
        if not self.pair.e3:
            return (five / count).sqrt()
        # Hairer's estimate for an 8(5,3) pair: |e5|^2 / sqrt(|e5|^2 + 0.01 |e3|^2), zero if both are zero.
        below = five + 0.01 * three
        safe = below.equals(0.0).where(1.0, below)
        return five / (safe * count).sqrt()

    def factor(self, error: Value, good: Value) -> Value:
        """Return SAFETY err^(-1/q) within its bounds; the power is computed from the bits, to a few percent."""
        k, power = self.k, -1.0 / self.pair.q
        raised = k.unbits(k.bits(error) * power + ONE[self.dtype] * (1.0 - power)) * SAFETY
        top = good.where(k.constant(MOST, Kind.LANE), 1.0)
        bounded = (raised < top).where(raised, top)
        bounded = (bounded > LEAST).where(bounded, LEAST)
        return (error < LIMITS[self.dtype][2]).where(bounded, LEAST)

    def next_step(self, after: Value, _h: Value, _tried: Value, _good: Value) -> Value:
        """Return the next step; `after` is the proposal by the error estimate of the last one."""
        return after

    def count(self, active: Value, good: Value, bad: Value) -> None:
        """Write the counts of evaluations, accepted and rejected steps."""
        for name, mask, each in (
            ("evaluations", active, float(self.regular)),
            ("accepted", good, 1.0),
            ("rejected", bad, 1.0),
        ):
            self.v[name].value = self.v[name].value + mask.where(self.k.constant(each, Kind.LANE), 0.0)

    def outputs(self, good: Value, now: Value, tried: Value, reached: Value) -> None:
        """Write the states at all output times within the accepted steps."""
        runs, k, pair = self.runs, self.k, self.pair
        self.v["time"].value = reached  # for the lanes with accepted steps; the caller restores the others
        self.good.value = good
        if pair.a_extra:
            with k.each_lane():
                self.due.value = self.is_due()
            with k.when(k.any(self.due.value)):  # the stages of the dense output, for all lanes
                with k.loop(len(pair.a_extra)) as i:
                    runs.stage(i, pair.a_extra, tried)
                    runs.rates(now + tried * k.choose(i, pair.c_extra), i + (self.regular + 1))
        with k.each_lane(), k.whilst(self.is_due):
            self.dense()
            self.index.value = self.index.value + 1

    def next_time(self) -> Value:
        """Return the index of the next output time of a lane, 0 after the last one."""
        index = self.index.value
        return (index < self.k.extent()).where(index, 0)

    def is_due(self) -> Value:
        """Return whether the accepted step of a lane reaches its next output time."""
        inside = self.index.value < self.k.extent()
        passed = self.runs.times[self.next_time()] <= self.v["time"].value
        return self.good.value & (inside & passed)

    def dense(self) -> None:
        """Write the state of one lane at its next output time: y + h sum_s k_s p_s(theta)."""
        runs, k, index = self.runs, self.k, self.index.value
        h = self.v["tried"].value
        theta = (runs.times[index] - self.v["old"].value) / h
        weights = []
        for polynomial in self.pair.p:
            value: Value | float = polynomial[-1]
            for c in reversed(polynomial[:-1]):
                value = value * theta + c
            weights.append(value * theta * h)
        for array, size, first in runs.outputs():
            with k.loop(size) as j:
                place = j + first
                value = runs.y[place]
                for s, weight in enumerate(weights):
                    value = value + runs.stages[place + s * runs.n] * weight
                array[index, j] = value

    def take(self, good: Value, j: Value) -> None:
        """Write accepted steps into the state, and their last rates into the first stage."""
        runs = self.runs
        runs.y[j] = good.where(self.z[j], runs.y[j])
        runs.stages[j] = good.where(runs.stages[j + self.regular * runs.n], runs.stages[j])

    def fail(self, bad: Value, now: Value, h: Value) -> None:
        """Write the status of lanes whose step falls below rounding, or whose attempts are used up."""
        k, v = self.k, self.v
        tiny, least = LIMITS[self.dtype][:2]
        short = bad & (h < abs(now) * tiny + least)
        status = short.where(TOO_SHORT, v["status"].value)
        tries = self.tries.value + 1
        self.tries.value = tries
        used_up = k.cast(k.number(tries), Kind.LANE) >= v["most"].value
        unfinished = used_up & status.equals(0.0) & (self.end - v["time"].value > 0.0)
        v["status"].value = unfinished.where(TOO_MANY, status)

    def blanks(self, condition: Callable[[], Value] | None = None) -> None:
        """Write NaN at the remaining output times of a lane, or only while a condition holds."""
        k = self.k

        def more() -> Value:
            inside = self.index.value < k.extent()
            return inside & condition() if condition else inside

        with k.whilst(more):
            self.runs.blank(self.index.value)
            self.index.value = self.index.value + 1

    def finish(self) -> None:
        """Write NaN at the output times that each lane did not reach, and its report."""
        with self.k.each_lane():
            self.blanks()
            for i, name in enumerate(REPORT):
                self.runs.report[i] = self.v[name].value


def step_after_output(after: Value, h: Value, tried: Value, good: Value) -> Value:
    """Return the next step; one that was shortened to end at an output time does not shorten the next."""
    kept = good & ((tried < h) & (after < h))
    return kept.where(h, after)


# --- Adaptive steps of which every accepted one is kept: the steps from which a run is differentiated backward.


class RecordedSteps(Adaptive):
    """The writer of one kernel that keeps accepted steps instead of states at output times.

    It is (q0, qd0[, parameters], times, rtol, atol, first, most, begin) -> (q, qd, ..., report, begins, lengths). The
    arguments are those of every adaptive kernel, and a run ends at the last of the times. Their number is that of the
    states which can be kept, so `most` must be smaller. q and qd are the states before each accepted step and the last
    one, `begins` their times [s], and `lengths` those of the steps [s]. A run with fewer steps repeats its last state,
    with steps of length zero.
    """

    def resume(self) -> None:
        """Declare the further outputs, and write the time of the first state."""
        k = self.k
        self.begins, self.lengths = (k.array(name, "t", output=True) for name in ("begins", "lengths"))
        with k.each_lane():
            self.begins[0] = self.v["time"].value

    def outputs(self, good: Value, now: Value, tried: Value, reached: Value) -> None:
        """Write accepted steps; `now` and `tried` are in memory."""
        k = self.k
        self.v["time"].value = reached  # for the lanes with accepted steps; the caller restores the others
        self.good.value = good
        with k.each_lane(), k.when(self.good.value):
            self._append(self.z, self.v["tried"].value)

    def next_step(self, after: Value, h: Value, tried: Value, good: Value) -> Value:
        """Return the next step; every run ends at an output time, which does not shorten the steps after it."""
        return step_after_output(after, h, tried, good)

    def finish(self) -> None:
        """Write the last state of each lane, with steps of length zero, over the rest, and its report."""
        k = self.k
        with k.each_lane():
            with k.whilst(lambda: self.index.value < k.extent()):
                self._append(self.runs.y, 0.0)
            self.lengths[k.extent() - 1] = 0.0
            for i, name in enumerate(REPORT):
                self.runs.report[i] = self.v[name].value

    def _append(self, state: Block, length: Value | float) -> None:
        """Write a state of one lane, its time, and the length of the step before it."""
        index = self.index.value
        self.runs.write(state, (self.runs.q, self.runs.qd), index)
        self.begins[index] = self.v["time"].value
        self.lengths[index - 1] = length
        self.index.value = index + 1
