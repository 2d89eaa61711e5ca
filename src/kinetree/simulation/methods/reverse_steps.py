"""One step in reverse, in the lane language.

The cotangent of a state has an entry per entry of the state. A step is repeated from the state before it. Then its
closing of loops, its scaling of quaternions and its stages are passed in reverse, each by the product of its Jacobian
with a cotangent, which a Program computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Array, Block, Builder, Value
from ...compiler.lanes.form import Kernel, Kind
from ...compiler.lower.closing_steps import NEAR_ROUNDS
from .lane_states import LaneStates, dot
from .protocol import Centering, Row, Scheme

if TYPE_CHECKING:
    from ...compiler.lanes.expressions import Index


class ReverseStep:
    """The writer of one step in reverse: `cotangent` belongs to the state, `total` is the sum for the parameters."""

    def __init__(self, states: LaneStates, count: int, parameters: int, centering: Centering | None) -> None:
        """Declare the memory of `count` stages; `parameters` is the number of parameters."""
        k, n = states.k, states.n
        self.states, self.k, self.count, self.parameters = states, k, count, parameters
        self.tail = sum(a.size for a in k.programs["rates"].inputs[3:])
        self.cotangent, self.total = k.block("cotangent", n), k.block("total", max(parameters, 1))
        self.z, self.points = k.block("z", n), k.block("points", n * self.count)
        self.given, self.image = k.block("given", 1 + 2 * n + self.tail), k.block("image", n + parameters)
        self.pulled = k.block("pulled", n * self.count)
        self.centering = centering
        if self.centering:
            self.begun, self.ended = k.block("begun", n), k.block("ended", n)
        if states.closing:
            self.iterates, self.last = k.block("iterates", n * NEAR_ROUNDS), k.block("last")

    def repeat_step(self, begin: Value, h: Value) -> None:
        """Write the stages of the step and its end `z`, before quaternions are scaled and loops are closed."""
        raise NotImplementedError

    def reverse_stages(self, begin: Value, h: Value) -> None:
        """Write the stages in reverse, and the cotangent of the state before the step."""
        raise NotImplementedError

    def write(self, begin: Value, h: Value) -> None:
        """Write the cotangent of the state before a step over the one after it."""
        center = self.centering.center if self.centering else None
        if center:
            self.copy(self.states.y, self.begun)
            self.states.convert(center, self.states.y, begin)
        self.repeat_step(begin, h)
        self.reverse_end(begin + h)
        self.reverse_stages(begin, h)
        if center:
            self.pull_conversion(center, self.begun, begin)

    def reverse_end(self, now: Value) -> None:
        """Write `fixed_steps.end_step` in reverse: the cotangent of the sum of stages over that after the step."""
        centering = self.centering
        if centering and centering.kept:
            self.states.copy(self.z, self.states.y)
            self.scale(self.states.y)
            self.states.close(self.states.y, now)
            self.copy(self.states.y, self.ended)
            self.pull_conversion(centering.uncenter, self.ended, now)
        elif centering:
            self.copy(self.z, self.ended)
            self.states.convert(centering.uncenter, self.z, now)
        self.open_loops(now)
        self.unscale()
        if centering and not centering.kept:
            self.pull_conversion(centering.uncenter, self.ended, now)

    def pull_conversion(self, program: Program, state: Block, now: Value) -> None:
        """Write the cotangent of a state before a Program of a Centering over the one after it."""
        self.place(state, now, self.k.constant(0.0, Kind.LANE))
        self.pull(f"{program.name}_back", self.cotangent)
        self.add_parameters(None)
        self.copy(self.image, self.cotangent)

    def write_own(self, begin: Value, h: Value) -> None:
        """Write the same in the lanes whose step is longer than zero, whose bits do not depend on other lanes."""
        k, taken, sizes = self.k, h > 0.0, (self.states.n, self.parameters)
        pairs = [
            (x, k.block(f"former_{i}", max(size, 1)), size)
            for i, (x, size) in enumerate(zip((self.cotangent, self.total), sizes, strict=True))
        ]
        for x, former, size in pairs:
            with k.loop(size) as j:
                former[j] = x[j]
        self.write(begin, h)
        for x, former, size in pairs:
            with k.loop(size) as j:
                x[j] = taken.where(x[j], former[j])

    def pull_stage(self, s: Value, now: Value, h: Value, sums: Block | None = None) -> None:
        """Write what stage s, whose state is the image, adds to the cotangents of state and parameters.

        Those of parameters are added to `sums`, by default `total`.
        """
        n = self.states.n
        self.place(self.image, now, h)
        self.pull("rates_back", self.z)
        self.add_parameters(None, sums)
        with self.k.loop(n) as j:
            self.pulled[s * n + j] = self.image[j]

    def arriving(self, a: Sequence[Row], b: Row, stage: int, j: Value) -> Value:
        """Return the cotangent of entry j of the rates of a stage: from the end of the step, and from later points."""
        total = self.cotangent[j] * b[stage]
        for later in range(stage + 1, self.count):
            if a[later][stage]:
                total = total + self.pulled[j + later * self.states.n] * a[later][stage]
        return total

    def add_stages(self) -> None:
        """Write the cotangent of the state before the step: that after it, with what all stages add."""
        n = self.states.n
        with self.k.loop(n) as j:
            total = self.cotangent[j]
            for stage in range(self.count):
                total = total + self.pulled[j + stage * n]
            self.cotangent[j] = total

    def scale(self, state: Block) -> None:
        """Write the division of quaternions by their lengths, as the step does before it closes loops."""
        self.states.normalize(state)

    def unscale(self) -> None:
        """Write the cotangents of quaternions before they were divided by their lengths."""
        for place in self.states.quaternions:
            parts = [self.z[place + i] for i in range(4)]
            length = dot(parts, parts).sqrt()
            unit = [x / length for x in parts]
            given = [self.cotangent[place + i] for i in range(4)]
            share = dot(unit, given)
            for i, (u, c) in enumerate(zip(unit, given, strict=True)):
                self.cotangent[place + i] = (c - u * share) / length

    def open_loops(self, now: Value) -> None:
        """Write the cotangent of the state before its loops were closed."""
        states, k = self.states, self.k
        if not states.closing:
            return
        states.copy(self.z, states.y)
        self.scale(states.y)
        self.iterate(now)
        n, rounds = states.n, states.rounds.value
        with k.loop(rounds) as i:
            r = rounds - 1 - i
            with k.loop(n) as j:
                states.y[j] = self.iterates[r * n + j]
            number = k.number(r)
            ends, before = self.last.value.equals(number), self.last.value >= number
            self.place(states.y, now, k.constant(0.0, Kind.LANE))
            with k.when(k.any(ends)):  # the last iteration determined the velocities
                self.pull_of(0.0, 1.0)
                self.add_parameters(ends)
                with k.loop(states.nq) as j:
                    self.cotangent[j] = self.cotangent[j] + ends.where(self.image[j], 0.0)
                with k.loop(states.nv) as j:
                    at = j + states.nq
                    self.cotangent[at] = ends.where(self.image[at], self.cotangent[at])
            self.pull_of(1.0, 0.0)
            self.add_parameters(before)
            with k.loop(states.nq) as j:
                self.cotangent[j] = before.where(self.image[j], self.cotangent[j])

    def iterate(self, now: Value) -> None:
        """Write Newton's method on the state y as a time step does, and keep its iterates and the last of each lane."""
        states, k, n = self.states, self.k, self.states.n
        self.last.value = 0.0

        def step() -> Value:
            with k.loop(n) as j:
                self.iterates[states.rounds.value * n + j] = states.y[j]
            states.place_state(states.y, now)
            k.call("closing", states.inputs, states.closed)
            return states.closed[n]

        def move(before: Value, after: Value) -> None:
            self.last.value = (after & ~before).where(k.number(states.rounds.value), self.last.value)
            with k.loop(states.nq) as j:
                states.y[j] = after.where(states.y[j], states.closed[j])

        states.repeat_closing(step, move)

    def place(self, state: Block, now: object, h: object) -> None:
        """Write a state, a time and the parameters into the inputs of a product; steps of length h may also read h."""
        states, k, n = self.states, self.k, self.states.n
        self.given[0] = now
        with k.loop(n) as j:
            self.given[j + 1] = state[j]
        with k.loop(self.tail) as j:
            self.given[j + (1 + n)] = states.inputs[j + (1 + n)]

    def pull(self, program: str, cotangent: Block) -> None:
        """Write the product of the Jacobian at the given inputs with a cotangent to `image`."""
        first = 1 + self.states.n + self.tail
        with self.k.loop(self.states.n) as j:
            self.given[j + first] = cotangent[j]
        self.k.call(program, self.given, self.image)

    def pull_of(self, positions: float, velocities: float) -> None:
        """Write the product of the closing with the cotangents of positions alone, or of velocities alone."""
        states, k = self.states, self.k
        first = 1 + states.n + self.tail
        for share, size, begin in ((positions, states.nq, 0), (velocities, states.nv, states.nq)):
            with k.loop(size) as j:
                self.given[j + (first + begin)] = self.cotangent[j + begin] if share else k.constant(0.0, Kind.LANE)
        k.call("closing_back", self.given, self.image)

    def add_parameters(self, mask: Value | None, sums: Block | None = None) -> None:
        """Write the sum of the cotangents of parameters, in the lanes of a mask; by default to `total`."""
        if self.parameters:
            sums = sums or self.total
            with self.k.loop(self.parameters) as j:
                part = self.image[j + self.states.n]
                sums[j] = sums[j] + (part if mask is None else mask.where(part, 0.0))

    def add_to_cotangent(self, arrays: tuple[Array, Array], *at: Index) -> None:
        """Write the sum of the cotangent and arrays of q and qd of a lane, inside `each_lane`."""
        states = self.states
        for array, size, first in zip(arrays, (states.nq, states.nv), (0, states.nq), strict=True):
            with self.k.loop(size) as j:
                self.cotangent[j + first] = self.cotangent[j + first] + array[(*at, j)]

    def copy(self, source: Block, target: Block) -> None:
        """Write a state into another block."""
        with self.k.loop(self.states.n) as j:
            target[j] = source[j]


