"""Tasks of environments: what is observed, rewarded and drawn at random, as functions that are traced and compiled."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._support.checks import number, positive, whole
from ..algebra.scalars import Scalar, cos, is_number, log, sin, sqrt, where
from ..compiler.ir.program import Array, Program
from ..compiler.ir.trace import Condition, Trace, Value
from ..compiler.lower.contacts import candidate_names
from ..errors import InputError, brief, unknown_name
from ..model.contacts import Contact
from ..model.mechanism import Mechanism, resolve_parts
from ..simulation.acting.instants import HINT, Force, Instant
from ..simulation.closing import Loops
from ..simulation.options import with_contacts
from ..system import System

# --- Actions ---


@dataclass(frozen=True)
class Continuous:
    """Actions of numbers between `low` and `high`, one for each.

    Learners give numbers from -1 to 1, which are scaled to the bounds; with `scaled=False`, the bounds themselves are
    those of the space. Numbers beyond the bounds are clipped.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    scaled: bool = True

    def __post_init__(self) -> None:
        """Check the bounds."""
        low, high = (tuple(number(x, name) for x in getattr(self, name)) for name in ("low", "high"))
        if len(low) != len(high) or not low or not all(a < b for a, b in zip(low, high, strict=True)):
            raise InputError(f"Continuous has bounds low = {low} and high = {high}; give as many of both, low < high")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def size(self) -> int:
        """The number of actions."""
        return len(self.low)

    @property
    def first(self) -> tuple[float, ...]:
        """The actions before the first one, which act during a delay: the middle of the bounds."""
        return tuple(0.5 * (a + b) for a, b in zip(self.low, self.high, strict=True))


@dataclass(frozen=True)
class Discrete:
    """An action that is one of the numbers 0, 1, ... below `count`."""

    count: int
    size = 1
    first = (0.0,)

    def __post_init__(self) -> None:
        """Check the count."""
        object.__setattr__(self, "count", whole(self.count, "count", least=2))


# --- Random numbers of a reset ---


class Draw:
    """Random numbers of the start of an episode, as traced scalars: the argument of `Task.reset`."""

    def __init__(self, trace: Trace, mechanism: Mechanism | None = None) -> None:
        """Begin without numbers."""
        self._trace, self._mechanism, self.count = trace, mechanism, 0

    def _even(self) -> Value:
        self.count += 1
        return self._trace.input(0, self.count - 1)

    def uniform(self, low: Scalar = 0.0, high: Scalar = 1.0, size: int | None = None) -> Any:
        """Return a number between two others, or a list of `size` of them."""
        if size is None:
            return low + (high - low) * self._even()
        return [self.uniform(low, high) for _ in range(size)]

    def normal(self, mean: Scalar = 0.0, deviation: Scalar = 1.0, size: int | None = None) -> Any:
        """Return a number of a normal distribution, by Box and Muller, or a list of `size` of them."""
        if size is None:
            return mean + deviation * (sqrt(-2.0 * log(self._even())) * cos(2.0 * math.pi * self._even()))
        return [self.normal(mean, deviation) for _ in range(size)]

    def position(self, name: str, q: Sequence[Scalar]) -> list[Scalar]:
        """Return the position [m] of a body or frame of the mechanism at coordinates q, such as a point in reach."""
        if self._mechanism is None:
            raise InputError(f"{name!r}: a task of equations has no bodies or frames")
        nominal = [p.value for p in self._mechanism.free_parameters] or None
        there = Instant(self._mechanism, 0.0, q, [0.0] * self._mechanism.nv, nominal)
        return list(there.point(*_place(there, name))[0])

    def choice(self, values: Sequence[Any]) -> Any:
        """Return one of some numbers, or of some lists of as many numbers, each as often."""
        x, several = self._even() * float(len(values)), not is_number(values[0])
        rows = [list(v) if several else [v] for v in values]
        if len({len(row) for row in rows}) != 1:
            raise InputError(f"choice has lists of {[len(row) for row in rows]} numbers; give as many in each")
        chosen = []
        for column in zip(*rows, strict=True):
            found = column[-1]
            for k in reversed(range(len(column) - 1)):
                found = where(x < k + 1.0, column[k], found)
            chosen.append(found)
        return chosen if several else chosen[0]


# --- The motion of a task ---


