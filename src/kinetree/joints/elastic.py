"""The two kinds of joint within a flexible body, named with what they depend on: "modes(y1, y2)" and "node(tip)".

A flexible body consists of its frame at the joint, of the deformed body that the modes carry, and of a body without
mass at each node (model/flexible.py). The modes are a joint whose columns are unit rates of the modal coordinates.
Neither kind has a displacement of its own: both are those of the shape functions, by which `dynamics` proceeds.
Whatever asks a kind for its displacement does not know flexible bodies, and is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..algebra.mass import MassMatrix
from ..algebra.spatial import Motion, Twist
from ..algebra.vectors import IDENTITY, ZERO, Matrix
from ..errors import ModelError
from . import plain
from ._common import random_in_limits

SHARE = 0.02
"""The largest random modal coordinate relative to its limit, so that several modes together are small too."""
SPAN = 0.1
"""The limit of modes without one [m or rad]."""

TWISTED = "torsion"
"""The beginning of the names of modal coordinates that are angles."""

_NAMED = re.compile(r"(modes|node)\(([^()]*)\)")


@dataclass(frozen=True)
class Elastic:
    """A kind within a flexible body: the names of its modal coordinates, or of the node that it leads to."""

    names: tuple[str, ...] = ()
    node: str | None = None

    DATA = ()
    QUATERNION, ANGLES = None, None
    AXIAL, PERIODIC = None, False
    FLOATS, ADVANCES = (), False
    SOLID = None

    @property
    def NQ(self) -> int:
        """The number of modal coordinates."""
        return len(self.names)

    NV = NQ

    @property
    def UNITS(self) -> tuple[str, ...]:
        """The units of the modal coordinates: the largest deflection, or angle, of each shape."""
        return tuple("rad" if name.startswith(TWISTED) else "m" for name in self.names)

    @property
    def NAMES(self) -> tuple[tuple[str, ...], ...]:
        """The names of the modal coordinates."""
        return (self.names,) * 3

    @property
    def SYMBOL(self) -> str:
        """The word in pictures of kinematic modules."""
        return "modes" if self.node is None else "node"

    @property
    def PEERS(self) -> dict[str, str]:
        """No other library has them."""
        return {}

    def check(self, joint: object, where: str) -> None:
        """Accept any data: the kind uses none."""

    def frame(self, joint: object) -> Matrix:
        """Return the child's own axes."""
        return IDENTITY

    def steps(self, joint: object) -> tuple | None:
        """Return None: the displacement is that of shape functions."""
        return None

    def displacement(self, joint: Any, q: object) -> tuple:
        """Refuse: the displacement is that of the shape functions of the parent, which a kind does not have."""
        raise ModelError(
            f"joint {joint.name!r} is within a flexible body, which this function does not know",
            remedy="use the functions of a System, or make it rigid (docs/flexible.md lists what knows such bodies)",
        )

    def motion(self, joint: object, q: object, qd: object) -> Motion:
        """Return the unit rates of the modal coordinates."""
        m = len(self.names)
        return Motion(tuple(Twist(ZERO, ZERO, (0.0,) * k + (1.0,) + (0.0,) * (m - k - 1)) for k in range(m)))

    def common(self, mass: object) -> MassMatrix:
        """Return no mass: the points of a deformed body move differently from those of the frame at its joint."""
        return MassMatrix()

    def neutral(self, joint: object) -> tuple[float, ...]:
        """Return the shape at rest."""
        return (0.0,) * len(self.names)

    def random(self, joint: object, rng: object, size: object = None) -> tuple:
        """Return modal coordinates within a share of the limits."""
        return tuple(SHARE * x for x in random_in_limits(joint, rng, (SPAN,) * len(self.names), size))

    def reverse(self, joint: object) -> None:
        """Return None: the frame at the joint does not deform, and its child does."""
        return None

    def rate(self, joint: object, q: object, qd: object) -> tuple:
        """Return qd."""
        return plain.rate(joint, q, qd)

    def integrate(self, joint: object, q: object, dq: object) -> tuple:
        """Return q + dq."""
        return plain.integrate(joint, q, dq)

    def difference(self, joint: object, qa: object, qb: object) -> tuple:
        """Return qb - qa."""
        return plain.difference(joint, qa, qb)


@lru_cache(maxsize=1024)
def elastic_kind(name: str) -> Elastic | None:
    """Return the kind of a name such as "modes(y1, y2)" or "node(tip)"; None for any other name."""
    found = _NAMED.fullmatch(name)
    if found is None:
        return None
    names = tuple(x.strip() for x in found[2].split(",") if x.strip())
    if found[1] == "modes":
        return Elastic(names) if names and len(set(names)) == len(names) else None
    return Elastic(node=names[0]) if len(names) == 1 else None


def modes_kind(names: tuple[str, ...]) -> str:
    """Return the name of the kind with these modal coordinates."""
    return f"modes({', '.join(names)})"