class ExplicitStages(Protocol):
    """The coefficients of stages k_s = f(t + c_s h, y + h sum a_sj k_j) and of the step y + h sum b_s k_s."""

    @property
    def a(self) -> tuple[Row, ...]:
        """The weights of earlier stages."""
        ...

    @property
    def b(self) -> Row:
        """The weights of the step."""
        ...

    @property
    def c(self) -> Row:
        """The times of the stages."""
        ...

    @property
    def centering(self) -> Centering | None:
        """The change to centered states."""
        ...


class ReverseExplicit(ReverseStep):
    """The writer of one step of an explicit Runge-Kutta method in reverse."""

    def __init__(self, states: LaneStates, method: ExplicitStages, parameters: int) -> None:
        """Declare the memory."""
        super().__init__(states, len(method.b), parameters, method.centering)
        self.method = method

    def repeat_step(self, begin: Value, h: Value) -> None:
        """Write the stages of the step and its end `z`, before quaternions are scaled and loops are closed."""
        states, k = self.states, self.k
        wide = k.cast(h, Kind.LANE)
        with k.loop(self.count) as s:
            states.stage(s, self.method.a, wide)
            with k.loop(states.n) as j:
                self.points[s * states.n + j] = states.inputs[j + 1]
            states.rates(begin + h * k.choose(s, self.method.c), s)
        states.advance(self.method.b, wide, self.z, 0)

    def reverse_stages(self, begin: Value, h: Value) -> None:
        """Write the stages in reverse: the cotangent of rates k_s is h (b_s of the end + sum a_js of later points)."""
        k, n, method = self.k, self.states.n, self.method
        wide = k.cast(h, Kind.LANE)
        with k.loop(self.count) as i:
            s = (self.count - 1) - i
            for stage in range(self.count):
                with k.when(s.equals(stage)), k.loop(n) as j:
                    self.z[j] = self.arriving(method.a, method.b, stage, j) * wide
            with k.loop(n) as j:
                self.image[j] = self.points[s * n + j]
            self.pull_stage(s, begin + h * k.choose(s, method.c), h)
        self.add_stages()


