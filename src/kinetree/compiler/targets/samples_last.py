"""Programs whose results are stored with the samples of a batch next to each other in memory."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.program import Program


@dataclass(frozen=True)
class SamplesLast:
    """The unit of a Program that stores each entry of a block of samples as one vector, straight from its registers.

    Any layout is correct, but only outputs whose samples are next to each other are stored this way. With `past`, the
    stores bypass the caches, and outputs must begin at cache lines. Without `zeros`, entries that are zero whatever the
    inputs are not stored there: the memory of the outputs must hold them.
    """

    program: Program
    past: bool
    zeros: bool = True
