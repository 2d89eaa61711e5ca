"""Records of the force elements of a mechanism, with their coefficients as scalars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model.force_checks import JOINT_SPRING, coefficient_names, require_flat, spring_joint
from ...model.mechanism import Mechanism, resolved
from ...model.parts import Frame, Placement
from .tree_records import FrameRecord


class ForceRecord:
    """A force element: its coefficients by name, and its two points (None for a spring in a joint).

    A spring in a joint has the record of the joint, and stiffness and rest of each degree of freedom.
    """

    def __init__(self, element: Any, coefficients: dict[str, Any]) -> None:
        """Store an element, whose expressions have been replaced by scalars."""
        self.kind, self.coefficients = element.kind, coefficients
        self.points: tuple[FrameRecord, FrameRecord] | None = None
        self.record: Any = None
        self.stiffness: tuple[Any, ...] = ()
        self.rest: tuple[Any, ...] = ()


def force_records(mechanism: Mechanism, values: Mapping[str, Any], record_of: Any) -> list[ForceRecord]:
    """Return the records of all force elements; `record_of` returns the record of a body by name."""
    carried, out = {j.child: j for j in mechanism.joints}, []
    for element in resolved(mechanism.forces, values):
        names = coefficient_names(element, carried)
        made = ForceRecord(element, dict.fromkeys(names, 0.0) | dict(element.coefficients))
        if element.kind == JOINT_SPRING:
            require_flat(spring_joint(element, carried), f"force {element.name!r}")
            given = tuple(made.coefficients[name] for name in names)
            made.record = record_of(element.body_b)
            made.stiffness, made.rest = given[: len(given) // 2], given[len(given) // 2 :]
        else:
            ends = ((element.body_a, element.point_a), (element.body_b, element.point_b))
            a, b = (FrameRecord(Frame(element.name, x, Placement(p)), record_of(x)) for x, p in ends)
            made.points = a, b
        out.append(made)
    return out
