"""The space of a study: its quantities by name, and their values in the order of the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from .._support.checks import whole
from ..algebra.arrays import Numbers
from ..errors import InputError, brief
from ..results.files.sizes import memory
from .samplings import Given, Grid, Sampling, Sobol, sampling, sobol_points

SAMPLE = "sample"
"""The dimension of samples beside grids."""
RUN = "run"
"""The dimension of samples without grids."""
NUMBERS = 24
"""The memory of the least results of a run [bytes]: a quantity, a measure and the time of a failure."""


@dataclass(frozen=True)
class Space:
    """Quantities with their samplings, the number of samples, and the seed of random numbers.

    The runs are all combinations of the values of the grids with the samples; the last dimension varies fastest.
    """

    over: tuple[tuple[str, Sampling], ...]
    samples: int = 1
    seed: int = 0

    @cached_property
    def dims(self) -> dict[str, int]:
        """The sizes of the dimensions by name: one per grid, then that of the samples, if there are any."""
        found = {name: len(own.values) for name, own in self.over if isinstance(own, Grid)}
        if len(found) < len(self.over):
            found[SAMPLE if found else RUN] = self.samples
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return tuple(self.dims.values())

    @property
    def runs(self) -> int:
        """The number of runs."""
        return prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the quantities."""
        return tuple(name for name, _ in self.over)

    def dims_of(self, name: str) -> tuple[str, ...]:
        """Return the dimension along which a quantity varies, as a tuple of one."""
        return (name,) if isinstance(dict(self.over)[name], Grid) else (list(self.dims)[-1],)

    def values(self, start: int, stop: int) -> dict[str, Numbers]:
        """Return the values of all quantities in the runs start to stop - 1, by name."""
        places = dict(zip(self.dims, np.unravel_index(np.arange(start, stop), self.shape), strict=True))
        out = {name: np.array(own.values)[places[name]] for name, own in self.over if isinstance(own, Grid)}
        if len(out) < len(self.over) and stop > start:
            at = places[list(self.dims)[-1]]
            low, high = int(at.min()), int(at.max()) + 1
            out |= {name: x[at - low] for name, x in self.sampled(low, high).items()}
        return {name: out.get(name, np.zeros(0)) for name in self.names}

    def sampled(self, start: int, stop: int) -> dict[str, Numbers]:
        """Return the values of all quantities that are not on grids, for samples start to stop - 1."""
        axes = [name for name, own in self.over if isinstance(own, Sobol)]
        points = sobol_points(self.seed, axes, start, stop) if axes else None
        out = {}
        for name, own in self.over:
            if isinstance(own, Sobol):
                out[name] = own.quantile(points[:, axes.index(name)])  # type: ignore[index]
            elif not isinstance(own, Grid):
                out[name] = own.at(self.seed, name, start, stop, self.samples)
        return out


def space_of(over: Any, samples: int | None, seed: int) -> Space:
    """Return the space of a study from the arguments of `study`."""
    if not isinstance(over, Mapping) or not over:
        raise InputError(f"over is {brief(over)}; give samplings by name, such as {{'k': grid(0.0, 1e3, 11)}}")
    found = tuple((str(name), sampling(given, str(name))) for name, given in over.items())
    rows = {len(own.values) for _, own in found if isinstance(own, Given)}
    if len(rows) > 1:
        raise InputError(f"over has tables of {sorted(rows)} rows; give tables of the same length")
    drawn = [name for name, own in found if not isinstance(own, Grid | Given)]
    if drawn and samples is None and not rows:
        raise InputError(f"samples is missing: {drawn[0]!r} is sampled; give the number of samples, samples=1000")
    if samples is not None and not drawn and not rows:
        raise InputError("samples is given, but all quantities are on grids; leave samples out")
    count = whole(samples, "samples") if samples is not None else next(iter(rows), 1)
    if rows and count not in rows:
        raise InputError(f"samples is {count}, but the table has {rows.pop()} rows; leave samples out")
    space = Space(found, count, whole(seed, "seed", least=0))
    if NUMBERS * space.runs > memory():
        raise InputError(
            f"the study has more runs than this machine can keep the results of, {memory() // NUMBERS:,}; give fewer "
            "samples, or fewer values of grids"
        )
    return space


# --- The varied quantities of a study along its dimensions, computed when they are first used ---


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
