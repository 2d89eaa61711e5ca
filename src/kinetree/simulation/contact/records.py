"""Records of a run with contacts: events, and forces, gaps and residuals at its samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .modes import Mode, feasible
from .touching import Coefficients

KINDS = ("impact", "stick", "slip", "lift-off", "rest", "end of surface")
"""The kinds of events of contacts; "rest" is the end of infinitely many bounces."""


@dataclass(frozen=True)
class ContactEvent:
    """An event of a contact: its kind, time [s], and the name of the contact."""

    kind: str
    t: float
    contact: str

    def __str__(self) -> str:
        """Return the event on one line."""
        return f"{self.t:.9g} s: {self.kind} of {self.contact}"


@dataclass
class Records:
    """Events of one run, the worst residuals of its impacts, and the values at its samples."""

    events: list[ContactEvent] = field(default_factory=list)
    impacts: np.ndarray = field(default_factory=lambda: np.zeros(3))
    reduced: int = 0
    samples: list[dict[str, np.ndarray]] = field(default_factory=list)

    def note(self, kind: str, t: float, name: str) -> None:
        """Add an event."""
        self.events.append(ContactEvent(kind, float(t), name))

    def sample(self, given: Coefficients, mode: Mode, t: float, q: np.ndarray, qd: np.ndarray) -> None:
        """Add forces, gaps, accelerations and residuals at a state."""
        state = given.at(q, qd)
        _, free = given.free(t, q, qd)
        found, _ = feasible(given, mode, state, free)
        forces = np.zeros((len(given.names), 3))
        forces[list(mode.closed)] = found.forces
        self.samples.append({
            "contact_forces": forces,
            "contact_gaps": state.gap,
            "contact_residuals": residuals(given, mode, state, found),
            "accelerations": found.qdd,
        })  # fmt: skip

    def stacked(self, name: str) -> np.ndarray:
        """Return the values at all samples."""
        return np.array([x[name] for x in self.samples])


def residuals(given: Coefficients, mode: Mode, state: Any, found: Any) -> np.ndarray:
    """Return the residuals of Signorini's conditions, of the cone and of dissipation, without units.

    Signorini: depths in parts of the characteristic length, normal velocities of closed contacts in parts of the
    characteristic velocity, and pulling forces in parts of the largest force. Cone: forces outside of it, in parts of
    the largest force. Dissipation: the power of friction that differs from that of Coulomb's law.
    """
    scales, closed = given.scales, list(mode.closed)
    depth = float(np.maximum(-state.gap, 0.0).max(initial=0.0)) / scales.length
    if not closed:
        return np.array([depth, 0.0, 0.0])
    f, mu, v = found.forces, given.mu[closed], state.v[closed]
    unit = float(np.abs(f).max(initial=0.0)) or 1.0
    normal = float(np.abs(v[:, 0]).max()) / scales.speed
    pull = float(np.maximum(-f[:, 0], 0.0).max()) / unit
    size, speed = np.hypot(f[:, 1], f[:, 2]), np.hypot(v[:, 1], v[:, 2])
    cone = float(np.maximum(size - mu * f[:, 0], 0.0).max()) / unit
    power = np.abs((f[:, 1:] * v[:, 1:]).sum(axis=1) + mu * f[:, 0] * speed)
    fast = max(scales.speed, float(speed.max()))
    return np.array([max(depth, normal, pull), cone, float(power.max()) / (unit * fast)])