@dataclass(frozen=True)
class Equations:
    """A motion given by the equations of its step: `advance(now)` returns q and qd at the end of a step of dt [s]."""

    nq: int
    nv: int
    advance: Callable[[Moment], tuple[Sequence[Scalar], Sequence[Scalar]]]
    dt: float

    def __post_init__(self) -> None:
        """Check the sizes and the step."""
        object.__setattr__(self, "nq", whole(self.nq, "nq"))
        object.__setattr__(self, "nv", whole(self.nv, "nv"))
        object.__setattr__(self, "dt", positive(self.dt, "dt"))


@dataclass(frozen=True, kw_only=True)
class Dynamics:
    """The motion of a System in steps of dt [s]; `control(now)` returns the joint torques of an action.

    These are a list with an entry for each degree of freedom, or a mapping from names of joints to torques. They act
    in each of the `substeps`, at the state there. The other fields are those of `system.stepper`.
    """

    system: System
    dt: float
    control: Callable[[Moment], Sequence[Scalar] | Mapping[str, Scalar]]
    substeps: int = 1
    forces: tuple[Force, ...] = ()
    passive: bool = True
    contacts: tuple[Contact, ...] | None = None
    method: str = "auto"
    loops: Loops | None = None

    def __post_init__(self) -> None:
        """Check the step."""
        object.__setattr__(self, "dt", positive(self.dt, "dt"))
        object.__setattr__(self, "substeps", whole(self.substeps, "substeps"))

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that moves, with its contacts."""
        return with_contacts(self.system, self.contacts).mechanism

    @property
    def nq(self) -> int:
        """The number of coordinates."""
        return self.system.nq

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return self.system.nv


Function = Callable[["Moment"], Scalar | Sequence[Scalar]]
"""A function of a moment that returns traced scalars."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What an environment is: a motion, its actions, what is observed and rewarded, and how episodes begin and end.

    All functions take a `Moment`, the state after a step, and are traced once and compiled: they choose by
    `where(x < y, yes, no)`. `observation` is a function that returns a list, or a sequence of functions and of names:
    see OBSERVED. `reward` is a function, or functions by name, whose sum is the reward. `reset(draw)` returns a mapping
    with q and qd (by default the neutral position at rest), values of free "parameters" by name, and any other numbers
    by name, which are kept for the episode: `now["target"]`. An episode ends if `terminated` holds, a condition, and it
    is cut off after `max_steps` or if `truncated` holds. Actions take effect `delay` steps later. `low` and `high`
    bound the observations of the space.
    """

    name: str
    motion: Equations | Dynamics
    actions: Continuous | Discrete
    observation: Function | Sequence[str | Function]
    reward: Function | Mapping[str, Function]
    reset: Callable[[Draw], Mapping[str, object]] | None = None
    terminated: Function | None = None
    truncated: Function | None = None
    max_steps: int = 1000
    delay: int = 0
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Check the numbers and the kinds of the parts."""
        object.__setattr__(self, "max_steps", whole(self.max_steps, "max_steps"))
        object.__setattr__(self, "delay", whole(self.delay, "delay", least=0))
        for name, kinds in (("motion", Equations | Dynamics), ("actions", Continuous | Discrete)):
            if not isinstance(getattr(self, name), kinds):
                raise InputError(f"task {self.name!r}: {name} is {brief(getattr(self, name))}; expected {kinds}")

    def changed(self, **fields: object) -> Task:
        """Return the task with other fields."""
        return replace(self, **fields)


# --- The argument of a task's functions ---


@dataclass(frozen=True)
class Layout:
    """The sizes of the numbers of an episode, and the places of those that it keeps, by name."""

    nq: int
    nv: int
    actions: int
    parameters: int
    contacts: tuple[str, ...]
    kept: dict[str, tuple[int, int | None]]
    """First entry and size of each name, None for a single number."""

    @property
    def values(self) -> int:
        """The number of values that are kept for an episode."""
        return sum(size or 1 for _, size in self.kept.values())

    @property
    def seen(self) -> list[Array]:
        """The inputs of functions of a moment, without those that have no entries."""
        sizes = {
            "t": 1, "q": self.nq, "qd": self.nv, "parameters": self.parameters, "action": self.actions,
            "kept": self.values, "before_q": self.nq, "before_qd": self.nv, "steps": 1,
            "impulses": 3 * len(self.contacts),
        }  # fmt: skip
        return [Array(name, (size,)) for name, size in sizes.items() if size]


