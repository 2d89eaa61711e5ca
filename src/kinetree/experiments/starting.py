"""Initial states: all numbers, or those of some joints by name, which determine the others through the loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..analysis.joint_entries import numbers
from ..system import System

Given = Numbers | Mapping[str, Any] | None
"""A state as given: all numbers, those of some joints by name, or None."""


def position(system: System, given: Given, parameters: Numbers | None = None) -> Numbers:
    """Return q [nq]; joints that are not named are neutral, or positioned by the loops."""
    if isinstance(given, np.ndarray):
        return given
    if system.closures:
        return system.assemble(hold=given or (), parameters=parameters)
    return _filled(system, system.neutral(), given, 0)


def speed(system: System, q: Numbers, given: Given, parameters: Numbers | None = None) -> Numbers:
    """Return qd [nv]; joints that are not named are at rest, or moved by the loops."""
    if isinstance(given, np.ndarray):
        return given
    if system.closures and given:
        return system.consistent_speeds(q, given, parameters=parameters)
    return _filled(system, np.zeros(system.nv), given, 1)


def _filled(system: System, state: Numbers, given: Mapping[str, Any] | None, which: int) -> Numbers:
    for k, value in numbers(system.mechanism, given or {}, which).items():
        state[k] = value
    return state
