"""The numbers of all contacts of a mechanism by candidate, and the sizes with which gaps and speeds are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..contacts import labels
from .mechanism import Mechanism, resolved
from .parts import GROUND
from .scales import characteristic_length


@dataclass(frozen=True)
class ContactNumbers:
    """The contacts of a mechanism, and the strength of gravity [m/s^2], with the parameters of one run inserted."""

    mechanism: Mechanism
    contacts: tuple[Any, ...]
    gravity: float
    parameters: Sequence[float] | None = None

    @classmethod
    def of(cls, mechanism: Mechanism, parameters: Sequence[float] | None = None) -> ContactNumbers:
        """Return the numbers for values of the free parameters; with None, their nominal ones."""
        values = mechanism.values(parameters)
        strength = math.hypot(*resolved(mechanism.gravity, values)) or 10.0
        return cls(mechanism, resolved(mechanism.contacts, values), strength, parameters)

    @cached_property
    def by_candidate(self) -> tuple[Any, ...]:
        """The contact of each candidate, in order."""
        return tuple(c for c in self.contacts for _ in labels(c))

    @cached_property
    def friction(self) -> np.ndarray:
        """Coulomb's coefficients by candidate."""
        return np.array([c.friction for c in self.by_candidate])

    @cached_property
    def grounded(self) -> np.ndarray:
        """Whether candidates touch the ground, not another body."""
        return np.array([c.surface.body == GROUND for c in self.by_candidate], dtype=bool)

    @cached_property
    def length(self) -> float:
        """The characteristic length [m], from the mechanism and the sizes of the contacts."""
        sizes = [abs(x) for c in self.contacts for x in (*c.size, *c.placement.translation) if x]
        lengths = [*self.mechanism.lengths, *sizes]
        return float(np.mean(lengths)) if lengths else characteristic_length(self.mechanism)

    @cached_property
    def weight(self) -> float:
        """The weight of the mechanism [N]."""
        bodies = resolved(self.mechanism.bodies, self.mechanism.values(self.parameters))
        return self.gravity * float(sum(b.mass for b in bodies))

    @property
    def speed(self) -> float:
        """The characteristic velocity sqrt(g l) [m/s]."""
        return math.sqrt(self.gravity * self.length)