@dataclass(frozen=True)
class Before:
    """Coordinates and velocities before a step."""

    q: list[Scalar]
    qd: list[Scalar]


class Moment:
    """The state of an environment after a step, on traced scalars: the argument of the functions of a task.

    It has the time `t` [s] and the number of `steps` of the episode, `q` and `qd`, the state `before` the step, the
    scaled `action`, and `now["name"]`, what the reset of the episode has drawn. With a mechanism, it also has all of an
    Instant: `point`, `orientation`, `angular_velocity`, `parameter`, `inverse_dynamics` and others.
    """

    def __init__(
        self, layout: Layout, given: Mapping[str, Sequence[Scalar]], instant: Instant | None, step: float
    ) -> None:
        """Store the numbers by name; those that are missing are None."""
        self._layout, self._given, self._instant, self._step = layout, given, instant, step
        self.q, self.qd, self.t = list(given["q"]), list(given["qd"]), given["t"][0]
        self.action = list(given["action"])
        self.steps = given["steps"][0] if "steps" in given else None
        self.before = Before(list(given["before_q"]), list(given["before_qd"])) if "before_q" in given else None

    def __getitem__(self, name: str) -> Any:
        """Return what the reset of the episode returned under a name."""
        if name not in self._layout.kept:
            raise unknown_name("value of the episode", name, self._layout.kept)
        at, size = self._layout.kept[name]
        kept = self._given["kept"]
        return kept[at] if size is None else list(kept[at : at + size])

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the Instant of a mechanism."""
        instant = self.__dict__.get("_instant")
        if instant is None:
            raise AttributeError(f"a moment has no {name!r}")
        return getattr(instant, name)

    def contact_force(self, name: str) -> list[Scalar]:
        """Return the mean force [N] of a contact in the last substep: along its normal, and along two tangents."""
        if name not in self._layout.contacts:
            raise unknown_name("contact", name, self._layout.contacts)
        if "impulses" not in self._given:
            raise InputError("contact forces are known after a step, not in the control")
        at = 3 * self._layout.contacts.index(name)
        return [x / self._step for x in self._given["impulses"][at : at + 3]]

    def position(self, name: str) -> list[Scalar]:
        """Return the position [m] of a body or frame, in the axes of the ground."""
        return list(self._instant_of(name).point(*_place(self._instant, name))[0])

    def velocity(self, name: str) -> list[Scalar]:
        """Return the velocity [m/s] of a body or frame, in the axes of the ground."""
        return list(self._instant_of(name).point(*_place(self._instant, name))[1])

    def _instant_of(self, name: str) -> Instant:
        if self._instant is None:
            raise InputError(f"{name!r}: a task of equations has no bodies or frames")
        return self._instant


def _place(instant: Any, name: str) -> tuple[str, tuple[float, ...]]:
    """Return the body and the place on it of a body or frame by name."""
    mechanism = instant.mechanism
    if name in [b.name for b in mechanism.bodies]:
        return name, (0.0, 0.0, 0.0)
    frame = mechanism.frame(name)
    return frame.body, resolve_parts(frame.placement.translation, mechanism.values(instant._parameters))


OBSERVED: dict[str, Callable[[Moment], Sequence[Scalar]]] = {
    "q": lambda now: now.q,
    "qd": lambda now: now.qd,
    "sin_q": lambda now: [sin(x) for x in now.q],
    "cos_q": lambda now: [cos(x) for x in now.q],
    "action": lambda now: now.action,
    "t": lambda now: [now.t],
}
"""Names of observations. Further ones are the names of what the reset draws, NAME.position and NAME.velocity of bodies
and frames, NAME.force of contacts, and free parameters of the mechanism."""


def observe(task: Task, layout: Layout, now: Moment) -> list[Scalar]:
    """Return the entries of the observation."""
    parts = (task.observation,) if callable(task.observation) or isinstance(task.observation, str) else task.observation
    out: list[Scalar] = []
    for part in parts:
        found = part(now) if callable(part) else _named(task, layout, now, part)
        out += list(found) if isinstance(found, list | tuple) else [found]
    if not out:
        raise InputError(f"task {task.name!r} observes nothing; give observation, such as ('q', 'qd')")
    return [_scalar(x, f"an observation of task {task.name!r}") for x in out]


def _named(task: Task, layout: Layout, now: Moment, name: str) -> Scalar | Sequence[Scalar]:
    if name in OBSERVED:
        return OBSERVED[name](now)
    if name in layout.kept:
        return now[name]
    mechanism = task.motion.mechanism if isinstance(task.motion, Dynamics) else None
    known = [*OBSERVED, *layout.kept]
    if mechanism is not None:
        free = [p.name for p in mechanism.free_parameters]
        places = [*(b.name for b in mechanism.bodies), *mechanism.frame_names]
        known += [*free, *(f"{x}.{y}" for x in places for y in ("position", "velocity"))]
        known += [f"{x}.force" for x in layout.contacts]
        if name in known:
            place, _, what = str(name).rpartition(".")
            if name in free:
                return now.parameter(str(name))
            return {"position": now.position, "velocity": now.velocity, "force": now.contact_force}[what](place)
    raise unknown_name("observation", str(name), known)


def rewards(task: Task, now: Moment) -> dict[str, Scalar]:
    """Return the terms of the reward by name."""
    terms = task.reward if isinstance(task.reward, Mapping) else {"reward": task.reward}
    if not terms or not all(callable(x) for x in terms.values()):
        raise InputError(f"task {task.name!r}: reward is {brief(task.reward)}; give a function, or functions by name")
    return {name: _scalar(f(now), f"reward {name!r} of task {task.name!r}") for name, f in terms.items()}


def holds(task: Task, name: str, now: Moment) -> Scalar:
    """Return 1 where a condition of the task holds, else 0."""
    function = getattr(task, name)
    if function is None:
        return 0.0
    found = function(now)
    if not isinstance(found, bool | Condition):
        raise InputError(f"task {task.name!r}: {name} returned {brief(found)}; return a condition, such as x < y")
    return where(found, 1.0, 0.0)


def _scalar(x: Scalar, what: str) -> Scalar:
    if isinstance(x, Value) or is_number(x):
        return x
    try:
        return float(x)
    except (TypeError, ValueError):
        raise InputError(f"{what} is {brief(x)}; expected a number of traced scalars") from None


def compiled(task: Task, function: Callable[[], Any], what: str) -> Any:
    """Return the result of a user's function on traced scalars; InputError for operations that cannot be compiled."""
    try:
        return function()
    except (TypeError, AttributeError) as error:
        raise InputError(f"{what} of task {task.name!r} cannot be compiled ({error}); {HINT}") from error


