"""The arguments of a step while it is traced for a class of bodies: records of body, parent, ground and frame.

The numbers of a body are traced inputs, which the code reads from a table.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from itertools import count
from types import SimpleNamespace
from typing import Any

from ... import joints as joint_kinds
from ...algebra.mass import MassMatrix
from ...algebra.propagation import Propagation
from ...algebra.rotations import Full, Planar, Rotation
from ...algebra.scalars import Scalar
from ...algebra.spatial import Twist, Wrench
from ...algebra.vectors import Vector, add
from ..ir.trace import Trace, Value
from ..lower.tree_records import Record
from .program import GLOBAL, TABLE, BodyClass, Key

# --- Fields of records (twists, matrices, tuples) as lists of scalars, and the pattern of a field in all classes.


def map_scalars(x: Any, change: Callable[[Scalar], Scalar]) -> Any:
    """Apply a function to every scalar of a field: of tuples, lists, types of `algebra` and plain objects."""
    if type(x) is Value or (isinstance(x, float | int) and not isinstance(x, bool)):
        return change(x)
    if isinstance(x, tuple | list):
        return type(x)(map_scalars(a, change) for a in x)
    if is_dataclass(x) and not isinstance(x, type):
        return type(x)(**{f.name: map_scalars(getattr(x, f.name), change) for f in fields(x)})
    if x is None or isinstance(x, str | bool):
        return x
    out = copy.copy(x)
    out.__dict__.update({name: map_scalars(a, change) for name, a in vars(x).items()})
    return out


def scalars(x: object) -> list[Scalar]:
    """Return the scalars of a field in order."""
    out: list[Scalar] = []
    map_scalars(x, lambda a: out.append(a) or a)
    return out


class Patterns:
    """The patterns of the carried fields: each scalar is a number, or refers to the first scalar that always equals it.

    Only scalars that refer to themselves need storage. Numbers that are the same in all classes, such as zeros, need
    none. Nor do scalars that are equal in all classes, such as entries of symmetric matrices.
    """

    def __init__(self) -> None:
        """Start without fields."""
        self._examples: dict[str, Any] = {}
        self._entries: dict[Key, float | Key] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._examples

    @property
    def names(self) -> set[str]:
        """The names of the fields."""
        return set(self._examples)

    def begin(self, name: str, x: Any) -> None:
        """Add a field with the pattern of one class."""
        self._examples[name] = x
        for k, a in enumerate(scalars(x)):
            self._entries[name, k] = (name, k) if type(a) is Value else float(a)

    def join(self, forms: dict[str, Any]) -> bool:
        """Reduce the patterns to what they share with the fields of another class; return whether they changed."""
        first: dict[tuple, Key] = {}
        entries: dict[Key, float | Key] = {}
        for name in self._examples:
            if name not in forms:
                raise RollError(
                    f"the parent's {name!r} is of an earlier sweep; rolled code carries fields of the same sweep only"
                )
            leaves = scalars(forms[name])
            if (name, len(leaves)) in self._entries or (leaves and (name, len(leaves) - 1) not in self._entries):
                raise RollError(f"{name!r} has different numbers of scalars in two classes of bodies")
            for k, a in enumerate(leaves):
                old, new = self._entries[name, k], ("=", a.id) if type(a) is Value else float(a)
                entries[name, k] = old if old == new else first.setdefault((old, new), (name, k))
        changed = entries != self._entries
        self._entries = entries
        return changed

    def filled(self, name: str, value: Callable[[Key], Any]) -> Any:
        """Return a field with its pattern; `value` returns the scalar of a key."""
        place: Iterator[int] = count()

        def change(_: Any) -> Any:
            entry = self._entries[name, next(place)]
            return value(entry) if isinstance(entry, tuple) else entry

        return map_scalars(self._examples[name], change)


class RollError(Exception):
    """An algorithm contains an operation that only unrolled code supports."""


MATRIX = tuple((i, j) for i in range(3) for j in range(3))
SYMMETRIC = tuple((i, j) for i in range(3) for j in range(i, 3))


def body_numbers(i: Record, body_class: BodyClass) -> dict[str, Any]:
    """Return the numbers of a body that steps of its class read, for scalars of any type."""
    stand, (c, s) = i._stand
    E = stand.E if (c, s) == (1.0, 0.0) else stand.E @ Rotation((Planar(2, c, s),))
    E = E.matrix()
    out = dict(zip(("r0", "r1", "r2"), stand.r, strict=True))
    if body_class.lean:
        out |= {"ca": E[2][2], "sa": -E[1][2], "ct": E[0][0], "st": -E[0][1]}
    else:
        out |= {f"E{a}{b}": E[a][b] for a, b in MATRIX}
    out |= {"m": i.M.m} | {f"c{k}": i.M.mc[k] for k in range(3)} | {f"J{a}{b}": i.M.J[a][b] for a, b in SYMMETRIC}
    W = i.to_work.matrix()
    out |= {f"W{a}{b}": W[a][b] for a, b in MATRIX} | {f"h{k}": i.height[k] for k in range(3)}
    out |= {f"a{k}": a for k, a in enumerate(i.armature)} | {"pitch": i.joint.pitch}
    return out


class StepRecord(Record):
    """The record of any body of a class while a step is traced.

    `recall(name)` returns a field that an earlier sweep has stored. `made` has the fields that the step sets.
    """

    def __init__(
        self, trace: Trace, inputs: frozenset[str], body_class: BodyClass, known: Mapping[str, float], recall
    ) -> None:
        """Make the inputs of a body of the class; `known` has the numbers that are constants."""
        kind = joint_kinds.kind(body_class.kind)
        joint = SimpleNamespace(
            kind=body_class.kind,
            sequence=body_class.sequence,
            pitch=known.get("pitch", trace.input(TABLE, "pitch")),
            name=body_class.kind,
        )
        given = {name: self._array(trace, inputs, name, kind.NQ) for name in ("q", "q2")}
        given |= {name: self._array(trace, inputs, name, kind.NV) for name in ("qd", "qdd", "tau", "added")}
        self.__dict__.update(
            given,
            trace=trace,
            kind=kind,
            joint=joint,
            body_class=body_class,
            labels=tuple(range(kind.NV)),
            recall=recall,
            known=known,
            made={},
        )

    @staticmethod
    def _array(trace: Trace, inputs: frozenset[str], name: str, count: int) -> tuple:
        if name not in inputs:
            return (0.0,) * count
        return tuple(trace.input(("array", name), k) for k in range(count))

    def __setattr__(self, name: str, value: Any) -> None:
        """Store a field that the step sets."""
        self.__dict__[name] = self.made[name] = value

    def __getattr__(self, name: str) -> Any:
        """Return a field that an earlier sweep has stored."""
        if name.startswith("__"):
            raise AttributeError(name)
        value = self.__dict__[name] = self.recall(name)
        return value

    def number(self, name: str) -> Scalar:
        """Return one of the body's numbers."""
        return self.known[name] if name in self.known else self.trace.input(TABLE, name)

    def _vector(self, name: str) -> Vector:
        return self.number(f"{name}0"), self.number(f"{name}1"), self.number(f"{name}2")

    def _matrix(self, name: str) -> Any:
        return tuple(tuple(self.number(f"{name}{a}{b}") for b in range(3)) for a in range(3))

    @cached_property
    def _stand(self) -> tuple[Propagation, tuple[float, float]]:
        """The propagation from the parent at zero joint displacement; theta of a revolute joint is part of q."""
        if not self.body_class.lean:
            return Propagation(self._vector("r"), Rotation((Full(self._matrix("E")),))), (1.0, 0.0)
        r = self.number("r0"), 0.0, self.number("r2")
        factors: tuple = (Planar(0, self.number("ca"), self.number("sa")),)
        if self.kind.AXIAL != joint_kinds.ROTATION:
            factors = (*factors, Planar(2, self.number("ct"), self.number("st")))
        return Propagation(r, Rotation(factors)), (1.0, 0.0)

    @cached_property
    def A(self) -> Propagation:
        """The propagation from the parent at the joint's displacement."""
        before, rotation, after = self.kind.displacement(self.joint, self.q)
        return Propagation(add(self.stand.r, self.stand.E @ before), self.stand.E @ rotation, after)

    @cached_property
    def M(self) -> MassMatrix:
        """The mass matrix about the working origin."""
        xx, xy, xz, yy, yz, zz = (self.number(f"J{a}{b}") for a, b in SYMMETRIC)
        return MassMatrix(self.number("m"), self._vector("c"), ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))

    @cached_property
    def armature(self) -> tuple:
        """The inertia of the drive of each degree of freedom, plus the input `added`."""
        if not self.body_class.armature:
            return self.added
        return tuple(self.number(f"a{k}") + self.added[k] for k in range(self.kind.NV))

    @cached_property
    def to_work(self) -> Rotation:
        """The rotation from the body's axes to the working axes."""
        return Rotation((Full(self._matrix("W")),))

    @cached_property
    def height(self) -> Vector:
        """The vector from the body's origin to the working origin, in working axes."""
        return self._vector("h")

    @cached_property
    def w_ext(self) -> Wrench:
        """The external wrench in the working frame."""
        if not self.body_class.loaded:
            return Wrench()
        w = tuple(self.trace.input(("array", "wrenches"), k) for k in range(6))
        return self.from_body(Wrench(w[:3], w[3:]))


