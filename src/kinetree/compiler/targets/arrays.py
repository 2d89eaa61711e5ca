"""The arrays of a unit, in the order of arguments."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.program import Array, Program
from ..lanes.form import Kernel

LONG = 128
"""The most entries of a row that is never stored by lines: a block of such rows fits into the first cache."""

STREAMED = 2**24
"""The least size of the long outputs of a call whose lines bypass the caches, if the processor can store lines [bytes].

Larger outputs do not stay in the caches, and each line would be read from memory before it is written."""


def streamed(outputs: Sequence[Array], itemsize: int) -> int:
    """Return the number of samples from which long outputs bypass the caches, 0 if no output is long."""
    total = sum(a.size * itemsize for a in outputs if a.size > LONG)
    return -(-STREAMED // total) if total else 0


def arrays_of(unit: Program | Kernel) -> Sequence[tuple[str, tuple[int | str, ...], bool]]:
    """Return (name, shape, whether it is an output) of each array; "t" is the extent of the axis of times."""
    if isinstance(unit, Kernel):
        return [(a.name, a.shape, a.output) for a in unit.arguments]
    return [*((a.name, a.shape, False) for a in unit.inputs), *((a.name, a.shape, True) for a in unit.outputs)]