# --- The Programs of a task ---


@dataclass(frozen=True)
class Start:
    """The Program of a reset: even random numbers -> q, qd, what is kept, and parameters, and how many it takes."""

    program: Program
    draws: int
    layout: Layout


def start_of(task: Task) -> Start:
    """Trace the reset of a task."""
    motion, trace = task.motion, Trace()
    mechanism = motion.mechanism if isinstance(motion, Dynamics) else None
    draw = Draw(trace, mechanism)
    reset = task.reset
    given: Any = {} if reset is None else compiled(task, lambda: reset(draw), "reset")
    if not isinstance(given, Mapping):
        raise InputError(f"task {task.name!r}: reset returned {brief(given)}; return a mapping with q, qd and others")
    given = dict(given)
    neutral = [0.0] * motion.nq
    if isinstance(motion, Dynamics):
        neutral = motion.system.assemble().tolist() if motion.system.closures else list(motion.mechanism.neutral)
    q = _entries(task, "q", given.pop("q", neutral), motion.nq)
    qd = _entries(task, "qd", given.pop("qd", [0.0] * motion.nv), motion.nv)
    free = [] if mechanism is None else [p.name for p in mechanism.free_parameters]
    named = dict(given.pop("parameters", {}))
    for name in named:
        if name not in free:
            raise unknown_name("free parameter", str(name), free)
    nominal = {} if mechanism is None else {p.name: p.value for p in mechanism.free_parameters}
    parameters = [named.get(name, nominal[name]) for name in free]
    kept: dict[str, tuple[int, int | None]] = {}
    values: list[Scalar] = []
    for name, x in given.items():
        several = isinstance(x, list | tuple)
        kept[str(name)] = (len(values), len(x) if several else None)
        values += [_scalar(v, f"{name!r} of the reset of task {task.name!r}") for v in (x if several else [x])]
    contacts = () if mechanism is None else tuple(candidate_names(mechanism))
    layout = Layout(motion.nq, motion.nv, task.actions.size, len(free), contacts, kept)
    results = {"q": q, "qd": qd, "kept": values, "parameters": parameters}
    outputs = [Array(name, (len(x),)) for name, x in results.items() if x]
    inputs = (Array("u", (max(draw.count, 1),)),)
    program = Program.of_trace("begin", inputs, outputs, trace, [x for x in results.values() if x])
    return Start(program, draw.count, layout)