def at_rest(name: str) -> Any:
    """Return the initial value of a field, as in records of unrolled trees."""
    if name == "t":
        return Twist()
    raise AttributeError(f"no earlier step has set {name!r} in the record")


class Outward:
    """The parent in an outward step; its fields of the same sweep are carried from body to body."""

    def __init__(self, tree: Any, sweep: Any) -> None:
        """Store the sweep to which the step belongs."""
        self._tree, self._sweep = tree, sweep

    def __getattr__(self, name: str) -> Any:
        """Return a field, with the pattern that all parents share."""
        if name not in self._sweep.patterns:
            base = self._sweep.base[name] = self._tree.ground.given(name)
            self._sweep.patterns.begin(name, base)
        return self._tree.carry(self._sweep, name)


class Inward:
    """The parent in an inward step, to whose fields the step can only add."""

    def __init__(self, sweep: Any, step: int, out: dict[str, Any]) -> None:
        """Store the step and its sweep; terms are stored in `out`."""
        self.__dict__.update(_sweep=sweep, _step=step, _out=out)

    def __getattr__(self, name: str) -> Any:
        """Return an empty sum."""
        return _Sum(None)

    def __setattr__(self, name: str, total: Scalar) -> None:
        """Store the terms that were added."""
        if not isinstance(total, _Sum):
            raise RollError(f"the parent's {name!r} is set in an inward step; rolled code supports only +=")
        self._out[name] = total.value
        self._sweep.owner[name] = self._step
        if name not in self._sweep.patterns:  # the sum of a tip, which has no children, is zero
            self._sweep.patterns.begin(name, map_scalars(total.value, lambda x: 0.0))


