"""Results of contacts: the events of a run, its forces and gaps by name, and the largest residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..algebra.arrays import Numbers
from ..errors import InputError, unknown_name
from .columns import RESIDUALS, contact_names

if TYPE_CHECKING:
    from .trajectory import Trajectory


@dataclass(frozen=True)
class ContactEvent:
    """An event of a contact: its kind, time [s], the name of the contact, and the number of the run in a batch.

    Kinds are "impact", "stick", "slip", "lift-off", "end of surface", and "rest", the end of infinitely many bounces.
    """

    kind: str
    t: float
    contact: str
    run: int = 0


class ContactResults:
    """The contacts of a run: `names`, `events`, `forces(name)` [..., nt, 3], `gaps(name)`, and `residuals`."""

    def __init__(self, run: Trajectory) -> None:
        """Refuse runs without contacts."""
        if run.contact_forces is None:
            raise InputError("the run has no contacts; give simulate(..., contacts=[kt.Contact(...)])")
        self._run = run

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all places where contacts may act, in the order of forces and gaps."""
        return tuple(contact_names(self._run.system.mechanism))

    @property
    def events(self) -> tuple[ContactEvent, ...]:
        """The events of all contacts, run by run, in order of time."""
        return tuple(ContactEvent(**x) for x in self._run.options.get("contact_events", ()))

    def forces(self, name: str) -> Numbers:
        """Return the force on the body along the normal and two tangents [N], shape [..., nt, 3]."""
        return self._run["contact_forces"][..., self._index(name), :]

    def gaps(self, name: str) -> Numbers:
        """Return the gap [m], shape [..., nt]."""
        return self._run["contact_gaps"][..., self._index(name)]

    @property
    def residuals(self) -> dict[str, float]:
        """The largest residuals at all samples, without units: of Signorini's conditions, cone and dissipation."""
        worst = np.nanmax(self._run["contact_residuals"].reshape(-1, 3), axis=0, initial=0.0)
        return dict(zip(RESIDUALS, map(float, worst), strict=True))

    @property
    def impact_residuals(self) -> dict[str, float]:
        """The largest residuals of the impulses of all impacts, in parts of the largest impulse or velocity."""
        worst = self._run.options.get("impact_residuals", (0.0, 0.0, 0.0))
        return dict(zip(RESIDUALS, map(float, worst), strict=True))

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise unknown_name("contact", name, self.names)
        return self.names.index(name)
