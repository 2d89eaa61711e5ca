"""Forces, controllers, references and ways to close loops, made from tables of an experiment file.

The keys are the arguments of the classes of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from .._support.checks import numbers
from .._support.lazy_names import load_classes
from ..algebra.scalars import Scalar
from ..compiler.ir.trace import Trace
from ..errors import InputError, ModelError, argument, below, unknown_name
from ..formats.fields import axis, constant, known_keys, name, require, sequence, sort, text, truth
from ..model.axes import entries
from ..model.mechanism import Mechanism
from ..simulation.acting import references
from ..simulation.acting.controllers import PD, ComputedTorque, FeedForward, PDGravity, Saturated
from ..simulation.acting.driven import Driven, combine_controls
from ..simulation.acting.instants import Controller, Force, Instant
from ..simulation.acting.motors import AtMotors, MotorControl
from ..simulation.acting.references.motions import Reference
from ..simulation.arguments import spread
from ..simulation.closing import Baumgarte, Minimal, Projection
from .experiment import inner

TAU = argument("tau", "torque", "")


@dataclass(frozen=True)
class Torque:
    """Constant torques: one for all degrees of freedom, or one per degree of freedom [N m, N]."""

    tau: object

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        return list(spread(numbers(self.tau, TAU), now.mechanism.nv, TAU))


T = TypeVar("T")


def _kind(made: type) -> str:
    """Return the kind of a class in files: its name in lower case with underscores, such as "joint_spring"."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", made.__name__).lower()


FORCES = {_kind(made): made for made in load_classes(".simulation.acting", "apply")}
"""The public classes of forces by kind."""
CONTROLLERS: dict[str, type] = {
    "pd": PD,
    "pd_gravity": PDGravity,
    "computed_torque": ComputedTorque,
    "feed_forward": FeedForward,
    "driven": Driven,
    "torque": Torque,
    "motor_control": MotorControl,
    "at_motors": AtMotors,
}
REFERENCES: dict[str, type] = {
    "hold": references.Hold,
    "cycloid": references.Cycloid,
    "cosine": references.Cosine,
    "polynomial": references.Polynomial,
    "trapezoid": references.Trapezoid,
    "table": references.Table,
    "waypoints": references.Waypoints,
    "timed_path": references.TimedPath,
}
LOOPS: dict[str, type] = {"projection": Projection, "baumgarte": Baumgarte, "minimal": Minimal}
LIMITED_BY_JOINTS = "effort"
"""The value of `limit` that refers to the effort limits of the joints."""


def force(table: Any, where: str, mechanism: Mechanism) -> Force:
    """Return the force of a table, after a trial on the mechanism."""
    made = _built(FORCES, "force", table, where)
    make_at(lambda: made.apply(instant(mechanism)), where, table)
    return made


def control(table: Mapping[str, object], where: str, mechanism: Mechanism, folder: Path) -> Controller:
    """Return the controller of a table, after a trial on the mechanism; `limit` bounds its torques."""
    made = _controller(table, where, folder)
    make_at(lambda: combine_controls(mechanism, (made,)).torque(instant(mechanism)), where, table)
    return made


def _controller(table: Mapping[str, object], where: str, folder: Path) -> Any:
    """Return the controller of a table, which may have others inside of it."""

    def command(x: object, at: str) -> object:
        """Return what motors are commanded: a controller, a reference, numbers by name, or numbers in order."""
        if not isinstance(x, Mapping):
            return plain_numbers(x, at)
        if "kind" not in x:
            return _numbers_by_joint(x, at)
        return _controller(x, at, folder) if x["kind"] in CONTROLLERS else reference(x, at, folder)

    readers = {
        "reference": lambda x, _: reference(x, below(where, "reference"), folder),
        "joint": lambda x, at: list_of_names(x, at) if isinstance(x, list) else name(x, at),
        "actuated": lambda x, at: list_of_names(x if isinstance(x, list) else [x], at),
        "weights": _numbers_by_joint,
        "controller": lambda x, at: _controller(x, at, folder),
        "control": command,
    }
    made = _built(CONTROLLERS, "control", table, where, ("limit",), readers)
    if "limit" in table:
        made = make_at(lambda: Saturated(made, _limit(table["limit"], below(where, "limit"))), where, table)
    return made


