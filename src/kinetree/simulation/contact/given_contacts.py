"""The contacts of a run: those given to `simulate`, or those of the mechanism."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from ...model.contacts import Contact, fitting
from ...system import System
from ..compiled_parts import kept_of

PARTS = {"box": "its corners", "capsule": "its two ends"}
"""The parts of shapes that touch a surface; between them, shapes have an extent that does not."""
ROUGH = {"steps": ("outer edges of the steps", "spheres"), "heights": ("hills", "points")}
"""The parts of surfaces that reach between those of shapes, and the shapes that touch them."""
CALLER = 5
"""The calls from the caller of `simulate` to the warning."""


def touching(system: System, contacts: Any) -> System:
    """Return a System with given contacts; with None, the System itself. It is kept with the given one."""
    found = system.mechanism.contacts if contacts is None else fitting(system.mechanism, contacts)
    for contact in found:
        _warn_of_sides(contact)
    if found == system.mechanism.contacts:
        return system
    made = lambda: System(replace(system.mechanism, contacts=found), system.report)  # noqa: E731
    return kept_of(system).part(("contacts", found), made)


def _warn_of_sides(contact: Contact) -> None:
    """Warn that edges of steps, or hills, pass unnoticed through the sides of a shape."""
    if contact.shape not in PARTS or contact.surface.kind not in ROUGH:
        return
    rough, remedy = ROUGH[contact.surface.kind]
    warnings.warn(
        f"contact {contact.name!r}: a {contact.shape} touches {contact.surface.kind} with {PARTS[contact.shape]} only, "
        f"and {rough} pass through its sides without a force; where they may get there, add contacts of {remedy} along "
        "the sides",
        RuntimeWarning,
        stacklevel=CALLER,
    )
