"""Names for the numbers of a mechanism: m1 for a mass, c1x for a center of mass, l2 for a distance, g for gravity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...model.mechanism import Mechanism
from ...model.parameters import Expression, Parameter
from ...packages import optional


def freed_numbers(mechanism: Mechanism, symbols: str) -> tuple[Mechanism, dict[str, float]]:
    """Return the mechanism with every nonzero number as a free parameter, and the values of those that stay symbols."""
    names = _Names(p.name for p in mechanism.parameters)
    vector, freed = names.vector, []
    for i, (body, joint) in enumerate(zip(mechanism.bodies, mechanism.joints, strict=True), 1):
        freed.append(
            (
                replace(
                    body,
                    mass=names.number(f"m{i}", body.mass),
                    com=vector(f"c{i}", body.com, "xyz"),
                    inertia=vector(f"I{i}", body.inertia, ("xx", "yy", "zz", "xy", "yz", "zx"), shorten=False),
                ),
                replace(
                    joint,
                    placement=replace(joint.placement, translation=vector(f"l{i}", joint.placement.translation, "xyz")),
                    pitch=names.number(f"h{i}", joint.pitch),
                    armature=vector(f"J{i}", joint.armature, "123456"),
                ),
            )
        )
    frames = tuple(
        replace(f, placement=replace(f.placement, translation=vector(f"f{k}", f.placement.translation, "xyz")))
        for k, f in enumerate(mechanism.frames, 1)
    )
    gravity = vector("g", mechanism.gravity, "xyz", down=True)
    bodies, joints = zip(*freed, strict=True) if freed else ((), ())
    declared = tuple(replace(p, free=True) for p in mechanism.parameters)
    made = replace(
        mechanism,
        bodies=bodies,
        joints=joints,
        frames=frames,
        gravity=gravity,
        parameters=(*declared, *names.made),
    )
    stay = {"declared": declared, "all": (*declared, *names.made), "none": ()}[symbols]
    return made, {p.name: p.value for p in stay}


class _Names:
    """Parameters for plain numbers, with names that are not in use."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken, self.made = set(taken), []

    def number(self, name: str, x: Any, *, down: bool = False) -> Any:
        """Return a number as a parameter; zeros and expressions are kept, and `down` makes the value positive."""
        if isinstance(x, Expression) or x == 0:
            return x
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        negative = down and x < 0
        self.made.append(Parameter(name, -float(x) if negative else float(x), free=True))
        made = Expression("name", (name,))
        return -made if negative else made

    def vector(self, name: str, xs, letters, *, down: bool = False, shorten: bool = True) -> tuple:
        """Return numbers as parameters with one letter each; a single nonzero number gets no letter."""
        alone = shorten and sum(isinstance(x, Expression) or x != 0 for x in xs) == 1
        return tuple(
            self.number(name if alone else name + letter, x, down=down) for x, letter in zip(xs, letters, strict=False)
        )


def import_sympy() -> Any:
    """Return SymPy, or raise an error that names the package to install."""
    return optional("sympy", "Equations in symbols", "symbolic")
