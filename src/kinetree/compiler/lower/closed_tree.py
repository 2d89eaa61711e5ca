"""The tree of a mechanism with loops, which also has the pattern of the equations of its loops."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from .loop_pattern import DEPENDENT_SINGLE, ROUNDING_SINGLE, Closing, closing
from .sweeps import Tree


class ClosedTree(Tree):
    """A tree on which the algorithms of closed mechanisms run; without loops it behaves as a Tree."""

    dtype = "float64"
    """The precision of the code, on which tolerances depend."""

    @cached_property
    def closing(self) -> Closing:
        """The equations of the loops that take part, and the tolerances for those that depend on others."""
        found = closing(self.mechanism)
        if self.dtype == "float32":
            return replace(found, tolerance=DEPENDENT_SINGLE, rounding=ROUNDING_SINGLE)
        return found