# --- Runs in reverse: steps are given, with the torques that were held during each of them ---


class StepInputs:
    """Arguments of kernels of given steps: the parameters of a run and torques that are held during each step.

    The last `held` parameters of the Program are these torques.
    """

    def __init__(self, k: Builder, program: Program, held: int, *, own: bool = False) -> None:
        """Declare the arguments: times of all steps and their lengths [s], of each run its own or the same for all."""
        self.own = (k.block("begin"), k.block("length")) if own else None
        self.free = sum(a.size for a in program.inputs if a.name == "parameters") - held
        self.parameters = k.array("parameters", self.free) if self.free else None
        self.times, self.lengths = (k.array(name, "t", shared=not own) for name in ("times", "lengths"))
        self.torques = k.array("torques", "t", held) if held else None

    def fill(self, states: LaneStates) -> None:
        """Write the parameters into the inputs of the rates, inside `each_lane`."""
        states.give(self.parameters)

    def hold(self, states: LaneStates, step: Index) -> None:
        """Write the torques of a step into the inputs of the rates, and its own span, inside `each_lane`."""
        if self.own:
            self.own[0].value, self.own[1].value = self.times[step], self.lengths[step]
        states.give(self.torques, step, shift=self.free)

    def span(self, step: Value) -> tuple[Value, Value]:
        """Return the time at the beginning of a step, and its length; the last `hold` gives an own one."""
        if self.own:
            return self.own[0].value, self.own[1].value
        return self.times[step], self.lengths[step]


