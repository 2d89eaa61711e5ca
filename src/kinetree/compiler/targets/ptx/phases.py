"""Barriers that keep the warps of a block at the same place of long code.

On an H200 this makes row-major arrays of large robots up to 8 percent faster, probably because warps at the same place
share what the instruction cache reads. Column-major ones are up to 4 percent slower, and have no barriers.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.program import Program
from ..llvm.arithmetic import Writer

Before = Callable[[int, list[str]], None]
"""A function that writes what comes before an operation."""

PERIOD = 400
"""The operations from one barrier to the next."""
LONG = 2000
"""The operations of a Program above which its code has barriers."""


def in_phase(program: Program, w: Writer, then: Before | None = None) -> Before | None:
    """Return a function that writes barriers between operations, and what `then` writes."""
    if len(program.ops) <= LONG:
        return then
    w.used.add("declare void @llvm.nvvm.barrier0()")

    def before(k: int, names: list[str]) -> None:
        if k % PERIOD == PERIOD - 1:
            w.do("call void @llvm.nvvm.barrier0()")
        if then is not None:
            then(k, names)

    return before
