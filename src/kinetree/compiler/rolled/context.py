"""The context of rolled code for every target: an array of 64-bit integers with sizes, addresses and counts."""

from __future__ import annotations

from dataclasses import dataclass

from .program import RolledProgram

FIELDS = (
    "bad",  # count of blocks with an input that is not finite
    "bad_any",  # count of blocks with any number that is not finite
    "failed",  # count of workspaces that could not be allocated
    "pool_1",  # a workspace for a single sample, or 0
    "pool",  # a workspace for a vector of samples, or 0
    "segment_count",
    "segments",  # a pointer to the segments; their entries are in program.py
    "table",  # a pointer to the numbers that all bodies share, followed by those of each body
    "shifts",  # a pointer to the thetas of the coordinates
    "vectors",  # the size of a workspace, in vectors
    "input_vectors",  # the size of its part for the inputs
    "coordinates",  # the number of coordinates whose sines are computed
    "entries",  # the number of entries of the table
    "code",  # a pointer: for each entry of the table the index of its computed number, or -1
    "make_1",  # a pointer to the function that computes numbers from parameters, for one sample
    "make",  # the same for a vector of samples
    "frame",  # the row of the frame's body
    "nv",
)
SHAPE = 3
"""The largest number of core dimensions of an array."""

PAD = 16
"""The granularity of parts of a workspace, in vectors, so that they are whole cache lines for any number of lanes."""


class Layout:
    """The index in the context of each field, of the shape of each array, and of the offset of each workspace part."""

    def __init__(self, program: RolledProgram) -> None:
        """Number the entries of the context."""
        self.arrays = (*program.inputs, "out")
        rows = (f"rows{k}" for k in range(len(program.loops)))
        self.regions = (*program.inputs, "out", "sin", "cos", "slots", "table", "made", *rows)
        names = [*FIELDS, *(f"{a}.{d}" for a in self.arrays for d in range(SHAPE)), *(f"{r}@" for r in self.regions)]
        self.places = {name: k for k, name in enumerate(names)}


@dataclass(frozen=True)
class RolledUnit:
    """A rolled program for a target to compile, with the numbers of core dimensions of its inputs and output.

    If `parametric` is true, the table depends on the last input and is computed again for each block of samples.
    """

    program: RolledProgram
    ranks: tuple[int, ...]
    parametric: bool
