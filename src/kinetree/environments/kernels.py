"""The kernels of environments in the lane language: a step of all of them with their resets, and the resets alone.

The numbers of an environment between two steps are one row: its state, the memory of its contacts, delayed actions, the
number of steps, whether it has ended, what the episode keeps, parameters, and the number of episodes that were lost.
Kernels read and write it in place, as an output; resets alone write what the episode keeps and parameters. Beside it,
the six words of its random numbers are float64 in every precision.

Random numbers are those of the combined recursive generator MRG32k3a, whose products are exact in float64, so that
every target computes the same ones: P. L'Ecuyer, Operations Research 47(1), 159-164 (1999).     [Lecuyer1999]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any

from ..compiler.ir.program import Program
from ..compiler.lanes.expressions import Array, Block, Builder, Value
from ..compiler.lanes.form import Kernel, Kind
from ..errors import unknown_name
from ..simulation.acting.point_forces import forces_of
from ..simulation.engines.held_torques import HELD
from ..simulation.engines.time_stepping import MEASURES
from ..simulation.options import with_contacts
from ..simulation.stepping import Stepping, fixed_method, stepping_of, suitable_loops
from .programs import ActionControl, advance_program, finish_program, look_program, start_of
from .tasks import Continuous, Dynamics, Layout, Task

MODES = ("next_step", "same_step", "disabled")
"""When environments whose episode has ended begin another one: in the next step, in the same one, or never."""

WORDS = 6
"""The words of the state of the random numbers of an environment."""

M1, M2 = 4294967087.0, 4294944443.0
"""The moduli of the two recursions."""
A12, A13, A21, A23 = 1403580.0, 810728.0, 527612.0, 1370589.0
"""Their factors."""
NORM = 1.0 / (M1 + 1.0)
"""The factor to numbers between 0 and 1."""
ROUND = 1.5 * 2.0**52
"""A number whose sum with a smaller one has no digits after the point."""

CHANGING = ("q", "qd", "memory", "queue", "steps", "ended")
"""The parts of a row that change in every step."""

FEW = 8
"""The most entries of a row whose copies are written one by one."""

LOST = 2.0
"""The entry `truncated` of an environment whose state, observation or reward was not finite."""


@dataclass(frozen=True, eq=False)
class Compilable:
    """A task with all its Programs, for the CPU, or in a precision for a GPU."""

    task: Task
    dtype: str = "float64"
    on_gpu: bool = False

    def __post_init__(self) -> None:
        """Trace the task once, so that its errors come early."""
        _ = self.finish, self.look, self.stepping, self.advance

    @cached_property
    def start(self):
        """The Program of the reset, with the layout."""
        return start_of(self.task)

    @property
    def layout(self) -> Layout:
        """The sizes of the numbers of an episode."""
        return self.start.layout

    @cached_property
    def look(self) -> Program:
        """The Program of the observation at a start."""
        return look_program(self.task, self.layout)

    @cached_property
    def finish(self) -> tuple[Program, tuple[str, ...]]:
        """The Program after a step, and the names of the terms of the reward."""
        return finish_program(self.task, self.layout)

    @cached_property
    def advance(self) -> Program | None:
        """The Program of a step of equations; None for a mechanism."""
        return None if isinstance(self.task.motion, Dynamics) else advance_program(self.task, self.layout)

    @cached_property
    def stepping(self) -> Stepping | None:
        """The steps of a mechanism; None for equations."""
        motion = self.task.motion
        if not isinstance(motion, Dynamics):
            return None
        mechanism = with_contacts(motion.system, motion.contacts).mechanism
        method = fixed_method(mechanism, motion.method, motion.dt)
        loops = suitable_loops(motion.loops, method, None)
        acting = (*(forces_of(mechanism) if motion.passive else ()), *motion.forces)
        control = ActionControl(self.task, self.layout, HELD)
        return stepping_of(mechanism, method, acting, control, loops, self.dtype, alone=self.on_gpu)

    @property
    def memory(self) -> int:
        """The numbers of contacts in a state."""
        return 0 if self.stepping is None else self.stepping.memory

    @property
    def observed(self) -> int:
        """The number of entries of an observation."""
        return self.look.outputs[0].size

    @cached_property
    def places(self) -> dict[str, tuple[int, int]]:
        """The first entry and the size of each part of a row."""
        m = self.layout
        sizes = {
            "q": m.nq, "qd": m.nv, "memory": self.memory, "queue": self.task.delay * m.actions, "steps": 1, "ended": 1,
            "kept": m.values, "parameters": m.parameters, "lost": 1,
        }  # fmt: skip
        out, at = {}, 0
        for name, size in sizes.items():
            out[name] = (at, size)
            at += size
        return out

    def part(self, rows: Any, name: str) -> Any:
        """Return a part of rows [n, width] by name, a view [n, size]."""
        at, size = self.places[name]
        return rows[:, at : at + size]

    def kept(self, rows: Any, name: str) -> Any:
        """Return what the resets of the present episodes have drawn under a name, a view [n] or [n, size] of rows."""
        layout = self.layout
        if name not in layout.kept:
            raise unknown_name("value of the episode", name, layout.kept)
        at, size = layout.kept[name]
        part = self.part(rows, "kept")
        return part[:, at] if size is None else part[:, at : at + size]

    @property
    def width(self) -> int:
        """The number of entries of a row."""
        return sum(size for _, size in self.places.values())


def step_kernel(made: Compilable, mode: str, observed: str = "") -> Kernel:
    """Return action -> (row, words, observation, reward, terminated, truncated[, terms][, final]) of one step.

    `truncated` is LOST for an environment that is not finite. There are terms if the reward has several. With
    same_step, `final` is the observation before a reset. On a GPU, arrays have the types of learners: discrete actions
    are int64, observations have the type `observed`, continuous actions, rewards and terms are float32, and the ends
    are bool, followed by `lost`.
    """
    w = _Lanes(made, "env_step")
    k, task, count = w.k, made.task, len(made.finish[1])
    single, whole, truth = ("float32", "int64", "bool") if made.on_gpu else ("", "", "")
    if isinstance(task.actions, Continuous):
        actions = k.array("action", made.layout.actions, type=single)
    else:
        actions = k.array("action", type=whole)
    w.declare_rows()
    observation = k.array("observation", made.observed, output=True, type=observed)
    reward = k.array("reward", output=True, type=single)
    ends = [k.array(name, output=True, type=truth) for name in ("terminated", "truncated")]
    lost = k.array("lost", output=True, type=truth) if made.on_gpu else None
    terms = k.array("terms", count, output=True, type=single) if count > 1 else None
    final = k.array("final", made.observed, output=True, type=observed) if mode == "same_step" else None
    with k.each_lane():
        w.read()
        if isinstance(task.actions, Continuous):
            with k.loop(made.layout.actions) as j:
                w.act[j] = actions[j]
        else:
            a = actions[()]
            w.act[0] = ((a >= 0.0) & (a < float(task.actions.count))).where(a, math.nan) if made.on_gpu else a
    w.good.value = 0.0 if isinstance(task.actions, Continuous) else w.act[0] * 0.0
    w.prepare_action()
    w.move()
    w.finish()
    if mode == "same_step":
        w.copy(w.found, w.last, made.observed)
        w.begin(w.ended.value)
    elif mode == "next_step":
        w.begin(w.was.value, pause=True)
    with k.each_lane():
        w.write(CHANGING)
        w.put(w.found, observation, made.observed)
        for array, x in zip((reward, *ends), (w.reward, w.terminated, w.truncated), strict=True):
            array[()] = x.value
        if lost:
            lost[()] = (w.truncated.value > 1.5).where(k.constant(1.0, Kind.LANE), 0.0)
        if final:
            w.put(w.last, final, made.observed)
        if terms:
            with k.loop(count) as j:
                terms[j] = w.found[j + (made.observed + 3)]
    return k.kernel()


def begin_kernel(made: Compilable, observed: str = "") -> Kernel:
    """Return begins -> (row, words, observation): a new episode where `begins` is not zero."""
    w = _Lanes(made, "env_begin")
    k = w.k
    begins = k.array("begins", type="bool" if made.on_gpu else "")
    w.declare_rows()
    observation = k.array("observation", made.observed, output=True, type=observed)
    with k.each_lane():
        w.read()
        w.was.value = begins[()] > 0.5
    with k.loop(made.layout.actions) as j:
        w.act[j] = 0.0
    w.reward.value, w.terminated.value, w.truncated.value = 0.0, 0.0, 0.0
    w.show(w.y, w.kept, w.parameters, w.y, w.steps.value)
    k.call("look", w.seen, w.found)
    w.begin(w.was.value)
    with k.each_lane():
        w.write(CHANGING)
        w.put(w.found, observation, made.observed)
    return k.kernel()


class _Lanes:
    """The memory of a step of environments in an unfinished kernel, and its statements."""

    row: Array
    random: Array

    def __init__(self, made: Compilable, name: str) -> None:
        m, self.made = made.layout, made
        self.states = None
        programs = {"begin": made.start.program, "look": made.look, "finish": made.finish[0]}
        if made.stepping is None:
            assert made.advance is not None
            self.k = Builder(name, programs | {"advance": made.advance})
        else:
            self.k = made.stepping.builder(name)
            self.k.programs |= programs
        k = self.k

        def own(name: str, size: int = 1, kind: Kind = Kind.LANE) -> Block:
            return k.block(f"env_{name}", size, kind)  # steps have blocks of their own

        self.n = m.nq + m.nv + made.memory
        if made.stepping is None:
            self.y = own("y", self.n)
        else:
            self.states = made.stepping.states(k)
            self.y = self.states.y
        self.act = own("act", m.actions)
        self.kept, self.parameters = own("kept", max(m.values, 1)), own("parameters", max(m.parameters, 1))
        self.queue = own("queue", max(made.places["queue"][1], 1))
        self.words, self.steps = own("words", WORDS, Kind.DOUBLE), own("steps")
        self.ended, self.was = own("ended", kind=Kind.MASK), own("was", kind=Kind.MASK)
        self.past, self.seen = own("past", self.n), own("seen", sum(a.size for a in m.seen))
        self.found = own("found", sum(a.size for a in made.finish[0].outputs))
        self.last, self.shown = own("last", made.observed), own("shown", made.observed)
        self.drawn = own("drawn", sum(a.size for a in made.start.program.outputs))
        self.even, self.fresh = own("even", max(made.start.draws, 1)), own("fresh", self.n)
        self.later = own("later", WORDS, Kind.DOUBLE)
        self.fresh_kept, self.fresh_parameters = (
            own(f"fresh_{x}", max(n, 1)) for x, n in (("kept", m.values), ("parameters", m.parameters))
        )
        self.good = own("good")
        self.reward, self.terminated, self.truncated = (own(x) for x in ("reward", "terminated", "truncated"))

    # --- rows

    def declare_rows(self) -> None:
        """Declare the arguments that are read and written in place."""
        self.row = self.k.array("row", self.made.width, output=True)
        self.random = self.k.array("words", WORDS, output=True, type="float64")

    def read(self) -> None:
        """Write the reading of a row without its random numbers, inside `each_lane`."""
        for block, name, first in self._parts((*CHANGING, "kept", "parameters")):
            at, size = self.made.places[name]
            for j in self.each(size):
                block[j + first] = self.row[j + at]
        ended = self.row[self.made.places["ended"][0]] > 0.5
        self.was.value, self.ended.value = ended, ended

    def write(self, names: tuple[str, ...]) -> None:
        """Write the writing of some parts of a row, inside `each_lane`."""
        for block, name, first in self._parts(names):
            at, size = self.made.places[name]
            for j in self.each(size):
                self.row[j + at] = block[j + first]
        if "ended" in names:
            one = self.k.constant(1.0, Kind.LANE)
            self.row[self.made.places["ended"][0]] = self.ended.value.where(one, 0.0)

    def _parts(self, names: tuple[str, ...]) -> list[tuple[Block, str, int]]:
        m = self.made.layout
        blocks = {
            "q": (self.y, 0), "qd": (self.y, m.nq), "memory": (self.y, m.nq + m.nv), "queue": (self.queue, 0),
            "steps": (self.steps, 0), "kept": (self.kept, 0), "parameters": (self.parameters, 0),
        }  # fmt: skip
        return [(blocks[x][0], x, blocks[x][1]) for x in names if x in blocks and self.made.places[x][1]]

    def each(self, count: int) -> Iterator[Value | int]:
        """Yield the numbers below a few one by one, or the counter of a loop."""
        if count <= FEW:
            yield from range(count)
        else:
            with self.k.loop(count) as j:
                yield j

    def copy(self, source: Block, target: Block, count: int, first: int = 0, to: int = 0) -> None:
        """Write a loop that copies entries of a block."""
        if count:
            with self.k.loop(count) as j:
                target[j + to] = source[j + first]

    def put(self, source: Block, array: Array, count: int) -> None:
        """Write the entries of a block into an output, inside `each_lane`."""
        for j in self.each(count):
            array[j] = source[j]

    # --- a step

    def prepare_action(self) -> None:
        """Write the scaling, clipping and delay of the action."""
        task, actions, k = self.made.task, self.made.task.actions, self.k
        if isinstance(actions, Continuous):
            for i, (low, high) in enumerate(zip(actions.low, actions.high, strict=True)):
                least, most = (-1.0, 1.0) if actions.scaled else (low, high)
                x = self.act[i]
                x = (x < least).where(least, (x > most).where(most, x))
                self.act[i] = x * (0.5 * (high - low)) + 0.5 * (low + high) if actions.scaled else x
        if task.delay:
            m, count = actions.size, task.delay * actions.size
            new = [self.act[i] for i in range(m)]
            for i in range(m):
                self.act[i] = self.queue[i]
            with k.loop(count - m) as j:
                self.queue[j] = self.queue[j + m]
            for i in range(m):
                self.queue[count - m + i] = new[i]

    def move(self) -> None:
        """Write the motion of a step, from `y` to `y`."""
        k, m, made = self.k, self.made.layout, self.made
        motion = made.task.motion
        self.copy(self.y, self.past, self.n)
        if made.stepping is None:
            self.show(self.y, self.kept, self.parameters, self.y, self.steps.value)
            k.call("advance", self.seen, self.y)
        else:
            states, stepping = self.states, made.stepping
            assert isinstance(motion, Dynamics) and states is not None
            place = 1 + states.n
            self.copy(self.parameters, states.inputs, m.parameters, to=place)
            self.copy(self.act, states.inputs, m.actions, to=place + m.parameters)
            self.copy(self.kept, states.inputs, m.values, to=place + m.parameters + m.actions)
            for i in range(len(MEASURES) if made.memory else 0):
                self.y[self.n - len(MEASURES) + i] = 0.0
            length = k.constant(motion.dt / motion.substeps, Kind.SCALAR)
            start = k.block("env_start")
            start.value = self.steps.value * motion.dt
            step = stepping.step(states, lambda: length)
            with k.loop(motion.substeps) as n:
                if made.memory:  # the code of contacts is large, and each sample takes other paths through it
                    k.meet()
                step(start.value, length, n)
        self.steps.value = self.steps.value + 1.0

    def finish(self) -> None:
        """Write observation, reward and ends of the episode after a step."""
        k, made, o = self.k, self.made, self.made.observed
        self.show(self.y, self.kept, self.parameters, self.past, self.steps.value)
        k.call("finish", self.seen, self.found)
        parts = [self.y[j] * 0.0 for j in range(self.n)] + [self.found[j] * 0.0 for j in range(o + 1)]
        while len(parts) > 1:  # in pairs: no sum waits for another one
            parts = [a + b for a, b in zip_longest(parts[::2], parts[1::2], fillvalue=self.good.value)]
        fine = (self.good.value + parts[0]).equals(0.0)
        one, zero = (k.constant(x, Kind.LANE) for x in (1.0, 0.0))
        with k.when(k.any(~fine)):
            with k.loop(o) as j:
                x = self.found[j]
                self.found[j] = (x * 0.0).equals(0.0).where(x, 0.0)
            with k.loop(len(made.finish[1])) as j:
                self.found[j + (o + 3)] = fine.where(self.found[j + (o + 3)], 0.0)
            with k.each_lane():
                at = made.places["lost"][0]
                self.row[at] = self.row[at] + fine.where(zero, 1.0)
        over = (self.steps.value >= float(made.task.max_steps)) | (self.found[o + 2] > 0.5)
        self.reward.value = fine.where(self.found[o], 0.0)
        self.terminated.value = (fine & (self.found[o + 1] > 0.5)).where(one, zero)
        self.truncated.value = fine.where(over.where(one, zero), LOST)
        self.ended.value = (self.terminated.value > 0.5) | (self.truncated.value > 0.5)

    def show(self, y: Block, kept: Block, parameters: Block, before: Block, steps: Value) -> None:
        """Write a state into the inputs of functions of a moment."""
        m, at = self.made.layout, 0
        memory = m.nq + m.nv
        sources: dict[str, tuple[Block, int] | None] = {
            "t": None, "q": (y, 0), "qd": (y, m.nq), "parameters": (parameters, 0), "action": (self.act, 0),
            "kept": (kept, 0), "before_q": (before, 0), "before_qd": (before, m.nq), "steps": None,
            "impulses": (y, memory),
        }  # fmt: skip
        for array in m.seen:
            source = sources[array.name]
            if source is None:
                self.seen[at] = steps * self.made.task.motion.dt if array.name == "t" else steps
            else:
                self.copy(source[0], self.seen, array.size, first=source[1], to=at)
            at += array.size

    # --- resets

    def begin(self, begins: Value, *, pause: bool = False) -> None:
        """Write new episodes in the lanes of a mask; with `pause`, their step has no reward and no end."""
        k, made, m = self.k, self.made, self.made.layout
        mask = k.block("env_begins_now", kind=Kind.MASK)
        mask.value = begins
        with k.when(k.any(mask.value)):
            self.draw()
            k.call("begin", self.even, self.drawn)
            at = 0
            targets = {
                "q": (self.fresh, 0), "qd": (self.fresh, m.nq), "kept": (self.fresh_kept, 0),
                "parameters": (self.fresh_parameters, 0),
            }  # fmt: skip
            for array in made.start.program.outputs:
                block, to = targets[array.name]
                self.copy(self.drawn, block, array.size, first=at, to=to)
                at += array.size
            for i in range(made.memory):
                self.fresh[m.nq + m.nv + i] = 0.0
            if self.states is not None and self.states.closing:
                self.copy(self.fresh_parameters, self.states.inputs, m.parameters, to=1 + self.states.n)
                self.states.close_or_lose(self.fresh, k.constant(0.0, Kind.LANE))
            with k.loop(m.actions) as j:
                self.act[j] = 0.0
            zero = k.constant(0.0, Kind.LANE)
            self.show(self.fresh, self.fresh_kept, self.fresh_parameters, self.fresh, zero)
            k.call("look", self.seen, self.shown)
            self.choose(mask, self.fresh, self.y, self.n)
            self.choose(mask, self.fresh_kept, self.kept, m.values)
            self.choose(mask, self.fresh_parameters, self.parameters, m.parameters)
            self.choose(mask, self.later, self.words, WORDS)
            self.copy(self.words, self.later, WORDS)
            self.choose(mask, self.shown, self.found, made.observed)
            for i in range(made.places["queue"][1]):
                first = made.task.actions.first[i % m.actions]
                self.queue[i] = mask.value.where(first, self.queue[i])
            self.steps.value = mask.value.where(0.0, self.steps.value)
            if pause:
                for x in (self.reward, self.terminated, self.truncated):
                    x.value = mask.value.where(0.0, x.value)
                with k.loop(len(made.finish[1])) as j:
                    place = j + (made.observed + 3)
                    self.found[place] = mask.value.where(0.0, self.found[place])
            self.ended.value = self.ended.value & ~mask.value
            with k.each_lane():
                self.write(("kept", "parameters"))
                for j in range(WORDS):
                    self.random[j] = self.later[j]

    def choose(self, mask: Block, source: Block, target: Block, count: int) -> None:
        """Write a loop that copies entries in the lanes of a mask."""
        if count:
            with self.k.loop(count) as j:
                target[j] = mask.value.where(source[j], target[j])

    def draw(self) -> None:
        """Write the next even random numbers between 0 and 1, and the words after them."""
        k, s = self.k, self.later
        with k.each_lane(), k.loop(WORDS) as j:
            self.words[j] = self.random[j]
        self.copy(self.words, s, WORDS)
        with k.loop(self.made.start.draws) as j:
            p1 = remainder(s[1] * A12 - s[0] * A13, M1)
            p2 = remainder(s[5] * A21 - s[3] * A23, M2)
            moved = s[1], s[2], p1, s[4], s[5], p2
            for i, x in enumerate(moved):
                s[i] = x
            above = p1 > p2
            self.even[j] = k.round(above.where(p1 - p2, p1 - p2 + M1) * NORM)


def remainder(p: Value, modulus: float) -> Value:
    """Return a whole number modulo another one, exactly for numbers below 2^53."""
    quotient = (p * (1.0 / modulus) + ROUND) - ROUND
    rest = p - quotient * modulus
    return (rest < 0.0).where(rest + modulus, rest)
