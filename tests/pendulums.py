"""Pendulums for tests."""

from __future__ import annotations

import kinetree as kt
from kinetree.model import parse


def pendulum() -> kt.System:
    """Return a pendulum whose length is a free parameter."""
    bob = kt.Body("bob", 2.0, (0.0, 0.0, -parse("l")))
    hinge = kt.Joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0))
    return kt.System(kt.build_mechanism("pendulum", [bob], [hinge], parameters=[kt.Parameter("l", 0.5, free=True)]))
