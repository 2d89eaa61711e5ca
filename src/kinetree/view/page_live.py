"""A mechanism whose numbers are inputs of its functions, so that the reader of a page can change them.

Every number of the page's table becomes a free parameter: masses, centers of mass, inertias and gravity, then lengths,
then rotations. The more of them are inputs, the larger the functions are: a page has as many kinds of them as fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..formats.toml_writer import write_toml
from ..model.mechanism import Mechanism, resolved
from ..model.parameters import Expression, Parameter, names_in
from ..model.parts import Placement

INERTIA, LENGTHS, ROTATIONS = "inertia", "lengths", "rotations"
TIERS = ((INERTIA, LENGTHS, ROTATIONS), (INERTIA, LENGTHS), (INERTIA,))
"""The kinds of numbers that are inputs, from all of them to the fewest."""


@dataclass(frozen=True)
class Live:
    """A mechanism with free parameters in place of its numbers.

    `slots` are the places of these parameters in the page's model, in their order, after the model's own free ones:
    [list, index, field, count], such as ["bodies", 2, "com", 3].
    """

    mechanism: Mechanism
    slots: list[list[Any]]
    kinds: tuple[str, ...]
    prefix: str

    def toml(self) -> str:
        """Return the native TOML text, in which a quoted name such as "live_12" stands for a number."""
        lines = write_toml(self.mechanism).splitlines()
        if not any(not p.name.startswith(self.prefix) for p in self.mechanism.parameters):
            lines.remove("[parameters]")
        return "\n".join(line for line in lines if not line.startswith(self.prefix)) + "\n"


class _Slots:
    """Free parameters as they are made."""

    def __init__(self, prefix: str) -> None:
        self.prefix, self.made, self.places = prefix, [], []

    def of(self, numbers: Sequence[Any], *place: Any) -> tuple[Any, ...]:
        """Return an expression per number."""
        self.places.append([*place, len(numbers)])
        return tuple(self._one(x) for x in numbers)

    def _one(self, x: Any) -> Expression:
        name = f"{self.prefix}{len(self.made)}"
        self.made.append(Parameter(name, float(x), free=True))
        return Expression("name", (name,))

    def placement(self, given: Placement, kinds: Sequence[str], *place: Any) -> Placement:
        """Return a placement with lengths and rotations as inputs."""
        if LENGTHS in kinds:
            given = replace(given, translation=self.of(given.translation, *place, "translation"))
        if ROTATIONS in kinds:
            nine = self.of([x for row in given.rotation for x in row], *place, "rotation")
            given = replace(given, rotation=(nine[:3], nine[3:6], nine[6:]))
        return given


def live_mechanism(mechanism: Mechanism, kinds: Sequence[str]) -> Live:
    """Return the mechanism with its numbers as inputs, except those that depend on its own free parameters."""
    m, free = mechanism, {p.name for p in mechanism.free_parameters}
    values = {p.name: p.value for p in m.parameters if not p.free}
    slots = _Slots(_prefix(m))

    def bound(x: Any) -> bool:
        return bool(names_in(x) & free)

    bodies = []
    for i, body in enumerate(m.bodies):
        if bound(body) or INERTIA not in kinds:
            bodies.append(body)
            continue
        plain = resolved(body, values)
        numbers = {
            "mass": slots.of([plain.mass], "bodies", i, "mass")[0],
            "com": slots.of(plain.com, "bodies", i, "com"),
            "inertia": slots.of(plain.inertia, "bodies", i, "inertia"),
        }
        bodies.append(replace(body, **numbers))
    joints = [
        j
        if bound(j.placement)
        else replace(j, placement=slots.placement(resolved(j.placement, values), kinds, "joints", i))
        for i, j in enumerate(m.joints)
    ]
    frames = [
        f if bound(f) else replace(f, placement=slots.placement(resolved(f.placement, values), kinds, "frames", i))
        for i, f in enumerate(m.frames)
    ]
    loops = m.loops
    if LENGTHS in kinds:
        loops = tuple(x if bound(x) else _loop(resolved(x, values), slots, i) for i, x in enumerate(m.loops))
    gravity = m.gravity if bound(m.gravity) else slots.of(resolved(m.gravity, values), "gravity", 0, "gravity")
    made = replace(
        m, bodies=tuple(bodies), joints=tuple(joints), frames=tuple(frames), loops=loops, gravity=gravity,
        parameters=(*m.parameters, *slots.made),
    )  # fmt: skip
    return Live(made, slots.places, tuple(kinds), slots.prefix)


def _loop(loop: Any, slots: _Slots, i: int) -> Any:
    """Return a loop with the positions of its ends, and the length of a rod, as inputs."""
    a, b = (
        replace(p, translation=slots.of(p.translation, "loops", i, key))
        for p, key in ((loop.placement_a, "translation_a"), (loop.placement_b, "translation_b"))
    )
    if loop.length:
        loop = replace(loop, length=slots.of([loop.length], "loops", i, "length")[0])
    return replace(loop, placement_a=a, placement_b=b)


def _prefix(mechanism: Mechanism) -> str:
    """Return the start of the names of inputs, which no other parameter has."""
    return next(x for x in _prefixes() if not any(p.name.startswith(x) for p in mechanism.parameters))


def _prefixes() -> Iterator[str]:
    name = "live_"
    while True:
        yield name
        name += "_"
