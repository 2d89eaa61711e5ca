"""The tree of a mechanism with loops, which also has the pattern of the equations of its loops."""

from __future__ import annotations

from functools import cached_property

from .loop_pattern import Closing, closing
from .sweeps import Tree


class ClosedTree(Tree):
    """A tree on which the algorithms of closed mechanisms run; without loops it behaves as a Tree."""

    @cached_property
    def closing(self) -> Closing:
        """The equations of the loops that take part, and the tolerances for those that depend on others."""
        return closing(self.mechanism)