def _entries(task: Task, name: str, given: Iterable[Scalar], count: int) -> list[Scalar]:
    found = [_scalar(x, f"{name} of the reset of task {task.name!r}") for x in given]
    if len(found) != count:
        raise InputError(f"task {task.name!r}: reset returned {name} with {len(found)} entries; expected {count}")
    return found


def look_program(task: Task, layout: Layout) -> Program:
    """Return the Program of the observation at the start of an episode."""
    trace = Trace()
    now = _moment(task, layout, trace)
    seen = compiled(task, lambda: observe(task, layout, now), "observation")
    return Program.of_trace("look", layout.seen, [Array("observation", (len(seen),))], trace, [seen])


def finish_program(task: Task, layout: Layout) -> tuple[Program, tuple[str, ...]]:
    """Return the Program of observation, reward, ends of an episode and terms of the reward, and their names."""
    trace = Trace()
    now = _moment(task, layout, trace)
    seen = compiled(task, lambda: observe(task, layout, now), "observation")
    terms = compiled(task, lambda: rewards(task, now), "reward")
    total: Scalar = 0.0
    for x in terms.values():
        total = total + x
    ends = [compiled(task, lambda name=name: holds(task, name, now), name) for name in ("terminated", "truncated")]
    results = {"observation": seen, "reward": [total], "ends": ends, "terms": list(terms.values())}
    outputs = [Array(name, (len(x),)) for name, x in results.items()]
    return Program.of_trace("finish", layout.seen, outputs, trace, list(results.values())), tuple(terms)


def advance_program(task: Task, layout: Layout) -> Program:
    """Return the Program of a step of equations."""
    motion, trace = task.motion, Trace()
    assert isinstance(motion, Equations)
    now = _moment(task, layout, trace)
    q, qd = compiled(task, lambda: motion.advance(now), "advance")
    results = [_entries(task, "q", q, layout.nq), _entries(task, "qd", qd, layout.nv)]
    outputs = [Array("q", (layout.nq,)), Array("qd", (layout.nv,))]
    return Program.of_trace("advance", layout.seen, outputs, trace, results)


def _moment(task: Task, layout: Layout, trace: Trace) -> Moment:
    given = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(layout.seen)}
    motion, instant, step = task.motion, None, task.motion.dt
    if isinstance(motion, Dynamics):
        instant = Instant(motion.mechanism, given["t"][0], given["q"], given["qd"], given.get("parameters"), given)
        step = motion.dt / motion.substeps
    return Moment(layout, given, instant, step)


class ActionControl:
    """The controller of a task: actions and what the episode keeps are inputs that are held over a step."""

    def __init__(self, task: Task, layout: Layout, held: str) -> None:
        """Declare the inputs."""
        self._task, self._layout, self._held = task, layout, held
        self.inputs = (Array(held, (layout.actions + layout.values,)),)

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques of the task's control."""
        motion, given, count = self._task.motion, now.given[self._held], self._layout.actions
        assert isinstance(motion, Dynamics)
        numbers = {"q": now.q, "qd": now.qd, "t": [now.t], "action": given[:count], "kept": given[count:]}
        moment = Moment(self._layout, numbers, now, motion.dt / motion.substeps)
        found = compiled(self._task, lambda: motion.control(moment), "control")
        if isinstance(found, Mapping):
            tau: list[Scalar] = [0.0] * now.mechanism.nv
            names = [joint.name for joint in now.mechanism.joints]
            for name, x in found.items():
                if name not in names:
                    raise unknown_name("joint", str(name), names)
                own = now.mechanism.v_slices[names.index(name)]
                tau[own] = list(x) if isinstance(x, list | tuple) else [x]
            found = tau
        tau = list(found)
        if len(tau) != now.mechanism.nv:
            raise InputError(
                f"task {self._task.name!r}: control returned {len(tau)} torques; expected {now.mechanism.nv}, or a "
                "mapping from joints"
            )
        return tau
