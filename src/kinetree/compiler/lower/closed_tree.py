"""The tree of a mechanism with loops: the pages of closed mechanisms need to know which equations take part."""

from __future__ import annotations

from functools import cached_property

from .loop_pattern import Closing, closing
from .sweeps import Tree


class ClosedTree(Tree):
    """A tree on which pages of closed mechanisms run; without loops it is a Tree."""

    @cached_property
    def closing(self) -> Closing:
        """Which equations of the loops take part, and when one depends on the others."""
        return closing(self.mechanism)
