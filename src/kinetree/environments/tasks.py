"""Tasks of environments: what is observed, rewarded and drawn at random, as functions that are traced and compiled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._support.checks import number, positive, whole
from ..algebra.scalars import Scalar, cos, is_number, log, sin, sqrt, where
from ..compiler.ir.program import Array
from ..compiler.ir.trace import Trace, Value
from ..dynamics.energy import kinetic_energy, potential_energy
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
    """A motion given by the equations of its step: `advance(now)` returns q and qd at the end of a step of dt [s].

    `system` is a mechanism with these coordinates, if there is one, for pictures and recordings.
    """

    nq: int
    nv: int
    advance: Callable[[Moment], tuple[Sequence[Scalar], Sequence[Scalar]]]
    dt: float
    system: System | None = None

    def __post_init__(self) -> None:
        """Check the sizes and the step."""
        object.__setattr__(self, "nq", whole(self.nq, "nq"))
        object.__setattr__(self, "nv", whole(self.nv, "nv"))
        object.__setattr__(self, "dt", positive(self.dt, "dt"))
        if self.system is not None and (self.system.nq, self.system.nv) != (self.nq, self.nv):
            raise InputError(
                f"system has {self.system.nq} coordinates and {self.system.nv} velocities; the equations have "
                f"{self.nq} and {self.nv}"
            )


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
    see `Moment.value`. `reward` is a function, or functions by name, whose sum is the reward. `reset(draw)` returns a
    mapping with q and qd (by default the neutral position at rest), values of free "parameters" by name, and any other
    numbers by name, which are kept for the episode: `now["target"]`. An episode ends if `terminated` holds, a condition
    or one of several, and it is cut off after `max_steps` or if `truncated` holds. Actions take effect `delay` steps
    later. `low` and `high` bound the observations of the space.
    """

    name: str
    motion: Equations | Dynamics
    actions: Continuous | Discrete
    observation: Function | Sequence[str | Function]
    reward: Function | Mapping[str, Function]
    reset: Callable[[Draw], Mapping[str, object]] | None = None
    terminated: Function | Sequence[Function] | None = None
    truncated: Function | Sequence[Function] | None = None
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

    @property
    def instant(self) -> Instant:
        """The mechanism at this moment, as controllers and forces take it."""
        return self._instant_of("instant")

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

    def value(self, name: str) -> Scalar | list[Scalar]:
        """Return a number or a list of numbers by name; the names are those of observations, see VALUES.

        An entry follows after a point: "base.position.z", "target.0".
        """
        found = self._whole_value(name)
        if found is not None:
            return found
        rest, _, entry = name.rpartition(".")
        whole = self._whole_value(rest) if entry in AXES or entry.isdecimal() else None
        if isinstance(whole, list) and (entry not in AXES or len(whole) == 3):
            k = AXES.index(entry) if entry in AXES else int(entry)
            if k < len(whole):
                return whole[k]
            raise InputError(f"{name!r} has no entry {k}; {rest!r} has {len(whole)}, from 0 on")
        raise unknown_name("value", name, self.values())

    def values(self) -> list[str]:
        """Return the names of all values."""
        known = [*VALUES, *self._layout.kept]
        if self._instant is None:
            return known
        mechanism = self._instant.mechanism
        places = [*(b.name for b in mechanism.bodies), *mechanism.frame_names]
        known += [p.name for p in mechanism.free_parameters] + list(ENERGIES)
        known += [f"{x}.{y}" for x in places for y in OF_PLACES]
        known += [f"{joint.name}.{x}" for joint in mechanism.joints for x in ("q", "qd")]
        return known + [f"{x}.{y}" for x in self._layout.contacts for y in OF_CONTACTS]

    def _whole_value(self, name: str) -> Scalar | list[Scalar] | None:
        """Return a value by its name without an entry; None for an unknown one."""
        if name in VALUES:
            return VALUES[name](self)
        if name in self._layout.kept:
            return self[name]
        if self._instant is None or name not in self.values():
            return None
        mechanism = self._instant.mechanism
        if name in ENERGIES:
            return sum(part(self._instant.moving_tree())[0] for part in ENERGIES[name])
        if name in [p.name for p in mechanism.free_parameters]:
            return self._instant.parameter(name)
        part, _, what = name.rpartition(".")
        if what in ("q", "qd"):
            k = [joint.name for joint in mechanism.joints].index(part)
            own = (mechanism.q_slices if what == "q" else mechanism.v_slices)[k]
            entries = list((self.q if what == "q" else self.qd)[own])
            return entries if len(entries) > 1 else entries[0]
        return {**OF_PLACES, **OF_CONTACTS}[what](self, part)

    def angular_velocity_of(self, name: str) -> list[Scalar]:
        """Return the angular velocity [rad/s] of a body, or of the body of a frame, in the axes of the ground."""
        return list(self._instant_of(name).angular_velocity(_place(self._instant, name)[0]))

    def rotation(self, name: str) -> list[Scalar]:
        """Return the rotation from the axes of a body, or of the body of a frame, to those of the ground, by rows."""
        instant = self._instant_of(name)
        return [x for row in instant.orientation(_place(instant, name)[0]) for x in row]

    def up(self, name: str) -> list[Scalar]:
        """Return the upward direction in the axes of a body, or of the body of a frame: that of an accelerometer."""
        instant = self._instant_of(name)
        g = resolve_parts(tuple(instant.mechanism.gravity), instant.mechanism.values(instant._parameters))
        strength = sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2])
        if is_number(strength) and strength == 0.0:
            raise InputError(f"{name}.up: {instant.mechanism.name!r} has no gravity, so that nothing is up")
        R = instant.orientation(_place(instant, name)[0])
        return [-(R[0][k] * g[0] + R[1][k] * g[1] + R[2][k] * g[2]) / strength for k in range(3)]

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


# --- Values by name ---

VALUES: dict[str, Callable[[Moment], list[Scalar]]] = {
    "q": lambda now: now.q,
    "qd": lambda now: now.qd,
    "sin_q": lambda now: [sin(x) for x in now.q],
    "cos_q": lambda now: [cos(x) for x in now.q],
    "action": lambda now: now.action,
    "t": lambda now: [now.t],
}
"""Values of all tasks. Others are what the reset draws, the free parameters, and those of the tables below."""
ENERGIES = {
    "energy": (kinetic_energy, potential_energy),
    "kinetic_energy": (kinetic_energy,),
    "potential_energy": (potential_energy,),
}
"""Energies of a mechanism [J], as pages that are summed; potential energy is that of gravity."""
OF_PLACES: dict[str, Callable[[Moment, str], list[Scalar]]] = {
    "position": Moment.position,
    "velocity": Moment.velocity,
    "rotation": Moment.rotation,
    "angular_velocity": Moment.angular_velocity_of,
    "up": Moment.up,
}
"""Values of bodies and frames: "base.position" and others. Joints have "NAME.q" and "NAME.qd"."""
OF_CONTACTS: dict[str, Callable[[Moment, str], Scalar | list[Scalar]]] = {
    "force": Moment.contact_force,
    "touching": lambda now, name: where(now.contact_force(name)[0] > 0.0, 1.0, 0.0),
}
"""Values of contacts: the force, and 1 where it presses."""
AXES = ("x", "y", "z")
"""Names of the entries of values with three of them."""
