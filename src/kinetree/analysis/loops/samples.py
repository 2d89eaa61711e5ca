"""Samples of a batch: guesses, numbers by joint and parameters with leading shapes, read in pieces without copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.checks import leading_shape
from ...algebra.columns import Column, plain
from ...algebra.scalars import Numbers
from ...compiler.lower.loop_pattern import random_coordinates
from ...model.mechanism import Mechanism
from ...model.parts import GROUND, Placement
from ..joint_entries import Placed
from .kinematics import LoopKinematics, Mask

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ...algebra.scalars import Scalar

CHUNK = 2048
"""Samples per native call: the arrays of a call stay in the cache, and the time of the call itself is negligible."""


@dataclass(frozen=True)
class Samples:
    """Arrays of one leading shape; if it is a motion, its last axis is time, and the others are runs.

    `arrays` [..., n] are whole arrays, `entries` [..., n] are numbers by their entries in an array. Axes along which
    numbers do not change have length 1.
    """

    lead: tuple[int, ...]
    arrays: Mapping[str, Numbers]
    entries: Mapping[str, Placed]
    motion: bool = False

    @classmethod
    def of(
        cls, arrays: Mapping[str, ArrayLike | None], entries: Mapping[str, Placed], *, motion: bool = False
    ) -> Samples:
        """Return samples of whole arrays [..., n], and of numbers [..., n] by their entries in such arrays."""
        given = {name: np.asarray(x, dtype=float) for name, x in arrays.items() if x is not None}
        shapes = [(name, x.shape[:-1], ()) for name, x in given.items()]
        shapes += [(f"{name} of a joint", v.shape[:-1], ()) for name, them in entries.items() for v in them.values()]
        lead = leading_shape(shapes)
        whole = {name: _padded(x, lead) for name, x in given.items()}
        spread = {name: {at: _padded(v, lead) for at, v in them.items()} for name, them in entries.items()}
        return cls(lead, whole, spread, motion and bool(lead))

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
        for at, values in self.entries[name].items():
            if self.steps > 1 and values.shape[-2] > 1:
                change = np.abs(np.diff(values, axis=-2)) / units[list(at)]
                most = change.max(axis=-1).reshape(-1, self.steps - 1)
                out[1:] = np.maximum(out[1:], most.max(axis=0, initial=0.0))
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
        found = {at: self._some(values, step) for at, values in self.samples.entries[name].items()}
        if self.count > 1 and into.strides[0] == 0 and all(x.strides[0] == 0 for x in found.values()):
            row = np.array(into[0])
            for at, x in found.items():
                row[list(at)] = x[0]
            return np.broadcast_to(row, into.shape)
        out = np.array(into)
        for at, x in found.items():
            out[:, at] = x
        return out

    @cached_property
    def _index(self) -> tuple[Any, ...]:
        return np.unravel_index(np.arange(self.rows.start, self.rows.stop), self.samples.runs)

    def _some(self, x: Numbers, step: int) -> Numbers:
        if self.samples.motion:
            x = x[..., step if x.shape[-2] > 1 else 0, :]
        lead = x.shape[:-1]
        if prod(lead) == 1:
            return x.reshape(1, -1) if self.count == 1 else np.broadcast_to(x.reshape(-1), (self.count, x.shape[-1]))
        if lead == self.samples.runs and x.flags.c_contiguous:
            return x.reshape(-1, x.shape[-1])[self.rows]
        return x[tuple(at if n > 1 else np.zeros_like(at) for at, n in zip(self._index, lead, strict=True))]


def _padded(x: Numbers, lead: tuple[int, ...]) -> Numbers:
    """Return an array with as many leading axes as the leading shape has."""
    if x.ndim == len(lead) + 1:
        return x
    return x.reshape((1,) * (len(lead) + 1 - x.ndim) + x.shape)


# --- Frames of bodies at many states, whose placements may depend on free parameters ---


def values_of(mechanism: Mechanism, parameters: Numbers | None) -> Mapping[str, Scalar]:
    """Return the values of all parameters by name; those of sets of parameters [..., np] as columns."""
    if parameters is None:
        return mechanism.values()
    return mechanism.values([Column(parameters[..., k]) for k in range(parameters.shape[-1])])


def frame_pose(mechanism: Mechanism, poses: Numbers, body: str, placement: Placement) -> Numbers:
    """Return the pose [..., 4, 4] of a frame on a body."""
    lead = poses.shape[:-3]
    own = np.zeros((4, 4))
    own[3, 3] = 1.0
    turn, place = matrix(placement.rotation, lead), matrix([placement.translation], lead)
    if turn.ndim > 2 or place.ndim > 2:
        own = np.broadcast_to(own, (*lead, 4, 4)).copy()
    own[..., :3, :3], own[..., :3, 3] = turn, place[..., 0, :]
    if body == GROUND:
        return np.broadcast_to(own, (*lead, 4, 4))
    return poses[..., mechanism.body_indices[body], :, :] @ own


def matrix(rows: Sequence[Sequence[ArrayLike]], lead: tuple[int, ...]) -> Numbers:
    """Return rows of numbers and columns as an array: [n, m], or [..., n, m] if there are columns."""
    entries = [[plain(x) for x in row] for row in rows]
    if all(np.ndim(x) == 0 for row in entries for x in row):
        return np.array(entries, dtype=float)
    return np.stack([np.stack([np.broadcast_to(x, lead) for x in row], axis=-1) for row in entries], axis=-2)


# --- Starts of Newton's method for closing loops: a guess, perturbed guesses, random positions ---

STRIDE = 0.05
"""Largest step of held joints from the guess to their given values [rad, or lengths of the mechanism]."""
FAR = 400
"""The most such steps from a guess to the held values."""
NUDGES, RANDOM = 8, 16
"""Numbers of restarts from increasingly perturbed guesses, and from random positions."""


def starts(loops: LoopKinematics, q: Numbers, at: Mask, degrees: Mask) -> Iterator[Numbers]:
    """Yield the guess, increasingly perturbed guesses, and random positions, all with the held joints unchanged."""
    rng = np.random.default_rng(0)
    yield q
    for k in range(NUDGES):
        nudge = 0.05 * 1.6**k * rng.normal(size=len(degrees))
        yield np.where(at, q, loops.move(q, np.where(degrees, 0.0, nudge)))
    for _ in range(RANDOM):
        yield np.where(at, q, random_coordinates(loops.mechanism, rng))
