"""What rolled code finds in its context, an array of 64-bit integers, whatever the target."""

from __future__ import annotations

from dataclasses import dataclass

from .program import RolledProgram

FIELDS = (
    "bad",  # blocks with an input that is not finite
    "bad_any",  # blocks with any number that is not finite
    "failed",  # workspaces that could not be had
    "pool_1",  # a workspace for a single sample, or 0
    "pool",  # a workspace for a vector of samples, or 0
    "segment_count",
    "segments",  # a pointer; see program.py
    "table",  # a pointer to the numbers of the bodies, after those that all share
    "shifts",  # a pointer to the thetas of the coordinates
    "vectors",  # the size of a workspace
    "input_vectors",  # of it, the inputs
    "coordinates",  # how many sines are computed
    "entries",  # the size of the table
    "code",  # a pointer: for each entry of the table which made number it is, or -1
    "make_1",  # a pointer to the function that makes numbers from parameters
    "make",
    "frame",  # the row of the frame's body
    "nv",
)
SHAPE = 3
"""The most core dimensions of an array."""

PAD = 16
"""Parts of a workspace are this many vectors, or a multiple: whole cache lines whatever the lanes."""


class Layout:
    """Where things are in the context: the fields, the shape of each array, the offset of each part of a workspace."""

    def __init__(self, program: RolledProgram) -> None:
        """Number the places."""
        self.arrays = (*program.inputs, "out")
        rows = (f"rows{k}" for k in range(len(program.loops)))
        self.regions = (*program.inputs, "out", "sin", "cos", "slots", "table", "made", *rows)
        names = [*FIELDS, *(f"{a}.{d}" for a in self.arrays for d in range(SHAPE)), *(f"{r}@" for r in self.regions)]
        self.places = {name: k for k, name in enumerate(names)}


@dataclass(frozen=True)
class RolledUnit:
    """What a target compiles: a program, and the numbers of core dimensions of its inputs and its output.

    `parametric` means that the table depends on the last input, and is computed anew for each block of samples.
    """

    program: RolledProgram
    ranks: tuple[int, ...]
    parametric: bool
