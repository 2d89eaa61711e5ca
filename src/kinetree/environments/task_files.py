"""Reader of task files (.toml), with the tables:

`[task]`, the mechanism, the steps, the observation and the length of an episode; `[action]`, what actions are;
`[[reward]]`, `[[terminated]]` and `[[truncated]]`, terms and limits by name; `[start]`, `[draw]` and `[parameters]`,
the distributions of q and qd, of numbers that are kept for an episode, and of numbers of the mechanism; `[[force]]`,
`[control]` and `[[contact]]`, as in files of experiments and mechanisms. Numbers may be formulas in quotes: "pi/2".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .._support.checks import positive
from ..algebra.scalars import Scalar, where
from ..compiler.ir.trace import Condition
from ..errors import InputError, ModelError, at, below, unknown_name
from ..experiments import forces_and_control
from ..experiments.forces_and_control import list_of_names, make_at, plain_numbers, whole_number
from ..experiments.reading import as_tables, item_place, system_of_head
from ..formats import toml_parts
from ..formats.fields import (
    constant,
    file_text,
    known_keys,
    name,
    refuse_unknown_tables,
    require,
    sequence,
    text,
    truth,
)
from ..formats.toml import parsed_toml
from ..formats.toml_lines import Places
from ..model.axes import axis_labels, entries
from ..model.contacts import require_fitting_contacts
from ..model.mechanism import Mechanism
from ..model.part_fields import MAX_NAME
from ..simulation.acting.driven import combine_controls
from ..simulation.acting.instants import Controller
from ..simulation.acting.smooth import clip
from ..simulation.changes import with_free
from ..system import System
from .programs import look_program, start_of
from .tasks import Continuous, Draw, Dynamics, Moment, Task
from .terms import Limit, Term

SORTS = {
    "task": (
        "name", "mechanism", "base", "description", "free", "dt", "substeps", "method", "loops", "passive",
        "observation", "low", "high", "max_steps", "delay",
    ),
    "action": ("kind", "joints", "low", "high", "scaled", "k", "c", "around", "limit"),
    "reward": ("name", "kind", "of", "to", "weight", "width"),
    "terminated": ("of", "below", "above", "kind", "to"),
    "truncated": ("of", "below", "above", "kind", "to"),
    "start": ("q", "qd"),
}  # fmt: skip
"""The keys of the tables."""
TABLES = (*SORTS, "draw", "parameters", "force", "control", "contact")


def read_task(path: str | Path) -> Task:
    """Read a task file; errors name its line and a remedy."""
    path = Path(path)
    source = file_text(path)
    with Places(source).errors_in(str(path)):
        try:
            return _task(parsed_toml(source), path)
        except InputError as error:
            raise ModelError(str(error), file=path) from None


def _task(data: dict[str, Any], path: Path) -> Task:
    refuse_unknown_tables(data, TABLES)
    head, action, start = (known_keys(data.get(x, {}), SORTS[x], at(x)) for x in ("task", "action", "start"))
    system = _system(head, data, path.parent)
    mechanism = system.mechanism
    tables = {x: [(t, item_place(x, i, data)) for i, t in enumerate(as_tables(data, x))] for x in TABLES if x in data}
    forces = [forces_and_control.force(t, place, mechanism) for t, place in tables.get("force", ())]
    laws = [forces_and_control.control(t, place, mechanism, path.parent) for t, place in tables.get("control", ())]
    contacts = None
    if "contact" in data:
        found = [toml_parts.contact(t, place) for t, place in tables["contact"]]
        contacts = make_at(lambda: require_fitting_contacts(mechanism, found), at("contact"))
    act = _action(action, mechanism)
    dt = constant(require(head, "dt", at("task")), at("task", "dt"))
    make_at(lambda: positive(dt, "dt"), at("task", "dt"))
    motion = make_at(
        lambda: Dynamics(
            system=system,
            dt=dt,
            substeps=whole_number(head.get("substeps", 1), at("task", "substeps")),
            control=_Control(act, combine_controls(mechanism, laws)),
            forces=tuple(forces),
            passive=truth(head.get("passive", True), at("task", "passive")),
            contacts=contacts,
            method=text(head.get("method", "auto"), at("task", "method")),
            loops=forces_and_control.loops(head["loops"], at("task", "loops"), mechanism) if "loops" in head else None,
        ),
        at("task"),
    )
    reset, reward = _Reset.of(data, start, system), _rewards(tables.get("reward", []))
    terminated, truncated = (_ends(tables.get(x, [])) for x in ("terminated", "truncated"))
    observation = list_of_names(require(head, "observation", at("task")), at("task", "observation"))
    task = make_at(
        lambda: Task(
            name=name(head.get("name", path.stem), at("task", "name")),
            motion=motion,
            actions=act.space,
            observation=tuple(observation),
            reward=reward,
            reset=reset,
            terminated=terminated,
            truncated=truncated,
            max_steps=whole_number(head.get("max_steps", 1000), at("task", "max_steps")),
            delay=whole_number(head.get("delay", 0), at("task", "delay")),
            low=_bounds(head, "low"),
            high=_bounds(head, "high"),
        ),
        at("task"),
    )
    _try_values(task, tables)
    return task


def _system(head: Mapping[str, object], data: Mapping[str, object], folder: Path) -> System:
    """Return the mechanism, with the numbers that are drawn as free parameters."""
    system = system_of_head(head, folder, "task")
    free = list_of_names(head["free"], at("task", "free")) if "free" in head else []
    drawn = known_keys(data.get("parameters", {}), _keys(data.get("parameters")), at("parameters"))
    if free:
        system = make_at(partial(with_free, system, *free), at("task", "free"))
    for key in drawn:
        if key not in [p.name for p in system.mechanism.free_parameters]:
            system = make_at(partial(with_free, system, key), at("parameters", key))
    return system


# --- Actions: what a learner commands, and the torques that follow ---


@dataclass(frozen=True)
class _Action:
    """Actions on the degrees of freedom `at`: torques, or positions or velocities that springs and dampers follow."""

    kind: str
    space: Continuous
    at: tuple[int, ...]
    coordinates: tuple[int, ...]
    k: tuple[float, ...]
    c: tuple[float, ...]
    around: tuple[float, ...]
    limit: tuple[float, ...] | None

    def torques(self, now: Moment) -> list[Scalar]:
        """Return the torques of the degrees of freedom."""
        q, qd = [now.q[i] for i in self.coordinates], [now.qd[i] for i in self.at]
        if self.kind == "torque":
            tau = list(now.action)
        elif self.kind == "velocity":
            tau = [c * (a - v) for a, v, c in zip(now.action, qd, self.c, strict=True)]
        else:
            wanted = [a + b for a, b in zip(now.action, self.around, strict=True)]
            tau = [k * (w - x) - c * v for w, x, v, k, c in zip(wanted, q, qd, self.k, self.c, strict=True)]
        if self.limit is not None:
            tau = [clip(x, -most, most) for x, most in zip(tau, self.limit, strict=True)]
        return tau


@dataclass(frozen=True)
class _Control:
    """The torques of the actions and of the controllers of a file."""

    action: _Action
    law: Controller | None

    def __call__(self, now: Moment) -> list[Scalar]:
        """Return the torques of all degrees of freedom."""
        tau: list[Scalar] = [0.0] * now.mechanism.nv if self.law is None else list(self.law.torque(now.instant))
        for k, x in zip(self.action.at, self.action.torques(now), strict=True):
            tau[k] = tau[k] + x
        return tau


GAINS: dict[str, tuple[str, ...]] = {"torque": (), "velocity": ("c",), "position": ("k", "c", "around")}
"""The kinds of actions, with the keys that they have beside joints, low, high, scaled and limit."""


def _action(table: Mapping[str, object], mechanism: Mechanism) -> _Action:
    where = at("action")
    kind = text(table.get("kind", "torque"), at("action", "kind"))
    if kind not in GAINS:
        raise unknown_name("action of kind", kind[:MAX_NAME], GAINS, where=at("action", "kind"))
    for key in ("k", "c", "around"):
        if key in table and key not in GAINS[kind]:
            takes = [x for x, keys in GAINS.items() if key in keys]
            raise ModelError(
                f"actions of kind {kind!r} have no {key}", where=at("action", key), remedy=f"use {' or '.join(takes)}"
            )
    joints = list_of_names(require(table, "joints", where), at("action", "joints"))
    places = [make_at(lambda x=x: (entries(mechanism, x, 0), entries(mechanism, x, 1)), at("action", "joints"))
              for x in joints]  # fmt: skip
    for joint, (a, b) in zip(joints, places, strict=True):
        if len(a) != 1 or len(b) != 1:
            labels = ", ".join(x for x in axis_labels(mechanism, 1) if x.startswith(f"{joint}."))
            raise ModelError(
                f"{joint!r} has {len(b)} degrees of freedom",
                where=at("action", "joints"),
                remedy=f"name one with one, such as an axis of it: {labels}" if labels else "name a joint that moves",
            )

    def numbers(key: str, default: float | None = None) -> tuple[float, ...]:
        place = at("action", key)
        given = plain_numbers(require(table, key, where) if default is None else table.get(key, default), place)
        found = given if isinstance(given, list) else [given] * len(joints)
        if len(found) != len(joints) or any(isinstance(x, list) for x in found):
            raise ModelError(f"{len(found)} numbers", where=place, remedy=f"give one, or {len(joints)}, as of joints")
        return tuple(found)

    low, high = numbers("low"), numbers("high")
    space = make_at(lambda: Continuous(low, high, truth(table.get("scaled", True), at("action", "scaled"))), where)
    coordinates = tuple(a[0] for a, _ in places)
    neutral = [float(x) for x in mechanism.neutral]
    around = numbers("around") if "around" in table else tuple(neutral[i] for i in coordinates)
    gains = [numbers(key) if key in GAINS[kind] else (0.0,) * len(joints) for key in ("k", "c")]
    limit = numbers("limit") if "limit" in table else None
    if limit is not None and min(limit) <= 0.0:
        raise ModelError(f"limit is {min(limit):g}", where=at("action", "limit"), remedy="give more than zero")
    return _Action(kind, space, tuple(b[0] for _, b in places), coordinates, gains[0], gains[1], around, limit)


# --- Rewards and ends ---


def _rewards(tables: Sequence[tuple[Any, str]]) -> dict[str, Term]:
    """Return the terms by name; one without a name has that of what it measures."""
    out: dict[str, Term] = {}
    if not tables:
        raise ModelError("there is no reward", where=at("reward"), remedy='add [[reward]] with of = "...", weight = 1')
    for given, place in tables:
        table = known_keys(given, SORTS["reward"], place)
        term = make_at(lambda table=table, place=place: Term(**_fields(table, place)), place)
        label = name(table["name"], below(place, "name")) if "name" in table else ", ".join(term.of) or "constant"
        if label in out:
            raise ModelError(f"two terms have the name {label!r}", where=place, remedy="add name = ... to one of them")
        out[label] = term
    return out


def _ends(tables: Sequence[tuple[Any, str]]) -> tuple[Limit, ...] | None:
    found = []
    for given, place in tables:
        table = known_keys(given, SORTS["terminated"], place)
        require(table, "of", place)
        found.append(make_at(lambda table=table, place=place: Limit(**_fields(table, place)), place))
    return tuple(found) or None


def _fields(table: Mapping[str, object], where: str) -> dict[str, Any]:
    """Return the arguments of a term or of a limit."""
    out: dict[str, Any] = {}
    for key, x in table.items():
        place = below(where, key)
        if key == "of":
            out[key] = list_of_names([x] if isinstance(x, str) else x, place)
        elif key == "kind":
            out[key] = text(x, place)
        elif key == "to":
            parts = x if isinstance(x, list) else [x]
            out[key] = tuple(_name_or_number(part, place) for part in parts)
        elif key != "name":
            out[key] = constant(x, place)
    return out


def _name_or_number(x: object, where: str) -> str | float:
    """Return a number or a formula, or else the name of a value."""
    try:
        return constant(x, where)
    except ModelError:
        if isinstance(x, str):
            return name(x, where)
        raise


# --- The start of an episode ---

DISTRIBUTIONS: dict[str, tuple[Callable[..., Any], int | None]] = {
    "uniform": (Draw.uniform, 2),
    "normal": (Draw.normal, 2),
    "choice": (lambda draw, *values: draw.choice(values), None),
}
"""The distributions by key, with the number of their arguments; None for any number."""

Drawn = Callable[[Draw], Any]


@dataclass(frozen=True)
class _Reset:
    """The start of an episode: numbers drawn for some entries of the state, for the episode and for parameters."""

    state: Mapping[str, tuple[tuple[float, ...], Mapping[int, Drawn]]]
    kept: Mapping[str, Drawn]
    parameters: Mapping[str, Drawn]

    @classmethod
    def of(cls, data: Mapping[str, Any], start: Mapping[str, object], system: System) -> _Reset:
        """Read the tables."""
        neutral = system.assemble() if system.closures else system.neutral()
        whole = {"q": tuple(map(float, neutral)), "qd": (0.0,) * system.nv}
        state = {key: (whole[key], _entries_of(start, key, system.mechanism)) for key in whole}
        draw = known_keys(data.get("draw", {}), _keys(data.get("draw")), at("draw"))
        for key in draw:
            if key in ("q", "qd", "parameters"):
                raise ModelError(
                    f"{key!r} is not a name of a number", where=at("draw", key), remedy="use [start] or [parameters]"
                )
        kept = {key: _drawn(x, at("draw", key), system.mechanism) for key, x in draw.items()}
        parameters = {key: _drawn(x, at("parameters", key)) for key, x in data.get("parameters", {}).items()}
        return cls(state, kept, parameters)

    def __call__(self, draw: Draw) -> dict[str, Any]:
        """Return the start."""
        out: dict[str, Any] = {}
        for key, (whole, drawn) in self.state.items():
            values: list[Any] = list(whole)
            for k, one in drawn.items():
                values[k] = one(draw)
            out[key] = values
        out["parameters"] = {key: one(draw) for key, one in self.parameters.items()}
        return out | {key: one(draw) for key, one in self.kept.items()}


def _entries_of(start: Mapping[str, object], key: str, mechanism: Mechanism) -> dict[int, Drawn]:
    """Return the entries of a state that a table gives, by joint or axis of a joint."""
    place = at("start", key)
    table = known_keys(start.get(key, {}), _keys(start.get(key)), place)
    out: dict[int, Drawn] = {}
    for joint, x in table.items():
        found = make_at(lambda joint=joint: entries(mechanism, joint, 0 if key == "q" else 1), below(place, joint))
        parts = x if isinstance(x, list) else [x] * len(found)
        if len(parts) != len(found):
            raise ModelError(f"{len(parts)} numbers", where=below(place, joint), remedy=f"give {len(found)}")
        for k, part in zip(found, parts, strict=True):
            out[k] = _drawn(part, below(place, joint))
    return out


def _drawn(x: object, where: str, mechanism: Mechanism | None = None) -> Drawn:
    """Return a function that draws: a number, a distribution, a list of these, or a position at drawn coordinates."""
    if isinstance(x, list):
        parts = [_drawn(item, where) for item in x]
        return lambda draw: [one(draw) for one in parts]
    if not isinstance(x, Mapping):
        value = constant(x, where)
        return lambda draw: value
    keys = [*DISTRIBUTIONS, *(("position", "q") if mechanism is not None else ())]
    table = known_keys(x, keys, where)
    if mechanism is not None and "position" in table:
        known_keys(table, ("position", "q"), where)
        frame = name(table["position"], below(where, "position"))
        make_at(lambda: mechanism.frame(frame), below(where, "position"))
        given = _entries_of({"q": table.get("q", {})}, "q", mechanism)
        neutral = [float(v) for v in mechanism.neutral]
        return lambda draw: draw.position(frame, [given[k](draw) if k in given else v for k, v in enumerate(neutral)])
    if len(table) != 1 or "q" in table:
        remedy = f"give one of {', '.join(DISTRIBUTIONS)}, such as {{ uniform = [-1, 1] }}"
        raise ModelError(f"{len(table)} distributions", where=where, remedy=remedy)
    ((key, arguments),) = table.items()
    make, count = DISTRIBUTIONS[key]
    numbers = [constant(item, below(where, key)) for item in sequence(arguments, below(where, key))]
    if count is not None and len(numbers) != count:
        raise ModelError(f"{len(numbers)} numbers", where=below(where, key), remedy=f"give {count}")
    if not numbers:
        raise ModelError("no numbers", where=below(where, key), remedy="give one or more")
    return lambda draw: make(draw, *numbers)


# --- Small readers ---


def _try_values(task: Task, tables: Mapping[str, Sequence[tuple[Any, str]]]) -> None:
    """Trace all terms once, so that errors of names have the place in the file."""
    start = make_at(lambda: start_of(task), at("draw"))
    make_at(lambda: look_program(task, start.layout), at("task", "observation"))
    for sort in ("reward", "terminated", "truncated"):
        parts = getattr(task, sort) or ()
        parts = list(parts.values()) if isinstance(parts, Mapping) else list(parts)
        for part, (_, place) in zip(parts, tables.get(sort, ()), strict=True):
            probe = task.changed(
                observation=lambda now, part=part: [where(x, 1.0, 0.0) if isinstance(x := part(now), Condition) else x]
            )
            make_at(lambda probe=probe: look_program(probe, start.layout), place)


def _keys(x: object) -> Sequence[str]:
    return tuple(x) if isinstance(x, Mapping) else ()


def _bounds(table: Mapping[str, object], key: str) -> tuple[float, ...] | None:
    if key not in table:
        return None
    return tuple(constant(x, at("task", key)) for x in sequence(table[key], at("task", key)))