class _Sum:
    def __init__(self, value: Scalar) -> None:
        self.value = value

    def __add__(self, other: Scalar) -> _Sum:
        return _Sum(other if self.value is None else self.value + other)


class GroundRecord:
    """The record of the ground: the fields that the algorithm set, plus the sums of inward sweeps."""

    def __init__(self, tree: Any) -> None:
        """Start with a twist of zero."""
        self.__dict__.update(_tree=tree, _given={"t": Twist()})

    def given(self, name: str) -> Any:
        """Return a field that the algorithm set."""
        if name not in self._given:
            raise RollError(f"{name!r} of the ground is read before it is set")
        return self._given[name]

    def __setattr__(self, name: str, value: Any) -> None:
        """Store a field."""
        self._given[name] = value

    def __getattr__(self, name: str) -> Any:
        """Return a field plus the terms that the bodies added to it."""
        sweep = self._tree.carried(name, "inward")
        base = self.given(name)
        return base if sweep is None else base + self._tree.row(sweep, name, "ground")


class RolledFrame:
    """A named frame; `record` has the fields that outward sweeps computed for its body."""

    def __init__(self, tree: Any) -> None:
        """Make the frame's position and rotation inputs."""
        number = tree.trace.input
        self.record = _FrameBody(tree)
        self.r: Scalar = tuple(number(GLOBAL, f"r{k}") for k in range(3))
        self.R: Scalar = tuple(tuple(number(GLOBAL, f"R{a}{b}") for b in range(3)) for a in range(3))
        self.A = Propagation(self.r, Rotation((Full(self.R),)))


class _FrameBody:
    def __init__(self, tree: Any) -> None:
        self._tree = tree

    def __getattr__(self, name: str) -> Any:
        sweep = self._tree.carried(name, "outward")
        if sweep is None:
            raise RollError(f"no outward sweep carries {name!r}")
        return self._tree.row(sweep, name, "frame")
