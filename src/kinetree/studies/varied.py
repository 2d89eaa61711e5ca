"""The varied quantities of a study along its dimensions, computed when they are first used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np

from ..algebra.arrays import Numbers
from .samplings import Grid
from .space import Space


class Varied(Mapping[str, tuple[str, Numbers]]):
    """The quantities of a space by name, each with its dimension and its values along it.

    All samples of a million runs take a second of one core, for which the workers of a study would wait.
    """

    def __init__(self, space: Space) -> None:
        """Take the space of a study."""
        self._space = space

    @cached_property
    def _sampled(self) -> dict[str, Numbers]:
        return self._space.sampled(0, self._space.samples)

    def __getitem__(self, name: str) -> tuple[str, Numbers]:
        """Return the dimension of a quantity, and its values along it."""
        own = dict(self._space.over)[name]
        return self._space.dims_of(name)[0], np.array(own.values) if isinstance(own, Grid) else self._sampled[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the quantities."""
        return iter(self._space.names)

    def __len__(self) -> int:
        """Return the number of quantities."""
        return len(self._space.names)

    def __repr__(self) -> str:
        """Return the quantities as a dictionary prints them."""
        return repr(dict(self))
