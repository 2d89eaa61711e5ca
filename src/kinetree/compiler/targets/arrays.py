"""The arrays of a unit, in the order of arguments."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.program import Program
from ..lanes.form import Kernel


def arrays_of(unit: Program | Kernel) -> Sequence[tuple[str, tuple[int | str, ...], bool]]:
    """Return (name, shape, whether it is an output) of each array; "t" is the extent of the axis of times."""
    if isinstance(unit, Kernel):
        return [(a.name, a.shape, a.output) for a in unit.arguments]
    return [*((a.name, a.shape, False) for a in unit.inputs), *((a.name, a.shape, True) for a in unit.outputs)]
