"""Tasks of environments: what is observed, rewarded and drawn at random, as functions that are traced and compiled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._support.checks import number, positive, whole
from ..algebra.scalars import Scalar, cos, is_number, log, sqrt, where
from ..compiler.ir.program import Array
from ..compiler.ir.trace import Trace, Value
from ..errors import InputError, brief, unknown_name
from ..model.contacts import Contact
from ..model.mechanism import Mechanism, resolve_parts
from ..simulation.acting.instants import Force, Instant
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
