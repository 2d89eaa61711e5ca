"""Ground as a spring and a damper: a compiled force for feet, with friction that is smooth at rest.

The law is that of ReDySim's legged robots: a vertical spring and damper, and pseudo-Coulomb friction. Feet sink in by
their load over the stiffness, and creep where friction holds them. Hard contact without either is `Contact`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from ...algebra.scalars import sqrt, where
from ...algebra.vectors import ZERO
from ...dynamics.force_laws import SLIP_SPEED
from ...errors import InputError, Where, argument, unknown_name
from ...model.parts import GROUND
from ...numbers import positive
from ..arguments import coefficient, vector
from ..instants import Instant
from .joint_forces import number_in


@dataclass(frozen=True)
class GroundForce:
    """The force of a level ground at a `height` z [m] on a point of a body, given in the body's frame [m].

    Below the ground, with the depth d = height - z, it pushes up by N = stiffness d + damping d', never down, and by
    friction N v / sqrt(v^2 + slip_speed^2) against the horizontal velocity v of the point.
    """

    body: str
    point: Any = ZERO
    _: KW_ONLY
    stiffness: Any
    damping: Any = 0.0
    friction: Any = 0.0
    height: Any = 0.0
    slip_speed: float = SLIP_SPEED

    def __post_init__(self) -> None:
        """Read the numbers."""
        label = f"GroundForce on {self.body!r}"
        if self.body == GROUND:
            raise InputError("GroundForce acts on the ground, which cannot move; name a body", path=("body",))
        object.__setattr__(self, "point", vector(self.point, argument("point", label)))
        for name, least in (("stiffness", 0.0), ("damping", 0.0), ("friction", 0.0), ("height", -float("inf"))):
            value = coefficient(getattr(self, name), argument(name, label), least=least)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "slip_speed", positive(self.slip_speed, "slip_speed"))

    def apply(self, now: Instant) -> None:
        """Push the point."""
        names = [b.name for b in now.mechanism.bodies]
        if self.body not in names:
            raise unknown_name("body", self.body, names, where=Where("GroundForce", ("body",)))
        k, c, mu, height = number_in(now, (self.stiffness, self.damping, self.friction, self.height))
        place = number_in(now, self.point)
        (_, _, z), (vx, vy, vz) = now.point(self.body, place)
        depth = height - z
        load = k * depth - c * vz
        load = where(depth > 0.0, where(load > 0.0, load, 0.0), 0.0)
        drag = mu * load / sqrt(vx * vx + vy * vy + self.slip_speed * self.slip_speed)
        now.push(self.body, place, (-(drag * vx), -(drag * vy), load))
