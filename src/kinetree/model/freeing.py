"""Numbers of a mechanism that can be declared as free parameters afterwards, by name: masses, lengths, rates, ..."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeGuard

from .. import joints as joint_kinds
from ..errors import InputError, brief
from .beams import Beam
from .flexible import is_modes, parts_of
from .free_beams import UNITS as BEAM_UNITS
from .free_beams import FreeBeam, numbers_of
from .mechanism import Mechanism
from .parameters import Expression, Number, Parameter
from .parts import Body, Placement

AXES = ("x", "y", "z")
MOMENTS = ("xx", "yy", "zz", "xy", "yz", "zx")
UNITS = {
    "damping": {"rad": "N m s/rad", "m": "N s/m", "C": "Ohm"},
    "friction": {"rad": "N m", "m": "N", "C": "V"},
    "armature": {"rad": "kg m^2", "m": "kg", "C": "H"},
}
"""The units of numbers of joints by the unit of their displacement."""
SHOWN = 12
"""The most names of a message."""


@dataclass(frozen=True)
class Adjustable:
    """A number of a part: its value, its unit, and a function that returns the mechanism with another number there.

    Its name is KIND.PART or KIND.PART.ENTRY; `stem` is the name without an entry. With `apart`, a pattern must name the
    entry, because the stem names another number of the part.
    """

    stem: str
    entry: str
    value: float
    unit: str
    note: str
    put: Callable[[Mechanism, Number], Mechanism]
    apart: bool = False

    @property
    def name(self) -> str:
        """The name of the parameter."""
        return f"{self.stem}.{self.entry}" if self.entry else self.stem


def free_numbers(mechanism: Mechanism, patterns: Iterable[str]) -> Mechanism:
    """Return the mechanism with the numbers that match patterns as free parameters, at their present values."""
    known = adjustable(mechanism)
    chosen: dict[str, Adjustable | None] = {}
    for pattern in patterns:
        if not isinstance(pattern, str):
            what = f"with_free takes patterns of names such as 'mass.*', not {brief(pattern)}"
            raise InputError(f"{what}; give each pattern as an argument of its own")
        chosen |= dict.fromkeys(p.name for p in mechanism.parameters if fnmatchcase(p.name, pattern))
        found = _matching(known, pattern)
        if not found and not any(fnmatchcase(p.name, pattern) for p in mechanism.parameters):
            raise _unknown(mechanism, known, pattern)
        chosen |= {x.name: x for x in found}
    for name, x in chosen.items():
        if x is not None and x.entry and x.stem in chosen:
            raise InputError(f"{x.stem!r} and {name!r} change the same numbers of {mechanism.name!r}; free one of them")
    parameters = tuple(replace(p, free=True) if p.name in chosen else p for p in mechanism.parameters)
    made = replace(mechanism, parameters=parameters)
    for name, x in chosen.items():
        if x is not None:
            own = Parameter(name, x.value, free=True, unit=x.unit, note=x.note)
            made = x.put(replace(made, parameters=(*made.parameters, own)), Expression("name", (name,)))
    return made


def adjustable(mechanism: Mechanism) -> list[Adjustable]:
    """Return all numbers of a mechanism that can become parameters: those that are formulas of others are left out."""
    taken, out = {p.name for p in mechanism.parameters}, []
    for x in (*_bodies(mechanism), *_joints(mechanism), *_others(mechanism)):
        if x.name not in taken:
            taken.add(x.name)
            out.append(x)
    return out


def _matching(known: list[Adjustable], pattern: str) -> list[Adjustable]:
    """Return the numbers that a pattern names by their stems or by stem and entry.

    "inertia.*" is the factor of the inertia of every body, "inertia.*.xx" a moment of each, "com.*" all coordinates.
    """
    head, _, tail = pattern.rpartition(".")
    return [
        x
        for x in known
        if (
            (fnmatchcase(x.stem, pattern) and not x.apart)
            or (x.entry and fnmatchcase(x.stem, head) and fnmatchcase(x.entry, tail))
        )
    ]


def _unknown(mechanism: Mechanism, known: list[Adjustable], pattern: str) -> InputError:
    names = [*(p.name for p in mechanism.parameters), *(x.name for x in known)]
    kinds = list(dict.fromkeys(x.stem.partition(".")[0] for x in known))
    own = [x.name for x in known if x.stem.partition(".")[0] == pattern.partition(".")[0]]
    near = get_close_matches(pattern, names, SHOWN, 0.6) or own
    some = ", ".join(near[:SHOWN]) + (", ..." if len(near) > SHOWN else "")
    return InputError(
        f"no number of {mechanism.name!r} matches {pattern!r}; "
        + (f"available: {some}; " if near else "")
        + f"kinds: {', '.join(kinds)}"
    )


def _plain(x: object) -> TypeGuard[float]:
    return not isinstance(x, Expression)


def _at(items: tuple, k: int, x: object) -> tuple:
    return (*items[:k], x, *items[k + 1 :])


def _part(sort: str, k: int, change: Callable[[Any, Number], object]) -> Callable[[Mechanism, Number], Mechanism]:
    """Return a function that changes part k of a sort of a mechanism."""

    def put(mechanism: Mechanism, x: Number) -> Mechanism:
        parts = getattr(mechanism, sort)
        return replace(mechanism, **{sort: _at(parts, k, change(parts[k], x))})

    return put


def _bodies(mechanism: Mechanism) -> Iterator[Adjustable]:
    for k, body in enumerate(mechanism.bodies):
        name = body.name
        if body.flexible is not None:  # its mass is that of the points of its beam
            yield from _beams(mechanism, k)
            continue
        if _plain(body.mass):
            put = _part("bodies", k, lambda b, x: replace(b, mass=x))
            yield Adjustable(f"mass.{name}", "", float(body.mass), "kg", f"mass of {name}", put)
        for i, axis in enumerate(AXES):
            if _plain(body.com[i]):
                put = _part("bodies", k, lambda b, x, i=i: replace(b, com=_at(b.com, i, x)))
                yield Adjustable(f"com.{name}", axis, float(body.com[i]), "m", f"center of mass of {name}", put)
        if all(map(_plain, body.inertia)) and any(body.inertia):
            put = _part("bodies", k, lambda b, x: replace(b, inertia=tuple(x * m for m in b.inertia)))
            note = f"factor of the inertia of {name} about its center of mass"
            yield Adjustable(f"inertia.{name}", "", 1.0, "", note, put)
        for i, entry in enumerate(MOMENTS):
            value = body.inertia[i]
            if _plain(value):
                put = _part("bodies", k, lambda b, x, i=i: replace(b, inertia=_at(b.inertia, i, x)))
                note = f"inertia of {name} about its center of mass"
                yield Adjustable(f"inertia.{name}", entry, float(value), "kg m^2", note, put, apart=True)


def _beams(mechanism: Mechanism, k: int) -> Iterator[Adjustable]:
    """Yield the numbers of the beam of a deformed body."""
    flexible, name = mechanism.bodies[k].flexible, mechanism.joints[k].parent
    if not isinstance(flexible, Beam | FreeBeam) or not is_modes(mechanism.joints[k]):
        return
    beam = flexible if isinstance(flexible, Beam) else flexible.beam
    taken = {} if isinstance(flexible, Beam) else dict(flexible.numbers)
    for key, value in numbers_of(beam).items():
        if key not in taken:
            note = f"{key} of the beam of {name}"
            put = partial(_with_formula, k=k, key=key)
            yield Adjustable(f"beam.{name}", key, value, BEAM_UNITS.get(key, "m"), note, put, apart=True)


def _with_formula(mechanism: Mechanism, x: Number, *, k: int, key: str) -> Mechanism:
    """Return the mechanism with a formula in the place of a number of the beam of body k."""
    flexible: Any = mechanism.bodies[k].flexible
    beam, given = (flexible, ()) if isinstance(flexible, Beam) else (flexible.beam, flexible.numbers)
    whole = Body(mechanism.joints[k].parent, flexible=FreeBeam(beam, (*given, (key, x))))
    made = parts_of(whole)
    bodies, joints, forces = ({p.name: p for p in parts} for parts in (made.bodies, made.joints, made.forces))
    return replace(
        mechanism,
        bodies=tuple(bodies[b.name] if b.name == mechanism.bodies[k].name else b for b in mechanism.bodies),
        joints=tuple(joints[j.name] if j.name == mechanism.joints[k].name else j for j in mechanism.joints),
        forces=tuple(forces.get(f.name, f) for f in mechanism.forces),
    )


def _joints(mechanism: Mechanism) -> Iterator[Adjustable]:
    for k, joint in enumerate(mechanism.joints):
        name, way = joint.name, joint.placement.translation
        placed = not isinstance(joint_kinds.kind(joint.kind), joint_kinds.Elastic)  # nodes lie where the shapes are
        plain = [float(x) for x in way if _plain(x) and placed]
        if len(plain) == 3 and any(plain):
            size = math.hypot(*plain)
            along = tuple(x / size for x in plain)

            def stretched(j: Any, x: Number, along: tuple = along) -> Any:
                return replace(j, placement=Placement(tuple(x * a for a in along), j.placement.rotation))

            note = f"distance of {name} from the origin of its parent"
            yield Adjustable(f"length.{name}", "", size, "m", note, _part("joints", k, stretched))
        for i, axis in enumerate(AXES):
            value = way[i]
            if _plain(value) and placed:

                def moved(j: Any, x: Number, i: int = i) -> Any:
                    return replace(j, placement=Placement(_at(j.placement.translation, i, x), j.placement.rotation))

                note = f"position of {name} in its parent"
                put = _part("joints", k, moved)
                yield Adjustable(f"length.{name}", axis, float(value), "m", note, put, apart=True)
        kind = joint_kinds.kind(joint.kind)
        for key in ("damping", "friction", "armature"):
            given = getattr(joint, key) or (0.0,) * kind.NV
            for i, axis in enumerate(kind.NAMES[1]):
                if not _plain(given[i]):
                    continue

                def resisted(j: Any, x: Number, key: str = key, i: int = i, none: tuple = (0.0,) * kind.NV) -> Any:
                    return replace(j, **{key: _at(getattr(j, key) or none, i, x)})

                unit = UNITS[key][kind.UNITS[i]]
                put = _part("joints", k, resisted)
                yield Adjustable(f"{key}.{name}", axis, float(given[i]), unit, f"{key} of {name}", put)


def _others(mechanism: Mechanism) -> Iterator[Adjustable]:
    """Yield numbers of loops, couplings and force elements, and gravity."""
    for k, loop in enumerate(mechanism.loops):
        for kind, key in (("rod", "length"), ("radius", "radius")):
            value = getattr(loop, key)
            if value is not None and _plain(value) and float(value) != 0.0:
                put = _part("loops", k, lambda p, x, key=key: replace(p, **{key: x}))
                yield Adjustable(f"{kind}.{loop.name}", "", float(value), "m", f"{key} of {loop.name}", put)
    for k, coupling in enumerate(mechanism.couplings):
        for i, (other, ratio) in enumerate(coupling.terms):
            if _plain(ratio):
                put = _part("couplings", k, lambda c, x, i=i: replace(c, terms=_at(c.terms, i, (c.terms[i][0], x))))
                entry = other if len(coupling.terms) > 1 else ""
                yield Adjustable(f"ratio.{coupling.name}", entry, float(ratio), "", f"ratio of {coupling.name}", put)
        if _plain(coupling.offset):
            put = _part("couplings", k, lambda c, x: replace(c, offset=x))
            yield Adjustable(
                f"offset.{coupling.name}", "", float(coupling.offset), "", f"offset of {coupling.name}", put
            )
    carried = {p.name for p in mechanism.joints}
    for k, force in enumerate(mechanism.forces):
        single = sum(key.startswith("stiffness") for key, _ in force.coefficients) < 2
        for i, (key, value) in enumerate(force.coefficients):
            if _plain(value):
                put = _part(
                    "forces",
                    k,
                    lambda f, x, i=i: replace(f, coefficients=_at(f.coefficients, i, (f.coefficients[i][0], x))),
                )
                what, _, entry = key.rpartition("_") if key[-1].isdigit() else (key, "", "")
                entry = "" if single else entry
                if what in ("damping", "friction") and force.name in carried:
                    entry = "force"  # beside that of the joint of the same name
                yield Adjustable(f"{what}.{force.name}", entry, float(value), "", f"{key} of {force.name}", put)
    for i, axis in enumerate(AXES):
        if _plain(mechanism.gravity[i]):
            yield Adjustable(
                "gravity",
                axis,
                float(mechanism.gravity[i]),
                "m/s^2",
                "gravity",
                lambda m, x, i=i: replace(m, gravity=_at(m.gravity, i, x)),
            )
