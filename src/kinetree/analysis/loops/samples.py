"""Samples of a batch: guesses, numbers by joint and parameters with leading shapes, read in pieces without copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...errors import InputError

CHUNK = 2048
"""Samples per native call: the arrays of a call stay in the cache, and the time of the call itself is negligible."""


@dataclass(frozen=True)
class Samples:
    """Arrays of one leading shape; if it is a motion, its last axis is time, and the others are runs.

    `arrays` [..., n] are whole arrays, `entries` [..., 1] are numbers by their entry in an array. Axes along which
    numbers do not change have length 1.
    """

    lead: tuple[int, ...]
    arrays: Mapping[str, Numbers]
    entries: Mapping[str, Mapping[int, Numbers]]
    motion: bool = False

    @classmethod
    def of(
        cls, arrays: Mapping[str, Any], entries: Mapping[str, Mapping[int, Numbers]], *, motion: bool = False
    ) -> Samples:
        """Return samples of whole arrays [..., n], and of numbers [...] by their entries in such arrays."""
        given = {name: np.asarray(x, dtype=float) for name, x in arrays.items() if x is not None}
        shapes = [(name, x.shape[:-1]) for name, x in given.items()]
        shapes += [(f"{name} of a joint", np.shape(v)) for name, them in entries.items() for v in them.values()]
        try:
            lead = np.broadcast_shapes(*(shape for _, shape in shapes))
        except ValueError:
            what = ", ".join(f"{shape} ({name})" for name, shape in shapes if shape)
            raise InputError(f"the leading shapes do not fit together: {what}") from None
        if motion and not lead:
            raise InputError("a motion needs an axis of time, the last axis of the numbers of its joints; give arrays")
        whole = {name: _padded(x, lead) for name, x in given.items()}
        spread = {name: {k: _padded(v[..., None], lead) for k, v in them.items()} for name, them in entries.items()}
        return cls(lead, whole, spread, motion)

    @property
    def runs(self) -> tuple[int, ...]:
        """The leading shape without time."""
        return self.lead[:-1] if self.motion else self.lead

    @property
    def steps(self) -> int:
        """The number of instants of a motion, 1 for single positions."""
        return self.lead[-1] if self.motion else 1

    def pieces(self) -> Iterator[Piece]:
        """Yield pieces of the runs."""
        count = prod(self.runs)
        for first in range(0, count, CHUNK):
            yield Piece(self, slice(first, min(first + CHUNK, count)))

    def strides(self, name: str, units: Numbers) -> Numbers:
        """Return the largest change of the entries of an array at each instant since the one before, [steps]."""
        out = np.zeros(self.steps)
        for k, value in self.entries[name].items():
            if value.shape[-2] > 1:
                change = np.abs(np.diff(value[..., 0], axis=-1)) / units[k]
                out[1:] = np.maximum(out[1:], change.reshape(-1, self.steps - 1).max(axis=0, initial=0.0))
        return out


@dataclass(frozen=True)
class Piece:
    """Some runs of samples."""

    samples: Samples
    rows: slice

    @property
    def count(self) -> int:
        """The number of runs."""
        return self.rows.stop - self.rows.start

    def array(self, name: str, step: int = 0) -> Numbers | None:
        """Return an array at one instant, [n, .], possibly a view of one row; None if it was not given."""
        return self._some(self.samples.arrays[name], step) if name in self.samples.arrays else None

    def placed(self, name: str, into: Numbers, step: int = 0) -> Numbers:
        """Return an array [n, .] with the entries that were given by joint; a view of one row if all rows are equal."""
        found = {k: self._some(value, step)[:, 0] for k, value in self.samples.entries[name].items()}
        if into.strides[0] == 0 and all(x.strides[0] == 0 for x in found.values()):
            row = np.array(into[0])
            for k, x in found.items():
                row[k] = x[0]
            return np.broadcast_to(row, into.shape)
        out = np.array(into)
        for k, x in found.items():
            out[:, k] = x
        return out

    @cached_property
    def _index(self) -> tuple[Any, ...]:
        return np.unravel_index(np.arange(self.rows.start, self.rows.stop), self.samples.runs)

    def _some(self, x: Numbers, step: int) -> Numbers:
        if self.samples.motion:
            x = x[..., step if x.shape[-2] > 1 else 0, :]
        lead = x.shape[:-1]
        if all(n == 1 for n in lead):
            return np.broadcast_to(x.reshape(-1), (self.count, x.shape[-1]))
        if lead == self.samples.runs and x.flags.c_contiguous:
            return x.reshape(-1, x.shape[-1])[self.rows]
        return x[tuple(at if n > 1 else np.zeros_like(at) for at, n in zip(self._index, lead, strict=True))]


def _padded(x: Numbers, lead: tuple[int, ...]) -> Numbers:
    """Return an array with as many leading axes as the leading shape has."""
    return x.reshape((1,) * (len(lead) + 1 - x.ndim) + x.shape)