def reference(table: object, where: str, folder: Path) -> Reference:
    """Return the reference of a table; its numbers may be in a CSV file in the folder of the experiment."""
    if isinstance(table, Mapping) and table.get("kind") == "table" and "file" in table:
        known_keys(table, ("kind", "file", "columns", "ends"), where)
        file = inner(folder, text(table["file"], below(where, "file")), below(where, "file"))
        columns = list_of_names(table["columns"], below(where, "columns")) if "columns" in table else None
        ends = text(table.get("ends", "clamped"), below(where, "ends"))
        return make_at(lambda: references.Table.from_csv(file, columns=columns, ends=ends), where, table)
    readers = {"path": lambda x, at: reference(x, at, folder) if isinstance(x, Mapping) else plain_numbers(x, at)}
    return _built(REFERENCES, "reference", table, where, readers=readers)


def loops(given: object, where: str, mechanism: Mechanism) -> Any:
    """Return the way to keep loops closed from a kind or a table; `independent` has names of joints."""
    if not mechanism.closures:
        raise ModelError(f"{mechanism.name!r} has no loops", where=where, remedy="leave it out")
    table = {"kind": given} if isinstance(given, str) else given

    def independent(x: object, where: str) -> tuple[int, ...]:
        names = list_of_names([x] if isinstance(x, str) else x, where)
        return make_at(lambda: tuple(k for name in names for k in entries(mechanism, name, 1)), where, {})

    return _built(LOOPS, "loops", table, where, readers={"independent": independent})


def instant(mechanism: Mechanism) -> Instant:
    """Return an instant of a mechanism with traced scalars, for trials of forces and controllers."""
    trace, free = Trace(), len(mechanism.free_parameters)
    t, q, qd, p = ([trace.input(g, k) for k in range(n)] for g, n in enumerate((1, mechanism.nq, mechanism.nv, free)))
    return Instant(mechanism, t[0], q, qd, p if free else None)


def _built(
    kinds: dict[str, type], sort: str, table: object, where: str, more: tuple[str, ...] = (), readers=None
) -> Any:
    """Return the object of a table: its kind selects the class, whose fields are the other keys."""
    found = known_keys(table, table if isinstance(table, Mapping) else (), where)
    kind = name(require(found, "kind", where), below(where, "kind"))
    if kind not in kinds:
        raise unknown_name(f"{sort} of kind", kind, kinds, where=below(where, "kind"))
    keys = fields(kinds[kind])
    known_keys(found, ("kind", *(key.name for key in keys), *more), where)
    given = {}
    for key in keys:
        if key.name in found or key.default is MISSING:
            value = require(found, key.name, where)
            usual = name if key.type == "str" else plain_numbers
            given[key.name] = {**READERS, **(readers or {})}.get(key.name, usual)(value, below(where, key.name))
    return make_at(lambda: kinds[kind](**given), where, found)


def make_at(make: Callable[[], T], where: str, table: Mapping[str, object] | None = None) -> T:
    """Return the result of `make`; an error gets a location in the file, at the key of its path, if it has one."""
    try:
        return make()
    except ModelError as error:
        if error.file or error.where.startswith(where):
            raise
        raise ModelError(error.what, where=_key_of(error, table, where), remedy=error.remedy) from None
    except InputError as error:
        raise ModelError(str(error), where=_key_of(error, table, where)) from None


def _key_of(error: ModelError | InputError, table: Mapping[str, object] | None, where: str) -> str:
    key = str(error.path[0]) if error.path else ""
    return below(where, key) if key in (table or ()) else where


def plain_numbers(x: object, where: str) -> Any:
    """Return a number, or nested lists of numbers; formulas in quotes may use pi."""
    if isinstance(x, list):
        return [plain_numbers(item, where) for item in x]
    return constant(x, where)


def _numbers_by_joint(x: object, where: str) -> dict[str, object]:
    found = known_keys(x, x if isinstance(x, Mapping) else (), where)
    return {joint: plain_numbers(value, below(where, joint)) for joint, value in found.items()}


def whole_number(x: object, where: str) -> int:
    """Return a whole number."""
    if isinstance(x, bool) or not isinstance(x, int):
        raise ModelError(f"{sort(x)} where a whole number belongs", where=where, remedy="give a whole number such as 5")
    return x


def list_of_names(x: object, where: str) -> list[str]:
    """Return a list of names."""
    return [name(item, where) for item in sequence(x, where)]


def _limit(x: object, where: str) -> Any:
    if isinstance(x, str) and x == LIMITED_BY_JOINTS:
        return None
    return plain_numbers(x, where)


READERS: dict[str, Callable[[Any, str], Any]] = {
    "joint": name,
    "joints": list_of_names,
    "synchronised": truth,
    "forces": truth,
    "stop": truth,
    "degree": whole_number,
    "knots": whole_number,
    "up": axis,
}
"""Readers of the keys whose values are neither plain numbers nor, by the type of their field, names."""
