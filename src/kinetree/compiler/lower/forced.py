"""Algorithms with the forces of the mechanism itself: its force elements, and damping and friction of its joints.

They act by wrenches on bodies and by torques in joints. What they contribute in a joint, its drive does not have to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...dynamics.passive import passive_forces
from ...model.mechanism import Mechanism
from .closed_tree import ClosedTree

TORQUES = ("tau", "h", "g")
"""The names of outputs that are torques of drives."""

Scalars = list[Any]


def with_forces(mechanism: Mechanism, inputs: Mapping[str, Scalars]) -> tuple[dict[str, Scalars], Scalars]:
    """Return the inputs of a tree on which the forces act, and their torques in the joints."""
    state = {name: x for name, x in inputs.items() if name in ("q", "qd", "parameters")}
    torques, wrenches = passive_forces(ClosedTree(mechanism, state))
    out = dict(inputs)
    out["wrenches"] = _sums(inputs["wrenches"], wrenches) if "wrenches" in inputs else wrenches
    if "tau" in inputs:
        out["tau"] = _sums(inputs["tau"], torques)
    return out, torques


def torques_of_drives(
    names: Sequence[str], results: Sequence[Scalars], torques: Scalars, inputs: Mapping[str, Scalars], driven: frozenset
) -> list[Scalars]:
    """Return results whose torques of drives are without those of the forces; given torques stay as they are given."""
    out = []
    for name, entries in zip(names, results, strict=True):
        if name in TORQUES:
            entries = [x - y for x, y in zip(entries, torques, strict=True)]
            if "tau" in inputs:
                entries = [x if k in driven else inputs["tau"][k] for k, x in enumerate(entries)]
        out.append(entries)
    return out


def _sums(a: Scalars, b: Scalars) -> Scalars:
    return [x + y for x, y in zip(a, b, strict=True)]
