"""The contacts of a run: those given to `simulate`, or those of the mechanism."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...model.contacts import fitting
from ...system import System
from ..compiled_parts import kept_of


def touching(system: System, contacts: Any) -> System:
    """Return a System with given contacts; with None, the System itself. It is kept with the given one."""
    if contacts is None:
        return system
    found = fitting(system.mechanism, contacts)
    if found == system.mechanism.contacts:
        return system
    made = lambda: System(replace(system.mechanism, contacts=found), system.report)  # noqa: E731
    return kept_of(system).part(("contacts", found), made)