@dataclass(frozen=True)
class Reversed:
    """The rates, or the step of a method that is one, and the closing of loops, each with its product `back`.

    `back` has the inputs of the Program, then cotangents of q and qd after it. Its outputs are the cotangents of q and
    qd before it and, if there are any, of the parameters. `around` are the products `back` of the Programs of a
    Centering, by name.
    """

    rates: Program
    rates_back: Program
    closing: Program | None
    closing_back: Program | None
    around: Mapping[str, Program] = field(default_factory=dict)

    def programs(self) -> dict[str, Program]:
        """Return the Programs by their names in the kernel."""
        named = {
            "rates": self.rates,
            "rates_back": self.rates_back,
            "closing": self.closing,
            "closing_back": self.closing_back,
        }
        named |= {f"{name}_back": program for name, program in self.around.items()}
        return {name: program for name, program in named.items() if program is not None}


def adjoint_kernel(
    programs: Reversed,
    scheme: Scheme,
    quaternions: Sequence[int],
    *,
    held: int,
    sampled: bool = False,
    dtype: str = "float64",
) -> Kernel:
    """Return (q, qd, end_q, end_qd[, parameters], times, lengths[, torques]) -> (at_q, at_qd[, at_p][, at_tau]).

    q and qd are the states at all times, one step apart. `end` are the cotangents of the last state, and `at` those of
    the first one, of the parameters, and of the torques held during each step. Runs of an adaptive method have steps of
    their own, of which those of length zero are passed over. If `sampled`, more_q and more_qd are the last arguments:
    cotangents of all states but the last one.
    """
    k = Builder("adjoint", programs.programs())
    own = scheme.adaptive
    arrays = _Arguments(k, programs.rates, held, own=own, sampled=sampled)
    given = arrays.steps
    states = LaneStates(k, programs.rates, scheme.memory, quaternions, programs.closing, dtype)
    step = scheme.reverse_step(states, given.free + held)
    with k.each_lane():
        given.fill(states)
        states.read(arrays.ends, step.cotangent)
        if arrays.at_tau:
            with k.loop(held) as j:
                arrays.at_tau[k.extent() - 1, j] = 0.0
    with k.loop(given.free) as j:
        step.total[j] = 0.0
    with k.loop(k.extent() - 1) as i:
        at = k.extent() - 2 - i
        with k.each_lane():
            states.read(arrays.known, states.y, at)
            given.hold(states, at)
        with k.loop(held) as j:
            step.total[j + given.free] = 0.0
        (step.write_own if own else step.write)(*given.span(at))
        if arrays.at_tau or arrays.more:
            with k.each_lane():
                if arrays.at_tau:
                    with k.loop(held) as j:
                        arrays.at_tau[at, j] = step.total[j + given.free]
                if arrays.more:
                    step.add_to_cotangent(arrays.more, at)
    with k.each_lane():
        states.write(step.cotangent, arrays.starts)
        if arrays.at_p:
            with k.loop(given.free) as j:
                arrays.at_p[j] = step.total[j]
    return k.kernel()


class _Arguments:
    """The arguments of the kernel in order; those that it does not have are None."""

    def __init__(self, k: Builder, rates: Program, held: int, *, own: bool, sampled: bool) -> None:
        nq, nv = (a.size for a in rates.inputs[1:3])
        self.known = k.array("q", "t", nq), k.array("qd", "t", nv)
        self.ends = k.array("end_q", nq), k.array("end_qd", nv)
        self.steps = StepInputs(k, rates, held, own=own)
        self.more = (k.array("more_q", "t", nq), k.array("more_qd", "t", nv)) if sampled else None
        self.starts = k.array("at_q", nq, output=True), k.array("at_qd", nv, output=True)
        self.at_p = k.array("at_p", self.steps.free, output=True) if self.steps.free else None
        self.at_tau = k.array("at_tau", "t", held, output=True) if held else None
