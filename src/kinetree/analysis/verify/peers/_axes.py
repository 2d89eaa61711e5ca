"""Any joint as turns and slides one after the other, along axes of the child's frame: what other libraries know."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....joints import kind
from ....model.parts import Joint

Axis = NDArray[np.float64]
TURN, SLIDE = "turn", "slide"


def steps(joint: Joint) -> list[tuple[str, Axis]]:
    """Return the single turns and slides of a joint whose coordinates are theirs, in the order they are applied.

    The joint's numbers are plain; quaternion and helical joints have no such steps and are not for this function.
    """
    axis = np.array(joint.axis, dtype=float)
    axis = axis / np.linalg.norm(axis)
    first, second, _ = np.array(kind(joint.kind).frame(joint), dtype=float).T
    turns = [(TURN, np.eye(3)["xyz".index(letter)]) for letter in joint.sequence]
    slides = [(SLIDE, e) for e in np.eye(3)]
    return {
        "revolute": [(TURN, axis)],
        "prismatic": [(SLIDE, axis)],
        "cylindrical": [(TURN, axis), (SLIDE, axis)],
        "universal": [(TURN, axis), (TURN, second)],
        "planar": [(SLIDE, first), (SLIDE, second), (TURN, axis)],
        "euler": turns,
        "free_euler": [*slides, *turns],
    }[joint.kind]
